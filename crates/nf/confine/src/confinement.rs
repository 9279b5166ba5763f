//! The rights and limits of an NF, as plain data.

use std::path::PathBuf;

/// Which sockets an NF may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sockets {
    /// Inherited sockets, and socket pairs of its own: it cannot connect by name.
    #[default]
    Inherited,
    /// The same and UNIX sockets by path.
    Local,
    /// The same and IPv4 and IPv6.
    Network,
}

/// The rights and limits of an NF. The default is as narrow as possible.
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
    /// No user id of its own, inherited sockets only, read access to the system's programs and libraries, 1 GiB of
    /// memory, 256 processes and threads, 1024 descriptors.
    pub fn new() -> Self {
        Self::default()
    }

    /// The user and the group that it runs as; it is in no other group. Each NF needs a user id of its own: processes
    /// of the same user may send each other signals and share the limit on processes.
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.user = Some((user, group));
        self
    }

    /// The sockets that it may use.
    pub fn sockets(mut self, sockets: Sockets) -> Self {
        self.sockets = sockets;
        self
    }

    /// Grants reading of a file, or of everything in a directory. User ids and modes of files still apply.
    pub fn reads(mut self, path: impl Into<PathBuf>) -> Self {
        self.reads.push(path.into());
        self
    }

    /// Grants reading and writing of a file, or of everything in a directory, where it may also create and remove
    /// files. User ids and modes of files still apply.
    pub fn writes(mut self, path: impl Into<PathBuf>) -> Self {
        self.writes.push(path.into());
        self
    }

    /// Memory that all its processes together may use, in bytes; `None` for no limit. A page of shared memory counts
    /// for the process that touches it first: the host touches packet memory before it shares it.
    pub fn memory_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.memory_bytes = most.into();
        self
    }

    /// The most processes and threads that it may have at a time.
    pub fn processes(mut self, most: u32) -> Self {
        self.processes = most;
        self
    }

    /// The most descriptors that each of its processes may open.
    pub fn open_files(mut self, most: u64) -> Self {
        self.open_files = most;
        self
    }

    /// Its share of a contended core, from 1 to 10,000; the default of every process is 100.
    pub fn cpu_weight(mut self, weight: u32) -> Self {
        self.cpu_weight = weight.clamp(1, 10_000);
        self
    }

    /// Whether it runs in a PID namespace of its own, as the first process; true by default.
    ///
    /// The kernel then kills everything of the NF when its first process ends, also when the host is killed. The price
    /// is that a first process ignores signals without a handler. [`crate::Confined::ask_to_end`] still ends it, and a
    /// fault still kills it, but `abort()` appears as a segmentation fault, and a write to a closed pipe is an error
    /// instead of a signal that kills.
    pub fn own_pids(mut self, own: bool) -> Self {
        self.own_pids = own;
        self
    }
}
