//! `ForceIP`, `ForceTCP`, `ForceUDP`, `ForceICMP`: make packets of any bytes.

use click::config::{Args, Names, Parsed, parse};
use diag::Spanned;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work, random};
use elements::ip::header::{IP_BYTES, from_network};
use elements::ip::icmpname::{any_type, code};
use packet::Access;
use packet::checksum::{self, ICMP_CHECK, TCP_CHECK, UDP_CHECK};
use packet::field::IP_HL;
use packet::view::Ipv4;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};

/// `ForceIP`.
pub const IP: Class = Class {
    name: "ForceIP",
    summary: "fixes fields to make packets into legal IP packets",
    page: "\
# ForceIP()

Makes packets IP packets, whatever their bytes: sets version, length and checksum, a header length that fits, and, except
in every eighth packet, that it is no fragment.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: sets the network and the transport header
- **drop reasons**: `too-short`: less than 20 bytes; `too-long`: more than 65535 bytes
- **difference**: a header length that does not fit becomes 20 bytes, because Click's would be a quarter of the packet's
  length, cut off
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.opaque(|_| Some(ForceIp { count: 0 })),
};

/// `ForceTCP`.
pub const TCP: Class = Class {
    name: "ForceTCP",
    summary: "sets TCP packet fields",
    page: "\
# ForceTCP([DPORT, RANDOM_DPORT, FLAGS])

Sets the checksum of TCP packets, and a data offset that fits where it does not.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DPORT` (default 0): the destination port, unless it is 0; `RANDOM_DPORT` (default false): without
  DPORT, the destination port becomes 80 or, of every eighth packet, a random one below 1024; `FLAGS` (default -1): the
  TCP flags, unless it is -1
- **annotations**: needs the network header
- **drop reasons**: `bad-lengths`: the lengths in the IP header contradict the packet, or it has no room for a TCP header
- **difference**: random numbers are the same in every run
",
    make: make_tcp,
    ..IP
};

/// `ForceUDP`.
pub const UDP: Class = Class {
    name: "ForceUDP",
    summary: "sets UDP packet fields",
    page: "\
# ForceUDP([DPORT, keyword CHECKLENGTH])

Sets length, destination port and checksum of UDP packets.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DPORT` (default -1): the destination port; -1 for a random one below 1024. `CHECKLENGTH` has no
  effect
- **annotations**: needs the network header
- **drop reasons**: `bad-lengths`: the lengths in the IP header contradict the packet, or it has no room for a UDP header
- **difference**: a packet that ends before its IP length is dropped, because Click reads the bytes behind it. Random
  numbers are the same in every run
",
    make: make_udp,
    ..IP
};

/// `ForceICMP`.
pub const ICMP: Class = Class {
    name: "ForceICMP",
    summary: "sets ICMP checksum, type and code",
    page: "\
# ForceICMP(TYPE, CODE)

Sets type, code and checksum of ICMP packets.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `TYPE`, `CODE`: by name or number
- **annotations**: needs the network header
- **drop reasons**: `bad-lengths`: the lengths in the IP header contradict the packet, or it has no room for an ICMP header
",
    make: make_icmp,
    ..IP
};

const TOO_SHORT: usize = 0;
const TOO_LONG: usize = 1;
const BAD_LENGTHS: usize = 0;

struct ForceIp {
    count: u64,
}

impl ForceIp {
    fn force(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let length = u16::try_from(packet.total()).map_err(|_| TOO_LONG)?;
        if usize::from(length) < IP_BYTES {
            return Err(TOO_SHORT);
        }
        let mut bytes = PacketBytesMut::new(packet);
        let words = usize::from(bytes.u8(0).unwrap_or(0) & 15);
        let header = if (5..=usize::from(length) / 4).contains(&words) { words * 4 } else { IP_BYTES };
        let may_be_fragment = self.count & 7 == 1;
        self.count += 1;
        let set = bytes.put_u8(0, 0x40 | (header / 4) as u8)
            && bytes.put_u16(2, length)
            && (may_be_fragment || bytes.put_u16(6, 0))
            && checksum::set_ipv4_header(&mut bytes, 0, header);
        (packet.net, packet.trans) = (packet.data(), packet.data().saturating_add(header as u16));
        if set { Ok(()) } else { Err(TOO_SHORT) }
    }
}

impl Opaque for ForceIp {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.force(packet));
    }
}

impl Element for ForceIp {
    element::facts!(reasons: &["too-short", "too-long"]);
}

/// What is forced behind the IP header.
enum Transport {
    Tcp { port: u16, random_port: bool, flags: Option<u8> },
    Udp { port: Option<u16> },
    Icmp { kind: u8, code: u8 },
}

struct Force {
    transport: Transport,
    count: u64,
    state: u64,
}

/// The segment behind the IP header of a packet.
struct Segment {
    from_net: Packet,
    at: usize,
    length: usize,
}

