//! `IPEncap` and `UDPIPEncap`: encapsulate packets in IP and UDP.

use super::header::{IP_BYTES, first_id};
use super::value;
use click::config::{Args, Names, Parsed, parse};
use diag::{Span, Spanned};
use element::value::{set, set_cell, written};
use element::{
    BoxElement, Class, Configure, Element, Handlers, PortCodes, Row, StateScope, Transparent, Work,
};
use ir::Builder;
use ir::expr::{anno, cell, ip_sum, packet_len, select, transport_sum};
use packet::Access;
use packet::anno;
use packet::checksum::{self, UDP_CHECK};
use packet::field::{Base, Field, IP_PAIR, IP_SUM, UDP_SUM};
use packet::view::protocol::UDP as UDP_PROTOCOL;
use packet::view::udp::HEADER_BYTES as UDP_BYTES;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;

/// `IPEncap`.
pub const IP: Class = Class {
    name: "IPEncap",
    summary: "encapsulates packets in static IP header",
    page: "\
# IPEncap(PROTO, SRC, DST [, keywords TTL, DSCP, ECT, CE, TOS, DF])

Adds an IP header to each packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `PROTO`: the protocol, by name or number; `SRC`, `DST`: addresses; `DST` may be
  `DST_ANNO`: the destination address annotation; `TTL` (default 250); `DSCP` (0 to 62); `ECT`: false,
  true (ECT(1)) or 2 (ECT(0)); `CE` (default false); `TOS`: the whole byte, in place of the three before;
  `DF` (default false): don't fragment
- **annotations**: sets `DST_IP`, the network and the transport header
- **handlers**: `src`, `dst` (read/write)
- **drop reasons**: `too-long`: the packet would be longer than 65535 bytes; `no-room`: there is no room
  for a header
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: make_ip,
};

/// `UDPIPEncap`.
pub const UDP: Class = Class {
    name: "UDPIPEncap",
    summary: "encapsulates packets in static UDP/IP headers",
    page: "\
# UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM])

Adds an IP and a UDP header to each packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `SRC`, `DST`: addresses; `SPORT`, `DPORT`: ports; `DST` may be `DST_ANNO`: the
  destination address annotation; `CHECKSUM` (default true): whether the UDP checksum is computed
- **annotations**: sets `DST_IP`, the network and the transport header
- **handlers**: `src`, `sport`, `dst`, `dport` (read/write)
- **drop reasons**: `too-long`: the packet would be longer than 65535 bytes; `no-room`: there is no room
  for the headers
",
    make: make_udp,
    ..IP
};

element::reasons!(TOO_LONG = "too-long", NO_ROOM = "no-room");

// Cell 0 is the identification.
const SRC: u16 = 1;
const DST: u16 = 2;
const FROM_ANNO: u16 = 3;
const PORTS: u16 = 4;

/// Don't fragment, in the word of flags and offset.
const DONT_FRAGMENT: u16 = 0x4000;

/// The destination, or that the annotation has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    Address(u32),
    Annotation,
}

fn destination(text: &Spanned, names: &dyn Names) -> Parsed<Destination> {
    if text.as_str() == "DST_ANNO" {
        return Ok(Destination::Annotation);
    }
    let address = parse::ip4(text, names).map_err(|mistake| mistake.help("it may be DST_ANNO too"))?;
    Ok(Destination::Address(u32::from(address)))
}

/// The UDP part.
#[derive(Clone, Copy)]
struct UdpPart {
    /// Source and destination.
    ports: [u16; 2],
    checksum: bool,
}

struct Encap {
    class: &'static str,
    protocol: u8,
    tos: u8,
    ttl: u8,
    flags: u16,
    src: u32,
    dst: Destination,
    udp: Option<UdpPart>,
    /// Identification of the first packet; later of the last one on the slow path.
    id: u16,
}

fn ect(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    if text.as_str() == "2" {
        return Ok(2);
    }
    parse::bool(text, names).map(u8::from).map_err(|mistake| mistake.help("it may be 2 too"))
}

