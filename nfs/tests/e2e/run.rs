//! Runs an NF in the real binary: captures in, captures out, and its counters.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A frame.
pub type Frame = Vec<u8>;

/// An NF to be run, and its input.
pub struct Setup {
    pub folder: TempDir,
    program: PathBuf,
    /// The key that names it in the chain file.
    kind: &'static str,
    interfaces: Vec<String>,
    config: String,
    mirror: Option<String>,
    input: BTreeMap<String, Vec<Frame>>,
    later: Option<(String, Vec<Frame>)>,
    /// Further keys of the NF in the chain file.
    keys: String,
    /// Further keys of ports, by interface, and further NFs.
    port_keys: BTreeMap<String, String>,
    more: String,
    environment: Vec<(String, String)>,
    nobody: bool,
    handlers: Vec<String>,
}

/// The result of a run.
pub struct Outcome {
    pub code: Option<i32>,
    pub stderr: String,
    pub warnings: Vec<String>,
    /// How often the NF's process was restarted.
    pub restarts: u64,
    out: BTreeMap<String, Vec<Frame>>,
    counters: BTreeMap<String, u64>,
    drops: BTreeMap<String, u64>,
    handlers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Outcome {
    /// Without the frames, whose bytes are not readable.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { code, stderr, warnings, counters, drops, .. } = self;
        write!(f, "status {code:?}, counters {counters:?}, drops {drops:?}, warnings {warnings:?}: {stderr}")
    }
}

#[derive(Deserialize)]
struct Accounts {
    imbalance: i64,
    slots_lost: u64,
    warnings: Vec<String>,
    handlers: BTreeMap<String, String>,
}

/// A program of this package, by its NF's name.
pub fn shipped(nf: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_nf-monitor")).with_file_name(format!("nf-{nf}"))
}

/// The host's binary.
pub fn millrace() -> PathBuf {
    let path = shipped("monitor").with_file_name("millrace");
    assert!(
        path.exists(),
        "{} is not there: build the whole workspace first (`cargo build`)",
        path.display()
    );
    path
}

impl Setup {
    /// An NF that ships, with interfaces and a configuration.
    pub fn new(nf: &str, interfaces: &[&str], config: &str) -> Setup {
        Setup::of(&shipped(nf), interfaces, config)
    }

    /// Any program as an NF.
    pub fn of(program: &Path, interfaces: &[&str], config: &str) -> Setup {
        Setup {
            folder: tempfile::tempdir().expect("a folder"),
            program: program.into(),
            kind: "program",
            interfaces: interfaces.iter().map(|name| (*name).to_string()).collect(),
            config: config.into(),
            mirror: None,
            input: BTreeMap::new(),
            later: None,
            keys: String::new(),
            port_keys: BTreeMap::new(),
            more: String::new(),
            environment: vec![],
            nobody: false,
            handlers: vec![],
        }
    }

    /// Adds frames that an interface receives, in this order.
    pub fn input(mut self, interface: &str, frames: &[Frame]) -> Setup {
        self.input.insert(interface.into(), frames.to_vec());
        self
    }

    /// Adds frames that an interface receives after all others have passed.
    pub fn input_later(mut self, interface: &str, frames: &[Frame]) -> Setup {
        self.later = Some((interface.into(), frames.to_vec()));
        self
    }

    /// Sets another key for the program: a `bundle` or an `image`.
    #[allow(dead_code, reason = "not every test that has this module makes containers")]
    pub fn kind(mut self, kind: &'static str) -> Setup {
        self.kind = kind;
        self
    }

