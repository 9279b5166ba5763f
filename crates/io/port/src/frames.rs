//! Prepared frames: templates that a generator copies.
//!
//! Frames are stored one after another, each aligned and padded to cache lines, so that a frame of up to 64
//! bytes is copied as one whole line whatever its length.

use crate::{PortError, Result};
use shm::chain::SEGMENT_BYTES;
use shm::{Packet, PacketPool, Pool};

/// Bytes that templates are aligned and padded to.
pub const LINE_BYTES: usize = 64;
/// The longest frame in a set, in bytes.
pub const LONGEST_FRAME_BYTES: usize = 65_535;

/// The position of a frame in its set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePlace {
    /// Its first line.
    pub line: u32,
    /// Its length in bytes.
    pub len: u16,
    /// Its Click packet type, from the destination address.
    pub packet_type: u8,
}

/// Frames to replay, immutable; several workers may share a set.
#[derive(Debug)]
pub struct FrameSet {
    bytes: Vec<u8>,
    /// Index in `bytes` of the first line: the first address that is a multiple of [`LINE_BYTES`].
    start: usize,
    places: Vec<FramePlace>,
}

impl FrameSet {
    /// A set of those frames (without FCS), in that order.
    ///
    /// # Errors
    ///
    /// When there are none, or one is longer than [`LONGEST_FRAME_BYTES`].
    pub fn new<Frame: AsRef<[u8]>>(frames: impl IntoIterator<Item = Frame>) -> Result<FrameSet> {
        let (mut lines, mut places) = (Vec::new(), Vec::new());
        for (index, frame) in frames.into_iter().enumerate() {
            let frame = frame.as_ref();
            let Ok(len) = u16::try_from(frame.len()) else {
                return Err(PortError::FrameTooLong { index, bytes: frame.len(), most: LONGEST_FRAME_BYTES });
            };
            let line = lines.len() / LINE_BYTES;
            places.push(FramePlace { line: line as u32, len, packet_type: packet_type(frame) });
            lines.extend_from_slice(frame);
            lines.resize((line + lines_of(frame.len())) * LINE_BYTES, 0);
        }
        if places.is_empty() {
            return Err(PortError::NoFrames);
        }
        let mut bytes = vec![0; lines.len() + LINE_BYTES];
        let address = bytes.as_ptr() as usize;
        let start = address.next_multiple_of(LINE_BYTES) - address;
        bytes[start..start + lines.len()].copy_from_slice(&lines);
        Ok(FrameSet { bytes, start, places })
    }

    /// How many frames there are; at least one.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The frame of that number.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.places.get(index).map(|place| self.frame(*place))
    }

    /// The frames, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.frame(*place))
    }

    #[inline(always)]
    pub(crate) fn places(&self) -> &[FramePlace] {
        &self.places
    }

    /// A frame's first line: the whole frame, if it is no longer than a line.
    #[inline(always)]
    pub(crate) fn first_line(&self, place: FramePlace) -> &[u8; LINE_BYTES] {
        const NOTHING: &[u8; LINE_BYTES] = &[0; LINE_BYTES];
        let at = self.start + place.line as usize * LINE_BYTES;
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(NOTHING)
    }

    /// A frame's bytes.
    pub(crate) fn frame(&self, place: FramePlace) -> &[u8] {
        let at = self.start + place.line as usize * LINE_BYTES;
        self.bytes.get(at..at + usize::from(place.len)).unwrap_or_default()
    }
}

/// The number of lines of a frame. An empty frame has one, so that there is always a line to copy.
fn lines_of(frame_bytes: usize) -> usize {
    frame_bytes.div_ceil(LINE_BYTES).max(1)
}

/// The result of filling fresh packets with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// The first packet contains the frame; the others are still fresh.
    First,
    /// The first packet contains the frame; the others were freed, because their slots were needed.
    Last,
    /// All packets were freed, and the pool has too few slots for the frame now.
    No,
}

/// Copies a frame into the first of some fresh packets, as a chain if a slot is too small.
#[inline]
pub(crate) fn fill(pool: &mut PacketPool, fresh: &mut [Packet], frame: &[u8]) -> Filled {
    if frame.len() > SEGMENT_BYTES {
        return fill_chain(pool, fresh, frame);
    }
    let Some(packet) = fresh.first_mut() else { return Filled::No };
    packet.mac = packet.data();
    // The copy cannot fail: a fresh packet has room for `SEGMENT_BYTES`.
    let _ = packet.fill(frame);
    Filled::First
}

#[cold]
fn fill_chain(pool: &mut PacketPool, fresh: &mut [Packet], frame: &[u8]) -> Filled {
    let (chain, filled) = match shm::write_frame(pool, frame) {
        Some(chain) => {
            pool.free_all(fresh.get(..1).unwrap_or_default());
            (chain, Filled::First)
        }
        None => {
            // The slots of the rest of the burst may be the missing ones.
            pool.free_all(fresh);
            let Some(chain) = shm::write_frame(pool, frame) else { return Filled::No };
            (chain, Filled::Last)
        }
    };
    match fresh.first_mut() {
        Some(packet) => {
            *packet = chain;
            packet.mac = packet.data();
        }
        None => pool.free_all(&[chain]),
    }
    filled
}

/// Click's packet type of a frame, as an interface in promiscuous mode sets it.
pub(crate) fn packet_type(frame: &[u8]) -> u8 {
    use shm::descriptor::PacketType;
    let kind = match frame.get(..6) {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
        Some([first, ..]) if first & 1 == 1 => PacketType::Multicast,
        _ => PacketType::Host,
    };
    kind as u8
}
