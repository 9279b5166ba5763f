//! Further packets of a TCP connection.

use packet::checksum;
use packet::view::ethernet::HEADER_BYTES as ETHERNET;
use packet::view::tcp::{ACK, FIN, HEADER_BYTES as HEADER, RST};

/// The place of the flags in a TCP header.
const FLAGS: usize = 13;

/// Another packet of a frame's connection: its end, a bare acknowledgement, or payload. None for a frame that
/// is not the untagged first segment of one.
pub fn another(frame: &[u8], which: usize) -> Option<Vec<u8>> {
    let ip = frame.get(ETHERNET..)?;
    let length = usize::from(ip.first()? & 15) * 4;
    let is_tcp = ip[0] >> 4 == 4 && *ip.get(9)? == 6 && ip.get(6..8)?.iter().all(|byte| byte & 0x3f == 0);
    let whole = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
    if frame[12..14] != [8, 0] || !is_tcp || whole < length + HEADER || ip.len() < whole {
        return None;
    }
    let mut other = frame.to_vec();
    let (flags, payload) = [(ACK, 0), (ACK | FIN, 0), (ACK, 8), (RST, 0), (ACK, 1)][which % 5];
    other.truncate(ETHERNET + length + HEADER);
    other.resize(ETHERNET + length + HEADER + payload, 0x55);
    other[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&((length + HEADER + payload) as u16).to_be_bytes());
    other[ETHERNET + length + FLAGS] = flags;
    checksum::set_ipv4_header(other.as_mut_slice(), ETHERNET, length).then_some(other)
}
