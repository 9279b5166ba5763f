//! `SetTCPChecksum` and `SetUDPChecksum`: compute transport checksums.

use super::header::datagram;
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::{load, offset, packet_len, select, transport_sum};
use packet::Access;
use packet::checksum::{self, UDP_CHECK};
use packet::field::{Base, IP_LEN, IP_OFF, TCP_HL, TCP_SUM, UDP_LEN, UDP_SUM};
use shm::Packet;
use shm::bytes::{PacketBytes, PacketBytesMut};

/// `SetTCPChecksum`.
pub const TCP: Class = Class {
    name: "SetTCPChecksum",
    summary: "sets TCP packets' checksums",
    page: "\
# SetTCPChecksum([FIXOFF])

Computes the TCP checksum and writes it into the header.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `FIXOFF` (default false): corrects a data offset that is too small or beyond the packet
- **annotations**: needs the network and the transport header
- **drop reasons**: `bad-lengths`: the segment has no whole header, or is not all there
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make_tcp),
};

/// `SetUDPChecksum`.
pub const UDP: Class = Class {
    name: "SetUDPChecksum",
    summary: "sets UDP packets' checksums",
    page: "\
# SetUDPChecksum()

Computes the UDP checksum and writes it into the header. The protocol field is not checked.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that have no whole datagram are pushed out of
  output 1
- **annotations**: needs the network and the transport header
- **drop reasons**: `fragment-or-short`: a fragment, or the packet is shorter than its UDP length
",
    codes: PortCodes::CHECK,
    make: |cx| cx.transparent(|_| Some(set_udp())),
    ..TCP
};

/// More fragments, or an offset.
const FRAGMENT: u64 = 0x3fff;

fn make_tcp(args: &mut Args<'_>) -> Option<Program> {
    let fix_offset = args.positional("FIXOFF", parse::bool).unwrap_or(false);
    Some(Program::new("SetTCPChecksum", &[], move |f| {
        let bad = f.drop_block("bad-lengths");
        f.need(Base::Net, 20, bad);
        f.need(Base::Trans, 20, bad);
        let net = f.eval(offset(Base::Net));
        let header = f.eval(offset(Base::Trans) - net);
        let length = f.eval(load(IP_LEN));
        f.check((header + 20).at_most(length), bad);
        f.check(length.at_most(packet_len() - net), bad);
        if fix_offset {
            let (words, five) = (f.eval(load(TCP_HL)), f.eval(5));
            let most = select(load(IP_OFF) & FRAGMENT, words, (length - header) >> 2);
            f.store(TCP_HL, select(words.less_than(five), five, words.min(most)));
        }
        f.store(TCP_SUM, 0);
        f.store(TCP_SUM, transport_sum(6) ^ 0xffff);
        f.emit(0);
    }))
}

/// Computes and writes the checksum of a datagram that ends before its IP packet does.
fn write_sum(packet: &mut Packet) -> Option<()> {
    let (mut from_net, at, length, pseudo) = datagram(packet)?;
    let sum = checksum::udp(&PacketBytes::new(&from_net), at, length, pseudo)?;
    PacketBytesMut::new(&mut from_net).put_u16(at + UDP_CHECK, sum).then_some(())
}

fn set_udp() -> Program {
    let program = Program::new("SetUDPChecksum", &[], |f| {
        let bad = f.bad_block(1, "fragment-or-short");
        let shorter = f.slow_block("shorter-than-ip");
        f.need(Base::Net, 20, bad);
        f.need(Base::Trans, 8, bad);
        f.leave_if(load(IP_OFF) & FRAGMENT, bad);
        let end = f.eval(offset(Base::Trans) + load(UDP_LEN));
        f.check(end.at_most(packet_len()), bad);
        // The program's sum covers the IP length. If the datagram ends before that, Rust computes it.
        f.check(end.equals(offset(Base::Net) + load(IP_LEN)), shorter);
        f.store(UDP_SUM, 0);
        let sum = f.eval(transport_sum(17) ^ 0xffff);
        // 0 would mean that there is no checksum (RFC 768).
        f.store(UDP_SUM, select(sum, sum, 0xffff));
        f.emit(0);
    });
    program.with_slow_path(&["fragment-or-short"], true, |(), batch, _| {
        for &index in batch.list() {
            match write_sum(batch.packet_mut(index)) {
                Some(()) => batch.emit(index, 0),
                None => batch.emit_or_drop(index, 1, 0),
            }
        }
    })
}
