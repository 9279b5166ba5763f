//! The rings between the host and an NF, and their size.

use shm::ring::RingFile;

/// Descriptors that a ring of an NF holds.
pub const RING_CLAIMS: u32 = 1024;

/// The rings of an NF: packets to it, packets from it, empty slots to it.
pub type Rings = RingFile<3>;
