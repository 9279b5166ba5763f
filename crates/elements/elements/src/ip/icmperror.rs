//! `ICMPError`: answers packets with ICMP errors.

use super::header::{
    self, IP_BYTES, Ipv4Header, MOST_HEADER, first_id, from_network, option_at, set_checksum,
};
use super::icmpname;
use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::anno;
use packet::checksum;
use packet::view::icmp::{
    self, FRAGMENTATION_NEEDED, HEADER_BYTES as ICMP_BYTES, PARAMETER_PROBLEM, REDIRECT, UNREACHABLE,
};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use shm::descriptor::PacketType;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "ICMPError",
    summary: "generates ICMP error packets",
    page: "\
# ICMPError(SRC, TYPE [, CODE, BADADDRS, keywords MTU, PMTU, SET_FIX_ANNO])

Turns each packet into the ICMP error that answers it: from SRC to the packet's source, with the
packet's IP header and the beginning of its payload. Sends none in the cases of RFC 1122 (3.2.2) and RFC 1812
(4.3.2.7). The rate is not limited: put a RatedSplitter or Shaper behind it.

- **ports**: 1 input, 1 output, agnostic; the output belongs to the route lookup, as what a device
  receives
- **arguments**: `SRC`; `TYPE`: `unreachable`, `sourcequench`, `redirect`, `timeexceeded`,
  `parameterproblem` or their number; `CODE` (default 0), by name or number: `net`, `host`, `protocol`,
  `port`, `needfrag`; `net`, `host`; `transit`, `reassembly`; `erroratptr`, `missingopt`, `length`;
  `BADADDRS`: addresses that get no errors, such as broadcast addresses; `MTU` (default 576): bytes of
  the longest error; `PMTU` (default 0): the MTU that `needfrag` reports; `SET_FIX_ANNO` (default true)
- **annotations**: reads `ICMP_PARAMPROB` (parameter problem) and `DST_IP` (redirect); sets `DST_IP`
  and, unless told otherwise, `FIX_IP_SRC`; clears the others
- **handlers**: `src`, `mtu`, `pmtu` (read/write)
- **drop reasons**: of packets that get no error: `icmp-error`: is one itself; `bad-destination`:
  broadcast, multicast, in BADADDRS; `link-broadcast`; `bad-source`: no host's address;
  `later-fragment`; `source-routed`: for a redirect; `no-ip-header`; `no-room`
- **difference**: the error keeps the packet's timestamp, because no clock is read for a packet
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

// The first five are those of `ICMP6Error`, for the same cases (RFC 1812 section 4.3.2.7).
element::reasons!(
    IS_ERROR = "icmp-error",
    BAD_DESTINATION = "bad-destination",
    LINK_BROADCAST = "link-broadcast",
    BAD_SOURCE = "bad-source",
    LATER_FRAGMENT = "later-fragment",
    SOURCE_ROUTED = "source-routed",
    NO_IP_HEADER = "no-ip-header",
    NO_ROOM = "no-room",
);

/// Click's time to live of errors.
const TTL: u8 = 200;

struct IcmpError {
    src: Ipv4Addr,
    kind: u8,
    code: u8,
    bad_addresses: Vec<u32>,
    mtu: u32,
    pmtu: u16,
    set_fix_anno: bool,
    id: u16,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let id = first_id(cx);
    cx.opaque(|args| {
        let src = args.mandatory_positional("SRC", parse::ip4);
        let kind = args.mandatory_positional("TYPE", icmpname::error_type);
        let code = args.positional("CODE", icmpname::code(kind.unwrap_or(UNREACHABLE))).unwrap_or(0);
        let bad_addresses = args.positional("BADADDRS", parse::list(parse::ip4)).unwrap_or_default();
        let mtu = args.keyword("MTU", parse::u32).unwrap_or(576);
        let pmtu = args.keyword("PMTU", parse::u16).unwrap_or(0);
        let set_fix_anno = args.keyword("SET_FIX_ANNO", parse::bool).unwrap_or(true);
        let (src, kind) = (src?, kind?);
        let bad_addresses = bad_addresses.into_iter().map(u32::from).collect();
        Some(IcmpError { src, kind, code, bad_addresses, mtu, pmtu, set_fix_anno, id })
    })
}

/// Offset and bytes of a valid source route option.
fn source_route(header: &[u8]) -> Option<(usize, &[u8])> {
    let mut next = IP_BYTES;
    while let Some(Ok(place)) = option_at(header, next) {
        let (at, option) = (place.start, &header[place.clone()]);
        let pointer = option.get(2).map_or(0, |pointer| usize::from(*pointer));
        let routed = matches!(option[0], 131 | 137);
        if routed && pointer >= 4 && pointer % 4 == 0 && pointer <= option.len() + 1 {
            return Some((at, option));
        }
        next = place.end;
    }
    None
}

