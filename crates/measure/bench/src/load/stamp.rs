//! Stamps in frames: the number of the frame, and the time at which it was due.
//!
//! A stamp takes the last 18 bytes of a frame without FCS, from an even offset. Chains that change headers,
//! encapsulate frames or remove what is in front do not change it there. It has 2 bytes of [`MARK`], 1 of the
//! source, 5 of the number, 8 of the time, and 2 that keep the Internet checksum of the whole as it was, so
//! that a checksum over the payload stays valid ([RFC 1071] describes the sum).
//!
//! [RFC 1071]: https://www.rfc-editor.org/rfc/rfc1071

use packet::checksum::Sum;

/// What a stamp begins with.
pub const MARK: u16 = 0x6d72;
/// Length of a stamp, in bytes.
pub const STAMP_BYTES: usize = 18;
/// The shortest frame with room for a stamp behind UDP over IPv4, in bytes without FCS: a frame of 64 bytes
/// with FCS.
pub const LEAST_BYTES: usize = 60;
/// The number of different numbers of a source.
pub const NUMBERS: u64 = 1 << 40;

/// The contents of a stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The number of the frame's source.
    pub source: u8,
    /// The number of the frame among those of its source, below [`NUMBERS`].
    pub number: u64,
    /// When the frame was due, in nanoseconds of the tester's clock.
    pub time_ns: u64,
}

/// The offset of the stamp in a frame of that length; `None` when it has no room for one.
#[inline]
pub fn offset(len: usize) -> Option<usize> {
    (len >= LEAST_BYTES).then(|| (len - STAMP_BYTES) & !1)
}

/// The offset for a stamp that is to be written, from the frame's first bytes: `None` also where headers
/// reach into that place, as TCP's do in the shortest frames.
#[inline]
pub fn room(head: &[u8; LEAST_BYTES], len: usize) -> Option<usize> {
    offset(len).filter(|at| headers(head) <= *at)
}

/// The end of a frame's headers: Ethernet, VLAN tags, IP, TCP or UDP, as far as it has those.
fn headers(head: &[u8; LEAST_BYTES]) -> usize {
    const TAGS: [u16; 2] = [0x8100, 0x88a8];
    let byte = |at: usize| usize::from(head.get(at).copied().unwrap_or(0));
    let word = |at: usize| (byte(at) << 8 | byte(at + 1)) as u16;
    // At most two tags.
    let tags = if !TAGS.contains(&word(12)) {
        0
    } else if TAGS.contains(&word(16)) {
        8
    } else {
        4
    };
    let ip = 14 + tags;
    let (transport, protocol) = match word(ip - 2) {
        0x0800 => (ip + (byte(ip) & 15) * 4, byte(ip + 9)),
        0x86dd => (ip + 40, byte(ip + 6)),
        _ => return ip,
    };
    match protocol {
        6 => transport + (byte(transport + 12) >> 4).max(5) * 4,
        _ => transport + 8,
    }
}

impl Stamp {
    /// The bytes of a stamp that replace `before` and have the same sum.
    #[inline]
    pub fn encode(&self, before: &[u8; STAMP_BYTES]) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[..2].copy_from_slice(&MARK.to_be_bytes());
        bytes[2] = self.source;
        bytes[3..8].copy_from_slice(&self.number.to_be_bytes()[3..]);
        bytes[8..16].copy_from_slice(&self.time_ns.to_be_bytes());
        let own = Sum::ZERO.add_bytes(&bytes[..16]);
        let rest = Sum::ZERO.add_bytes(before).add16(own.checksum()).fold();
        bytes[16..].copy_from_slice(&rest.to_be_bytes());
        bytes
    }

    /// Decodes the bytes of a stamp; `None` where they are not a stamp.
    #[inline]
    pub fn decode(bytes: &[u8; STAMP_BYTES]) -> Option<Stamp> {
        let (mut number, mut time) = ([0; 8], [0; 8]);
        number[3..].copy_from_slice(&bytes[3..8]);
        time.copy_from_slice(&bytes[8..16]);
        (bytes[..2] == MARK.to_be_bytes()).then(|| Stamp {
            source: bytes[2],
            number: u64::from_be_bytes(number),
            time_ns: u64::from_be_bytes(time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Stamp {
        /// Writes the stamp into a frame without FCS; `false` where the frame has no room for it.
        fn write(&self, frame: &mut [u8]) -> bool {
            let at = frame.first_chunk().and_then(|head| room(head, frame.len()));
            let tail = at.and_then(|at| frame.get_mut(at..)?.first_chunk_mut::<STAMP_BYTES>());
            tail.map(|place| *place = self.encode(place)).is_some()
        }

        /// Reads the stamp of a frame without FCS.
        fn read(frame: &[u8]) -> Option<Stamp> {
            Stamp::decode(frame.get(offset(frame.len())?..)?.first_chunk()?)
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_sums_stay(
            mut frame in proptest::collection::vec(any::<u8>(), 60..200),
            source: u8,
            number in 0..NUMBERS,
            time_ns: u64,
        ) {
            let stamp = Stamp { source, number, time_ns };
            let even = frame.len() & !1;
            // An ARP type: no headers follow.
            frame[12..14].copy_from_slice(&[0x08, 0x06]);
            let sum = |bytes: &[u8]| Sum::ZERO.add_bytes(bytes).fold();
            let before = sum(&frame[..even]);
            prop_assert!(stamp.write(&mut frame));
            prop_assert_eq!(Stamp::read(&frame), Some(stamp));
            // In one's complement 0 has two forms.
            let (now, zero) = (sum(&frame[..even]), |sum: u16| if sum == 0xffff { 0 } else { sum });
            prop_assert_eq!(zero(now), zero(before));
            // A second stamp over the first one, as in the frame's next turn.
            let next = Stamp { number: (number + 1) % NUMBERS, ..stamp };
            prop_assert!(next.write(&mut frame));
            prop_assert_eq!(zero(sum(&frame[..even])), zero(before));
        }
    }

    #[test]
    fn headers_are_left_alone() {
        let frame = |kind: u16, protocol: u8, len: usize| {
            let mut frame = vec![0; len];
            frame[12..14].copy_from_slice(&kind.to_be_bytes());
            frame[14] = 0x45;
            frame[if kind == 0x0800 { 23 } else { 20 }] = protocol;
            frame[46] = 0x50;
            frame
        };
        let stamp = Stamp { source: 0, number: 1, time_ns: 2 };
        // UDP and TCP over IPv4, the same over IPv6, something else.
        for (kind, protocol, least) in
            [(0x0800, 17, 60), (0x0800, 6, 72), (0x86dd, 17, 80), (0x86dd, 6, 92), (0x0806, 0, 60)]
        {
            assert!(stamp.write(&mut frame(kind, protocol, least)), "{kind:x} {protocol}");
            assert!(!stamp.write(&mut frame(kind, protocol, least - 1)), "{kind:x} {protocol}");
        }
        // After a VLAN tag.
        let mut tagged = frame(0x8100, 0, 64);
        tagged[16..19].copy_from_slice(&[0x08, 0, 0x45]);
        tagged[27] = 17;
        assert!(stamp.write(&mut tagged) && !stamp.write(&mut tagged[..63]));
    }

    #[test]
    fn short_frames_and_others_have_none() {
        let stamp = Stamp { source: 0, number: 1, time_ns: 2 };
        assert!(!stamp.write(&mut [0; 59]));
        assert_eq!(Stamp::read(&[0; 59]), None);
        assert_eq!(Stamp::read(&[0; 60]), None);
    }
}
