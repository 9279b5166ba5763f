//! Several instances of one NF share its packets, several workers those of a chain.
//!
//! - `switch`: the element that chooses an instance for each packet
//! - [`buckets`]: which instance has which flows, and who takes them over
//! - [`instances`]: what the instances tell: who takes packets, and how many each has

use element::class::Class;

pub mod buckets;
pub mod instances;
mod switch;

pub use switch::Policy;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&switch::CLASS];

#[cfg(test)]
mod tests;
