//! Counting, painting, switching, discarding: elements that look at no header.

use crate::class::Class;

mod counter;
mod discard;
mod paint;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&counter::CLASS, &discard::CLASS, &paint::CLASS];

#[cfg(test)]
mod tests;