fn make_ip(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (id, span) = (first_id(cx), cx.span);
    cx.transparent(|args| {
        let protocol = args.mandatory_positional("PROTO", parse::protocol);
        let src = args.mandatory_positional("SRC", parse::ip4);
        let dst = args.mandatory_positional("DST", destination);
        let ttl = args.keyword("TTL", parse::u8).unwrap_or(250);
        let tos = type_of_service(args, span);
        let df = args.keyword("DF", parse::bool).unwrap_or(false);
        let flags = if df { DONT_FRAGMENT } else { 0 };
        let (protocol, src, dst, tos) = (protocol?, u32::from(src?), dst?, tos?);
        Some(Encap { class: "IPEncap", protocol, tos, ttl, flags, src, dst, udp: None, id })
    })
}

/// The second byte of the header. Records keywords that contradict each other.
fn type_of_service(args: &mut Args<'_>, span: Span) -> Option<u8> {
    let tos = args.keyword("TOS", parse::u8);
    let dscp = args.keyword("DSCP", parse::int_in(0..=62));
    let ect = args.keyword("ECT", ect).unwrap_or(0);
    let ce = args.keyword("CE", parse::bool).unwrap_or(false);
    let contradiction = match (tos, dscp) {
        (Some(_), Some(_)) => "TOS and DSCP cannot both be set",
        (Some(_), None) if ect > 0 || ce => "TOS and ECN bits cannot both be set",
        _ if ect > 0 && ce => "at most one of ECT and CE can be set",
        _ => {
            let ecn = if ce { 3 } else { ect };
            return Some(tos.unwrap_or_else(|| (dscp.unwrap_or(0) as u8) << 2 | ecn));
        }
    };
    args.error(span, contradiction);
    None
}

fn make_udp(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let id = first_id(cx);
    cx.transparent(|args| {
        let src = args.mandatory_positional("SRC", parse::ip4);
        let sport = args.mandatory_positional("SPORT", parse::udp_port);
        let dst = args.mandatory_positional("DST", destination);
        let dport = args.mandatory_positional("DPORT", parse::udp_port);
        let checksum = args.positional("CHECKSUM", parse::bool).unwrap_or(true);
        let udp = Some(UdpPart { ports: [sport?, dport?], checksum });
        let (src, dst) = (u32::from(src?), dst?);
        let (class, protocol) = ("UDPIPEncap", UDP_PROTOCOL);
        Some(Encap { class, protocol, tos: 0, ttl: 250, flags: 0, src, dst, udp, id })
    })
}

impl Encap {
    fn header_bytes(&self) -> usize {
        IP_BYTES + if self.udp.is_some() { UDP_BYTES } else { 0 }
    }

    /// The first word of the header, without identification.
    fn first_word(&self, length: u64) -> u64 {
        (0x4500 | u64::from(self.tos)) << 48 | length << 32 | u64::from(self.flags)
    }

    fn second_word(&self) -> u64 {
        u64::from(self.ttl) << 8 | u64::from(self.protocol)
    }

    fn dst_text(&self) -> String {
        match self.dst {
            Destination::Address(address) => value::show_address(address.into()),
            Destination::Annotation if self.udp.is_some() => "0.0.0.0".to_string(),
            Destination::Annotation => "DST_ANNO".to_string(),
        }
    }

    /// Does the same as the program, for a packet without headroom.
    fn encapsulate(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let bytes = self.header_bytes();
        if packet.total() as usize + bytes > usize::from(u16::MAX) {
            return Err(TOO_LONG);
        }
        if !packet.make_headroom(bytes) || !packet.push(bytes) {
            return Err(NO_ROOM);
        }
        if let Destination::Address(address) = self.dst {
            anno::DST_IP.store(&mut packet.anno, address.into());
        }
        let dst = anno::DST_IP.load(&packet.anno) as u32;
        (packet.net, packet.trans) = (packet.data(), packet.data() + IP_BYTES as u16);
        let length = packet.total() as u16;
        self.id = self.id.wrapping_add(1);
        let first = self.first_word(u64::from(length)) | u64::from(self.id) << 16;
        let mut view = PacketBytesMut::new(packet);
        let written = view.put_u64(0, first)
            && view.put_u32(8, (self.second_word() as u32) << 16)
            && view.put_u32(12, self.src)
            && view.put_u32(16, dst)
            && checksum::set_ipv4_header(&mut view, 0, IP_BYTES)
            && self.udp.is_none_or(|udp| {
                let length = length - IP_BYTES as u16;
                let [sport, dport] = udp.ports.map(u32::from);
                let pseudo = checksum::pseudo_ipv4(self.src.into(), dst.into(), UDP_PROTOCOL, length);
                view.put_u32(IP_BYTES, sport << 16 | dport)
                    && view.put_u32(IP_BYTES + 4, u32::from(length) << 16)
                    && (!udp.checksum
                        || checksum::udp(&view, IP_BYTES, usize::from(length), pseudo)
                            .is_some_and(|sum| view.put_u16(IP_BYTES + UDP_CHECK, sum)))
            });
        if written { Ok(()) } else { Err(NO_ROOM) }
    }
}

