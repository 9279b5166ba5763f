//! Packet memory: regions, slots, pools and the descriptor that speaks of a packet.
//!
//! A [`PacketRegion`] is one mapped range of memory, cut into slots. A slot is a metadata block
//! followed by a buffer. A pool hands out slots as [`Packet`] descriptors and takes them back; the
//! [`Ledger`] says which life each slot is in. [`PacketBytes`] and [`PacketBytesMut`] are the only
//! way from a descriptor to the bytes: they copy, with every range checked, and never lend a slice,
//! because another process may write the same memory at the same time.
//!
//! [`burst`] has the lists that a burst of packets is sorted into, [`ring`] the rings that descriptors of packets go
//! from one process to another by, [`channel`] the host's end of an NF's rings, [`page`] an NF's counters.
//!
//! Unsafe code is confined to `region` and `ring::file` (mapping), `memfd` (descriptors by number), `slot` (raw
//! copies), `ring::mapped` and `page` (atomics of mapped memory).

pub mod burst;
pub mod bytes;
pub mod chain;
#[cfg(not(loom))]
pub mod channel;
pub mod descriptor;
mod edit;
pub mod frame;
pub mod ledger;
pub mod memfd;
pub mod packet_region;
#[cfg(not(loom))]
pub mod page;
pub mod pool;
pub mod ring;
mod slot;
pub mod span;

pub use bytes::{PacketBytes, PacketBytesMut};
pub use chain::{clone_packet, linearize, write_frame};
pub use descriptor::Packet;
pub use frame::Frame;
pub use ledger::Ledger;
pub use packet_region::{HugePages, PacketRegion, RegionOptions};
pub use pool::{NativePool, PacketPool, Pool, PoolStats, SharedPool};
pub use slot::{
    buffer, claimed, claimed_with_metadata, park, prefetch, prefetch_data, prefetch_packet, scribble, stamp,
    unpark,
};

/// What can go wrong with packet memory.
#[derive(Debug, thiserror::Error)]
pub enum ShmError {
    /// A region of no slots, or of more than fit.
    #[error("a region of {slots} slots is not possible; ask for 1 to {most}")]
    SlotCount {
        /// How many were asked for.
        slots: u32,
        /// The most that a region can have.
        most: u32,
    },
    /// The system refused memory.
    #[error("cannot {action} {bytes} bytes of packet memory: {source}")]
    Memory {
        /// What was tried.
        action: &'static str,
        /// How many bytes.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// Huge pages were required and are not there.
    #[error(
        "no {bytes} bytes of 2 MiB huge pages are free ({source}); reserve them with \
         `echo {pages} > /proc/sys/vm/nr_hugepages`, or allow ordinary pages"
    )]
    NoHugePages {
        /// How many bytes were asked for.
        bytes: usize,
        /// The pages that hold them.
        pages: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A ring of a size that there is not.
    #[error("a ring of {descriptors} descriptors is not possible; ask for a power of two up to {most}")]
    RingSize {
        /// How many were asked for.
        descriptors: u32,
        /// The most that a ring can hold.
        most: u32,
    },
    /// Shared memory that its other owners could take away.
    #[error(
        "the file is not one of {bytes} bytes or more that is sealed against shrinking; it is not mapped"
    )]
    NotSealed {
        /// How many bytes are needed.
        bytes: usize,
    },
    /// A descriptor that was to be left open for this program.
    #[error("there is no descriptor {number} that was left open for this program: {source}")]
    NotInherited {
        /// Its number.
        number: i32,
        /// What the system said.
        source: std::io::Error,
    },
    /// More regions at once than descriptors can number.
    #[error("no more than {most} packet regions can be open at once; drop one first")]
    TooManyRegions {
        /// The most that can be open.
        most: usize,
    },
}
