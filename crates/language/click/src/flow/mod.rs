//! Resolves ports to push and pull, and reports errors of the wiring.
//!
//! An element class describes its ports by three codes of Click's `element.hh`: their number (`"1/1-2"`),
//! push or pull (`"h/l"`, `a` for agnostic), and the outputs that packets of each input can leave by
//! (`"x/x"`). [`resolve`] counts the ports in use, propagates push and pull over agnostic elements as Click's
//! router does, and reports every inconsistency.

mod codes;
mod resolve;

pub use codes::{CodeError, PortSpec, spec};
pub use resolve::{ElementPorts, Flow, resolve};

/// How packets move over a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Processing {
    /// The upstream element starts the transfer.
    Push,
    /// The downstream element starts the transfer.
    Pull,
    /// Push or pull, as the connected ports require. After [`resolve`], only ports that no push or pull port
    /// reaches are agnostic.
    Agnostic,
}

impl Processing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Processing::Push => "push",
            Processing::Pull => "pull",
            Processing::Agnostic => "agnostic",
        }
    }
}