impl Segment {
    /// `None` if it has less than `least` bytes, or lengths contradict the packet.
    fn of(packet: &Packet, least: usize) -> Option<Segment> {
        let from_net = from_network(packet)?;
        let bytes = PacketBytes::new(&from_net);
        let at = IP_HL.load(&bytes, 0)? as usize * 4;
        let total = usize::from(bytes.u16(2)?);
        let length = total.checked_sub(at).filter(|length| *length >= least)?;
        (at >= IP_BYTES && total <= bytes.len()).then_some(Segment { from_net, at, length })
    }

    /// Writes a checksum, with the pseudo header of the packet's protocol.
    fn set_sum(&mut self, at: usize, udp: bool) -> Option<()> {
        let bytes = PacketBytes::new(&self.from_net);
        let (ip, length) = (Ipv4::at(0), u16::try_from(self.length).ok()?);
        let pseudo = checksum::pseudo_ipv4(ip.src(&bytes)?, ip.dst(&bytes)?, bytes.u8(9)?, length);
        let sum = if udp { checksum::udp } else { checksum::tcp };
        let sum = sum(&bytes, self.at, self.length, pseudo)?;
        PacketBytesMut::new(&mut self.from_net).put_u16(self.at + at, sum).then_some(())
    }
}

fn make_tcp(cx: &mut Configure<'_>) -> Option<BoxElement> {
    make(cx, |args| {
        let port = args.positional("DPORT", parse::udp_port).unwrap_or(0);
        let random_port = args.positional("RANDOM_DPORT", parse::bool).unwrap_or(false);
        let flags = args.positional("FLAGS", parse::int_in(-1..=255));
        let flags = flags.and_then(|flags| u8::try_from(flags).ok());
        Some(Transport::Tcp { port, random_port, flags })
    })
}

/// A port, or `None` for -1.
fn port_or_none(text: &Spanned, names: &dyn Names) -> Parsed<Option<u16>> {
    if text.as_str() == "-1" { Ok(None) } else { parse::udp_port(text, names).map(Some) }
}

fn make_udp(cx: &mut Configure<'_>) -> Option<BoxElement> {
    make(cx, |args| {
        let port = args.positional("DPORT", port_or_none).flatten();
        let _ = args.keyword("CHECKLENGTH", parse::bool);
        Some(Transport::Udp { port })
    })
}

fn make_icmp(cx: &mut Configure<'_>) -> Option<BoxElement> {
    make(cx, |args| {
        let kind = args.mandatory_positional("TYPE", any_type);
        let code = args.mandatory_positional("CODE", code(kind.unwrap_or(0)));
        Some(Transport::Icmp { kind: kind?, code: code? })
    })
}

fn make(cx: &mut Configure<'_>, read: impl FnOnce(&mut Args<'_>) -> Option<Transport>) -> Option<BoxElement> {
    let state = random::seed(cx);
    cx.opaque(|args| Some(Force { transport: read(args)?, count: 0, state }))
}

impl Force {
    fn random_port(&mut self) -> u16 {
        random::next_below(&mut self.state, 1024) as u16
    }

    fn force(&mut self, packet: &Packet) -> Option<()> {
        match self.transport {
            Transport::Tcp { port, random_port, flags } => {
                let mut segment = Segment::of(packet, 20)?;
                let (at, most) = (segment.at, segment.length / 4);
                let turn = self.count & 7;
                self.count += 1;
                let new_port = match (port, random_port) {
                    (0, false) => None,
                    (0, true) if turn < 2 => Some(80),
                    (0, true) => (turn == 3).then(|| self.random_port()),
                    (port, _) => Some(port),
                };
                let mut bytes = PacketBytesMut::new(&mut segment.from_net);
                let offset = bytes.u8(at + 12)?;
                let fits = (5..=most).contains(&usize::from(offset >> 4));
                let set = (fits || bytes.put_u8(at + 12, 5 << 4 | offset & 15))
                    && flags.is_none_or(|flags| bytes.put_u8(at + 13, flags))
                    && new_port.is_none_or(|port| bytes.put_u16(at + 2, port));
                set.then_some(())?;
                segment.set_sum(TCP_CHECK, false)
            }
            Transport::Udp { port } => {
                let mut segment = Segment::of(packet, 8)?;
                let (at, length) = (segment.at, u16::try_from(segment.length).ok()?);
                let port = port.unwrap_or_else(|| self.random_port());
                let mut bytes = PacketBytesMut::new(&mut segment.from_net);
                (bytes.put_u16(at + 2, port) && bytes.put_u16(at + 4, length)).then_some(())?;
                segment.set_sum(UDP_CHECK, true)
            }
            Transport::Icmp { kind, code } => {
                let mut segment = Segment::of(packet, 8)?;
                let (at, length) = (segment.at, segment.length);
                let mut bytes = PacketBytesMut::new(&mut segment.from_net);
                (bytes.put_u8(at, kind) && bytes.put_u8(at + 1, code)).then_some(())?;
                let sum = checksum::icmp(&bytes, at, length)?;
                bytes.put_u16(at + ICMP_CHECK, sum).then_some(())
            }
        }
    }
}

impl Opaque for Force {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_if(BAD_LENGTHS, |packet| self.force(packet).is_some());
    }
}

impl Element for Force {
    element::facts!(reasons: &["bad-lengths"]);
}
