//! Which ports are push, which are pull, and what is wrong with the wiring.
//!
//! An element class says with three short codes, those of Click's `element.hh`, what its ports
//! are like: how many (`"1/1-2"`), push or pull (`"h/l"`, `a` for agnostic), and which inputs
//! lead to which outputs (`"x/x"`). [`resolve`] counts the ports in use, spreads push and pull
//! over agnostic elements as Click's router does, and reports everything that does not fit.

mod codes;
mod resolve;

pub use codes::{CodeError, PortSpec, spec};
pub use resolve::{ElementPorts, Flow, resolve};

/// How packets move over a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Processing {
    /// The upstream element hands packets over.
    Push,
    /// The downstream element asks for packets.
    Pull,
    /// Either: decided by what the element is connected to. After [`resolve`], only ports that
    /// no push or pull port reaches are left agnostic.
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
