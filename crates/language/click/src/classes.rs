//! The element classes that a configuration may name.

/// The port codes of an element class, in the notation of Click's `element.hh`; [`crate::flow::PortSpec`]
/// parses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortCodes {
    /// The numbers of inputs and outputs (`"1/1-2"`).
    pub ports: &'static str,
    /// The processing of inputs and outputs: push, pull or agnostic (`"h/l"`).
    pub processing: &'static str,
    /// The outputs that packets of each input can leave by (`"x/x"`).
    pub flow: &'static str,
}

impl PortCodes {
    /// One input and one output, pushed or pulled.
    pub const AGNOSTIC: PortCodes = PortCodes::new("1/1", "a/a");
    /// The same, with a second output to which packets are pushed that fail the element's check.
    pub const CHECK: PortCodes = PortCodes::new("1/1-2", "a/ah");
    /// A push input and any number of push outputs.
    pub const SORTER: PortCodes = PortCodes::new("1/-", "h/h");

    /// The codes of an element that may pass packets from every input to every output.
    pub const fn new(ports: &'static str, processing: &'static str) -> PortCodes {
        PortCodes { ports, processing, flow: "x/x" }
    }
}

/// The element classes that exist outside the configuration.
pub trait Classes {
    /// Whether there is a class of this name.
    fn is_known(&self, name: &str) -> bool;

    /// The names of all classes, for suggestions.
    fn names(&self) -> Vec<String>;

    /// The class to use in place of a class that exists elsewhere under that name.
    fn instead_of(&self, _name: &str) -> Option<String> {
        None
    }

    /// The port codes of a class, if it is known.
    fn codes(&self, _name: &str) -> Option<PortCodes> {
        None
    }

    /// Whether elements of a class keep flow state, so that all packets of a flow must pass the same element.
    fn keeps_flows(&self, _name: &str) -> bool {
        false
    }
}

/// Accepts every name that starts with an upper-case letter as a class; for tools that only inspect the
/// structure of a configuration.
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