    /// Sets an environment variable.
    #[allow(dead_code, reason = "not every test that has this module makes containers")]
    pub fn in_environment(mut self, name: &str, value: &str) -> Setup {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs as a user without rights.
    #[allow(dead_code, reason = "not every test that has this module makes containers")]
    pub fn by_nobody(mut self) -> Setup {
        self.nobody = true;
        self
    }

    /// Checks the chain without running it; returns the output.
    #[allow(dead_code, reason = "not every test that has this module makes containers")]
    pub fn check(&self) -> String {
        self.check_with(&[])
    }

    /// The same, and the NF is started without packets and asked whether it would run.
    #[allow(dead_code, reason = "not every test that has this module makes containers")]
    pub fn ask(&self) -> String {
        self.check_with(&["--ask"])
    }

    fn check_with(&self, options: &[&str]) -> String {
        self.write();
        let mut command = self.command();
        command.args(["check", "chain.toml", "--short"]).args(options);
        let output = command.output().expect("it runs");
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(!told.contains("panicked"), "{told}");
        told
    }

    fn command(&self) -> Command {
        let mut command = Command::new(millrace());
        command.current_dir(self.folder.path()).envs(self.environment.iter().cloned());
        if self.nobody {
            use std::os::unix::process::CommandExt;
            command.uid(65_534).gid(65_534);
        }
        command
    }

    /// Writes the chain and the input captures.
    fn write(&self) {
        let path = |name: &str| self.folder.path().join(name);
        for interface in &self.interfaces {
            let none = vec![];
            write(&path(&format!("{interface}.in.pcap")), self.input.get(interface).unwrap_or(&none));
        }
        if let Some((_, frames)) = &self.later {
            write(&path("later.pcap"), frames);
        }
        std::fs::write(path("chain.toml"), self.chain()).expect("written");
        if self.nobody {
            std::os::unix::fs::chown(self.folder.path(), Some(65_534), Some(65_534)).expect("ours");
        }
    }

    /// Adds keys of the NF in the chain file.
    pub fn keys(mut self, keys: &str) -> Setup {
        self.keys = keys.into();
        self
    }

    /// Adds keys of the port at an interface.
    #[allow(dead_code, reason = "not every test that has this module has stations")]
    pub fn port_keys(mut self, interface: &str, keys: &str) -> Setup {
        self.port_keys.insert(interface.into(), keys.into());
        self
    }

    /// Appends text to the chain file.
    #[allow(dead_code, reason = "not every test that has this module has other NFs")]
    pub fn more(mut self, text: &str) -> Setup {
        self.more = text.into();
        self
    }

    /// Reads these handlers at the end.
    #[allow(dead_code, reason = "not every test that has this module reads them")]
    pub fn reading(mut self, handlers: &[&str]) -> Setup {
        self.handlers = handlers.iter().map(|name| format!("nf/process.{name}")).collect();
        self
    }

    /// Adds a host behind an interface that returns every packet to its sender: it exchanges addresses and
    /// ports, and answers pings.
    pub fn mirror(mut self, interface: &str) -> Setup {
        self.mirror = Some(interface.into());
        self
    }

    fn chain(&self) -> String {
        let mut chain = "links = [\n".to_string();
        let (mut ports, mut nfs) = (String::new(), String::new());
        for interface in &self.interfaces {
            if self.mirror.as_ref() == Some(interface) {
                let _ = writeln!(chain, "  \"nf[{interface}] <-> [0]mirror\",");
                nfs.push_str(MIRROR);
                continue;
            }
            if self.later.as_ref().is_some_and(|(later, _)| later == interface) {
                let _ = writeln!(
                    chain,
                    "  \"nf[{interface}] -> [0]later[1] -> port-{interface}\", \"later[2] -> [{interface}]nf\","
                );
                let _ = writeln!(ports, "port-{interface} = {{ write = \"{interface}.out.pcap\" }}");
                nfs.push_str(LATER);
                continue;
            }
            let _ = writeln!(chain, "  \"port-{interface} <-> [{interface}]nf\",");
            let (capture, write) = (format!("{interface}.in.pcap"), format!("{interface}.out.pcap"));
            let keys = self.port_keys.get(interface).filter(|keys| !keys.is_empty());
            let keys = keys.map_or(String::new(), |keys| format!(", {keys}"));
            let _ = writeln!(
                ports,
                "port-{interface} = {{ capture = \"{capture}\", write = \"{write}\"{keys} }}"
            );
        }
        let (program, interfaces) = (self.program.display(), &self.interfaces);
        let config = self.config.replace('\\', "\\\\").replace('"', "\\\"");
        let kind = self.kind;
        let nf = format!("[nf.nf]\n{kind} = \"{program}\"\ninterfaces = {interfaces:?}\n{}\n", self.keys);
        format!("{chain}]\n[ports]\n{ports}{nf}config = \"\"\"\n{config}\"\"\"\n{nfs}{}", self.more)
    }

    /// Runs it.
    #[track_caller]
    pub fn run(self) -> Outcome {
        let path = |name: &str| self.folder.path().join(name);
        self.write();
        let mut command = self.command();
        command.args(["run", "chain.toml", "--json"]);
        command.args(
            ["counters", "drops", "restarts"]
                .iter()
                .flat_map(|what| ["-H".into(), format!("nf/process.{what}")]),
        );
        command.args(self.handlers.iter().flat_map(|handler| ["-H", handler]));
        let output = command.output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let accounts: Accounts =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        assert_eq!((accounts.imbalance, accounts.slots_lost), (0, 0), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        let numbers = |handler: &str| {
            let text = accounts.handlers.get(handler).cloned().unwrap_or_default();
            let split =
                |line: &str| line.rsplit_once(' ').map(|(name, n)| (name.into(), n.parse().unwrap_or(0)));
            text.lines().filter_map(split).collect()
        };
        let read_out = |interface: &String| {
            let name = if self.mirror.as_ref() == Some(interface) {
                "mirror.pcap".into()
            } else {
                format!("{interface}.out.pcap")
            };
            (interface.clone(), read(&path(&name)))
        };
        Outcome {
            code: output.status.code(),
            counters: numbers("nf/process.counters"),
            drops: numbers("nf/process.drops"),
            out: self.interfaces.iter().map(read_out).collect(),
            restarts: accounts
                .handlers
                .get("nf/process.restarts")
                .and_then(|n| n.trim().parse().ok())
                .unwrap_or(0),
            warnings: accounts.warnings,
            handlers: accounts.handlers,
            stderr,
        }
    }

    /// Runs it; returns all output.
    #[allow(dead_code, reason = "not every test that has this module asks")]
    pub fn told(self) -> String {
        self.write();
        let mut command = self.command();
        command.args(["run", "chain.toml"]);
        command.args(self.handlers.iter().flat_map(|handler| ["-H", handler]));
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Runs it, and expects that the NF rejects its configuration with all these sentences.
    #[track_caller]
    pub fn refused(self, sentences: &[&str]) {
        let outcome = self.run();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let told = outcome.warnings.join("\n");
        for sentence in sentences {
            assert!(told.contains(sentence), "no `{sentence}` in:\n{told}\n{}", outcome.stderr);
        }
    }
}

/// An NF that sends frames once it has received one.
const LATER: &str = r#"
[nf.later]
inline = """
FromDevice(0) -> ToDevice(1);
FromDump(later.pcap, TIMING false, STOP false) -> Queue -> DelayShaper(0.05) -> Unqueue -> ToDevice(2);
"""
"#;

/// A host that answers every packet, and writes a capture of the received packets.
const MIRROR: &str = r#"
[nf.mirror]
inline = """
FromDevice(0) -> seen :: Tee -> MarkIPHeader(14) -> kinds :: IPClassifier(icmp type echo, -);
seen[1] -> ToDump(mirror.pcap);
kinds[0] -> ICMPPingResponder -> back :: EtherMirror -> ToDevice(0);
kinds[1] -> IPMirror -> back;
"""
"#;

impl Outcome {
    /// Checks that the run succeeded without warnings.
    #[track_caller]
    pub fn sound(self) -> Outcome {
        assert_eq!((self.code, &self.warnings[..]), (Some(0), &[][..]), "{}", self.stderr);
        self
    }

    /// Frames that were sent by an interface.
    #[track_caller]
    pub fn out(&self, interface: &str) -> &[Frame] {
        self.out.get(interface).unwrap_or_else(|| panic!("no interface {interface}"))
    }

    /// A counter of the NF.
    #[track_caller]
    pub fn counter(&self, name: &str) -> u64 {
        *self.counters.get(name).unwrap_or_else(|| panic!("no counter {name} in {:?}", self.counters))
    }

    /// The value of a handler of the NF at the end.
    #[allow(dead_code, reason = "not every test that has this module reads them")]
    #[track_caller]
    pub fn handler(&self, name: &str) -> &str {
        let name = format!("nf/process.{name}");
        self.handlers.get(&name).unwrap_or_else(|| panic!("no {name} in {:?}", self.handlers))
    }

    /// Packets that the NF dropped, by reason.
    pub fn drops(&self) -> Vec<(&str, u64)> {
        self.drops.iter().map(|(name, count)| (name.as_str(), *count)).collect()
    }
}

/// Writes a capture. The end-to-end tests of `millrace` have the same function: what both share, `testkit`,
/// is below every crate and stays without the capture library.
pub fn write(path: &Path, frames: &[Frame]) {
    let header = PcapHeader {
        ts_resolution: TsResolution::NanoSecond,
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(File::create(path).expect("made"), header).expect("written");
    for (at, frame) in frames.iter().enumerate() {
        let time = Duration::from_micros(1_000_000_000_000 + at as u64);
        writer.write_packet(&PcapPacket::new(time, frame.len() as u32, frame)).expect("written");
    }
}

/// The frames of a capture; none if the file does not exist.
pub fn read(path: &Path) -> Vec<Frame> {
    let Ok(file) = File::open(path) else { return vec![] };
    let mut reader = PcapReader::new(std::io::BufReader::new(file)).expect("a capture");
    let mut frames = vec![];
    while let Some(record) = reader.next_packet() {
        frames.push(record.expect("a record").data.into_owned());
    }
    frames
}
