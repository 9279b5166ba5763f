//! Packet memory: packet regions, slots, pools and packet descriptors.
//!
//! A [`PacketRegion`] is one mapped range of memory, divided into slots. A slot is a metadata block followed
//! by a buffer. A pool allocates slots as [`Packet`] descriptors and takes them back; the [`Ledger`] has each
//! slot's generation. [`PacketBytes`] and [`PacketBytesMut`] are the only way from a descriptor to the bytes.
//! They check every range and copy the bytes. They never return a slice, because another process may write
//! the same memory at the same time.
//!
//! [`burst`] has the lists into which a burst of packets is sorted, [`ring`] the rings of descriptors between
//! processes, [`channel`] the host's end of an NF channel, [`page`] an NF's counters.
//!
//! Unsafe code is confined to `packet_region`, `ring::mapping` and `ring::file` (mapping), `memfd` (file
//! descriptors by number), `span` (pointers to spans), `slot` (raw copies), `ring::mapped` and `page`
//! (atomics of mapped memory).

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

/// An error of packet memory.
#[derive(Debug, thiserror::Error)]
pub enum ShmError {
    /// A region of no slots, or of more than the maximum.
    #[error("a region of {slots} slots is not possible; ask for 1 to {most}")]
    SlotCount {
        /// The requested number.
        slots: u32,
        /// The most slots of a region.
        most: u32,
    },
    /// The system refused memory.
    #[error("cannot {action} {bytes} bytes of packet memory: {source}")]
    Memory {
        /// The operation that failed.
        action: &'static str,
        /// The requested size.
        bytes: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// Huge pages were required and are not available.
    #[error(
        "no {bytes} bytes of 2 MiB huge pages are free ({source}); reserve them with \
         `echo {pages} > /proc/sys/vm/nr_hugepages`, or allow ordinary pages"
    )]
    NoHugePages {
        /// The requested size.
        bytes: usize,
        /// The number of pages for it.
        pages: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// A ring of an impossible size.
    #[error("a ring of {descriptors} descriptors is not possible; ask for a power of two up to {most}")]
    RingSize {
        /// The requested number.
        descriptors: u32,
        /// The most descriptors of a ring.
        most: u32,
    },
    /// Shared memory that its other owners could shrink.
    #[error(
        "the file is not one of {bytes} bytes or more that is sealed against shrinking; it is not mapped"
    )]
    NotSealed {
        /// The size that is needed.
        bytes: usize,
    },
    /// A file descriptor that this program should have inherited.
    #[error("there is no descriptor {number} that was left open for this program: {source}")]
    NotInherited {
        /// The number of the file descriptor.
        number: i32,
        /// The system's error.
        source: std::io::Error,
    },
    /// More regions at once than descriptors can number.
    #[error("no more than {most} packet regions can be open at once; drop one first")]
    TooManyRegions {
        /// The most regions that can be open.
        most: usize,
    },
}
