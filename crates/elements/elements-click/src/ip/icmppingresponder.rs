//! `ICMPPingResponder`: answers echo requests.

use element::class::{Class, StateScope};
use element::configure::Shape;
use element::element::Element;
use element::vector::Batch;
use element::work::Work;
use elements::ip::header::{from_network, transport_offset};
use ir::program::{BinOp, Value};
use ir::verify::VerifyError;
use ir::{Builder, Inst, Term, Verified};
use packet::Access;
use packet::anno;
use packet::checksum::{self, ICMP_CHECK};
use packet::field::{Base, Field, ICMP_SUM, ICMP_TYPE, IP_OFF, IP_PAIR, IP_PROTO, IP_SUM};
use shm::Packet;
use shm::bytes::{PacketBytes, PacketBytesMut};

/// The class.
pub const CLASS: Class = Class {
    name: "ICMPPingResponder",
    summary: "responds to ICMP echo requests",
    page: "\
# ICMPPingResponder()

Turns ICMP echo requests into the replies to them: swaps the addresses, clears the fragment word, sets
the time to live to 255.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that are no echo requests are pushed out of
  output 1
- **annotations**: sets `DST_IP` to the new destination and `PAINT` to 0; needs the network and the
  transport header
- **drop reasons**: `not-echo-request`
- **difference**: the reply keeps the timestamp of the request, because no clock is read for a packet
",
    ports: "1/1-2",
    processing: "a/ah",
    flow: "x/x",
    state: StateScope::None,
    make: |cx| cx.args().finish().then(|| Box::new(Responder) as Box<dyn Element>),
};

struct Responder;

/// Time to live and protocol: a word of the header checksum.
const TTL_WORD: Field = Field::bytes(Base::Net, 8, 2);
/// Type and code.
const TYPE_WORD: Field = Field::bytes(Base::Trans, 0, 2);
/// The time to live of replies, in its place in the word.
const TTL: u64 = 0xff00;

/// Writes a word and gives the checksum that follows from a checksum.
fn replace(f: &mut Builder, field: Field, new: Value, sum: Value) -> Value {
    let old = f.load(field);
    f.store(field, new);
    f.value(Inst::CsumUpdate(sum, old, new, 16))
}

/// Computes the checksum in full.
fn finish(packet: &Packet) -> Option<()> {
    let (mut from_net, at) = (from_network(packet)?, transport_offset(packet)?);
    let bytes = PacketBytes::new(&from_net);
    let sum = checksum::icmp(&bytes, at, bytes.len().checked_sub(at)?)?;
    PacketBytesMut::new(&mut from_net).put_u16(at + ICMP_CHECK, sum).then_some(())
}

impl Element for Responder {
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new("ICMPPingResponder", shape.outputs);
        let (other, zero_sum) = (f.bad_block(1, "not-echo-request"), f.block());
        let full = f.slow_path("zero-sum");
        f.need(Base::Net, 20, other);
        f.need(Base::Trans, 8, other);
        let protocol = f.load(IP_PROTO);
        let icmp = f.bin_const(BinOp::Eq, protocol, 1);
        f.check(icmp, other);
        let kind = f.load(ICMP_TYPE);
        let echo = f.bin_const(BinOp::Eq, kind, 8);
        f.check(echo, other);

        let pair = f.load(IP_PAIR);
        let source = f.bin_const(BinOp::Shr, pair, 32);
        let destination = f.bin_const(BinOp::Shl, pair, 32);
        let swapped = f.bin(BinOp::Or, destination, source);
        f.store(IP_PAIR, swapped);
        let nothing = f.constant(0);
        let sum = f.load(IP_SUM);
        let sum = replace(&mut f, IP_OFF, nothing, sum);
        let ttl = f.bin_const(BinOp::Or, protocol, TTL);
        let sum = replace(&mut f, TTL_WORD, ttl, sum);
        f.store(IP_SUM, sum);
        f.store_anno(anno::DST_IP, source);
        f.store_anno(anno::PAINT, nothing);

        let sum = f.load(ICMP_SUM);
        let sum = replace(&mut f, TYPE_WORD, nothing, sum);
        f.store(ICMP_SUM, sum);
        // An update cannot tell the checksum of a message of zeros, 0xffff, from 0.
        f.check(sum, zero_sum);
        f.emit(0);
        f.at(zero_sum);
        f.end(Term::Slow(full));
        Some(f.finish())
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["not-echo-request"]
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
