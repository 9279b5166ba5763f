//! The mechanisms that were enforced on an NF, and those that were not.

use std::fmt;

/// A mechanism that confines an NF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// It runs as a user that owns no files.
    UserId,
    /// It has no capabilities and gets none by executing a program.
    Privileges,
    /// It makes only the system calls of an ordinary program.
    SystemCalls,
    /// It opens only files that it was granted.
    Files,
    /// It connects to no socket that it was not granted.
    Sockets,
    /// It sends signals only to itself.
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

/// One mechanism, and whether it is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Whether it is enforced.
    pub enforced: bool,
    /// How it is enforced, or why not.
    pub text: String,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.enforced { "" } else { "not enforced: " };
        write!(f, "{}: {not}{}", self.mechanism.name(), self.text)
    }
}

/// The mechanisms that were enforced on an NF and those that were not, each once.
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

    /// The mechanisms that are not enforced.
    pub fn missing(&self) -> impl Iterator<Item = &Measure> {
        self.0.iter().filter(|measure| !measure.enforced)
    }

    /// Whether a mechanism is enforced.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.0.iter().any(|measure| measure.mechanism == mechanism && measure.enforced)
    }
}
