//! `ICMPRewriter`: rewrites ICMP errors about translated packets.

use super::flow::FlowId;
use super::mappings::MappingEntry;
use super::rewriter::{CLASSES, mappings_of};
use super::table::SharedMappings;
use click::config::{parse, split_words};
use element::value::annotation;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use packet::access::Access;
use packet::anno::{self, Anno};
use packet::checksum::Delta;
use packet::view::icmp::{ECHO, ECHO_REPLY, HEADER_BYTES, is_error};
use packet::view::protocol;
use shm::burst::Batch;
use shm::descriptor::{NO_HEADER, Packet};

/// The class.
pub const CLASS: Class = Class {
    name: "ICMPRewriter",
    summary: "rewrites ICMP packets based on IP rewriter mappings",
    page: "\
# ICMPRewriter(MAPS [, DST_ANNO, REPLY_ANNO])

Rewrites ICMP errors by the mappings of rewriters, so that they reach the host that sent the quoted packet:
destination unreachable, time exceeded, parameter problem, source quench, redirect. The quoted header inside the
error is rewritten back to what the host sent. All checksums are updated: of both IP headers, of the inner
transport header as far as it is there, and of the error itself (RFC 5508 REQ-4, REQ-5).

- **ports**: 1 input, 1 or more outputs, push. Rewritten errors leave by output 0, or as the mapping says
  with a port offset; others, and ICMP that is no error, by output 1 where there is one
- **needs**: the network header annotation
- **arguments**: `MAPS`: a space-separated list of rewriters, which are looked through in order; `NAME:N`
  sends errors for NAME's mappings to output N plus the mapping's output. `DST_ANNO` (true): set the
  destination address annotation. `REPLY_ANNO`: as in `IPRewriter`
- **annotations**: sets `DST_IP`
- **drop reasons**: `no-ip-header`, `not-icmp`, `not-an-error`, `unmapped`, `cut-off` (the inner IP header
  is not all there)
- **workers**: each looks at its own mappings; errors are brought to the worker of the flow that they quote
- **difference**: the error's own source address is translated too when the error comes from inside (its
  inner packet was sent by a remote end), because a private address would leak out (RFC 5508 REQ-5)
- **difference**: Click sends packets that are not ICMP behind its last output, which drops them; here
  they are counted as `not-icmp`
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::PerFlow,
    make,
};

element::reasons!(
    NO_IP_HEADER = "no-ip-header",
    NOT_ICMP = "not-icmp",
    NOT_AN_ERROR = "not-an-error",
    UNMAPPED = "unmapped",
    CUT_OFF = "cut-off",
);

struct Map {
    mappings: SharedMappings,
    port_offset: Option<usize>,
}

struct IcmpRewriter {
    maps: Vec<Map>,
    dst_anno: bool,
    reply_anno: Option<Anno>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let maps = args.mandatory_positional("MAPS", parse::any);
    let dst_anno = args.keyword("DST_ANNO", parse::bool).unwrap_or(true);
    let reply_anno = args.keyword("REPLY_ANNO", annotation(1));
    let mut fine = args.finish();
    let maps = maps?;
    let mut found = vec![];
    for word in split_words(&maps) {
        let text = word.as_str();
        let (name, offset) = match text.split_once(':') {
            Some((name, offset)) => (name, offset.parse::<usize>().map(Some).ok()),
            None => (text, Some(None)),
        };
        let rewriter = cx.services.element(cx.name, name).filter(|(_, class)| CLASSES.contains(class));
        let (Some((name, _)), Some(port_offset)) = (rewriter, offset) else {
            cx.error(word.span, format!("{text} is not an IP rewriter"));
            fine = false;
            continue;
        };
        if port_offset.is_some_and(|offset| offset >= cx.shape.outputs) {
            let outputs = cx.shape.outputs;
            cx.error(word.span, format!("{text}: the port offset needs more than {outputs} outputs"));
            fine = false;
        }
        let mappings = mappings_of(cx, &name)?;
        found.push(Map { mappings, port_offset });
    }
    if found.is_empty() && fine {
        cx.error(maps.span, "no IP rewriters supplied");
        fine = false;
    }
    fine.then(|| BoxElement::opaque(IcmpRewriter { maps: found, dst_anno, reply_anno }))
}

