//! Facts about a program, derived without running it, each analysis once. Code generation, the optimiser,
//! traffic classes and packet filters take the effect of each step from here, and walk over the program
//! themselves where their question is their own.
//!
//! - [`extent`]: the bytes that a packet is known to have after each header, and in front
//! - [`interval`]: intervals and sets of numbers, and the effect of instructions on them
//! - [`lasting`]: how programs change the numbers in records
//! - [`live`]: the values that a block needs from the blocks before it
//! - [`ones_complement`]: sums modulo 0xffff
//! - [`order`]: the order of blocks, and the blocks that every path to a block passes
//! - [`stages`]: the lookups at which packets wait for each other

pub mod extent;
pub mod interval;
pub mod lasting;
pub mod live;
pub mod ones_complement;
pub mod order;
pub mod stages;
