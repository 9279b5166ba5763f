//! `ICMPIPEncap` and `ICMPPingEncap`: encapsulate packets in ICMP and IP.

use super::header::IP_BYTES;
use super::icmpname::{any_type, code};
use super::value;
use click::config::parse;
use element::value::set;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::Access;
use packet::anno;
use packet::checksum::{self, ICMP_CHECK};
use packet::view::icmp::{ECHO, ECHO_REPLY};
use packet::view::protocol::ICMP;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;

/// `ICMPIPEncap`.
pub const CLASS: Class = Class {
    name: "ICMPIPEncap",
    summary: "encapsulates packets in ICMP/IP headers",
    page: "\
# ICMPIPEncap(SRC, DST, TYPE [, CODE, keyword IDENTIFIER])

Adds an IP and an ICMP header to each packet, which becomes the payload of an ICMP message.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `SRC`, `DST`: addresses; `TYPE`: ICMP type, by name or number; `CODE` (default 0): ICMP code, by
  name or number; `IDENTIFIER` (default 0): of echo, timestamp and information messages, whose sequence number is
  the IP identification. Both are written in the machine's byte order, as Click does on Linux
- **annotations**: sets `DST_IP`, the network and the transport header
- **handlers**: `src`, `dst` (read/write)
- **drop reasons**: `too-long`: the packet would be longer than 65535 bytes; `no-room`: there is no room for the
  headers
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

/// `ICMPPingEncap`.
pub const PING: Class = Class {
    name: "ICMPPingEncap",
    summary: "encapsulates packets in ICMP ping headers",
    page: "\
# ICMPPingEncap(SRC, DST [, keyword IDENTIFIER])

Adds the IP and ICMP headers of an echo request to each packet: ICMPIPEncap with the type `echo`.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `SRC`, `DST`: addresses; `IDENTIFIER` (default 0)
- **annotations**: sets `DST_IP`, the network and the transport header
- **handlers**: `src`, `dst` (read/write)
- **drop reasons**: `too-long`: the packet would be longer than 65535 bytes; `no-room`: there is no room for the
  headers
",
    make: make_ping,
    ..CLASS
};

element::reasons!(TOO_LONG = "too-long", NO_ROOM = "no-room");

/// The time to live of its packets.
const TTL: u8 = 255;
/// The longest ICMP header, of a timestamp message (RFC 792).
const MOST_ICMP_BYTES: usize = 20;

struct Encap {
    src: u32,
    dst: u32,
    kind: u8,
    code: u8,
    identifier: u16,
    /// Identification of the next packet; never 0.
    id: u16,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let src = args.mandatory_positional("SRC", parse::ip4);
        let dst = args.mandatory_positional("DST", parse::ip4);
        let kind = args.mandatory_positional("TYPE", any_type);
        let code = args.positional("CODE", code(kind.unwrap_or(0))).unwrap_or(0);
        let identifier = args.keyword("IDENTIFIER", parse::u16).unwrap_or(0);
        let (src, dst) = (src?.into(), dst?.into());
        Some(Encap { src, dst, kind: kind?, code, identifier, id: 1 })
    })
}

fn make_ping(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let src = args.mandatory_positional("SRC", parse::ip4);
        let dst = args.mandatory_positional("DST", parse::ip4);
        let identifier = args.keyword("IDENTIFIER", parse::u16).unwrap_or(0);
        let (src, dst) = (src?.into(), dst?.into());
        Some(Encap { src, dst, kind: ECHO, code: 0, identifier, id: 1 })
    })
}

impl Encap {
    /// Bytes of the ICMP header: timestamps and address masks follow in messages that have them (RFC 792, 950).
    fn icmp_bytes(&self) -> usize {
        match self.kind {
            13 | 14 => MOST_ICMP_BYTES,
            17 | 18 => 12,
            _ => 8,
        }
    }

    /// Whether messages of the type have an identifier and a sequence number (RFC 792).
    fn has_identifier(&self) -> bool {
        matches!(self.kind, ECHO | ECHO_REPLY | 13..=16)
    }

    fn encapsulate(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let (payload, icmp_bytes) = (packet.total() as usize, self.icmp_bytes());
        let header_bytes = IP_BYTES + icmp_bytes;
        let length = u16::try_from(payload + header_bytes).map_err(|_| TOO_LONG)?;
        if !packet.make_headroom(header_bytes) || !packet.push(header_bytes) {
            return Err(NO_ROOM);
        }
        let mut icmp = [0; MOST_ICMP_BYTES];
        icmp[..2].copy_from_slice(&[self.kind, self.code]);
        if self.has_identifier() {
            icmp[4..6].copy_from_slice(&self.identifier.to_ne_bytes());
            icmp[6..8].copy_from_slice(&self.id.to_ne_bytes());
        }
        anno::DST_IP.store(&mut packet.anno, self.dst.into());
        (packet.net, packet.trans) = (packet.data(), packet.data() + IP_BYTES as u16);
        let mut bytes = PacketBytesMut::new(packet);
        let written = bytes.put_u32(0, 0x4500_0000 | u32::from(length))
            && bytes.put_u32(4, u32::from(self.id) << 16)
            && bytes.put_u32(8, u32::from(TTL) << 24 | u32::from(ICMP) << 16)
            && bytes.put_u32(12, self.src)
            && bytes.put_u32(16, self.dst)
            && checksum::set_ipv4_header(&mut bytes, 0, IP_BYTES)
            && bytes.copy_in(IP_BYTES, icmp.as_slice().get(..icmp_bytes).unwrap_or_default())
            && checksum::icmp(&bytes, IP_BYTES, icmp_bytes + payload)
                .is_some_and(|sum| bytes.put_u16(IP_BYTES + ICMP_CHECK, sum));
        self.id = self.id.checked_add(1).unwrap_or(1);
        if written { Ok(()) } else { Err(NO_ROOM) }
    }
}

impl Opaque for Encap {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.encapsulate(packet));
    }
}

impl Element for Encap {
    element::facts!(reasons: REASONS, handlers: HANDLERS);
}

const HANDLERS: &[Row<Encap>] = &[
    Row::read_write(
        "src",
        |encap, _| Some(value::show_address(encap.src.into())),
        |encap, value, _| set(&mut encap.src, value, value::address),
    ),
    Row::read_write(
        "dst",
        |encap, _| Some(value::show_address(encap.dst.into())),
        |encap, value, _| set(&mut encap.dst, value, value::address),
    ),
];
