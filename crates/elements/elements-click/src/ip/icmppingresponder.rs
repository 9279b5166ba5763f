//! `ICMPPingResponder`: answers echo requests.

use element::{Class, Element, PortCodes, StateScope, Transparent, Work};
use elements::ip::header::{from_network, transport_offset};
use ir::expr::{csum_update, load};
use ir::{Builder, Expr, Value};
use packet::Access;
use packet::anno;
use packet::checksum::{self, ICMP_CHECK};
use packet::field::{Base, Field, ICMP_SUM, ICMP_TYPE, IP_OFF, IP_PAIR, IP_PROTO, IP_SUM, IP_TTL};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};

/// The class.
pub const CLASS: Class = Class {
    name: "ICMPPingResponder",
    summary: "responds to ICMP echo requests",
    page: "\
# ICMPPingResponder()

Turns ICMP echo requests into replies: swaps the addresses, clears the fragment word, sets the time to live
to 255.

- **ports**: 1 input, 1 or 2 outputs, agnostic; other packets are pushed out of output 1
- **annotations**: sets `DST_IP` to the new destination and `PAINT` to 0; needs the network and the
  transport header
- **drop reasons**: `not-echo-request`
- **difference**: the reply keeps the timestamp of the request, because no clock is read for a packet
",
    codes: PortCodes::CHECK,
    state: StateScope::None,
    make: |cx| cx.transparent(|_| Some(Responder)),
};

struct Responder;

/// Type and code.
const TYPE_WORD: Field = Field::bytes(Base::Trans, 0, 2);
/// The time to live of replies.
const TTL: u64 = 255;

/// Writes a word and returns the updated checksum.
fn replace(f: &mut Builder, field: Field, new: impl Into<Expr>, sum: impl Into<Expr>) -> Value {
    let (old, new) = (f.eval(load(field)), f.eval(new));
    f.store(field, new);
    f.eval(csum_update(sum, old, new, 16))
}

/// Computes the checksum in full.
fn finish(packet: &Packet) -> Option<()> {
    let (mut from_net, at) = (from_network(packet)?, transport_offset(packet)?);
    let bytes = PacketBytes::new(&from_net);
    let sum = checksum::icmp(&bytes, at, bytes.len().checked_sub(at)?)?;
    PacketBytesMut::new(&mut from_net).put_u16(at + ICMP_CHECK, sum).then_some(())
}

impl Transparent for Responder {
    fn build(&self, f: &mut Builder) {
        f.name("ICMPPingResponder");
        let (other, zero_sum) = (f.bad_block(1, "not-echo-request"), f.slow_block("zero-sum"));
        f.need(Base::Net, 20, other);
        f.need(Base::Trans, 8, other);
        let protocol = f.eval(load(IP_PROTO));
        f.check(protocol.equals(1), other);
        f.check(load(ICMP_TYPE).equals(8), other);

        let pair = f.eval(load(IP_PAIR));
        let source = f.eval(pair >> 32);
        f.store(IP_PAIR, (pair << 32) | source);
        let nothing = f.eval(0);
        let sum = replace(f, IP_OFF, nothing, load(IP_SUM));
        // Its word changes as much, whatever the protocol in the other half.
        let ttl = f.eval(load(IP_TTL));
        let sum = f.eval(csum_update(sum, ttl << 8, TTL << 8, 16));
        f.store(IP_TTL, TTL);
        f.store(IP_SUM, sum);
        f.store_anno(anno::DST_IP, source);
        f.store_anno(anno::PAINT, nothing);

        let sum = replace(f, TYPE_WORD, nothing, load(ICMP_SUM));
        f.store(ICMP_SUM, sum);
        // An incremental update gives 0 for a message of zeros, whose checksum is 0xffff.
        f.check(sum, zero_sum);
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match finish(batch.packet(index)) {
                Some(()) => batch.emit(index, 0),
                None => batch.emit_or_drop(index, 1, 0),
            }
        }
    }
}

impl Element for Responder {
    element::facts!(reasons: &["not-echo-request"]);
}
