//! What an NF may do and use, as plain data.

use std::path::PathBuf;

/// Which sockets an NF may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sockets {
    /// Those it inherits, and pairs of its own: it reaches nobody by name.
    #[default]
    Inherited,
    /// UNIX sockets by path, too.
    Local,
    /// IPv4 and IPv6, too.
    Network,
}

/// What an NF may do and use. The default is as narrow as the machine lets it be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) sockets: Sockets,
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) processes: u32,
    pub(crate) open_files: u64,
    pub(crate) cpu_weight: u32,
    pub(crate) own_pids: bool,
}

impl Default for Confinement {
    fn default() -> Self {
        Confinement {
            user: None,
            sockets: Sockets::default(),
            reads: vec![],
            writes: vec![],
            memory_bytes: Some(1 << 30),
            processes: 256,
            open_files: 1024,
            cpu_weight: 100,
            own_pids: true,
        }
    }
}

impl Confinement {
    /// No user id of its own yet, inherited sockets only, the system's programs and libraries to read, 1 GiB of
    /// memory, 256 processes and threads, 1024 descriptors.
    pub fn new() -> Self {
        Self::default()
    }

    /// The user and the group that it runs as; it is in no other group. Give each NF a number that nobody else
    /// has: who shares one may send signals and shares the limit on processes.
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.user = Some((user, group));
        self
    }

    /// Which sockets it may use.
    pub fn sockets(mut self, sockets: Sockets) -> Self {
        self.sockets = sockets;
        self
    }

    /// Grants reading of a file, or of everything beneath a folder. User ids and modes of files still count.
    pub fn reads(mut self, path: impl Into<PathBuf>) -> Self {
        self.reads.push(path.into());
        self
    }

    /// Grants reading and writing of a file, or of everything beneath a folder, in which it may also make and
    /// remove files. User ids and modes of files still count.
    pub fn writes(mut self, path: impl Into<PathBuf>) -> Self {
        self.writes.push(path.into());
        self
    }

    /// Memory that all its processes together may use, in bytes; `None` for no limit. Pages of shared memory count
    /// for whoever touches them first: the host touches those of packets before it shares them.
    pub fn memory_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.memory_bytes = most.into();
        self
    }

    /// Processes and threads that it may have at a time.
    pub fn processes(mut self, most: u32) -> Self {
        self.processes = most;
        self
    }

    /// Descriptors that each of its processes may open.
    pub fn open_files(mut self, most: u64) -> Self {
        self.open_files = most;
        self
    }

    /// Its share of a contended core, from 1 to 10,000, where everybody has 100.
    pub fn cpu_weight(mut self, weight: u32) -> Self {
        self.cpu_weight = weight.clamp(1, 10_000);
        self
    }

    /// Whether it runs in a PID namespace of its own, as its first process; true unless said otherwise.
    ///
    /// The kernel then ends everything of the NF with it, also when the host is killed. The price: a first process
    /// ignores signals that it has no handler for. It is ended by [`crate::Confined::ask_to_end`] all the same, a
    /// fault still kills it, but `abort()` shows as a segmentation fault, and writing to a closed pipe is an error
    /// instead of its end.
    pub fn own_pids(mut self, own: bool) -> Self {
        self.own_pids = own;
        self
    }
}
