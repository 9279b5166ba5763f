//! Ports: where packets come in and go out, a burst at a time.
//!
//! A [`Port`] fills descriptors with received packets and takes descriptors to send. It is used by
//! one worker thread; a device with several queues is several ports. Calls are dispatched once per
//! burst, never per packet.
//!
//! - [`memory`]: replays prepared frames from memory, and a sink: the port that benchmarks use.
//! - [`capture`]: reads and writes capture files.
//! - [`dpdk`]: everything that DPDK has a driver for.
//! - [`mod@file`]: files by whatever name, and outputs that stay untouched until a run starts.
//! - [`interface`]: the addresses of a port on its network, and its neighbours there.
//! - [`offload`]: what senders on the same machine leave to a device, finished or refused.

pub mod capture;
pub mod dpdk;
pub mod file;
pub mod frames;
pub mod interface;
pub mod memory;
pub mod offload;

pub use capture::{CaptureOptions, CapturePort};
pub use dpdk::{Dpdk, DpdkPort, DpdkSpec, driver_names};
pub use file::{FileKey, OutputFile, same_file};
pub use frames::FrameSet;
pub use memory::MemoryPort;

use shm::{Packet, PacketPool};
use std::fmt;
use std::path::{Path, PathBuf};

/// Link type of Ethernet, as captures number link types (LINKTYPE_ETHERNET).
pub const LINK_ETHERNET: u32 = 1;
/// Link type of packets that start with their IP header (LINKTYPE_RAW).
pub const LINK_RAW_IP: u32 = 101;
/// Link type of Linux "cooked" captures (LINKTYPE_LINUX_SLL).
pub const LINK_LINUX_COOKED: u32 = 113;

/// What one call moved through a port. The port counts bytes while it has each descriptor at hand, so
/// that nobody else has to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Packets.
    pub packets: usize,
    /// Bytes of those packets, without FCS.
    pub bytes: u64,
}

/// Which way packets pass through a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the port into the graph.
    Receive,
    /// From the graph to the port.
    Send,
}

/// A way in and out for packets, for one worker.
pub trait Port: Send {
    /// The name that the user gave it.
    fn name(&self) -> &str;

    /// What is known of the link.
    fn info(&self) -> PortInfo;

    /// The number that [`Packet::origin`] of received packets gets.
    fn set_origin(&mut self, origin: u16);

    /// Fills `out` from its front with received packets and returns how many there were. They are the
    /// caller's from then on.
    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved;

    /// Sends the packets that `list` names, in its order. Returns how many from the front of `list`
    /// the port took; those are no longer the caller's. The others still are.
    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved;

    /// What went through so far, and what did not.
    fn stats(&self) -> PortStats;

    /// Whether nothing will be received any more: the end of a capture.
    fn is_finished(&self) -> bool {
        false
    }

    /// Whether packets can be sent at all.
    fn can_send(&self) -> bool {
        true
    }

    /// Writes out what is held back. Called when the run starts, from time to time, and when it ends: a
    /// file that is written is emptied no earlier.
    ///
    /// # Errors
    ///
    /// When what was sent cannot be stored; it says how much was.
    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// What went wrong without stopping the port, for the report of the run. Each is told once.
    fn take_findings(&mut self) -> Vec<Finding> {
        Vec::new()
    }
}

/// What is known of a port's link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Whether there is a carrier.
    pub link_up: bool,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// Largest payload of a frame in bytes, without the Ethernet header and FCS.
    pub mtu: Option<u32>,
    /// What packets start with, as captures number it; [`LINK_ETHERNET`] for nearly all ports.
    pub link_type: u32,
    /// Whether the packets of a flow all come to one of the port's queues, and the flows to all of them, as with
    /// receive-side scaling.
    pub shares_flows: bool,
}

impl Default for PortInfo {
    fn default() -> Self {
        PortInfo { link_up: true, mac: None, mtu: None, link_type: LINK_ETHERNET, shares_flows: false }
    }
}

/// What went through a port. Frame bytes count no FCS and no preamble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets lost on the way in, by reason.
    pub rx_dropped: RxDropped,
    /// Packets taken to be sent that could not be: the port gave them up.
    pub tx_errors: u64,
    /// Packets whose bytes had to be copied because the port cannot use the pool's memory.
    pub copies: u64,
}

/// Packets lost on the way in, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxDropped {
    /// The device had them, and nobody fetched them in time.
    pub missed: u64,
    /// The pool had no slot for them.
    pub no_buffer: u64,
    /// The device found them broken.
    pub errors: u64,
    /// Longer than any packet can be.
    pub too_long: u64,
    /// Cut off on the way in: the sender relied on segmentation by a device.
    pub cut_off: u64,
}

impl RxDropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.missed + self.no_buffer + self.errors + self.too_long + self.cut_off
    }
}

/// Something worth telling that did not stop the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The port that found it.
    pub port: String,
    /// What was found and what it means, in a sentence.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.port, self.message)
    }
}

/// What can go wrong with ports.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A set of frames that cannot be replayed.
    #[error("frame {index} has {bytes} bytes; frames of up to {most} can be replayed")]
    FrameTooLong {
        /// Which frame, from 0.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The longest possible.
        most: usize,
    },
    /// Nothing to replay.
    #[error("there are no frames to replay")]
    NoFrames,
    /// A pool that is too small for what is asked.
    #[error("the packet pool has not {wanted} free slots; make it larger")]
    NoSlots {
        /// How many are needed.
        wanted: usize,
    },
    /// A file that cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A capture that ends or breaks in the middle, or is none.
    #[error(
        "{} is damaged at byte {offset}: {what}; the {whole_frames} whole frames in front of it are used",
        path.display()
    )]
    DamagedCapture {
        /// The file.
        path: PathBuf,
        /// Where the damaged record starts.
        offset: u64,
        /// Frames in front of it.
        whole_frames: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A capture that cannot be written on.
    #[error(
        "writing {} stopped: {source}; the file holds {whole_frames} whole frames and can be read, \
         {lost_frames} frames were lost so far",
        path.display()
    )]
    CaptureStopped {
        /// The file.
        path: PathBuf,
        /// Frames in the file.
        whole_frames: u64,
        /// Frames taken that are not.
        lost_frames: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// DPDK refused.
    #[error(transparent)]
    Dpdk(#[from] dpdk_sys::DpdkError),
    /// No memory for packets.
    #[error(transparent)]
    Memory(#[from] shm::ShmError),
    /// What a user wrote names no DPDK device.
    #[error("`{text}` names no DPDK device: {what}")]
    Spec {
        /// What was written.
        text: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// One file for both directions.
    #[error("{} would be read and overwritten at once; name another file to write", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
}

impl PortError {
    fn file(action: &'static str, path: &Path, source: std::io::Error) -> PortError {
        PortError::File { action, path: path.to_owned(), source }
    }
}
