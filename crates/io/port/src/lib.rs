//! Ports receive and send packets, a burst at a time.
//!
//! A [`Port`] fills descriptors with received packets and takes descriptors to send. It is used by
//! one worker thread; a device with several queues is several ports. Calls are dispatched once per
//! burst, never per packet.
//!
//! - [`memory`]: replays prepared frames from memory, and a sink: the port that benchmarks use.
//! - [`capture`]: reads and writes capture files.
//! - [`dpdk`]: everything that DPDK has a driver for.
//! - [`mod@file`]: names of one file compared, and output files that are not changed before a run starts.
//! - [`interface`]: the addresses of a port on its network, and its neighbours.
//! - [`records`]: an output file that contains whole records only.
//! - [`multicast`]: UDP sockets of a multicast group.
//! - [`tun`]: interfaces of this machine's kernel whose other side is a file.
//! - [`offload`]: checksums and segmentation that senders on the same machine leave to a device.

pub mod capture;
pub mod dpdk;
pub mod file;
pub mod frames;
pub mod interface;
pub mod memory;
pub mod multicast;
pub mod offload;
pub mod records;
pub mod tun;

pub use capture::{CaptureOptions, CapturePort};
pub use dpdk::{Dpdk, DpdkPort, DpdkSpec, driver_names};
pub use file::{FileKey, OutputFile, same_file};
pub use frames::FrameSet;
pub use memory::MemoryPort;

use shm::{Packet, PacketPool};
use std::path::{Path, PathBuf};

/// Link type of Ethernet, as captures number link types (LINKTYPE_ETHERNET).
pub const LINK_ETHERNET: u32 = 1;
/// Link type of packets that start with their IP header (LINKTYPE_RAW).
pub const LINK_RAW_IP: u32 = 101;
/// Link type of Linux "cooked" captures (LINKTYPE_LINUX_SLL).
pub const LINK_LINUX_COOKED: u32 = 113;

/// The packets and bytes that one call moved through a port. The port counts bytes while the descriptors are
/// in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Packets.
    pub packets: usize,
    /// Bytes of those packets, without FCS.
    pub bytes: u64,
}

/// The direction of packets through a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the port into the graph.
    Receive,
    /// From the graph to the port.
    Send,
}

/// A port as one worker uses it.
pub trait Port: Send {
    /// The name that the user gave it.
    fn name(&self) -> &str;

    /// Its link and its abilities.
    fn info(&self) -> PortInfo;

    /// Sets the value of [`Packet::origin`] for received packets.
    fn set_origin(&mut self, origin: u16);

    /// Fills `out` from its front with received packets and returns how many. The caller owns them.
    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved;

    /// Sends the packets of `list`, in its order. Returns how many from the front of `list` the port took;
    /// the caller still owns the others.
    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved;

    /// The counters of the port.
    fn stats(&self) -> PortStats;

    /// Whether the port will receive no more packets: the end of a capture.
    fn is_finished(&self) -> bool {
        false
    }

    /// Whether packets can be sent at all.
    fn can_send(&self) -> bool {
        true
    }

    /// Writes buffered output. Called when the run starts, from time to time, and when it ends; an output
    /// file is emptied by the first call.
    ///
    /// # Errors
    ///
    /// When buffered packets cannot be written; the error contains the number of those that were.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Warnings about problems that did not stop the port: its name, the problem and its effect. Each is
    /// returned once.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// The methods of a [`Port`] around another, its field `inner`, that only pass the call on: all but `receive`
/// and `send`.
#[macro_export]
macro_rules! pass_on_to_inner {
    () => {
        fn name(&self) -> &str {
            self.inner.name()
        }

        fn info(&self) -> $crate::PortInfo {
            self.inner.info()
        }

        fn set_origin(&mut self, origin: u16) {
            self.inner.set_origin(origin);
        }

        fn stats(&self) -> $crate::PortStats {
            self.inner.stats()
        }

        fn is_finished(&self) -> bool {
            self.inner.is_finished()
        }

        fn can_send(&self) -> bool {
            self.inner.can_send()
        }

        fn flush(&mut self) -> $crate::Result<()> {
            self.inner.flush()
        }

        fn take_warnings(&mut self) -> Vec<String> {
            self.inner.take_warnings()
        }
    };
}

/// A port's link and abilities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Whether there is a carrier.
    pub link_up: bool,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// Largest payload of a frame in bytes, without the Ethernet header and FCS.
    pub mtu: Option<u32>,
    /// The link type as captures number it; [`LINK_ETHERNET`] for nearly all ports.
    pub link_type: u32,
    /// Whether all packets of a flow are received by one of the port's queues, and flows are distributed over
    /// all queues, as with receive-side scaling.
    pub shares_flows: bool,
    /// Whether packets come from outside, and not from another NF: their MAC header is set to the first byte, no other
    /// header is set and no annotation ([`packet::anno::UNSET`]).
    pub is_outer: bool,
}

