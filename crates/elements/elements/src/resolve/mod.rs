//! The platform's ARP and neighbour discovery (RFC 826, RFC 4861), for NFs that need next hops.
//!
//! - `message`: frames as facts, questions as frames
//! - `resolver`: the element `Resolver`, which stands where packets of the station come in
//!
//! A packet thread answers for the addresses of an interface ([`port::interface`]), which do not change, and passes on
//! what it hears of its neighbours.

mod message;
mod resolver;

#[cfg(test)]
mod tests;

use element::class::Class;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&resolver::CLASS];
