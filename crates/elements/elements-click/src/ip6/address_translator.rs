//! `AddressTranslator`: other addresses and ports for IPv6 packets.

use super::header::{Head, checksum_at, from_ip, read6};
use click::config::{Args, parse, split_words};
use diag::{Span, Spanned};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::Access;
use packet::checksum::Delta;
use packet::view::protocol::{ICMP6, TCP, UDP};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "AddressTranslator",
    summary: "translates IPv6 packets' addresses and ports",
    page: "\
# AddressTranslator(N [, PORTS, MAPPING1, ..., MAPPINGn], DYNAMIC [, DYNAMIC_PORTS, DIRECTION, ADDRESSES...])

Replaces the source of IPv6 packets from inside, and the destination of those from outside, by mappings that
are given or made for what comes from inside. Checksums of TCP, UDP and ICMPv6 are updated, and so is the
packet that an ICMPv6 error quotes.

- **ports**: 2 inputs, 2 outputs, push: packets from inside come by input 0 and leave by output 0, those from
  outside by input and output 1
- **annotations**: the IP header begins where the network header annotation says; where that is unset, with the
  packet's first byte
- **arguments**: `N`: the number of given mappings. `PORTS`: whether they have ports. `MAPPING`: `INNER
  OUTER`, or `INNER PORT OUTER PORT`. `DYNAMIC`: whether further ones are made; then `DYNAMIC_PORTS` (false:
  one of the ADDRESSES for each inner address; true: a port of `ADDRESS FIRST LAST` for each flow),
  `DIRECTION` (false: made for packets from inside). `TIMEOUT` (keyword, default 5 min): without a packet for
  so long, a port may be given to another flow
- **handlers**: `mappings` (read)
- **drop reasons**: `no-ip6-header`, `no-mapping`, `exhausted` (no address or port is left), `fragment` (a
  later one, whose port is not known)
- **workers**: one worker translates
- **difference**: mappings that overlap are refused; Click takes the first. DIRECTION true is refused: the
  tables would be filled by whoever sends from outside. Packets that Click copies unchanged (protocols without
  ports in it) get other addresses, too
",
    codes: PortCodes::new("2/2", "h/h"),
    state: StateScope::OneWorker,
    make,
};

element::reasons!(
    NO_IP6_HEADER = "no-ip6-header",
    NO_MAPPING = "no-mapping",
    EXHAUSTED = "exhausted",
    LATER_FRAGMENT = "fragment",
);

/// Bytes of a packet that are looked at: headers, and those that an error quotes.
const MOST_BYTES: usize = 1280;
/// Ports that are looked at for a new flow.
const MOST_TRIES: usize = 64;

/// An address and a port; 0 where ports do not matter.
type End = (Ipv6Addr, u16);

/// A flow from inside.
type Flow = (End, End, u8);

/// Mappings that are made.
enum Dynamic {
    None,
    /// The outer addresses that no inner one has.
    Addresses(Vec<Ipv6Addr>),
    Ports {
        address: Ipv6Addr,
        first: u16,
        /// For each port its flow, and when that had a packet last.
        flows: Vec<Option<(Flow, u64)>>,
        by_flow: HashMap<Flow, usize>,
        next: usize,
    },
}

struct AddressTranslator {
    /// Whether `outer` and `inner` have ports.
    with_ports: bool,
    outer: HashMap<End, End>,
    inner: HashMap<End, End>,
    dynamic: Dynamic,
    timeout_ns: u64,
    head: Vec<u8>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let timeout_ns = args.keyword("TIMEOUT", parse::seconds_ns).unwrap_or(300_000_000_000);
    let count = args.mandatory_positional("N", parse::int_in(0..=65_536))?;
    let with_ports = count > 0 && args.mandatory_positional("PORTS", parse::bool)?;
    let mut rest = args.rest().into_iter();
    let mut this = AddressTranslator {
        with_ports,
        outer: HashMap::new(),
        inner: HashMap::new(),
        dynamic: Dynamic::None,
        timeout_ns,
        head: Vec::with_capacity(MOST_BYTES),
    };
    let mut known = Vec::new();
    for number in 0..count {
        let Some(text) = rest.next() else {
            let span = args.span();
            args.error(span, format!("{count} mappings are announced, and {number} given"))
                .help("correct the first argument, or add the others");
            args.finish();
            return None;
        };
        if let Some((inner, outer)) = read_mapping(&mut args, &text, with_ports) {
            this.add(&mut args, &mut known, text.span, inner, outer);
        }
    }
    let Some(dynamic) = rest.next().or_else(|| (count == 0).then(|| Spanned::derived("false", args.span())))
    else {
        args.finish();
        return Some(BoxElement::opaque(this));
    };
    if args.read(&dynamic, parse::bool) == Some(true) {
        read_dynamic(&mut args, &mut this, rest.collect(), dynamic.span);
    } else if let Some(more) = rest.next() {
        args.error(more.span, "nothing follows where no mappings are made");
    }
    args.finish().then(|| BoxElement::opaque(this))
}

