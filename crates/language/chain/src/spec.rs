//! How a chain file declares that an NF runs: its execution mode, and the parameters of its process.
//!
//! Names and values only: the launcher of an NF finds out whether a runtime is installed, or a program
//! exists.

use std::path::PathBuf;

/// An execution mode of an NF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExecutionMode {
    /// In the process of the host, element by element.
    #[default]
    Modular,
    /// In the process of the host, each fused region of transparent elements as one program.
    Fused,
    /// In a process of its own.
    Process,
    /// In a container.
    Container,
}

impl ExecutionMode {
    /// All of them, with their names in a chain file.
    pub(crate) const NAMES: [(&str, ExecutionMode); 4] = [
        ("modular", ExecutionMode::Modular),
        ("fused", ExecutionMode::Fused),
        ("process", ExecutionMode::Process),
        ("container", ExecutionMode::Container),
    ];

    /// Its name in a chain file.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// Whether the NF runs in the process of the host.
    pub fn is_here(self) -> bool {
        matches!(self, ExecutionMode::Modular | ExecutionMode::Fused)
    }
}

/// Which elements of a chain run as part of a fused region where they can.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FusedElements {
    /// None of them.
    #[default]
    Nothing,
    /// All of them.
    All,
    /// A flag for each element of the graph.
    These(Vec<bool>),
}

impl FusedElements {
    /// Whether the element with that number does so.
    pub fn has(&self, element: usize) -> bool {
        match self {
            FusedElements::Nothing => false,
            FusedElements::All => true,
            FusedElements::These(wanted) => wanted.get(element).copied().unwrap_or(false),
        }
    }
}

/// The parameters of an NF that runs in a process of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// What happens to its packets while it does not run.
    pub when_down: WhenDown,
    /// Its trust group: the NFs of one group share memory. By default each NF has a group of its own, with
    /// the NF's name.
    pub trust: String,
    /// How it accesses its packets.
    pub access: Access,
    /// What its process may access besides packets; `None` for all that the host's process may access.
    pub rights: Option<Rights>,
    /// Cores that it may run on; empty for all.
    pub cores: Vec<usize>,
    /// How it runs in a container, if it does.
    pub container: Option<Container>,
}

/// How an NF in a process of its own accesses its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// It receives the packets themselves, and decides where each is sent.
    #[default]
    Inline,
    /// An observer: it receives copies that it cannot write. Its packets continue without it.
    Observe,
    /// A tap: an observer that reads the packets in place while no NF writes them. It can read all that ports
    /// receive.
    Tap,
}

impl Terms {
    /// Whether it is a tap or an observer.
    pub fn observes(&self) -> bool {
        self.access != Access::Inline
    }
}

/// What the process of an NF may access besides its packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    /// Files and folders that it may read, besides the system's programs and libraries and its own program.
    pub reads: Vec<PathBuf>,
    /// Files and folders that it may write.
    pub writes: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Memory that it may use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Its share of a contended core; every other process has 100.
    pub cpu_share: Option<u32>,
}

/// What happens to packets of an NF that does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenDown {
    /// They are dropped.
    #[default]
    Drop,
    /// They bypass it, and leave by the opposite interface.
    Bypass,
    /// They are queued for it, as many as its queue holds.
    Hold,
}

/// What an NF in a container runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ContainerKind {
    /// A program of this machine, for which a bundle is made.
    #[default]
    Program,
    /// An OCI bundle: a folder with `config.json` and a root file system.
    Bundle,
    /// An OCI image, in a folder or an archive.
    Image,
}

/// The parameters of an NF that runs in a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Container {
    /// What it runs.
    pub what: ContainerKind,
    /// The runtime or engine that starts it; by default the first one that works.
    pub runtime: Option<RuntimeName>,
}

/// A container runtime, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuntimeName {
    /// `crun`, the faster one.
    Crun,
    /// `runc`, the reference implementation, which most engines use.
    Runc,
    /// `podman`, an engine: it stores images by name, and runs them by one of the above.
    Podman,
    /// `docker`, the same with a daemon.
    Docker,
}

impl RuntimeName {
    /// All runtimes and engines, the fastest first.
    pub const ALL: [RuntimeName; 4] =
        [RuntimeName::Crun, RuntimeName::Runc, RuntimeName::Podman, RuntimeName::Docker];

    /// Its name, which is also its program's name.
    pub fn name(self) -> &'static str {
        match self {
            RuntimeName::Crun => "crun",
            RuntimeName::Runc => "runc",
            RuntimeName::Podman => "podman",
            RuntimeName::Docker => "docker",
        }
    }

    /// Whether it is an engine: it stores images by name and runs nothing else.
    pub fn is_engine(self) -> bool {
        matches!(self, RuntimeName::Podman | RuntimeName::Docker)
    }

    /// The runtime with that name.
    pub fn of_name(name: &str) -> Option<RuntimeName> {
        RuntimeName::ALL.into_iter().find(|runtime| runtime.name() == name)
    }
}

/// The output opposite an input: with two interfaces that of the other one, with one interface that of the
/// same.
pub fn opposite_output(inputs: &[String], outputs: &[String], input: usize) -> Option<usize> {
    let from = inputs.get(input)?;
    let mut names: Vec<&String> = inputs.iter().chain(outputs).collect();
    names.sort();
    names.dedup();
    let to = match names.as_slice() {
        [only] => *only,
        [one, two] => *if *one == from { two } else { one },
        _ => return None,
    };
    outputs.iter().position(|output| output == to)
}
