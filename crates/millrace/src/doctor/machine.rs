//! The machine that probes examine: files below a root folder, and the running kernel.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A socket family whose support is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    /// AF_XDP.
    Xdp,
    /// AF_PACKET, raw.
    Packet,
}

/// The availability of a kernel feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It works.
    Works,
    /// It exists, and this process may not use it.
    Denied,
    /// It does not exist.
    Absent,
}

/// The result of running a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It succeeded; its standard output.
    Output(String),
    /// It failed, or could not be started.
    Failed,
    /// It did not end in time and was stopped.
    TimedOut,
    /// There is no such program.
    NotInstalled,
}

/// Queries of the running system, which are no reads of files. Tests implement it with prepared answers.
pub trait Kernel: Sync {
    /// Opens a socket of this kind and closes it.
    fn socket(&self, kind: SocketKind) -> Offer;

    /// Runs a program without input.
    fn ask(&self, program: &str, arguments: &[&str]) -> Answer;

    /// The mechanisms that can confine NFs.
    fn confinement(&self) -> Vec<confine::Offer>;

    /// Whether this container runtime can run NFs in containers, else the reason; `None` if Millrace does not
    /// support the runtime.
    fn makes_containers(&self, runtime: &str) -> Option<Result<(), String>>;
}

/// The machine under examination.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    root: &'a Path,
    /// The running system.
    pub kernel: &'a dyn Kernel,
}

/// The most that is read of a file; the kernel's files are shorter.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl<'a> Machine<'a> {
    /// A machine whose files are below `root`.
    pub fn new(root: &'a (impl AsRef<Path> + ?Sized), kernel: &'a dyn Kernel) -> Self {
        Self { root: root.as_ref(), kernel }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without the white space around it; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = fs::File::open(self.path(path)).ok()?;
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number in a file that contains nothing else.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// The names in a folder, those with numbers sorted by number; empty if it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_by_key(|name| {
            let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            let stem = name.len() - digits.len();
            (name.get(..stem).unwrap_or_default().to_owned(), digits.parse::<u64>().ok(), name.clone())
        });
        names
    }

    /// The last component of a symbolic link's target.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether a path exists.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Whether a device can be opened for reading and writing.
    pub fn open(&self, path: &str) -> Offer {
        match fs::OpenOptions::new().read(true).write(true).open(self.path(path)) {
            Ok(_) => Offer::Works,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Offer::Absent,
            Err(_) => Offer::Denied,
        }
    }

    /// The value of `key` in a file of lines `key : value` (`/proc/cpuinfo`, `/proc/meminfo`).
    pub fn field(&self, path: &str, key: &str) -> Option<String> {
        value_of(&self.read(path)?, key)
    }

    /// Whether the processor has a feature, by its name in `/proc/cpuinfo`.
    pub fn cpu_flag(&self, flag: &str) -> bool {
        let flags = self.field("/proc/cpuinfo", "flags");
        flags.is_some_and(|flags| flags.split_whitespace().any(|word| word == flag))
    }

    /// Whether this process has a capability in its effective set, by its number (`linux/capability.h`).
    pub fn capability(&self, number: u32) -> bool {
        self.capability_in("CapEff", number)
    }

    /// Whether a set of capabilities of `/proc/self/status` has this one: `CapEff`, or `CapBnd` of those
    /// within reach.
    pub fn capability_in(&self, set: &str, number: u32) -> bool {
        let bits = self.field("/proc/self/status", set).unwrap_or_default();
        u64::from_str_radix(&bits, 16).is_ok_and(|bits| bits >> number & 1 == 1)
    }
}

/// The value of `key` in lines `key : value`.
pub fn value_of(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// The system on which this program runs.
pub struct LiveKernel;

/// How long a program may run. Two programs in a row stay within the two seconds for all probes.
const PATIENCE: Duration = Duration::from_millis(900);

impl Kernel for LiveKernel {
    fn confinement(&self) -> Vec<confine::Offer> {
        confine::probe()
    }

    fn makes_containers(&self, runtime: &str) -> Option<Result<(), String>> {
        use container::runtime::{Installed, Runtime};
        Runtime::of_name(runtime).map(|runtime| runtime.works())
    }

    fn socket(&self, kind: SocketKind) -> Offer {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
        let family = match kind {
            SocketKind::Xdp => AddressFamily::XDP,
            SocketKind::Packet => AddressFamily::PACKET,
        };
        // With protocol 0, a packet socket receives nothing.
        match socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None) {
            Ok(_) => Offer::Works,
            Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => Offer::Denied,
            Err(_) => Offer::Absent,
        }
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Answer {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            // The search fails with EACCES if this user may not read a folder of the search path.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                return Answer::NotInstalled;
            }
            Err(_) => return Answer::Failed,
        };
        let status = match nf_host::process::end_within(&mut child, PATIENCE) {
            Ok(Some(status)) => status,
            Ok(None) => return Answer::TimedOut,
            Err(_) => return Answer::Failed,
        };
        let mut output = Vec::new();
        // The program has ended, so its output was shorter than the pipe's buffer.
        let read = child.stdout.take().map(|pipe| pipe.take(64 * 1024).read_to_end(&mut output));
        match read {
            Some(Ok(_)) if status.success() => Answer::Output(String::from_utf8_lossy(&output).into_owned()),
            _ => Answer::Failed,
        }
    }
}
