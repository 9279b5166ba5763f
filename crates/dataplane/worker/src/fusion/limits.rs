//! How large a fused region may be.
//!
//! Compiling a region takes time and memory in proportion to its programs, while packets run through its elements
//! one by one. A region beyond the limits would take too much of both for what it gains: its elements go on one
//! by one.

/// The most instructions of a region's programs before they are optimised, the ends of blocks among them.
pub const MOST_INSTRUCTIONS: usize = 60_000;
/// The most instructions of its machine code's functions: what two lookups lead to is in two functions.
pub const MOST_COMPILED: usize = 120_000;

/// What has more instructions than it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measured {
    /// The programs of the elements.
    Programs,
    /// The functions of the machine code.
    Functions,
}

/// A region that is too large, and what made it so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a fused region of {elements} elements has {instructions} {measured}, more than {most}; of its elements, \
     {} has most ({})", largest.0, largest.1
)]
pub struct TooLarge {
    /// What was counted.
    pub measured: Measured,
    /// Its instructions.
    pub instructions: usize,
    /// The most that there may be.
    pub most: usize,
    /// The number of elements.
    pub elements: usize,
    /// The element with most instructions, and how many it has.
    pub largest: (String, usize),
    /// The number of the NF with most, and how many it has.
    pub nf: (usize, usize),
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Measured::Programs => "instructions",
            Measured::Functions => "instructions in functions of machine code",
        })
    }
}
