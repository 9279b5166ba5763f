//! Steering of packets to the instances of an NF.
//!
//! - `switch`: the element that chooses an instance for each packet
//! - [`buckets`]: the assignment of flows to instances
//! - [`instances`]: which instances take packets, and how many each has

use element::class::Class;

pub mod buckets;
pub mod instances;
mod switch;

pub use switch::Policy;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&switch::CLASS];

#[cfg(test)]
mod tests;
