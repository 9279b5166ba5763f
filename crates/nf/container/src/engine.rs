//! Images by name, which podman or docker stores and runs.
//!
//! These engines pass no descriptors on, and start containers outside of any enclosure. The NF attaches at a
//! socket that is mounted into its container, and is accepted if the kernel reports that it is inside. The NF
//! has ended, as always, when nothing in its PID namespace runs. The difference is that a killed host does
//! not end it: it ends by itself when its socket is closed, as the SDK does, and otherwise the next host
//! removes it.

use crate::container_dirs::{Folder, pid_namespace};
use crate::runtime::{Chosen, Installed, Runtime};
use crate::{config, image};
use confine::Sockets;
use nf::socket::Socket;
use nf_host::process::{EVEN_SHARE, LaunchError, MEMORY_BYTES, alone, end_within, outputs, user};
use nf_host::{Command, Instance, peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a container may take until its NF attaches.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is checked whether the NF is still wanted.
const TURN: Duration = Duration::from_millis(50);
/// How long an engine may take to remove a container.
const GRACE: Duration = Duration::from_secs(10);
/// The path of the socket inside.
const SOCKET_INSIDE: &str = "/run/millrace-nf.sock";
/// The label of Millrace's containers.
pub const LABEL: &str = "millrace.host";

/// Checks that an engine has an image of that name.
///
/// # Errors
///
/// When it has none, with a remedy.
pub fn has_image(chosen: &Chosen, image: &str) -> Result<(), String> {
    let name = chosen.runtime.name();
    let format = "{{.Architecture}}";
    let asked = chosen.command().args(["image", "inspect", "--format", format, image]).output();
    let asked = asked.map_err(|error| format!("{name}: {error}"))?;
    if !asked.status.success() {
        return Err(format!("{name} has no image `{image}`: {name} pull {image}, or {name} load"));
    }
    let made_for = String::from_utf8_lossy(&asked.stdout).trim().to_string();
    if made_for != image::architecture() {
        return Err(format!(
            "the image `{image}` is for {made_for}, and this machine is {}",
            image::architecture()
        ));
    }
    Ok(())
}

/// A container that an engine runs.
pub struct Engine {
    /// The engine's process, which runs as long as the container.
    child: Option<Child>,
    chosen: Chosen,
    id: String,
    pub pidfd: OwnedFd,
    pub pid: u64,
}

impl Engine {
    /// Kills all of it at once.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits up to `patience` for its end.
    pub fn wait(&self, patience: Duration) {
        let patience = Timespec::try_from(patience).ok();
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], patience.as_ref());
    }
}

impl Drop for Engine {
    /// Has the engine remove it, on a thread: that takes a while.
    fn drop(&mut self) {
        self.kill();
        let Some(child) = self.child.take() else { return };
        let (chosen, id) = (self.chosen.clone(), self.id.clone());
        let _ = std::thread::Builder::new().name("forget".into()).spawn(move || forget(&chosen, &id, child));
    }
}

fn forget(chosen: &Chosen, id: &str, mut child: Child) {
    // The engine removes the container by itself if all goes well.
    let _ = end_within(&mut child, GRACE);
    remove(chosen, &[id.to_string()]);
}

fn remove(chosen: &Chosen, ids: &[String]) {
    let mut remove = chosen.command();
    remove.args(["rm", "--force"]).args(ids).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = remove.status();
}

/// Removes the containers of a host that has ended.
pub fn sweep(host: &str) {
    for runtime in [Runtime::Podman, Runtime::Docker] {
        let Some(program) = runtime.program() else { continue };
        let chosen = Chosen { runtime, program };
        let filter = format!("label={LABEL}={host}");
        let Ok(left) = chosen.command().args(["ps", "--all", "--quiet", "--filter", &filter]).output() else {
            continue;
        };
        let ids: Vec<String> =
            String::from_utf8_lossy(&left.stdout).split_whitespace().map(str::to_owned).collect();
        if !ids.is_empty() {
            remove(&chosen, &ids);
        }
    }
}