fn read_mapping(args: &mut Args<'_>, text: &Spanned, with_ports: bool) -> Option<(End, End)> {
    let words = split_words(text);
    let ends = match (with_ports, words.as_slice()) {
        (false, [inner, outer]) => Some(((inner, None), (outer, None))),
        (true, [inner, port, outer, outer_port]) => Some(((inner, Some(port)), (outer, Some(outer_port)))),
        _ => None,
    };
    let Some((inner, outer)) = ends else {
        let form = if with_ports { "INNER PORT OUTER PORT" } else { "INNER OUTER" };
        args.error(text.span, format!("a mapping is `{form}`"));
        return None;
    };
    let mut end = |(address, port): (&Spanned, Option<&Spanned>)| {
        let address = args.read(address, parse::ip6);
        let port = port.map_or(Some(0), |port| args.read(port, parse::u16));
        address.zip(port)
    };
    let (inner, outer) = (end(inner), end(outer));
    inner.zip(outer)
}

fn read_dynamic(args: &mut Args<'_>, this: &mut AddressTranslator, rest: Vec<Spanned>, span: Span) {
    let [ports, direction, addresses @ ..] = rest.as_slice() else {
        args.error(span, "mappings are to be made, and nothing says how")
            .help("add DYNAMIC_PORTS, DIRECTION and ADDRESSES");
        return;
    };
    let with_ports = args.read(ports, parse::bool);
    if args.read(direction, parse::bool) == Some(true) {
        args.error(
            direction.span,
            "mappings are not made for what comes from outside: anybody could fill the table",
        )
        .help("write `false`, or give the mappings");
    }
    let is_taken = |this: &AddressTranslator, address| this.inner.keys().any(|(outer, _)| *outer == address);
    let overlap = "it overlaps a given mapping to this address";
    if with_ports == Some(true) {
        let [text] = addresses else {
            args.error(span, "`ADDRESS FIRST LAST` is expected behind DIRECTION");
            return;
        };
        let words = split_words(text);
        let [address, first, last] = words.as_slice() else {
            args.error(text.span, "`ADDRESS FIRST LAST` is expected");
            return;
        };
        let (address, first, last) =
            (args.read(address, parse::ip6), args.read(first, parse::u16), args.read(last, parse::u16));
        let (Some(address), Some(first), Some(last)) = (address, first, last) else { return };
        if first > last || first == 0 {
            args.error(text.span, format!("{first} to {last} is no range of ports"));
        } else if is_taken(this, address) {
            args.error(text.span, overlap);
        } else {
            let flows = vec![None; usize::from(last - first) + 1];
            this.dynamic = Dynamic::Ports { address, first, flows, by_flow: HashMap::new(), next: 0 };
        }
        return;
    }
    let mut free: Vec<Ipv6Addr> = vec![];
    for text in addresses {
        let Some(address) = args.read(text, parse::ip6) else { continue };
        if is_taken(this, address) || free.contains(&address) {
            args.error(text.span, if free.contains(&address) { "it is given twice" } else { overlap });
        } else {
            free.push(address);
        }
    }
    if addresses.is_empty() {
        args.error(span, "no addresses are given for the mappings that are to be made");
    }
    // The first one is taken first.
    free.reverse();
    this.dynamic = Dynamic::Addresses(free);
}

