//! The bytes of a packet that identify its flow.
//!
//! The meaning of the bytes does not matter: results for a flow are derived from them, and guards check
//! everything else. The offsets of the headers are therefore guessed from one packet.

use super::fault::Fault;
use ir::eval::Buffer;
use packet::field::{Base, Field};
use shm::descriptor::{NO_HEADER, Packet};

/// Words of a flow key: both addresses; ports, entry point and protocol.
pub const KEY_WORDS: usize = 2;

/// The offsets of the parts of the flow key, in bytes from the packet's first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// The IPv4 header.
    pub net: u16,
    /// The transport header.
    pub trans: u16,
}

impl Layout {
    /// The offsets in a packet; `None` if it is not IPv4 without options.
    pub fn of<B: Buffer + ?Sized>(packet: &Packet, buffer: &B) -> Option<Layout> {
        let byte = |at: u16| {
            let mut byte = [0];
            let is_there =
                u32::from(at) < packet.len() && buffer.read(usize::from(packet.data() + at), &mut byte);
            is_there.then_some(byte[0])
        };
        let word = |at: u16| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let noted = (packet.net != NO_HEADER).then(|| packet.net.checked_sub(packet.data())).flatten();
        let ethernet = || match word(12)? {
            0x0800 => Some(14),
            0x8100 | 0x88a8 if word(16)? == 0x0800 => Some(18),
            _ => None,
        };
        let candidates = [noted, ethernet(), Some(0)];
        let net = candidates.into_iter().flatten().find(|net| byte(*net) == Some(0x45))?;
        Some(Layout { net, trans: net + 20 })
    }

    /// Bytes from the packet's first that must be there.
    pub fn bytes(&self) -> u16 {
        self.trans + 4
    }

    /// Source and destination address, ports, protocol.
    pub fn fields(&self) -> [Field; 3] {
        [
            Field::bytes(Base::Data, self.net + 12, 8),
            Field::bytes(Base::Data, self.trans, 4),
            Field::bytes(Base::Data, self.net + 9, 1),
        ]
    }

    /// The key of these numbers in packets that enter by an entry point; see [`Layout::fields`].
    pub fn key(fields: [u64; 3], input: usize) -> [u64; KEY_WORDS] {
        let [pair, ports, protocol] = fields;
        [pair, (ports << 16 | (input as u64 & 0xff) << 8 | protocol) & Layout::key_bits()]
    }

    /// The bits of a key's second word that keys have: all, unless a test wants keys that are wrong.
    pub(super) fn key_bits() -> u64 {
        let left_out = [(Fault::KeyWithoutProtocol, 0xff_u64), (Fault::KeyWithoutInput, 0xff00)];
        left_out.iter().filter(|(fault, _)| fault.is_planted()).fold(u64::MAX, |bits, (_, out)| bits & !out)
    }

    /// The key of a packet; `None` where it is too short.
    pub fn read<B: Buffer + ?Sized>(
        &self,
        packet: &Packet,
        buffer: &B,
        input: usize,
    ) -> Option<[u64; KEY_WORDS]> {
        if u32::from(self.bytes()) > packet.len() {
            return None;
        }
        let [pair, ports, protocol] = self.fields().map(|field| number(packet, buffer, field));
        Some(Layout::key([pair?, ports?, protocol?], input))
    }

    /// Whether bits of the packet are part of the key.
    pub(super) fn covers(&self, bit: i64, width: u8) -> bool {
        self.fields().iter().any(|field| {
            let start = i64::from(field.bit);
            start <= bit && bit + i64::from(width) <= start + i64::from(field.width)
        })
    }
}

/// The number in a field that is counted from a packet's first byte.
pub(super) fn number<B: Buffer + ?Sized>(packet: &Packet, buffer: &B, field: Field) -> Option<u64> {
    let (at, len) = (usize::from(field.first_byte()), usize::from(field.byte_len()));
    let mut bytes = [0; 8];
    let is_there = buffer.read(usize::from(packet.data()) + at, &mut bytes[..len]);
    Field { bit: field.bit % 8, ..field }.read(&bytes).filter(|_| is_there)
}
