//! A flow's first packet as it was before the whole program, which makes the flow's records and rewrites it.

use codegen::SlotBuffer;
use ir::eval::Buffer;
use shm::Packet;

/// Bytes that are kept of a packet: its headers.
const KEPT: usize = 128;

/// The descriptor and the first bytes of a packet.
pub(super) struct FirstPacket {
    pub packet: Packet,
    pub bytes: KeptBytes,
}

/// The first bytes of a packet, and where they were in its buffer.
pub(super) struct KeptBytes {
    start: usize,
    bytes: [u8; KEPT],
    len: usize,
}

impl FirstPacket {
    /// A copy; `None` if the packet's bytes cannot be read.
    pub fn of(packet: &Packet) -> Option<FirstPacket> {
        let mut bytes = [0; KEPT];
        let len = (packet.len() as usize).min(KEPT);
        if !SlotBuffer(*packet).read(packet.data().into(), &mut bytes[..len]) {
            return None;
        }
        Some(FirstPacket { packet: *packet, bytes: KeptBytes { start: packet.data().into(), bytes, len } })
    }
}

impl KeptBytes {
    fn copy_out(&self, at: usize, out: &mut [u8]) -> bool {
        let kept = at.checked_add(out.len()).and_then(|end| self.bytes[..self.len].get(at..end));
        kept.is_some_and(|kept| {
            out.copy_from_slice(kept);
            true
        })
    }
}

impl Buffer for KeptBytes {
    fn read(&self, at: usize, out: &mut [u8]) -> bool {
        at.checked_sub(self.start).is_some_and(|at| self.copy_out(at, out))
    }

    /// Recording writes nothing.
    fn write(&mut self, _at: usize, _bytes: &[u8]) -> bool {
        false
    }

    fn read_packet(&self, _packet: &Packet, at: usize, out: &mut [u8]) -> bool {
        self.copy_out(at, out)
    }
}