/// The option for the way back: the recorded addresses of a source route in reverse, with the pointer at the
/// first. Padded to whole words with 0, the end of the option list.
fn reversed(option: &[u8]) -> ([u8; MOST_HEADER - IP_BYTES], usize) {
    let mut back = [0; MOST_HEADER - IP_BYTES];
    let length = usize::from(option[2]) - 1;
    (back[0], back[1], back[2]) = (option[0], length as u8, 4);
    let recorded = option.get(3..length).unwrap_or_default();
    for (to, from) in back[3..].chunks_exact_mut(4).zip(recorded.rchunks_exact(4)) {
        to.copy_from_slice(from);
    }
    (back, (length + 4) / 4 * 4)
}

impl IcmpError {
    fn is_unicast(&self, address: u32) -> bool {
        address != u32::MAX && address >> 28 != 0xe && !self.bad_addresses.contains(&address)
    }

    /// Whether errors may be sent to an address (RFC 1812 5.3.7, 4.2.2.11, 4.2.3.1).
    fn is_host(&self, address: u32) -> bool {
        let net = address >> 24;
        self.is_unicast(address) && net != 0 && net != 127 && net < 240
    }

    /// Whether a packet may get an error; else the drop reason.
    fn may_answer(&self, from_net: &Packet, question: &Ipv4Header) -> Result<(), usize> {
        use packet::Access as _;
        if question.bytes()[9] == 1 {
            let kind = PacketBytes::new(from_net).u8(question.bytes().len());
            if kind.is_none_or(icmp::is_error) {
                return Err(IS_ERROR);
            }
        }
        if !self.is_unicast(question.word(16)) {
            return Err(BAD_DESTINATION);
        }
        let link = [PacketType::Broadcast as u8, PacketType::Multicast as u8];
        if link.contains(&from_net.packet_type) {
            return Err(LINK_BROADCAST);
        }
        if !self.is_host(question.word(12)) {
            return Err(BAD_SOURCE);
        }
        if question.half(6) & 0x1fff != 0 {
            return Err(LATER_FRAGMENT);
        }
        Ok(())
    }

    /// Turns a packet into its error.
    fn answer(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let mut answer = from_network(packet).ok_or(NO_IP_HEADER)?;
        let question = Ipv4Header::read(&answer).ok_or(NO_IP_HEADER)?;
        self.may_answer(&answer, &question)?;
        let pointer = anno::ICMP_PARAMPROB.load(&packet.anno) as u32;
        let at_pointer = self.kind == PARAMETER_PROBLEM && self.code == 0;
        let mut route = source_route(question.bytes());
        if let Some((at, option)) = route {
            if self.kind == REDIRECT {
                return Err(SOURCE_ROUTED);
            }
            // If the source route itself is the problem, it is not reversed (RFC 1812 4.3.2.6).
            if at_pointer && (at..at + option.len()).contains(&(pointer as usize)) {
                route = None;
            }
        }
        let (back, back_bytes) = route.map_or(([0; 40], 0), |(_, option)| reversed(option));
        let ip_bytes = IP_BYTES + back_bytes;
        let headers = ip_bytes + ICMP_BYTES;
        let payload =
            question.there.min((self.mtu as usize).min(usize::from(u16::MAX)).saturating_sub(headers));

        let mut head = [0u8; MOST_HEADER + ICMP_BYTES];
        head[0] = 0x40 | (ip_bytes / 4) as u8;
        head[2..4].copy_from_slice(&((headers + payload) as u16).to_be_bytes());
        self.id = self.id.wrapping_add(1);
        head[4..6].copy_from_slice(&self.id.to_be_bytes());
        (head[8], head[9]) = (TTL, 1);
        head[12..16].copy_from_slice(&self.src.octets());
        head[16..20].copy_from_slice(&question.bytes()[12..16]);
        head[IP_BYTES..ip_bytes].copy_from_slice(&back[..back_bytes]);
        set_checksum(&mut head[..ip_bytes]);
        let icmp = &mut head[ip_bytes..headers];
        (icmp[0], icmp[1]) = (self.kind, self.code);
        match (self.kind, self.code) {
            (PARAMETER_PROBLEM, 0) => icmp[4] = pointer as u8,
            (REDIRECT, _) => {
                icmp[4..8].copy_from_slice(&(anno::DST_IP.load(&packet.anno) as u32).to_be_bytes())
            }
            (UNREACHABLE, FRAGMENTATION_NEEDED) => icmp[6..8].copy_from_slice(&self.pmtu.to_be_bytes()),
            _ => {}
        }

        let sum = |bytes: &PacketBytes<'_>| checksum::icmp(bytes, ip_bytes, ICMP_BYTES + payload);
        if !header::answer(&mut answer, question.there - payload, &head[..headers], ip_bytes, sum) {
            return Err(NO_ROOM);
        }
        anno::DST_IP.store(&mut answer.anno, question.word(12).into());
        anno::FIX_IP_SRC.store(&mut answer.anno, self.set_fix_anno.into());
        *packet = answer;
        Ok(())
    }
}

impl Opaque for IcmpError {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.answer(packet));
    }
}

impl Element for IcmpError {
    element::facts!(reasons: REASONS, handlers: HANDLERS);
}

const HANDLERS: &[Row<IcmpError>] =
    &[element::field!(src, parse::ip4), element::field!(mtu, parse::u32), element::field!(pmtu, parse::u16)];
