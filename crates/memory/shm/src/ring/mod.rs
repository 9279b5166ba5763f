//! Rings: how packets go from one process to another.
//!
//! A ring has one producer and one consumer, each perhaps in another process, and carries [`Descriptor`]s: which
//! slot, in which life, and what is to happen to it. Indices count up for ever and wrap at 2^32; each lies on
//! a cache line of its own and is published once per burst, and each side keeps a private copy of its own
//! index and of what it last saw of the other's.
//!
//! **Hand over hand.** A consumer says what it *takes* before it touches a packet, and *releases* it only
//! after the packet stands in the next ring. Whenever a consumer dies, what it had not taken is untouched,
//! and what it had taken is either in the next ring or lost with it ([`Producer::autopsy`]).
//!
//! **The other side is not trusted.** Every word of a ring is atomic, is read once, and may hold anything: an
//! index that cannot be is [`Broken`], and a descriptor is checked against the host's private in-flight table
//! (`channel`) before anything is done with it. Nothing that a peer writes makes this code
//! wait, panic or reach outside the ring; its capacity is agreed on when it is made and never read from it.

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

/// The other side's index cannot be: it went back, or past what is there. Such a peer is broken or hostile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer's index stands at {index}, which is {ahead} ahead of {from}: at most {most} are possible")]
pub struct Broken {
    /// Where the peer's index stands.
    pub index: u32,
    /// What it is counted from.
    pub from: u32,
    /// How far it is ahead of that, modulo 2^32.
    pub ahead: u32,
    /// How far it can be.
    pub most: u32,
}

/// How far `index` is ahead of `from`, when that can be.
#[inline(always)]
fn ahead(index: u32, from: u32, most: u32) -> Result<u32, Broken> {
    let ahead = index.wrapping_sub(from);
    if ahead > most { Err(Broken { index, from, ahead, most }) } else { Ok(ahead) }
}
