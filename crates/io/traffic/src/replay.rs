//! Frames of a capture with addresses replaced by those of a traffic table.
//!
//! The n-th host of the capture gets the n-th address of `src` where it sends, and of `dst` where it
//! receives, so that the pairs of communicating hosts are kept. MAC addresses are those of the table.
//! Checksums are computed again: captures of machines with offloads contain wrong ones.

use crate::{AddressRange, SHORTEST_WIRE_FRAME_BYTES, TrafficError, TrafficSpec};
use packet::checksum;
use port::LINK_ETHERNET;
use port::capture::CaptureReader;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// The largest number of frames that are read.
const MOST_FRAMES: usize = 1 << 18;

/// The frames of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replay {
    /// Frames with replaced addresses.
    pub frames: Vec<Vec<u8>>,
    /// Frames that were skipped: not IPv4 over Ethernet, or truncated in the capture.
    pub left_out: u64,
}

/// Reads the IPv4 frames of a capture, pcap or pcapng, with the addresses of a traffic table.
///
/// # Errors
/// When it cannot be read, or contains no such frames.
pub fn replay(path: &Path, spec: &TrafficSpec) -> Result<Replay, TrafficError> {
    let mut reader = CaptureReader::open(path)?;
    let (mut found, mut hosts) = (Replay::default(), HashMap::new());
    while let Some(frame) = reader.next_frame()? {
        if found.frames.len() >= MOST_FRAMES {
            break;
        }
        let is_whole = frame.original_bytes as usize == frame.bytes.len();
        let rewritten = (is_whole && frame.link_type == LINK_ETHERNET)
            .then(|| rewritten(frame.bytes.to_vec(), spec, &mut hosts))
            .flatten();
        match rewritten {
            Some(frame) => found.frames.push(frame),
            None => found.left_out += 1,
        }
    }
    if found.frames.is_empty() {
        let (path, left_out) = (path.display(), found.left_out);
        return Err(TrafficError::Contradiction(format!(
            "{path} has no whole IPv4 frame over Ethernet ({left_out} others): there is nothing to send"
        )));
    }
    Ok(found)
}

/// Replaces the addresses of a frame; `None` when it is not IPv4.
fn rewritten(mut frame: Vec<u8>, spec: &TrafficSpec, hosts: &mut HashMap<Ipv4Addr, u64>) -> Option<Vec<u8>> {
    let (length, header) = {
        let ip = frame.get(14..)?;
        let is_ipv4 = frame.get(12..14)? == [0x08, 0x00] && ip.first()? >> 4 == 4;
        let header = usize::from(ip.first()? & 15) * 4;
        let length = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
        if !is_ipv4 || header < 20 || length < header || ip.len() < length {
            return None;
        }
        (length, header)
    };
    // A host that occurred before keeps its number.
    let mut other = |frame: &mut [u8], at: usize, range: &AddressRange| -> Option<Ipv4Addr> {
        let place: &mut [u8; 4] = frame.get_mut(at..)?.first_chunk_mut()?;
        let next = hosts.len() as u64;
        let number = *hosts.entry(Ipv4Addr::from(*place)).or_insert(next);
        let IpAddr::V4(address) = range.nth(number) else { return None };
        *place = address.octets();
        Some(address)
    };
    let src = other(&mut frame, 26, &spec.src)?;
    let dst = other(&mut frame, 30, &spec.dst)?;
    frame.get_mut(..6)?.copy_from_slice(&spec.dst_mac.0);
    frame.get_mut(6..12)?.copy_from_slice(&spec.src_mac.0);
    let fragment = u16::from_be_bytes([*frame.get(20)?, *frame.get(21)?]) & 0x3fff;
    let (protocol, at, payload) = (*frame.get(23)?, 14 + header, length - header);
    checksum::set_ipv4_header(frame.as_mut_slice(), 14, header).then_some(())?;
    // The checksum of a fragment covers bytes of other fragments.
    if fragment == 0 {
        let pseudo = checksum::pseudo_ipv4(src, dst, protocol, u16::try_from(payload).ok()?);
        let (sum, place) = match protocol {
            6 => (checksum::tcp(frame.as_slice(), at, payload, pseudo), at + 16),
            // A UDP checksum of zero means that there is none.
            17 if frame.get(at + 6..at + 8)? != [0, 0] => {
                (checksum::udp(frame.as_slice(), at, payload, pseudo), at + 6)
            }
            _ => (None, at),
        };
        if let Some(sum) = sum {
            frame.get_mut(place..place + 2)?.copy_from_slice(&sum.to_be_bytes());
        }
    }
    frame.resize(frame.len().max(SHORTEST_WIRE_FRAME_BYTES), 0);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Resolution, write_capture};
    use proptest::prelude::*;

    fn spec(src: &str, dst: &str) -> TrafficSpec {
        let (src, dst) = (src.parse().expect("a range"), dst.parse().expect("a range"));
        TrafficSpec { src, dst, flows: 5, ..TrafficSpec::default() }
    }

    #[test]
    fn addresses_are_others_and_checksums_right() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.pcap");
        let made = spec("192.0.2.0/24", "203.0.113.0/24");
        let mut frames = made.frames().expect("frames");
        write_capture(&path, Resolution::Microseconds, &mut frames, 20, &mut |_| {}).expect("written");
        let wanted = spec("10.0.0.0/24", "198.18.0.0/15");
        let found = replay(&path, &wanted).expect("read");
        assert_eq!((found.frames.len(), found.left_out), (20, 0));
        for frame in &found.frames {
            assert!(frame.len() >= SHORTEST_WIRE_FRAME_BYTES && frame[..6] == wanted.dst_mac.0);
            assert!(frame[26..29] == [10, 0, 0] && frame[30..32] == [198, 18], "{frame:?}");
            assert_eq!(checksum::verify_ipv4_header(frame.as_slice(), 14, 20), checksum::Validity::Good);
            let length = usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 20;
            let address = |at: usize| Ipv4Addr::from(*frame[at..].first_chunk().expect("four"));
            let pseudo = checksum::pseudo_ipv4(address(26), address(30), frame[23], length as u16);
            let verdict = match frame[23] {
                6 => checksum::verify_tcp(frame.as_slice(), 34, length, pseudo),
                _ => checksum::verify_udp(frame.as_slice(), 34, length, pseudo),
            };
            assert_ne!(verdict, checksum::Validity::Bad, "{frame:?}");
        }
        // The same hosts again, flow by flow.
        assert_eq!(found.frames[0][26..34], found.frames[5][26..34]);
        assert_ne!(found.frames[0][26..34], found.frames[1][26..34]);
    }

    #[test]
    fn what_is_no_ipv4_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.pcap");
        let made = TrafficSpec { ipv6_percent: 100, ..TrafficSpec::default() };
        let mut frames = made.frames().expect("frames");
        write_capture(&path, Resolution::Microseconds, &mut frames, 3, &mut |_| {}).expect("written");
        let error = replay(&path, &TrafficSpec::default()).expect_err("refused").to_string();
        assert!(error.contains("3 others"), "{error}");
        assert!(replay(&folder.path().join("missing.pcap"), &TrafficSpec::default()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(mut frame in proptest::collection::vec(any::<u8>(), 0..120), is_ip: bool) {
            if is_ip && frame.len() > 24 {
                frame[12..14].copy_from_slice(&[8, 0]);
                frame[14] = frame[14] & 15 | 0x40;
            }
            let _ = rewritten(frame, &TrafficSpec::default(), &mut HashMap::new());
        }
    }
}
