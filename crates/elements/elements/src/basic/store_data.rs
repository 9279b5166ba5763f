//! `StoreData`: writes given bytes into packets.

use click::config::{Args, parse};
use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use packet::Access;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;

/// The class.
pub const CLASS: Class = Class {
    name: "StoreData",
    summary: "changes packet data",
    page: "\
# StoreData(OFFSET, DATA [, MASK, keyword GROW])

Writes DATA into each packet, beginning at byte OFFSET. Bytes that would lie behind the packet's end are left
out. Packets that end before OFFSET stay as they are.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (0 to 65535); `DATA`: a string; `MASK`: a string no longer than DATA: of its bytes,
  only the bits that are set are written, and bytes of DATA behind it are written whole; `GROW` (default false):
  whether a packet in which DATA begins is lengthened so that it holds all of DATA
- **drop reasons**: `no-room`: there is no room for a packet that grows
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.opaque(make),
};

struct StoreData {
    offset: usize,
    /// The bytes to write, and the bits of each that are written.
    data: Vec<(u8, u8)>,
    grows: bool,
}

fn make(args: &mut Args<'_>) -> Option<StoreData> {
    let offset = args.mandatory_positional("OFFSET", parse::u16);
    let data = args.mandatory_positional("DATA", parse::bytes);
    let mask = args.positional("MASK", parse::bytes).unwrap_or_default();
    let grows = args.keyword("GROW", parse::bool).unwrap_or(false);
    let data = data?;
    if mask.len() > data.len() {
        let span = args.span();
        args.error(span, format!("MASK has {} bytes, but DATA only {}", mask.len(), data.len()));
        return None;
    }
    let masks = mask.into_iter().chain(std::iter::repeat(0xff));
    Some(StoreData { offset: offset?.into(), data: data.into_iter().zip(masks).collect(), grows })
}

impl StoreData {
    /// Writes into a packet; false where it cannot grow.
    fn store(&self, packet: &mut Packet, work: &mut Work<'_>) -> bool {
        let length = packet.total() as usize;
        if length <= self.offset {
            return true;
        }
        let excess = (self.offset + self.data.len()).saturating_sub(length);
        if self.grows && !shm::chain::grow(work.pool(), packet, excess) {
            return false;
        }
        let mut bytes = PacketBytesMut::new(packet);
        for (at, (byte, mask)) in (self.offset..bytes.len()).zip(&self.data) {
            let old = bytes.u8(at).unwrap_or(0);
            let written = bytes.put_u8(at, old & !mask | byte & mask);
            debug_assert!(written, "the byte is in the packet");
        }
        true
    }
}

impl Opaque for StoreData {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        batch.emit_if(0, |packet| self.store(packet, work));
    }
}

impl Element for StoreData {
    element::facts!(reasons: &["no-room"]);
}
