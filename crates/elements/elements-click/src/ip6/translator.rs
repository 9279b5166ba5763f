//! `ProtocolTranslator46` and `ProtocolTranslator64`.

use super::header::from_ip;
use super::prefix::Prefix;
use super::translate::{
    LEAST_MTU6, NO_IP_HEADER, NO_ROOM, REASONS, Rules, TOO_BIG, fragments, to_ip4, to_ip6,
};
use click::config::{Names, Parsed, parse};
use diag::{Diagnostic, Spanned};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::ip::header::first_id;
use packet::Access;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::NO_HEADER;

/// `ProtocolTranslator46`.
pub const TO_IP6: Class = Class {
    name: "ProtocolTranslator46",
    summary: "translates IPv4 packets to IPv6",
    page: "\
# ProtocolTranslator46([keywords PREFIX, DECREMENT_TTL])

Translates IPv4 packets to IPv6 (RFC 7915), with the IPv4 addresses embedded in IPv6 addresses (RFC 6052):
TCP, UDP and others, ICMP echo messages, and ICMP errors with the packet that they quote. Checksums are
updated; a wrong one stays wrong.

- **ports**: 1 input, 1 or 2 outputs, agnostic. Packets that are not translated leave as they are by output 1,
  where that is wired and packets are pushed
- **arguments**: `PREFIX` (default `::ffff:0:0/96`, as in Click): of 32, 40, 48, 56, 64 or 96 bits, such as
  `64:ff9b::/96`; `DECREMENT_TTL` (default true): the TTL gets one less, as by any router; false where another
  element does that
- **fragments**: those of IPv4 get a fragment header. A packet that may be fragmented (its don't-fragment bit
  is 0) leaves in parts of 1280 bytes, which every link of IPv6 takes
- **annotations**: the IP header begins where the network header annotation says, and bytes in front of it are removed;
  where that is unset, it begins with the packet's first byte. Afterwards the MAC header is unset, network and transport
  header are those of the new packet
- **handlers**: `translated` (read)
- **drop reasons**, of packets that do not leave by output 1: `no-ip-header`, `ttl-expired`, `source-route`,
  `no-equivalent` (an ICMP message that IPv6 has not), `zero-checksum` (a UDP fragment without checksum),
  `icmp-fragment`, `too-big`, `no-room`
- **difference**: Click copies the TTL, and knows no errors, fragments, prefixes and output 1. Errors quote
  what fits into 1280 bytes, without extensions (RFC 4884)
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, true),
};

/// `ProtocolTranslator64`.
pub const TO_IP4: Class = Class {
    name: "ProtocolTranslator64",
    summary: "translates IPv6 packets to IPv4",
    page: "\
# ProtocolTranslator64([keywords PREFIX, DECREMENT_TTL, ERROR_SOURCE])

Translates IPv6 packets to IPv4 (RFC 7915), whose addresses have IPv4 addresses embedded (RFC 6052): the other
direction of ProtocolTranslator46.

- **ports**: 1 input, 1 or 2 outputs, agnostic. Packets that are not translated leave as they are by output 1,
  where that is wired and packets are pushed
- **arguments**: `PREFIX`, `DECREMENT_TTL`: as in ProtocolTranslator46; `ERROR_SOURCE`: an IPv4 address that
  ICMP errors of routers get whose own address has none embedded (RFC 6791)
- **fragments**: a fragment header becomes IPv4's fields. Whole packets of more than 1260 bytes get the
  don't-fragment bit, smaller ones an identification
- **annotations**: the IP header begins where the network header annotation says, and bytes in front of it are removed;
  where that is unset, it begins with the packet's first byte. Afterwards the MAC header is unset, network and transport
  header are those of the new packet
- **handlers**: `translated` (read)
- **drop reasons**, of packets that do not leave by output 1: those of ProtocolTranslator46, and
  `no-ip4-address`: an address has another prefix
- **difference**: as in ProtocolTranslator46. Hop-by-hop and destination options are removed; extensions of
  errors (RFC 4884) stay as bytes of what is quoted
",
    make: |cx| make(cx, false),
    ..TO_IP6
};

/// Longest packet of both protocols.
const MOST_BYTES: usize = 0xffff + 40;

struct Translator {
    to_ip6: bool,
    rules: Rules,
    /// The identification of the next packet that may be fragmented.
    id: u16,
    translated: u64,
    /// A packet as it came and as it leaves.
    old: Vec<u8>,
    new: Vec<u8>,
    /// A part of it.
    part: Vec<u8>,
    /// The parts of a packet that is cut, behind the first.
    parts: Vec<Packet>,
}

fn prefix(text: &Spanned, names: &dyn Names) -> Parsed<Prefix> {
    let prefix = parse::ip6_prefix(text, names)?;
    Prefix::new(prefix.address, u32::from(prefix.len)).map_err(|reason| {
        Diagnostic::error(text.span, format!("`{text}` embeds no IPv4 addresses: {reason}"))
    })
}

