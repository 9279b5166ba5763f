//! A burst: packets that are received, processed and sent together.
//!
//! - [`Vector`]: the descriptors of a worker's burst, which keep their index
//! - [`Burst`]: an input, a vector, and the list of the packets to process
//! - [`Exits`]: the lists into which a burst is sorted, one for each exit
//! - [`Batch`]: a burst that an opaque element processes

mod exits;
mod vector;

pub use exits::{Exits, LIST_CAPACITY, is_in_order, put_in_order};
pub use vector::{Batch, Vector};

use crate::Packet;

/// A burst at an input.
pub struct Burst<'a> {
    /// The input.
    pub input: usize,
    /// The vector.
    pub packets: &'a mut [Packet],
    /// The indices of the packets to process.
    pub list: &'a [u16],
}
