//! Finishing a partial checksum: the sender left the pseudo header's sum in the field and asks the
//! device to do the rest (virtio 1.2 section 5.1.6.2, `csum_start` and `csum_offset`; Linux calls it
//! CHECKSUM_PARTIAL). Frames from a veth's peer or a guest arrive like this.

use super::{sum, udp_on_wire};
use crate::{Access, Error};

/// Sums the packet from `csum_start_bytes` to its end and writes the complement into the field
/// `csum_offset_bytes` behind the start; returns what was written.
///
/// The field holds the pseudo header's folded sum before, and is part of what is summed. A result of
/// 0x0000 is written as 0xffff, as UDP needs; for TCP both are valid.
///
/// # Errors
///
/// [`Error::CsumBeyondEnd`] or [`Error::CsumOddOffset`], with the packet unchanged, when the field is not in the packet or not on a word.
pub fn finish_partial<A: Access + ?Sized>(
    packet: &mut A,
    csum_start_bytes: usize,
    csum_offset_bytes: usize,
) -> Result<u16, Error> {
    if !csum_offset_bytes.is_multiple_of(2) {
        return Err(Error::CsumOddOffset { offset_bytes: csum_offset_bytes });
    }
    let beyond = Error::CsumBeyondEnd {
        start_bytes: csum_start_bytes,
        offset_bytes: csum_offset_bytes,
        len_bytes: packet.len(),
    };
    let field = csum_start_bytes.checked_add(csum_offset_bytes).ok_or(beyond)?;
    let covered = packet.len().checked_sub(csum_start_bytes).ok_or(beyond)?;
    if field.checked_add(2).is_none_or(|end| end > packet.len()) {
        return Err(beyond);
    }
    let check = udp_on_wire(sum(packet, csum_start_bytes, covered).ok_or(beyond)?.checksum());
    if packet.put_u16(field, check) { Ok(check) } else { Err(beyond) }
}
