//! A burst: packets that are received, processed and sent together.
//!
//! - [`Vector`]: descriptors of a worker's burst, which stay where they are
//! - [`Burst`]: an input, a vector, and the list of the packets that are meant
//! - [`Exits`]: the same list, sorted by where each packet goes
//! - [`Batch`]: a burst in the hands of an element that works on packets itself

mod exits;
mod vector;

pub use exits::{Exits, LIST_CAPACITY};
pub use vector::{Batch, Vector};

use crate::Packet;

/// Packets on their way into an input.
pub struct Burst<'a> {
    /// The input.
    pub input: usize,
    /// The vector.
    pub packets: &'a mut [Packet],
    /// Which of them.
    pub list: &'a [u16],
}