/// Offsets in an error from the packet's first byte, and the flow of the packet that it quotes.
struct Inner {
    ip: usize,
    icmp: usize,
    inner_ip: usize,
    inner_transport: usize,
    protocol: u8,
    /// The flow of replies to the inner packet.
    reply: FlowId,
    /// Whether its ports, or its identifier, are there.
    has_ports: bool,
    /// The inner packet is an echo request.
    is_request: bool,
}

fn parse_error(packet: &Packet, bytes: &impl Access) -> Result<Inner, usize> {
    if packet.net == NO_HEADER {
        return Err(NO_IP_HEADER);
    }
    let ip = usize::from(packet.net).checked_sub(usize::from(packet.data())).ok_or(NO_IP_HEADER)?;
    let first = bytes.u8(ip).ok_or(NO_IP_HEADER)?;
    let header = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header < 20 || bytes.u32(ip + 16).is_none() {
        return Err(NO_IP_HEADER);
    }
    if bytes.u8(ip + 9) != Some(protocol::ICMP) {
        return Err(NOT_ICMP);
    }
    let icmp = ip + header;
    let is_error = bytes.u8(icmp).is_some_and(is_error);
    if !is_error || bytes.u16(ip + 6).is_none_or(|offset| offset & 0x1fff != 0) {
        return Err(NOT_AN_ERROR);
    }
    let inner_ip = icmp + HEADER_BYTES;
    let pair = bytes.u64(inner_ip + 12).ok_or(CUT_OFF)?;
    let first = bytes.u8(inner_ip).ok_or(CUT_OFF)?;
    let inner_header = usize::from(first & 15) * 4;
    if first >> 4 != 4 || inner_header < 20 {
        return Err(CUT_OFF);
    }
    let inner_transport = inner_ip + inner_header;
    let protocol = bytes.u8(inner_ip + 9).ok_or(CUT_OFF)?;
    let first_fragment = bytes.u16(inner_ip + 6).is_some_and(|offset| offset & 0x1fff == 0);
    let start = bytes.u64(inner_transport).filter(|_| first_fragment);
    let mut inner = Inner {
        ip,
        icmp,
        inner_ip,
        inner_transport,
        protocol,
        reply: FlowId::new(pair, 0).reversed(),
        has_ports: false,
        is_request: false,
    };
    let Some(start) = start else { return Ok(inner) };
    match protocol {
        protocol::TCP | protocol::UDP | protocol::DCCP => {
            inner.reply = FlowId::new(pair, (start >> 32) as u32).reversed();
            inner.has_ports = true;
        }
        protocol::ICMP if [ECHO, ECHO_REPLY].contains(&((start >> 56) as u8)) => {
            inner.is_request = (start >> 56) as u8 == ECHO;
            let id = (start >> 16) as u16;
            // The identifier is a request's source port, and a reply's destination port.
            inner.reply = match inner.is_request {
                true => FlowId { dport: id, ..inner.reply },
                false => FlowId { sport: id, ..inner.reply },
            };
            inner.has_ports = true;
        }
        _ => {}
    }
    Ok(inner)
}

/// Replaces words of a packet, and sums the change for checksums.
struct Replaced<'a, A: Access> {
    bytes: &'a mut A,
    delta: Delta,
}

impl<A: Access> Replaced<'_, A> {
    fn put16(&mut self, at: usize, new: u16) {
        if let Some(old) = self.bytes.u16(at)
            && old != new
            && self.bytes.put_u16(at, new)
        {
            self.delta = self.delta.change16(old, new);
        }
    }

    fn put32(&mut self, at: usize, new: u32) {
        self.put16(at, (new >> 16) as u16);
        self.put16(at + 2, new as u16);
    }
}

impl IcmpRewriter {
    fn find(&self, inner: &Inner) -> Option<(MappingEntry, Option<usize>)> {
        self.maps.iter().find_map(|map| {
            let entry = map
                .mappings
                .with(|mappings| mappings.entry(inner.reply, inner.protocol, inner.is_request))??;
            Some((entry, map.port_offset))
        })
    }

