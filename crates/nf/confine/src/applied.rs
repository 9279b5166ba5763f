//! What was enforced on an NF and what was not.

use std::fmt;

/// Something that confines an NF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// It runs as a user that owns nothing.
    UserId,
    /// It has no capabilities and gets none by executing a program.
    Privileges,
    /// It makes only the system calls of an ordinary program.
    SystemCalls,
    /// It opens only files that it was granted.
    Files,
    /// It reaches nobody by a socket that it was not granted.
    Sockets,
    /// It signals nobody but itself.
    Signals,
    /// It uses no more memory than it may.
    Memory,
    /// It has no more processes and threads than it may.
    Processes,
    /// It gets its share of a contended core.
    CpuShare,
    /// It opens no more descriptors than it may, dumps no core and gets no better priority.
    Limits,
    /// Nothing that it started outlives it.
    Descendants,
    /// It ends when the host does.
    HostDeath,
}

impl Mechanism {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::UserId => "user id",
            Mechanism::Privileges => "privileges",
            Mechanism::SystemCalls => "system calls",
            Mechanism::Files => "files",
            Mechanism::Sockets => "sockets",
            Mechanism::Signals => "signals",
            Mechanism::Memory => "memory",
            Mechanism::Processes => "processes",
            Mechanism::CpuShare => "CPU share",
            Mechanism::Limits => "limits",
            Mechanism::Descendants => "descendants",
            Mechanism::HostDeath => "end with the host",
        }
    }
}

/// One mechanism, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Which.
    pub mechanism: Mechanism,
    /// Whether it is in force.
    pub enforced: bool,
    /// How, or why not.
    pub text: String,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.enforced { "" } else { "not enforced: " };
        write!(f, "{}: {not}{}", self.mechanism.name(), self.text)
    }
}

/// What was enforced on an NF and what was not, each mechanism once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied(Vec<Measure>);

impl Applied {
    pub(crate) fn enforced(&mut self, mechanism: Mechanism, text: impl Into<String>) {
        self.0.push(Measure { mechanism, enforced: true, text: text.into() });
    }

    pub(crate) fn lacking(&mut self, mechanism: Mechanism, text: impl Into<String>) {
        self.0.push(Measure { mechanism, enforced: false, text: text.into() });
    }

    /// All mechanisms.
    pub fn measures(&self) -> &[Measure] {
        &self.0
    }

    /// Those that are not in force.
    pub fn missing(&self) -> impl Iterator<Item = &Measure> {
        self.0.iter().filter(|measure| !measure.enforced)
    }

    /// Whether a mechanism is in force.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.0.iter().any(|measure| measure.mechanism == mechanism && measure.enforced)
    }
}
