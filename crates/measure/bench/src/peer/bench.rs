//! The environment of a system: two namespaces, two cables between them, and the system's processes.

use super::space::last_lines;
use super::{Adapter, Missing, Peer, Space, Variables};
use crate::BenchError;
use crate::start::failed;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// MAC addresses: the tester's sending device, the system's two devices, the tester's receiving device, and
/// the next hop. The next hop is no device, so that the tester's kernel drops the frames at once.
const MACS: [&str; 5] =
    ["02:00:00:6d:72:01", "02:00:00:6d:72:02", "02:00:00:6d:72:03", "02:00:00:6d:72:04", "02:00:00:6d:72:05"];
/// Names of the devices, in that order. Device names are per namespace.
const DEVICES: [&str; 4] = ["mr-send", "mr-in", "mr-out", "mr-receive"];

/// How to set up a system.
#[derive(Clone, PartialEq, Debug)]
pub struct BenchOptions {
    /// The core that the system's processes are pinned to, and on which the kernel processes what its devices
    /// receive.
    pub core: usize,
    /// The MTU of all devices, in bytes.
    pub mtu: u32,
    /// This program, for adapters that run it.
    pub millrace: PathBuf,
}

/// A running system between two devices of the tester.
pub struct Bench {
    // These processes end with the namespaces; here they are only reaped.
    system: Space,
    tester: Space,
    stays: Vec<Child>,
    adapter: Option<Adapter>,
    variables: Variables,
    folder: PathBuf,
    core: usize,
}

impl Bench {
    /// The tester's sending device.
    pub const SEND: &str = DEVICES[0];
    /// The tester's receiving device.
    pub const RECEIVE: &str = DEVICES[3];
    /// The source MAC address of the tester's frames.
    pub const SOURCE: &str = MACS[0];
    /// The destination MAC address of the tester's frames.
    pub const DESTINATION: &str = MACS[1];

    /// Connects two devices of the tester by one cable, to measure the tester's own limit.
    ///
    /// # Errors
    /// Says what the machine lacks.
    pub fn cable(options: &BenchOptions) -> Result<Bench, Missing> {
        let bench = Bench::spaces(options)?;
        let [send, _, _, receive] = DEVICES;
        bench.connect(options, (send, MACS[0]), (receive, MACS[1]), bench.tester.pid())?;
        bench.pin_receive(&bench.tester, receive, options.core)?;
        Ok(bench)
    }

    /// Starts a system.
    ///
    /// # Errors
    /// Says what the machine lacks, or what the system printed when it did not start.
    pub fn start(peer: &Peer, options: &BenchOptions) -> Result<Bench, Missing> {
        if let Some(missing) = peer.adapter.missing() {
            return Err(missing);
        }
        let mut bench = Bench::spaces(options)?;
        let [send, ingress, egress, receive] = DEVICES;
        bench.connect(options, (send, MACS[0]), (ingress, MACS[1]), bench.system.pid())?;
        bench.connect(options, (receive, MACS[3]), (egress, MACS[2]), bench.system.pid())?;
        for device in [ingress, egress] {
            bench.pin_receive(&bench.system, device, options.core)?;
        }
        bench.variables =
            std::mem::take(&mut bench.variables).with("form", peer.mode.clone().unwrap_or_default());
        bench.adapter = Some(peer.adapter.clone());
        bench.launch(&peer.adapter)?;
        Ok(bench)
    }