impl AddressTranslator {
    /// Adds a given mapping. One that overlaps another is a mistake.
    fn add(
        &mut self,
        args: &mut Args<'_>,
        known: &mut Vec<(End, End, Span)>,
        span: Span,
        inner: End,
        outer: End,
    ) {
        let other =
            known.iter().find(|(known_inner, known_outer, _)| *known_inner == inner || *known_outer == outer);
        if let Some((known_inner, _, first)) = other {
            let which = if *known_inner == inner { inner } else { outer };
            let end = if self.with_ports { format!("{} {}", which.0, which.1) } else { which.0.to_string() };
            args.error(span, format!("the mapping overlaps another one: both map {end}"))
                .with_note(*first, "the first one")
                .help("each inner and each outer end has one mapping");
            return;
        }
        known.push((inner, outer, span));
        self.outer.insert(inner, outer);
        self.inner.insert(outer, inner);
    }

    fn key(&self, end: End) -> End {
        if self.with_ports { end } else { (end.0, 0) }
    }

    /// What an end inside becomes; makes a mapping if there is none and `makes` is set.
    fn map_out(&mut self, flow: Flow, makes: bool, now_ns: u64) -> Result<End, usize> {
        let (end @ (address, port), ..) = flow;
        if let Some(&(outer, outer_port)) = self.outer.get(&self.key(end)) {
            return Ok((outer, if self.with_ports { outer_port } else { port }));
        }
        match &mut self.dynamic {
            Dynamic::None => Err(NO_MAPPING),
            Dynamic::Addresses(free) => {
                // A given mapping with ports may be of this address, too.
                if let Some(&(outer, _)) = self.outer.get(&(address, 0)) {
                    return Ok((outer, port));
                }
                if !makes {
                    return Err(NO_MAPPING);
                }
                let outer = free.pop().ok_or(EXHAUSTED)?;
                self.outer.insert((address, 0), (outer, 0));
                self.inner.insert((outer, 0), (address, 0));
                Ok((outer, port))
            }
            Dynamic::Ports { address, first, flows, by_flow, next } => {
                let at = match by_flow.get(&flow) {
                    Some(&at) => at,
                    None if !makes => return Err(NO_MAPPING),
                    None => {
                        let count = flows.len();
                        let places = (0..count.min(MOST_TRIES)).map(|step| (*next + step) % count);
                        let is_free = |at: &usize| match flows.get(*at) {
                            Some(Some((_, last_ns))) => now_ns.saturating_sub(*last_ns) > self.timeout_ns,
                            other => other.is_some(),
                        };
                        let Some(at) = places.into_iter().find(is_free) else {
                            *next = (*next + MOST_TRIES) % count;
                            return Err(EXHAUSTED);
                        };
                        *next = (at + 1) % count;
                        if let Some((old, _)) = flows.get_mut(at).and_then(Option::take) {
                            by_flow.remove(&old);
                        }
                        by_flow.insert(flow, at);
                        at
                    }
                };
                if let Some(place) = flows.get_mut(at) {
                    *place = Some((flow, now_ns));
                }
                Ok((*address, *first + at as u16))
            }
        }
    }

    /// The end inside that an outer end stands for, in a conversation with `peer`.
    fn map_in(&mut self, outer: End, peer: End, protocol: u8, now_ns: u64) -> Result<End, usize> {
        if let Some(&(inner, port)) = self.inner.get(&self.key(outer)) {
            return Ok((inner, if self.with_ports { port } else { outer.1 }));
        }
        if let Some(&(inner, _)) = self.inner.get(&(outer.0, 0)) {
            return Ok((inner, outer.1));
        }
        let Dynamic::Ports { address, first, flows, .. } = &mut self.dynamic else { return Err(NO_MAPPING) };
        let at = outer.1.checked_sub(*first).filter(|_| outer.0 == *address).ok_or(NO_MAPPING)?;
        match flows.get_mut(usize::from(at)) {
            Some(Some((flow, last_ns))) if (flow.1, flow.2) == (peer, protocol) => {
                *last_ns = now_ns;
                Ok(flow.0)
            }
            _ => Err(NO_MAPPING),
        }
    }

