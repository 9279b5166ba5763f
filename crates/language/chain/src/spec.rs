//! What a chain file says of an NF: how it runs, and on what terms in a process of its own.
//!
//! Names and values only: whether a runtime is installed, or a program is there, is known to whoever starts NFs.

use std::path::PathBuf;

/// How an NF runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExecutionMode {
    /// In this process, element by element.
    #[default]
    Modular,
    /// In this process, every fused region of transparent elements as one program.
    Fused,
    /// In a process of its own.
    Process,
    /// In a container.
    Container,
}

impl ExecutionMode {
    /// What a chain file calls it.
    pub fn name(self) -> &'static str {
        match self {
            ExecutionMode::Modular => "modular",
            ExecutionMode::Fused => "fused",
            ExecutionMode::Process => "process",
            ExecutionMode::Container => "container",
        }
    }

    /// Whether the NF runs in this process.
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
    /// Whether the element with that number does.
    pub fn has(&self, element: usize) -> bool {
        match self {
            FusedElements::Nothing => false,
            FusedElements::All => true,
            FusedElements::These(wanted) => wanted.get(element).copied().unwrap_or(false),
        }
    }
}

/// On what terms an NF runs in a process of its own, as its chain file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// What becomes of its packets while it does not run.
    pub when_down: WhenDown,
    /// Its trust group: NFs of one share memory. By default each has its own, called as it is.
    pub trust: String,
    /// What it gets of its packets.
    pub access: Access,
    /// What its process may do beside its packets; `None` where it may do all that this one may.
    pub rights: Option<Rights>,
    /// Cores that it may run on; none for all.
    pub cores: Vec<usize>,
    /// How it runs in a container, where it does.
    pub container: Option<Container>,
}

/// What an NF in a process of its own gets of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Packets themselves, which go on when it says so.
    #[default]
    Inline,
    /// Copies that it cannot write. Its packets go on without it.
    Observe,
    /// The same, but it looks at packets where they lie, as long as nobody writes them: it can read all that ports
    /// receive.
    Tap,
}

impl Terms {
    /// Whether it only looks.
    pub fn observes(&self) -> bool {
        self.access != Access::Inline
    }
}

/// What the process of an NF may do beside its packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    /// Files and folders that it may read, beside the system's programs and libraries and its own.
    pub reads: Vec<PathBuf>,
    /// Files and folders that it may write.
    pub writes: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Memory that it may use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Its share of a contended core, where everybody else has 100.
    pub cpu_share: Option<u32>,
}

/// What becomes of packets of an NF that does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenDown {
    /// They are dropped.
    #[default]
    Drop,
    /// They pass by it: out of the interface across.
    Bypass,
    /// They wait for it, as many as there is room for.
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

/// How an NF runs in a container, as its chain file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Container {
    /// What it runs.
    pub what: ContainerKind,
    /// What starts it; the first that works, where that is not said.
    pub runtime: Option<RuntimeName>,
}

/// A container runtime, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuntimeName {
    /// The faster one.
    Crun,
    /// The one that most others use.
    Runc,
    /// Has images by name, and runs them by one of the above.
    Podman,
    /// The same, by a daemon.
    Docker,
}

impl RuntimeName {
    /// All of them, the fastest first.
    pub const ALL: [RuntimeName; 4] =
        [RuntimeName::Crun, RuntimeName::Runc, RuntimeName::Podman, RuntimeName::Docker];

    /// Its name, and its program's.
    pub fn name(self) -> &'static str {
        match self {
            RuntimeName::Crun => "crun",
            RuntimeName::Runc => "runc",
            RuntimeName::Podman => "podman",
            RuntimeName::Docker => "docker",
        }
    }

    /// Whether it has images by name, and runs these only.
    pub fn is_engine(self) -> bool {
        matches!(self, RuntimeName::Podman | RuntimeName::Docker)
    }

    /// By its name.
    pub fn of_name(name: &str) -> Option<RuntimeName> {
        RuntimeName::ALL.into_iter().find(|runtime| runtime.name() == name)
    }
}

/// The output opposite an input: with two interfaces that of the other one, with one interface that of the same.
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