/// Starts the container of an instance, and waits until its NF has attached. Returns its directory, the
/// socket to the NF and the thread that reads its output, too.
pub fn spawn(
    instance: &Arc<Instance>,
    command: &Command,
    chosen: &Chosen,
) -> Result<(Engine, Folder, Socket, JoinHandle<()>), LaunchError> {
    let name = &instance.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| LaunchError::step(name, what, why);
    let image = command.program.display().to_string();
    let folder = Folder::make(name).map_err(|why| failed("make a folder for its container", &why))?;
    folder.note_engine().map_err(|error| failed("make a folder for its container", &error))?;
    let socket = AttachSocket::open(&folder).map_err(|error| failed("make a socket", &error))?;
    let words = arguments(instance, &image, command, &folder, &socket)
        .map_err(|why| failed("make its container", &why))?;
    let mut run = chosen.command();
    run.args(words);
    let one = alone();
    let (output, errors, log) = outputs(instance)?;
    let child = run.stdout(output).stderr(errors).spawn();
    drop((one, run));
    let mut child = child.map_err(|error| failed(&format!("start {}", chosen.runtime.name()), &error))?;
    let id = folder.id.clone();
    let came = socket.await_nf(instance, &mut child, &folder);
    let (socket, pid, pidfd) = match came {
        Ok(came) => came,
        Err(why) => {
            // Everything is removed before the next attempt.
            let _ = child.kill();
            forget(chosen, &id, child);
            let why = has_image(chosen, &image).err().unwrap_or(why);
            return Err(LaunchError::NotAttached { nf: name.clone(), why });
        }
    };
    let mut status = instance.status();
    (status.isolation, status.not_enforced) = isolation(instance, chosen);
    drop(status);
    let engine = Engine { child: Some(child), chosen: chosen.clone(), id, pidfd, pid };
    Ok((engine, folder, socket, log))
}

/// The arguments by which an engine runs an image, confined like all other NFs.
fn arguments(
    instance: &Instance,
    image: &str,
    command: &Command,
    folder: &Folder,
    socket: &AttachSocket,
) -> Result<Vec<OsString>, String> {
    let terms = &instance.spec.terms;
    let rights = terms.rights.as_ref().ok_or("nothing else confines it: leave `confine` out")?;
    let profile = folder.path.join("seccomp.json");
    // It connects to its host by a path.
    let sockets = if rights.network { Sockets::Network } else { Sockets::Local };
    let seccomp = config::seccomp(sockets).to_string();
    std::fs::write(&profile, seccomp).map_err(|error| error.to_string())?;
    let user = user(instance);
    let mut words: Vec<OsString> =
        ["run", "--rm", "--pull", "never", "--read-only", "--cap-drop", "ALL"].map(OsString::from).to_vec();
    let mut add = |key: &str, value: String| words.extend([OsString::from(key), value.into()]);
    add("--name", (&folder.id).into());
    add("--label", format!("{LABEL}={}", folder.host()));
    add("--cidfile", folder.path.join("cid").display().to_string());
    add("--network", if rights.network { "host" } else { "none" }.into());
    add("--security-opt", "no-new-privileges".into());
    add("--security-opt", format!("seccomp={}", profile.display()));
    add("--user", format!("{user}:{user}"));
    add("--tmpfs", "/tmp:rw,nosuid,nodev,noexec,size=16m".into());
    let memory = rights.memory_bytes.unwrap_or(MEMORY_BYTES);
    add("--memory", memory.to_string());
    add("--pids-limit", config::PROCESSES.to_string());
    let weight = rights.cpu_share.unwrap_or(EVEN_SHARE);
    add("--cpu-shares", confine::cpu_shares(weight).to_string());
    for (name, most) in config::limits() {
        add("--ulimit", format!("{name}={most}:{most}"));
    }
    if !terms.cores.is_empty() {
        let cores: Vec<String> = terms.cores.iter().map(ToString::to_string).collect();
        add("--cpuset-cpus", cores.join(","));
    }
    add("--env", format!("{}={SOCKET_INSIDE}", nf::ENVIRONMENT));
    if instance.is_check {
        add("--env", format!("{}=1", nf::CHECK_ENVIRONMENT));
    }
    add("--volume", format!("{}:{SOCKET_INSIDE}", socket.path.display()));
    let granted = rights.reads.iter().map(|path| (path, "ro"));
    for (path, mode) in granted.chain(rights.writes.iter().map(|path| (path, "rw"))) {
        let shown =
            std::path::absolute(path).map_err(|error| format!("cannot grant {}: {error}", path.display()))?;
        let source =
            path.canonicalize().map_err(|error| format!("cannot grant {}: {error}", path.display()))?;
        add("--volume", format!("{}:{}:{mode}", source.display(), shown.display()));
    }
    words.push(image.into());
    words.extend(command.arguments.iter().map(OsString::from));
    Ok(words)
}