    fn translate(&mut self, packet: &Packet, from_inside: bool, now_ns: u64) -> Result<(), usize> {
        let mut from_net = from_ip(packet).ok_or(NO_IP6_HEADER)?;
        let bytes = PacketBytes::new(&from_net);
        let mut head = std::mem::take(&mut self.head);
        head.resize(bytes.len().min(MOST_BYTES), 0);
        let read = bytes.copy_out(0, &mut head);
        let result = if read { self.rewrite(&mut head, from_inside, now_ns) } else { Err(NO_IP6_HEADER) };
        if result.is_ok() && !PacketBytesMut::new(&mut from_net).copy_in(0, &head) {
            return Err(NO_IP6_HEADER);
        }
        self.head = head;
        result
    }

    /// Rewrites the front of a packet.
    fn rewrite(&mut self, bytes: &mut [u8], from_inside: bool, now_ns: u64) -> Result<(), usize> {
        let head = read6(bytes).ok_or(NO_IP6_HEADER)?;
        let is_error =
            head.protocol == ICMP6 && head.is_first() && bytes.u8(head.bytes).is_some_and(|kind| kind < 128);
        if !is_error {
            let ends = ends(bytes, &head);
            let has_ports = self.with_ports || matches!(self.dynamic, Dynamic::Ports { .. });
            if has_ports && !head.is_first() {
                return Err(LATER_FRAGMENT);
            }
            let new = match from_inside {
                true => self.map_out((ends.0, ends.1, head.protocol), true, now_ns)?,
                false => self.map_in(ends.1, ends.0, head.protocol, now_ns)?,
            };
            let mut nothing = Delta::NONE;
            replace(bytes, &head, from_inside, new, &mut nothing);
            return Ok(());
        }
        // The quoted packet went the other way.
        let at = head.bytes + 8;
        let (_, inner) = bytes.split_at_checked(at).ok_or(NO_IP6_HEADER)?;
        let quoted = read6(inner).ok_or(NO_IP6_HEADER)?;
        let (source, destination) = ends(inner, &quoted);
        let new = match from_inside {
            true => self.map_out((destination, source, quoted.protocol), false, now_ns)?,
            false => self.map_in(source, destination, quoted.protocol, now_ns)?,
        };
        let mut inside = Delta::NONE;
        if let Some(inner) = bytes.get_mut(at..) {
            replace(inner, &quoted, !from_inside, new, &mut inside);
        }
        let outer = if from_inside { head.source } else { head.destination };
        let known = if from_inside { destination.0 } else { source.0 };
        // A router on the way, whose own address nobody maps, stays as it is.
        let new = if outer == known { new.0 } else { outer };
        replace(bytes, &head, from_inside, (new, 0), &mut inside);
        Ok(())
    }
}

/// Source and destination; ports where there are some, and the identifier of an echo message as both.
fn ends(bytes: &[u8], head: &Head<Ipv6Addr>) -> (End, End) {
    let ports = match head.protocol {
        TCP | UDP if head.is_first() => bytes.u32(head.bytes).unwrap_or(0),
        ICMP6 if head.is_first() => {
            bytes.u16(head.bytes + 4).map_or(0, |id| u32::from(id) << 16 | u32::from(id))
        }
        _ => 0,
    };
    ((head.source, (ports >> 16) as u16), (head.destination, ports as u16))
}

/// Replaces the source or the destination of a packet, and updates the checksum, which covers `inside`, too.
/// What changed is added to `inside`.
fn replace(
    bytes: &mut [u8],
    head: &Head<Ipv6Addr>,
    is_source: bool,
    (address, port): End,
    inside: &mut Delta,
) {
    let (at, old) = if is_source { (8, head.source) } else { (24, head.destination) };
    let mut delta = inside.change128(old.into(), address.into());
    let mut seen = Delta::NONE.change128(old.into(), address.into());
    let mut written = bytes.copy_in(at, &address.octets());
    let port_at = head.bytes + if is_source { 0 } else { 2 };
    if [TCP, UDP].contains(&head.protocol)
        && head.is_first()
        && let Some(old) = bytes.u16(port_at)
    {
        delta = delta.change16(old, port);
        seen = seen.change16(old, port);
        written &= bytes.put_u16(port_at, port);
    }
    let sum_at = checksum_at(head.protocol).or((head.protocol == ICMP6).then_some(2));
    if let Some(sum_at) = sum_at.filter(|_| head.is_first()).map(|at| head.bytes + at)
        && let Some(old) = bytes.u16(sum_at)
    {
        let new = if sum_at == head.bytes + 6 { delta.apply_udp(old) } else { delta.apply(old) };
        seen = seen.change16(old, new);
        written &= bytes.put_u16(sum_at, new);
    }
    debug_assert!(written, "what was read is there");
    *inside = seen;
}

