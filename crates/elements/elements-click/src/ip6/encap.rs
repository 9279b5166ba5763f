//! `IP6Encap` and `UDPIP6Encap`: encapsulate packets in IPv6 and UDP.

use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::value::{set, written};
use element::{BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Row, StateScope, Work};
use elements::ip6::address;
use packet::Access;
use packet::checksum::{self, UDP_CHECK};
use packet::view::ipv6::{DST, HEADER_BYTES as IP6_BYTES, SRC};
use packet::view::protocol::UDP as UDP_PROTOCOL;
use packet::view::udp::HEADER_BYTES as UDP_BYTES;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;
use std::net::Ipv6Addr;

/// `IP6Encap`.
pub const IP6: Class = Class {
    name: "IP6Encap",
    summary: "encapsulates packets in static IPv6 header",
    page: "\
# IP6Encap(PROTO, SRC, DST [, keywords HLIM, CLASS])

Adds an IPv6 header to each packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `PROTO`: the next header, by name or number; `SRC`, `DST`: addresses; `DST` may be `DST_ANNO`: the
  destination address annotation; `HLIM` (default 250): hop limit; `CLASS` (default 0): traffic class
- **annotations**: sets `DST_IP6`, the network and the transport header
- **handlers**: `src`, `dst` (read/write)
- **drop reasons**: `too-long`: the payload would be longer than 65535 bytes; `no-room`: there is no room for a header
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: make_ip6,
};

/// `UDPIP6Encap`.
pub const UDP: Class = Class {
    name: "UDPIP6Encap",
    summary: "encapsulates packets in static UDP/IPv6 headers",
    page: "\
# UDPIP6Encap(SRC, SPORT, DST, DPORT)

Adds an IPv6 header, with hop limit 255, and a UDP header to each packet. The UDP checksum, which IPv6 demands, is
computed.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `SRC`, `DST`: addresses; `SPORT`, `DPORT`: ports; `DST` may be `DST_ANNO`: the destination address
  annotation
- **annotations**: sets `DST_IP6`, the network and the transport header
- **handlers**: `src`, `sport`, `dst`, `dport` (read/write)
- **drop reasons**: `too-long`: the payload would be longer than 65535 bytes; `no-room`: there is no room for the
  headers
",
    make: make_udp,
    ..IP6
};

element::reasons!(TOO_LONG = "too-long", NO_ROOM = "no-room");

/// The destination, or that the annotation has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    Address(Ipv6Addr),
    Annotation,
}

fn destination(text: &Spanned, names: &dyn Names) -> Parsed<Destination> {
    if text.as_str() == "DST_ANNO" {
        return Ok(Destination::Annotation);
    }
    let address = parse::ip6(text, names).map_err(|mistake| mistake.help("it may be DST_ANNO too"))?;
    Ok(Destination::Address(address))
}

struct Encap {
    protocol: u8,
    class: u8,
    hop_limit: u8,
    src: Ipv6Addr,
    dst: Destination,
    /// UDP's source and destination port.
    ports: Option<[u16; 2]>,
}

fn make_ip6(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let protocol = args.mandatory_positional("PROTO", parse::protocol);
        let src = args.mandatory_positional("SRC", parse::ip6);
        let dst = args.mandatory_positional("DST", destination);
        let hop_limit = args.keyword("HLIM", parse::u8).unwrap_or(250);
        let class = args.keyword("CLASS", parse::u8).unwrap_or(0);
        Some(Encap { protocol: protocol?, class, hop_limit, src: src?, dst: dst?, ports: None })
    })
}

fn make_udp(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let src = args.mandatory_positional("SRC", parse::ip6);
        let sport = args.mandatory_positional("SPORT", parse::udp_port);
        let dst = args.mandatory_positional("DST", destination);
        let dport = args.mandatory_positional("DPORT", parse::udp_port);
        let (src, dst, ports) = (src?, dst?, Some([sport?, dport?]));
        Some(Encap { protocol: UDP_PROTOCOL, class: 0, hop_limit: 255, src, dst, ports })
    })
}

impl Encap {
    fn encapsulate(&self, packet: &mut Packet) -> Result<(), usize> {
        let udp_bytes = if self.ports.is_some() { UDP_BYTES } else { 0 };
        let header_bytes = IP6_BYTES + udp_bytes;
        let length = u16::try_from(packet.total() as usize + udp_bytes).map_err(|_| TOO_LONG)?;
        if !packet.make_headroom(header_bytes) || !packet.push(header_bytes) {
            return Err(NO_ROOM);
        }
        if let Destination::Address(dst) = self.dst {
            address::set_destination(packet, dst);
        }
        let dst = address::destination(packet);
        (packet.net, packet.trans) = (packet.data(), packet.data() + IP6_BYTES as u16);
        let mut header = [0; IP6_BYTES + UDP_BYTES];
        header[..4].copy_from_slice(&(6 << 28 | u32::from(self.class) << 20).to_be_bytes());
        header[4..6].copy_from_slice(&length.to_be_bytes());
        (header[6], header[7]) = (self.protocol, self.hop_limit);
        header[SRC..DST].copy_from_slice(&self.src.octets());
        header[DST..IP6_BYTES].copy_from_slice(&dst.octets());
        if let Some([sport, dport]) = self.ports {
            let fields = [sport, dport, length, 0].map(u16::to_be_bytes);
            header[IP6_BYTES..].copy_from_slice(fields.as_flattened());
        }
        let mut bytes = PacketBytesMut::new(packet);
        let written = bytes.copy_in(0, header.as_slice().get(..header_bytes).unwrap_or_default())
            && (self.ports.is_none() || {
                let pseudo = checksum::pseudo_ipv6(self.src, dst, UDP_PROTOCOL, length.into());
                checksum::udp(&bytes, IP6_BYTES, length.into(), pseudo)
                    .is_some_and(|sum| bytes.put_u16(IP6_BYTES + UDP_CHECK, sum))
            });
        if written { Ok(()) } else { Err(NO_ROOM) }
    }

    fn dst_text(&self) -> String {
        match self.dst {
            Destination::Address(address) => address.to_string(),
            Destination::Annotation if self.ports.is_some() => Ipv6Addr::UNSPECIFIED.to_string(),
            Destination::Annotation => "DST_ANNO".to_string(),
        }
    }
}

impl Opaque for Encap {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.encapsulate(packet));
    }
}

impl Element for Encap {
    element::facts!(reasons: REASONS);

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = if self.ports.is_some() { UDP_HANDLERS } else { IP6_HANDLERS };
        Handlers::of(self, rows)
    }
}

/// The handler of one of the UDP ports.
const fn port<const AT: usize>(name: &'static str) -> Row<Encap> {
    Row::read_write(
        name,
        |encap, _| Some(encap.ports?[AT].to_string()),
        |encap, value, _| {
            let new = written(value, parse::udp_port)?;
            encap.ports.iter_mut().for_each(|ports| ports[AT] = new);
            Ok(())
        },
    )
}

const IP6_HANDLERS: &[Row<Encap>] = &[
    element::field!(src, parse::ip6),
    Row::read_write(
        "dst",
        |encap, _| Some(encap.dst_text()),
        |encap, value, _| set(&mut encap.dst, value, destination),
    ),
];
const UDP_HANDLERS: &[Row<Encap>] =
    &[IP6_HANDLERS[0], IP6_HANDLERS[1], port::<0>("sport"), port::<1>("dport")];