/// Sentences about the enforced isolation, and about the parts that are not enforced.
fn isolation(instance: &Instance, chosen: &Chosen) -> (Vec<String>, Vec<String>) {
    let not = format!(
        "end with the host: {} starts it, where a host that is killed does not end it: it ends when its socket hangs up",
        chosen.runtime.name()
    );
    let mut lines = vec![
        format!("container: by {}", chosen.runtime.name()),
        "descendants: they end with it, in a PID namespace".into(),
        format!("user id: user {}, group {0}, no other", user(instance)),
    ];
    lines.extend(instance.spec.terms.rights.iter().flat_map(config::said_of));
    lines.push(format!("not enforced: {not}"));
    (lines, vec![not])
}

/// The socket at which the NF of one container attaches.
struct AttachSocket {
    listener: OwnedFd,
    path: PathBuf,
}

impl AttachSocket {
    /// Opens it in a directory that no other user may enter; only the socket is mounted inside.
    fn open(folder: &Folder) -> std::io::Result<AttachSocket> {
        let place = folder.path.join("door");
        std::fs::DirBuilder::new().mode(0o700).create(&place)?;
        let path = place.join("nf.sock");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path)?)?;
        // Every process that sees the mount may connect; the peer is checked after that.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
        rustix::net::listen(&listener, 1)?;
        Ok(AttachSocket { listener, path })
    }

    /// Waits for the NF; returns its socket, and the process id and pidfd of its container's first process.
    fn await_nf(
        &self,
        instance: &Instance,
        child: &mut Child,
        folder: &Folder,
    ) -> Result<(Socket, u64, OwnedFd), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!(
                    "its container ended before it attached ({status}); what it wrote says why, or it does not link the SDK"
                ));
            }
            if Instant::now() > end {
                return Err(format!(
                    "it did not attach in {} s: does it link the SDK, and call it?",
                    PATIENCE.as_secs()
                ));
            }
            if !instance.is_wanted() {
                return Err("it was stopped before it attached".into());
            }
            let turn = Timespec::try_from(TURN).ok();
            let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], turn.as_ref());
            let Ok(peer) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) else { continue };
            match first_process(&peer, &folder.path.join("cid")) {
                Ok((pid, pidfd)) => return Ok((Socket::new(peer), pid, pidfd)),
                Err(why) => instance.log.push(format!("-- somebody was not let in: {why}")),
            }
        }
    }
}

/// The first process of a peer's container, if that is the container whose id the engine has written.
fn first_process(peer: &OwnedFd, cid: &Path) -> Result<(u64, OwnedFd), String> {
    let held = peer::pidfd(peer).map_err(|error| error.to_string())?;
    let peer = peer::number(&held).ok_or("it has ended")?;
    let cid = std::fs::read_to_string(cid)
        .map_err(|error| format!("the engine has not named the container: {error}"))?;
    let cid = cid.trim();
    let groups = std::fs::read_to_string(format!("/proc/{peer}/cgroup")).unwrap_or_default();
    if cid.is_empty() || !groups.contains(cid) {
        return Err(format!("process {peer} is not in its container"));
    }
    let inside =
        pid_namespace(peer).filter(|inside| Some(inside) != pid_namespace(std::process::id()).as_ref());
    let inside = inside.ok_or_else(|| format!("process {peer} is in no PID namespace of its own"))?;
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_first = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        numbers.split_whitespace().last() == Some("1")
    };
    let mut within = numbers.filter(|pid| pid_namespace(*pid).as_ref() == Some(&inside));
    let first = if is_first(&peer) { Some(peer) } else { within.find(is_first) };
    let first = first.ok_or_else(|| format!("process {peer} is alone in its PID namespace"))?;
    let raw = i32::try_from(first).ok().and_then(Pid::from_raw).ok_or("a process without a number")?;
    let pidfd = pidfd_open(raw, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    // While the pidfd is open, the process id still belongs to it, or the process has ended, which the pidfd
    // reports.
    if pid_namespace(first).as_ref() != Some(&inside) {
        return Err(format!("process {first} has ended"));
    }
    Ok((u64::from(first), pidfd))
}