impl Opaque for AddressTranslator {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.translate(batch.packet(index), input == 0, work.now_ns()) {
                Ok(()) => batch.emit(index, input),
                Err(reason) => batch.drop(index, reason),
            }
        }
    }
}

impl Element for AddressTranslator {
    element::facts!(reasons: REASONS, handlers: HANDLERS);
}

const HANDLERS: &[Row<AddressTranslator>] = &[Row::sum("mappings", |translator, _| {
    let made = match &translator.dynamic {
        Dynamic::Ports { by_flow, .. } => by_flow.len(),
        _ => 0,
    };
    Some((translator.outer.len() + made).to_string())
})];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
    use element::testing::Out;
    use etherparse::PacketBuilder;

    const STATIC: &str = "1, false, 2001:db8::1 2001:db8:ffff::1, false";
    const DYNAMIC: &str = "0, true, true, false, 2001:db8:ffff::9 5000 5001, TIMEOUT 10";

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn udp(from: (&str, u16), to: (&str, u16)) -> TestPacket {
        let mut bytes = vec![];
        let ip = PacketBuilder::ipv6(address(from.0).octets(), address(to.0).octets(), 64);
        ip.udp(from.1, to.1).write(&mut bytes, b"payload").unwrap();
        TestPacket::ip(&bytes)
    }

    fn error(from: &str, to: &str, about: &[u8]) -> TestPacket {
        let mut bytes = vec![];
        let ip = PacketBuilder::ipv6(address(from).octets(), address(to).octets(), 64);
        ip.icmpv6_raw(1, 4, [0; 4]).write(&mut bytes, about).unwrap();
        TestPacket::ip(&bytes)
    }

    /// The ends of a packet whose checksum is right.
    #[track_caller]
    fn seen(out: &Out, port: usize) -> (End, End) {
        assert_eq!(out.exit, Exit::Port(port));
        let bytes = &out.packet.bytes;
        let head = read6(bytes).unwrap();
        let pseudo =
            packet::checksum::pseudo_ipv6(head.source, head.destination, head.protocol, head.payload as u32);
        let sum = pseudo.add_range(bytes, head.bytes, head.payload).unwrap().fold();
        assert_eq!(sum, 0xffff, "the checksum");
        ends(bytes, &head)
    }

    #[test]
    fn given_mappings_translate_both_ways_and_errors_with_what_they_quote() {
        let mut rig = Rig::new("AddressTranslator", STATIC, 2, 2);
        let (inner, outer, peer) = ("2001:db8::1", "2001:db8:ffff::1", "2001:db8:9::9");
        let sent = udp((inner, 7), (peer, 9));
        let out = rig.push_one(0, &sent);
        assert_eq!(seen(&out, 0), ((address(outer), 7), (address(peer), 9)));
        assert_eq!(
            seen(&rig.push_one(1, &udp((peer, 9), (outer, 7))), 1),
            ((address(peer), 9), (address(inner), 7))
        );
        let back = rig.push_one(1, &error(peer, outer, &out.packet.bytes));
        seen(&back, 1);
        assert_eq!(
            (&back.packet.bytes[24..40], &back.packet.bytes[48..]),
            (&address(inner).octets()[..], &sent.bytes[..])
        );
        let came = udp((peer, 9), (outer, 7));
        let inside = rig.push_one(1, &came).packet;
        let away = rig.push_one(0, &error(inner, peer, &inside.bytes));
        seen(&away, 0);
        assert_eq!(
            (&away.packet.bytes[8..24], &away.packet.bytes[48..]),
            (&address(outer).octets()[..], &came.bytes[..])
        );
        for (input, packet) in [(0, udp((peer, 1), (inner, 1))), (1, udp((peer, 1), (inner, 1)))] {
            assert_eq!(rig.push_one(input, &packet).exit, dropped("no-mapping"));
        }
        assert_eq!(rig.push_one(0, &TestPacket::ip(&[0x60; 20])).exit, dropped("no-ip6-header"));
        let ports = "1, true, 2001:db8::1 80 2001:db8:ffff::1 8080, false";
        let mut rig = Rig::new("AddressTranslator", ports, 2, 2);
        assert_eq!(seen(&rig.push_one(1, &udp((peer, 9), (outer, 8080))), 1).1, (address(inner), 80));
        assert_eq!(rig.push_one(1, &udp((peer, 9), (outer, 8081))).exit, dropped("no-mapping"));
    }

    #[test]
    fn addresses_and_ports_are_given_to_what_comes_from_inside() {
        let mut rig = Rig::new("AddressTranslator", DYNAMIC, 2, 2);
        let (outer, peer) = ("2001:db8:ffff::9", "2001:db8:9::9");
        assert_eq!(rig.push_one(1, &udp((peer, 9), (outer, 5000))).exit, dropped("no-mapping"));
        for (host, port) in [("2001:db8::1", 5000), ("2001:db8::2", 5001), ("2001:db8::1", 5000)] {
            assert_eq!(seen(&rig.push_one(0, &udp((host, 7), (peer, 9))), 0).0, (address(outer), port));
        }
        assert_eq!(rig.push_one(0, &udp(("2001:db8::3", 7), (peer, 9))).exit, dropped("exhausted"));
        assert_eq!(seen(&rig.push_one(1, &udp((peer, 9), (outer, 5001))), 1).1, (address("2001:db8::2"), 7));
        assert_eq!(rig.push_one(1, &udp((peer, 8), (outer, 5001))).exit, dropped("no-mapping"));
        rig.advance(11_000_000_000);
        assert_eq!(seen(&rig.push_one(0, &udp(("2001:db8::3", 7), (peer, 9))), 0).0, (address(outer), 5000));
        assert_eq!(rig.read("mappings"), "2");
        let mut rig =
            Rig::new("AddressTranslator", "0, true, false, false, 2001:db8:ffff::1, 2001:db8:ffff::2", 2, 2);
        for (host, outer) in [("2001:db8::1", "2001:db8:ffff::1"), ("2001:db8::2", "2001:db8:ffff::2")] {
            assert_eq!(seen(&rig.push_one(0, &udp((host, 7), (peer, 9))), 0).0, (address(outer), 7));
            assert_eq!(seen(&rig.push_one(1, &udp((peer, 9), (outer, 7))), 1).1, (address(host), 7));
        }
        assert_eq!(rig.push_one(0, &udp(("2001:db8::3", 7), (peer, 9))).exit, dropped("exhausted"));
    }

    #[test]
    fn maps_that_overlap_themselves_are_refused_where_they_do() {
        for (config, place, reason) in [
            ("2, false, 1::1 2::1, 1::1 2::2, false", "1:22", "both map 1::1"),
            ("2, false, 1::1 2::1, 1::2 2::1, false", "1:22", "both map 2::1"),
            ("2, true, 1::1 1 2::1 1, 1::1 2 2::1 1, false", "1:25", "both map 2::1 1"),
            ("1, false, 1::1 2::1, true, false, false, 2::1", "1:42", "overlaps a given mapping"),
            ("1, false, 1::1 2::1, true, true, false, 2::1 5 9", "1:41", "overlaps a given mapping"),
            ("0, true, false, false, 2::1, 2::1", "1:30", "given twice"),
            ("0, true, true, false, 2::1 9 5", "1:23", "no range of ports"),
            ("0, true, true, true, 2::1 5 9", "1:16", "from outside"),
            ("2, false, 1::1 2::1, false", "1:22", "a mapping is"),
            ("1, true, 1::1 2::1, false", "1:10", "a mapping is `INNER PORT OUTER PORT`"),
        ] {
            let text = mistakes("AddressTranslator", config, 2, 2).join("\n");
            assert!(
                text.starts_with(&format!("test.click:{place}: error")) && text.contains(reason),
                "{config}: {text}"
            );
        }
        assert!(
            mistakes("AddressTranslator", "3, false, 1::1 2::1", 2, 2)
                .join("")
                .contains("3 mappings are announced")
        );
    }
}