    /// Rewrites an error; returns its output.
    fn rewrite(&self, index: u16, batch: &mut Batch<'_>) -> Result<usize, usize> {
        let inner = parse_error(batch.packet(index), &batch.bytes(index))?;
        let (entry, port_offset) = self.find(&inner).ok_or(UNMAPPED)?;
        let mut bytes = batch.bytes_mut(index);
        // The inner packet becomes what the error's receiver had sent: the reverse of the reply.
        let to = entry.to.reversed();
        let mut changed = Replaced { bytes: &mut bytes, delta: Delta::NONE };
        changed.put32(inner.inner_ip + 12, to.src);
        changed.put32(inner.inner_ip + 16, to.dst);
        let addresses = changed.delta;
        mend(changed.bytes, inner.inner_ip + 10, addresses, &mut changed.delta, Delta::apply);
        if inner.has_ports {
            rewrite_inner_transport(&mut changed, &inner, to, addresses);
        }
        let inside_error = changed.delta;
        // The outer destination becomes the inner packet's sender, and a private source its public address.
        let mut outer = Replaced { bytes: &mut bytes, delta: Delta::NONE };
        if outer.bytes.u32(inner.ip + 16) == Some(inner.reply.dst) {
            outer.put32(inner.ip + 16, entry.to.dst);
        }
        if !entry.is_reply && entry.to.src != inner.reply.src {
            outer.put32(inner.ip + 12, entry.to.src);
        }
        let (addresses, mut unused) = (outer.delta, Delta::NONE);
        mend(&mut bytes, inner.ip + 10, addresses, &mut unused, Delta::apply);
        mend(&mut bytes, inner.icmp + 2, inside_error, &mut unused, Delta::apply_icmp);
        let dst = bytes.u32(inner.ip + 16);
        let packet = batch.packet_mut(index);
        if let (true, Some(dst)) = (self.dst_anno, dst) {
            anno::DST_IP.store(&mut packet.anno, dst.into());
        }
        if let (Some(anno), true) = (self.reply_anno, entry.is_reply) {
            anno.store(&mut packet.anno, entry.reply_anno.into());
        }
        Ok(port_offset.map_or(0, |offset| offset + usize::from(entry.output)))
    }
}

/// A checksum after a change.
type Apply = fn(Delta, u16) -> u16;

/// Updates a checksum for a change, and adds the checksum's own change to `outside`, for outer checksums.
fn mend(bytes: &mut impl Access, at: usize, change: Delta, outside: &mut Delta, apply: Apply) {
    if change == Delta::NONE {
        return;
    }
    let Some(old) = bytes.u16(at) else { return };
    let new = apply(change, old);
    if old != new && bytes.put_u16(at, new) {
        *outside = outside.change16(old, new);
    }
}

fn rewrite_inner_transport<A: Access>(
    changed: &mut Replaced<'_, A>,
    inner: &Inner,
    to: FlowId,
    addresses: Delta,
) {
    let at = inner.inner_transport;
    let before = std::mem::take(&mut changed.delta);
    if inner.protocol == protocol::ICMP {
        changed.put16(at + 4, to.sport | to.dport);
        let id = changed.delta;
        mend(changed.bytes, at + 2, id, &mut changed.delta, Delta::apply_icmp);
    } else {
        changed.put32(at, to.ports());
        let under = if addresses == Delta::NONE { changed.delta } else { changed.delta.and(addresses) };
        let (sum_at, apply): (_, Apply) = match inner.protocol {
            protocol::TCP => (at + 16, Delta::apply),
            protocol::UDP => (at + 6, Delta::apply_udp),
            _ => (at + 6, Delta::apply),
        };
        mend(changed.bytes, sum_at, under, &mut changed.delta, apply);
    }
    changed.delta = changed.delta.and(before);
}

impl Opaque for IcmpRewriter {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.rewrite(index, batch) {
                Ok(output) => batch.emit_or_drop(index, output, UNMAPPED),
                Err(reason @ (NO_IP_HEADER | NOT_ICMP)) => batch.drop(index, reason),
                Err(reason) => batch.emit_or_drop(index, 1, reason),
            }
        }
    }
}

impl Element for IcmpRewriter {
    element::facts!(reasons: REASONS);
}