    fn spaces(options: &BenchOptions) -> Result<Bench, Missing> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("millrace-peer-{}-{number}", std::process::id()));
        let (system, tester) = (Space::with_folder(&folder)?, Space::new()?);
        std::fs::create_dir_all(&folder)
            .map_err(|error| Missing(format!("no folder {}: {error}", folder.display())))?;
        let variables = Variables::default()
            .with("in", DEVICES[1])
            .with("out", DEVICES[2])
            .with("in_mac", MACS[1])
            .with("out_mac", MACS[2])
            .with("peer_mac", MACS[4])
            .with("core", options.core.to_string())
            .with("cores", mask(options.core))
            .with("folder", folder.display().to_string())
            .with("millrace", options.millrace.display().to_string());
        Ok(Bench { system, tester, stays: vec![], adapter: None, variables, folder, core: options.core })
    }

    /// Connects a device of the tester to another device by a veth cable.
    fn connect(
        &self,
        options: &BenchOptions,
        (ours, our_mac): (&str, &str),
        (theirs, their_mac): (&str, &str),
        pid: &str,
    ) -> Result<(), Missing> {
        let mtu = options.mtu;
        let other = if pid == self.tester.pid() { &self.tester } else { &self.system };
        let line = format!(
            "ip link add {ours} address {our_mac} mtu {mtu} type veth \
             peer name {theirs} address {their_mac} mtu {mtu} netns {pid}; ip link set {ours} up"
        );
        let made = self.tester.run_outside(&line);
        made.and_then(|_| other.run_outside(&format!("ip link set {theirs} up"))).map(drop).map_err(Missing)
    }

    /// Makes the kernel process on `core` what a device receives, as for a NIC that interrupts that core. By
    /// default the kernel processes it on the sender's core: the tester's.
    fn pin_receive(&self, space: &Space, device: &str, core: usize) -> Result<(), Missing> {
        let line = format!("echo {} > /sys/class/net/{device}/queues/rx-0/rps_cpus", mask(core));
        space.run(&line, None).map(drop).map_err(Missing)
    }

    fn launch(&mut self, adapter: &Adapter) -> Result<(), Missing> {
        for (name, text) in &adapter.files {
            let path = self.folder.join(name);
            std::fs::write(&path, self.variables.fill(text.as_ref()))
                .map_err(|error| Missing(format!("cannot write {}: {error}", path.display())))?;
        }
        for line in &adapter.start {
            let line = self.variables.fill(line.as_ref().trim());
            match line.strip_suffix('&') {
                Some(stays) => self.spawn(stays.trim_end())?,
                None => {
                    self.system.run(&line, Some(self.core)).map_err(|told| self.failed(&told))?;
                }
            }
        }
        let Some(ready) = &adapter.ready else { return Ok(()) };
        let ready = self.variables.fill(ready.as_ref());
        let until = Instant::now() + Duration::from_secs_f64(adapter.ready_seconds.clamp(0.0, 600.0));
        loop {
            match self.system.run(&ready, Some(self.core)) {
                Ok(_) => return Ok(()),
                Err(told) if Instant::now() >= until => return Err(self.failed(&told)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Starts a command that stays in the background; its output goes to a file.
    fn spawn(&mut self, line: &str) -> Result<(), Missing> {
        let failed = |error: std::io::Error| Missing(format!("`{line}`: {error}"));
        let log = OpenOptions::new().create(true).append(true).open(self.log()).map_err(failed)?;
        let mut command = self.system.command(line, Some(self.core));
        let stays = command
            .stdout(Stdio::from(log.try_clone().map_err(failed)?))
            .stderr(Stdio::from(log))
            .spawn()
            .map_err(failed)?;
        self.stays.push(stays);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn failed(&self, told: &str) -> Missing {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        match log.trim().is_empty() {
            true => Missing(format!("it did not start: {told}")),
            false => Missing(format!("it did not start: {told}; it said: {}", last_lines(&log))),
        }
    }

    /// Why the system has ended, if one of its background processes has ended.
    pub fn ended(&mut self) -> Option<String> {
        let is_over = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if !self.stays.iter_mut().any(is_over) {
            return None;
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        Some(format!("it ended by itself: {}", last_lines(&log)))
    }

    /// The version that the system prints.
    pub fn version(&self) -> Option<String> {
        let line = self.adapter.as_ref()?.version.as_ref()?;
        let told = self.system.run(&self.variables.fill(line.as_ref()), None).ok()?;
        told.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_string)
    }

    /// The namespace of the tester's devices.
    ///
    /// # Errors
    /// When the namespace no longer exists.
    pub fn network(&self) -> Result<std::fs::File, BenchError> {
        let gone = |error| failed(format!("the tester's namespace is gone: {error}"));
        self.tester.network().map_err(gone)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for line in self.adapter.iter().flat_map(|adapter| &adapter.stop) {
            // On an error, the processes end with the namespaces below.
            let _ = self.system.run(&self.variables.fill(line.as_ref()), Some(self.core));
        }
        self.system.end();
        for mut child in self.stays.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A core as a CPU mask in the kernel's format: groups of 32 bits in hexadecimal.
fn mask(core: usize) -> String {
    let group = format!("{:x}", 1u32 << (core % 32));
    group + &",00000000".repeat(core / 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bench {
        /// Runs a command line in the system's namespaces.
        pub(in crate::peer) fn run(&self, line: &str) -> Result<String, String> {
            self.system.run(&self.variables.fill(line), None)
        }

        /// The system's folder.
        pub(in crate::peer) fn folder(&self) -> &std::path::Path {
            &self.folder
        }
    }

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!([0, 1, 5, 31].map(mask), ["1", "2", "20", "80000000"]);
        assert_eq!(mask(33), "2,00000000");
    }
}
