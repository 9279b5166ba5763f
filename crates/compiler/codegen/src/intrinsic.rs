//! Rust functions that machine code calls for work too rare or too long to inline.
#![expect(unsafe_code, reason = "called by machine code with a raw descriptor")]

use ir::eval::fold;
use packet::access::Access;
use shm::bytes::PacketBytes;
use shm::descriptor::{NO_HEADER, Packet};

/// Sum over `len` bytes from `at`, counted from the packet's first byte, as 16-bit big-endian words.
fn sum(bytes: &PacketBytes<'_>, mut at: usize, mut len: usize) -> Option<u64> {
    let mut total = 0u64;
    let mut chunk = [0u8; 64];
    while len > 0 {
        let take = len.min(chunk.len());
        chunk[take..].fill(0);
        if !bytes.copy_out(at, &mut chunk[..take]) {
            return None;
        }
        for pair in chunk.chunks_exact(2) {
            total += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        at += take;
        len -= take;
    }
    Some(total)
}

/// See [`ir::Inst::TransportSum`].
///
/// # Safety
/// `packet` is a descriptor of a live packet of the pool, not aliased while this runs.
pub(crate) unsafe extern "C" fn transport_sum(packet: *const Packet, proto: u64) -> u64 {
    // SAFETY: the caller upholds it; machine code passes the descriptor it is working on.
    let packet = unsafe { &*packet };
    let inner = || -> Option<u64> {
        if packet.net == NO_HEADER || packet.trans == NO_HEADER {
            return None;
        }
        let trans = usize::from(packet.trans).checked_sub(usize::from(packet.net))?;
        let packet = packet.starting_at(packet.net)?;
        if packet.len() < 20 {
            return None;
        }
        let bytes = PacketBytes::new(&packet);
        let length = usize::from(bytes.u16(2)?).checked_sub(trans)?;
        let pseudo = sum(&bytes, 12, 8)?;
        Some(fold(pseudo + (proto & 0xff) + length as u64 + sum(&bytes, trans, length)?))
    };
    inner().unwrap_or(0)
}
