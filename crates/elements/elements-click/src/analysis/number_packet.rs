//! `NumberPacket`: writes a number into each packet.

use click::config::{Args, parse};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope, Work};
use elements::ip::header::from_network;
use packet::Access;
use packet::field::IP_LEN;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The class.
pub const CLASS: Class = Class {
    name: "NumberPacket",
    summary: "stores a packet count inside packet payload",
    page: "\
# NumberPacket([OFFSET, keyword NET_ORDER])

Writes a number of 8 bytes into each packet: 0 into the first, 1 into the second, and so on. Packets that are too
short for it are lengthened.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (0 to 65000, default 40): where the number begins; `NET_ORDER` (default false): in network
  byte order, else in the machine's
- **annotations**: needs the network header of packets that are lengthened: their IP length becomes that of the packet
- **handlers**: `count` (read): packets numbered
- **drop reasons**: `no-room`: there is no room for a packet that is lengthened
- **workers**: one worker numbers all packets
- **difference**: checksums are not changed, as in FastClick, but the length that is written is right where bytes
  precede the IP header, too
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::OneWorker,
    make,
};

/// The byte order of an element's numbers. The worker's shared state has it under the element's name.
#[derive(Default)]
pub(super) struct NumberOrder(AtomicBool);

impl NumberOrder {
    /// Whether it is that of networks.
    pub(super) fn is_net(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sets it.
    pub(super) fn set(&self, is_net: bool) {
        self.0.store(is_net, Relaxed);
    }
}

/// Bytes of a number.
pub(super) const NUMBER_BYTES: usize = 8;

/// The place and the byte order of a packet's number.
#[derive(Clone, Copy)]
pub(super) struct NumberPlace {
    pub(super) offset: usize,
    pub(super) net_order: bool,
}

impl NumberPlace {
    /// The number; `None` if the packet ends before.
    pub(super) fn read(self, packet: &Packet) -> Option<u64> {
        let bytes: [u8; NUMBER_BYTES] = PacketBytes::new(packet).get(self.offset)?;
        Some(if self.net_order { u64::from_be_bytes(bytes) } else { u64::from_ne_bytes(bytes) })
    }

    /// Writes a number; false if the packet ends before.
    fn write(self, packet: &mut Packet, number: u64) -> bool {
        let bytes = if self.net_order { number.to_be_bytes() } else { number.to_ne_bytes() };
        PacketBytesMut::new(packet).copy_in(self.offset, &bytes)
    }
}

/// Reads the offset of a number.
pub(super) fn offset(args: &mut Args<'_>) -> Option<usize> {
    args.positional("OFFSET", parse::int_in(0..=65_000)).map(|offset| offset as usize)
}

struct NumberPacket {
    place: NumberPlace,
    count: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let place = cx.read(|args| {
        let offset = offset(args).unwrap_or(40);
        let net_order = args.keyword("NET_ORDER", parse::bool).unwrap_or(false);
        Some(NumberPlace { offset, net_order })
    })?;
    cx.shared(Scope::Worker, cx.name, NumberOrder::default)?.set(place.net_order);
    Some(BoxElement::opaque(NumberPacket { place, count: 0 }))
}

/// Lengthens a packet by so many bytes, and corrects the length in its IP header; false where there is no room.
fn lengthen(packet: &mut Packet, by: usize, work: &mut Work<'_>) -> bool {
    if !shm::chain::grow(work.pool(), packet, by) {
        return false;
    }
    if let Some(mut from_net) = from_network(packet) {
        let length = u16::try_from(from_net.total()).unwrap_or(u16::MAX);
        // A packet that ends before its IP length has none to correct.
        let _ = IP_LEN.store(&mut PacketBytesMut::new(&mut from_net), 0, length.into());
    }
    true
}

impl Opaque for NumberPacket {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let place = self.place;
        batch.emit_if(0, |packet| {
            let excess = (place.offset + NUMBER_BYTES).saturating_sub(packet.total() as usize);
            let numbered = (excess == 0 || lengthen(packet, excess, work)) && place.write(packet, self.count);
            self.count += u64::from(numbered);
            numbered
        });
    }
}

impl Element for NumberPacket {
    element::facts!(reasons: &["no-room"], handlers: HANDLERS);
}

const HANDLERS: &[Row<NumberPacket>] = &[Row::sum("count", |number, _| Some(number.count.to_string()))];
