//! The platform's ARP and neighbour discovery (RFC 826, RFC 4861), for NFs that need next hops.
//!
//! - `message`: frames to facts, queries to frames
//! - `resolver`: the element `Resolver`, which packets of the interface pass first
//!
//! A packet thread answers for the addresses of an L3 interface ([`port::interface`]), which do not change,
//! and passes on what it learns of neighbours.

mod message;
mod resolver;

#[cfg(test)]
mod tests;

use element::class::Class;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&resolver::CLASS];