fn make(cx: &mut Configure<'_>, to_ip6: bool) -> Option<BoxElement> {
    let id = first_id(cx);
    cx.opaque(|args| {
        let prefix = args.keyword("PREFIX", prefix).unwrap_or(Prefix::MAPPED);
        let decrements = args.keyword("DECREMENT_TTL", parse::bool).unwrap_or(true);
        let error_source = if to_ip6 { None } else { args.keyword("ERROR_SOURCE", parse::ip4) };
        let buffer = || Vec::with_capacity(MOST_BYTES);
        Some(Translator {
            to_ip6,
            rules: Rules { prefix, decrements, error_source },
            id,
            translated: 0,
            old: buffer(),
            new: buffer(),
            part: buffer(),
            parts: Vec::with_capacity(MOST_BYTES / LEAST_MTU6 + 1),
        })
    })
}

/// The headers of a packet that begins with the IP header.
fn mark(packet: &mut Packet, bytes: &[u8]) {
    let header = if bytes.first().is_some_and(|first| first >> 4 == 6) {
        super::header::read6(bytes).map(|head| head.bytes)
    } else {
        super::header::read4(bytes).map(|head| head.bytes)
    };
    let at = |offset: usize| {
        u16::try_from(offset).map_or(NO_HEADER, |offset| packet.data().saturating_add(offset))
    };
    let (net, trans) = (packet.data(), header.map_or(NO_HEADER, at));
    (packet.mac, packet.net, packet.trans) = (NO_HEADER, net, trans);
}

/// Gives a packet other bytes. False, with nothing changed, if there is no room.
fn replace(packet: &mut Packet, bytes: &[u8], work: &mut Work<'_>) -> bool {
    let old = packet.total() as usize;
    let resized = match bytes.len().checked_sub(old) {
        Some(more) => shm::chain::grow(work.pool(), packet, more),
        None => packet.take(old - bytes.len()),
    };
    if !resized || !PacketBytesMut::new(packet).copy_in(0, bytes) {
        return false;
    }
    mark(packet, bytes);
    true
}

impl Translator {
    /// Translates a packet; the parts that leave behind it are in `parts`.
    fn translate(&mut self, packet: &mut Packet, work: &mut Work<'_>) -> Result<(), usize> {
        let from_net = from_ip(packet).ok_or(NO_IP_HEADER)?;
        let bytes = PacketBytes::new(&from_net);
        if bytes.len() > MOST_BYTES {
            return Err(NO_IP_HEADER);
        }
        self.old.resize(bytes.len(), 0);
        self.new.clear();
        if !bytes.copy_out(0, &mut self.old) {
            return Err(NO_IP_HEADER);
        }
        match self.to_ip6 {
            true => to_ip6(&self.old, &self.rules, &mut self.new)?,
            false => {
                to_ip4(&self.old, &self.rules, self.id, &mut self.new)?;
                self.id = self.id.wrapping_add(1);
            }
        }
        let is_long = self.to_ip6 && self.new.len() > LEAST_MTU6;
        let may_be_cut = self.old.u16(6).is_some_and(|flags| flags & 0x4000 == 0);
        if self.new.len() > usize::from(u16::MAX) + if self.to_ip6 { 40 } else { 0 } {
            return Err(TOO_BIG);
        }
        if is_long && may_be_cut {
            self.cut(packet, work)?;
            std::mem::swap(&mut self.new, &mut self.part);
        }
        let front = from_net.data().saturating_sub(packet.data());
        // A chain whose first segment ends before the header has no room either.
        let placed = packet.pull(front.into()) && replace(packet, &self.new, work);
        self.translated += u64::from(placed);
        if placed { Ok(()) } else { Err(NO_ROOM) }
    }

    /// Cuts the new packet: its first part is in `part`, the others are made.
    fn cut(&mut self, like: &Packet, work: &mut Work<'_>) -> Result<(), usize> {
        let id = u32::from(self.old.u16(4).unwrap_or(0));
        let write = |part: &mut Vec<u8>, head, range: std::ops::Range<usize>, whole: &[u8]| {
            part.clear();
            super::header::write6(part, &head);
            part.extend_from_slice(whole.get(range).unwrap_or_default());
        };
        for (head, range) in fragments(&self.new, id).skip(1) {
            write(&mut self.part, head, range, &self.new);
            let mut made = work.make(&self.part).ok_or(NO_ROOM)?;
            (made.anno, made.packet_type) = (like.anno, like.packet_type);
            (made.timestamp_ns, made.origin) = (like.timestamp_ns, like.origin);
            mark(&mut made, &self.part);
            self.parts.push(made);
        }
        let (head, range) = fragments(&self.new, id).next().ok_or(NO_IP_HEADER)?;
        write(&mut self.part, head, range, &self.new);
        Ok(())
    }
}

impl Opaque for Translator {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            work.place_behind(index);
            match self.translate(batch.packet_mut(index), work) {
                Ok(()) => {
                    batch.emit(index, 0);
                    self.parts.iter().for_each(|part| work.emit(0, part));
                }
                Err(reason) => {
                    work.drop(reason, &self.parts);
                    batch.emit_or_drop(index, 1, reason);
                }
            }
            self.parts.clear();
        }
    }
}

impl Element for Translator {
    element::facts!(reasons: REASONS, handlers: HANDLERS);
}

const HANDLERS: &[Row<Translator>] =
    &[Row::sum("translated", |translator, _| Some(translator.translated.to_string()))];