impl Transparent for Encap {
    fn build(&self, f: &mut Builder) {
        f.name(self.class);
        let (address, from_anno) = match self.dst {
            Destination::Address(address) => (address, 0),
            Destination::Annotation => (0, 1),
        };
        let id = f.cell("id", u64::from(self.id));
        let src = f.cell("src", u64::from(self.src));
        let dst = f.cell("dst", u64::from(address));
        let from_anno = f.cell("dst_anno", from_anno);
        let (too_long, narrow) = (f.drop_block("too-long"), f.slow_block("no-headroom"));
        let bytes = self.header_bytes();
        let length = f.eval(packet_len() + bytes as u64);
        f.check(length.at_most(u64::from(u16::MAX)), too_long);
        f.room(bytes, narrow);
        f.push(bytes);
        f.set_base(Base::Net, 0);
        f.set_base(Base::Trans, IP_BYTES as u64);

        let first = length << 32 | self.first_word(0) | (cell(id) & 0xffff) << 16;
        f.store(Field::bytes(Base::Net, 0, 8), first);
        f.add_to_cell(id, 1);
        f.store(Field::bytes(Base::Net, 8, 4), self.second_word() << 16);
        let to = f.eval(select(cell(from_anno), anno(anno::DST_IP), cell(dst)));
        f.store_anno(anno::DST_IP, to);
        f.store(IP_PAIR, cell(src) << 32 | to);
        f.store(IP_SUM, ip_sum() ^ 0xffff);
        if let Some(udp) = self.udp {
            let [sport, dport] = udp.ports.map(u64::from);
            let (sport, dport) = (f.cell("sport", sport), f.cell("dport", dport));
            let ports = cell(sport) << 48 | cell(dport) << 32;
            f.store(Field::bytes(Base::Trans, 0, 8), ports | (length - IP_BYTES as u64) << 16);
            if udp.checksum {
                let sum = f.eval(transport_sum(u64::from(UDP_PROTOCOL)) ^ 0xffff);
                // 0 would mean that there is no checksum (RFC 768).
                f.store(UDP_SUM, select(sum, sum, 0xffff));
            }
        }
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.encapsulate(packet));
    }
}

impl Element for Encap {
    element::facts!(reasons: REASONS);

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = if self.udp.is_some() { UDP_HANDLERS } else { IP_HANDLERS };
        Handlers::of(self, rows)
    }
}

/// The handler of one of the UDP ports, which sets its cell, too.
const fn port<const AT: usize>(name: &'static str) -> Row<Encap> {
    Row::read_write(
        name,
        |encap, _| Some(encap.udp?.ports[AT].to_string()),
        |encap, value, cells| {
            let new = written(value, parse::udp_port)?;
            encap.udp.iter_mut().for_each(|udp| udp.ports[AT] = new);
            set_cell(cells, PORTS + AT as u16, new)
        },
    )
}

const IP_HANDLERS: &[Row<Encap>] = &[
    Row::read_write(
        "src",
        |encap, _| Some(value::show_address(encap.src.into())),
        |encap, value, cells| {
            set(&mut encap.src, value, value::address)?;
            set_cell(cells, SRC, encap.src)
        },
    ),
    Row::read_write(
        "dst",
        |encap, _| Some(encap.dst_text()),
        |encap, value, cells| {
            set(&mut encap.dst, value, destination)?;
            if let Destination::Address(address) = encap.dst {
                set_cell(cells, DST, address)?;
            }
            set_cell(cells, FROM_ANNO, encap.dst == Destination::Annotation)
        },
    ),
];
const UDP_HANDLERS: &[Row<Encap>] = &[IP_HANDLERS[0], IP_HANDLERS[1], port::<0>("sport"), port::<1>("dport")];

#[cfg(test)]
mod tests;
