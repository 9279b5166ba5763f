//! The element classes that a configuration may name.

use std::collections::BTreeSet;

/// How an element class says what its ports are like: codes as Click's `element.hh` has them, which [`crate::flow::PortSpec`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortCodes {
    /// How many ports there are (`"1/1-2"`).
    pub ports: &'static str,
    /// Which are push and which pull (`"h/l"`).
    pub processing: &'static str,
    /// Which inputs lead to which outputs (`"x/x"`).
    pub flow: &'static str,
}

impl PortCodes {
    /// One input and one output, pushed or pulled.
    pub const AGNOSTIC: PortCodes = PortCodes::new("1/1", "a/a");
    /// The same, with a second output to which packets are pushed that do not pass.
    pub const CHECK: PortCodes = PortCodes::new("1/1-2", "a/ah");
    /// An input from which packets are pushed to any number of outputs.
    pub const SORTER: PortCodes = PortCodes::new("1/-", "h/h");

    /// Of an element all whose inputs lead to all its outputs.
    pub const fn new(ports: &'static str, processing: &'static str) -> PortCodes {
        PortCodes { ports, processing, flow: "x/x" }
    }
}

/// The element classes that exist outside the configuration.
pub trait Classes {
    /// Whether there is a class of this name.
    fn is_known(&self, name: &str) -> bool;

    /// Their names, for suggestions.
    fn names(&self) -> Vec<String>;

    /// What to use in place of a class that is known elsewhere under that name.
    fn instead_of(&self, _name: &str) -> Option<String> {
        None
    }

    /// What the ports of a class are like, where that is known.
    fn codes(&self, _name: &str) -> Option<PortCodes> {
        None
    }

    /// Whether elements of a class keep state of flows, so that packets of one flow belong to one element.
    fn keeps_flows(&self, _name: &str) -> bool {
        false
    }
}

impl Classes for BTreeSet<String> {
    fn is_known(&self, name: &str) -> bool {
        self.contains(name)
    }

    fn names(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }
}

impl Classes for &[&str] {
    fn is_known(&self, name: &str) -> bool {
        self.contains(&name)
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}

/// Takes every name that starts with an upper-case letter for a class: for tools that look at
/// the shape of a configuration only.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass;

impl Classes for AnyClass {
    fn is_known(&self, name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