impl Default for PortInfo {
    fn default() -> Self {
        PortInfo {
            link_up: true,
            mac: None,
            mtu: None,
            link_type: LINK_ETHERNET,
            shares_flows: false,
            is_outer: false,
        }
    }
}

/// The counters of a port. Frame bytes exclude FCS and preamble.
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
    /// Received packets that were dropped, by reason.
    pub rx_dropped: RxDropped,
    /// Packets that the port took and could not send.
    pub tx_errors: u64,
    /// Packets that were copied because the port cannot use the pool's memory.
    pub copies: u64,
}

/// Received packets that were dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxDropped {
    /// The device dropped them because its queue was full.
    pub missed: u64,
    /// The pool had no slot for them.
    pub no_buffer: u64,
    /// The device found errors in them.
    pub errors: u64,
    /// They were longer than any packet can be.
    pub too_long: u64,
    /// They were truncated: the sender relied on segmentation by a device.
    pub cut_off: u64,
}

impl RxDropped {
    /// The sum of all reasons.
    pub fn total(&self) -> u64 {
        self.missed + self.no_buffer + self.errors + self.too_long + self.cut_off
    }
}

/// The result of an operation on a port.
pub type Result<T, E = PortError> = std::result::Result<T, E>;

/// Errors of ports.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A frame is too long to be replayed.
    #[error("frame {index} has {bytes} bytes; frames of up to {most} can be replayed")]
    FrameTooLong {
        /// Its index.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The longest length possible.
        most: usize,
    },
    /// There are no frames to replay.
    #[error("there are no frames to replay")]
    NoFrames,
    /// The pool is too small.
    #[error("the packet pool has not {wanted} free slots; make it larger")]
    NoSlots {
        /// The number of slots needed.
        wanted: usize,
    },
    /// An operation on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A capture is truncated or damaged, or the file is not a capture.
    #[error(
        "{} is damaged at byte {offset}: {what}; the {whole_frames} whole frames in front of it are used",
        path.display()
    )]
    DamagedCapture {
        /// The file.
        path: PathBuf,
        /// The offset of the damaged record.
        offset: u64,
        /// The number of frames in front of it.
        whole_frames: u64,
        /// The kind of damage.
        what: &'static str,
    },
    /// A capture to be written has the name of a compressed file.
    #[error("{} cannot be written compressed; name a file without that extension, and compress it after the run", path.display())]
    CompressedOutput {
        /// The file.
        path: PathBuf,
    },
    /// A capture cannot be continued.
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
        /// Frames that the port took and that are not in the file.
        lost_frames: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// An error of DPDK.
    #[error(transparent)]
    Dpdk(#[from] dpdk_sys::DpdkError),
    /// There is no memory for packets.
    #[error(transparent)]
    Memory(#[from] shm::ShmError),
    /// A text is not the name of a DPDK device.
    #[error("`{text}` names no DPDK device: {what}")]
    Spec {
        /// The text.
        text: String,
        /// The error in it.
        what: &'static str,
    },
    /// One file is used for both directions.
    #[error("{} would be read and overwritten at once; name another file to write", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
}

impl PortError {
    /// Whether the machine refused the operation, as when a device is busy or a right is missing. Otherwise
    /// the request names what is not there or cannot be used.
    pub fn is_of_machine(&self) -> bool {
        use dpdk_sys::DpdkError;
        use std::io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, NotADirectory, NotFound};
        match self {
            PortError::File { source, .. } => {
                !matches!(source.kind(), NotFound | NotADirectory | IsADirectory | InvalidInput | InvalidData)
            }
            PortError::Dpdk(DpdkError::Failed { code, .. }) => {
                // ENOENT, ENODEV, EINVAL: there is no such device, or it has no such argument.
                ![2, 19, 22].contains(&code.saturating_abs())
            }
            PortError::Dpdk(error) => !matches!(error, DpdkError::Name { .. } | DpdkError::Running { .. }),
            PortError::CaptureStopped { .. } => true,
            PortError::Memory(error) => {
                matches!(error, shm::ShmError::Memory { .. } | shm::ShmError::NoHugePages { .. })
            }
            _ => false,
        }
    }

    fn file(action: &'static str, path: &Path, source: std::io::Error) -> PortError {
        PortError::File { action, path: path.to_owned(), source }
    }
}
