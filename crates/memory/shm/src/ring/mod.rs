//! Rings: pass packets from one process to another.
//!
//! A ring has one producer and one consumer, each perhaps in another process, and carries [`Descriptor`]s:
//! the slot, its generation, and an action. Indices count up without end and wrap at 2^32. Each side's
//! indices are on a cache line of their own and are published once per burst. Each side keeps a private copy
//! of its own index and of the last value that it read of the other's.
//!
//! **Hand over hand.** A consumer publishes that it *takes* a descriptor before it touches the packet, and
//! *releases* it only after the packet is in the next ring. Whenever a consumer dies, descriptors that it had
//! not taken are untouched, and those that it had taken are either in the next ring or lost
//! ([`Producer::autopsy`]).
//!
//! **The other side is not trusted.** Every word of a ring is atomic, is read once, and may hold any value.
//! An impossible index is the error [`Broken`]. A descriptor is checked against the host's private in-flight
//! table (`channel`) before it is used. No value that a peer writes makes this code wait, panic or access
//! memory outside the ring. The ring's capacity is agreed on at its creation and never read from it.

mod consumer;
mod descriptor;
#[cfg(not(loom))]
mod file;
#[cfg(test)]
mod heap;
#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
mod mapping;
#[cfg(all(test, loom))]
mod model;
mod producer;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod witness;

pub use consumer::Consumer;
pub use descriptor::{Action, Descriptor};
#[cfg(not(loom))]
pub use file::RingFile;
#[cfg(not(loom))]
pub use mapped::{Mapped, RING_HEADER_BYTES, ring_bytes};
#[cfg(not(loom))]
pub(crate) use mapping::Mapping;
pub use producer::{Autopsy, Producer};
pub use sync::{Cells, Word, Word64};
pub use witness::{Culprit, Observed, Witness, standing};

/// The most descriptors that a ring can hold.
pub const MOST_CLAIMS: u32 = 1 << 16;

/// The other side's index is impossible: it moved back, or beyond its limit. Such a peer is broken or
/// hostile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer's index stands at {index}, which is {ahead} ahead of {from}: at most {most} are possible")]
pub struct Broken {
    /// The peer's index.
    pub index: u32,
    /// The index with which it is compared.
    pub from: u32,
    /// The distance between them, modulo 2^32.
    pub ahead: u32,
    /// The largest possible distance.
    pub most: u32,
}

/// How far `index` is ahead of `from`; an error if it is more than `most`.
#[inline(always)]
fn ahead(index: u32, from: u32, most: u32) -> Result<u32, Broken> {
    let ahead = index.wrapping_sub(from);
    if ahead > most { Err(Broken { index, from, ahead, most }) } else { Ok(ahead) }
}
