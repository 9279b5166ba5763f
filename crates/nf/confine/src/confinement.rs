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
    /// The user and the group that it runs as; it is in no other group. By default it has no user id of its
    /// own. Each NF needs one: processes of the same user may send each other signals and share the limit on
    /// processes.
    pub user: Option<(u32, u32)>,
    /// The sockets that it may use.
    pub sockets: Sockets,
    /// Files, and directories with everything in them, that it may read beside the system's programs and
    /// libraries. User ids and modes of files still apply.
    pub reads: Vec<PathBuf>,
    /// The same for reading and writing; in a directory it may also create and remove files.
    pub writes: Vec<PathBuf>,
    /// Memory that all its processes together may use, in bytes; `None` for no limit. A page of shared memory
    /// counts for the process that touches it first: the host touches packet memory before it shares it.
    pub memory_bytes: Option<u64>,
    /// The most processes and threads that it may have at a time.
    pub processes: u32,
    /// The most descriptors that each of its processes may open.
    pub open_files: u64,
    /// Its share of a contended core, from 1 to 10,000; the default of every process is 100.
    pub cpu_weight: u32,
    /// Whether it runs in a PID namespace of its own, as the first process; true by default.
    ///
    /// The kernel then kills everything of the NF when its first process ends, also when the host is killed.
    /// The price is that a first process ignores signals without a handler. A fault still kills it, but
    /// `abort()` appears as a segmentation fault, and a write to a closed pipe is an error instead of a
    /// signal that kills.
    pub own_pids: bool,
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
