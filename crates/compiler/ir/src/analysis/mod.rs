//! What is known of a program without running it, each piece of reasoning once: code generation, the optimiser, traffic
//! classes and packet filters keep their own walks and take what follows from one step to the next from here.
//!
//! - [`extent`]: how far a packet reaches behind each header, and in front
//! - [`interval`]: numbers between two ends, sets of such, and what instructions make of them
//! - [`ones_complement`]: sums modulo 0xffff
//! - [`order`]: the order of blocks, and which ones every path to a block passes

pub mod extent;
pub mod interval;
pub mod ones_complement;
pub mod order;
