//! `AggregateIP`: sets the aggregate annotation from a field of IP packets.

use click::config::{Names, Parsed, parse, unquote};
use diag::{Diagnostic, Spanned};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::ip::header::{from_network, transport_offset};
use packet::Access;
use packet::anno::AGGREGATE;
use packet::view::protocol::{ICMP, TCP, UDP};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;

/// The class.
pub const CLASS: Class = Class {
    name: "AggregateIP",
    summary: "sets aggregate annotation based on IP packet field",
    page: "\
# AggregateIP(FIELD [, keywords INCREMENTAL, UNSHIFT_IP_ADDR])

Sets the aggregate annotation to a field of each packet's IP header, transport header or payload.

- **ports**: 1 input, 1 or 2 outputs, agnostic. Packets without the field (too short, a later fragment,
  another protocol) leave by output 1, where that is wired and packets are pushed
- **needs**: the network header annotation, and the transport header annotation for what is behind the IP
  header
- **arguments**: `FIELD`: a name (`ip vers`, `hl`, `tos`, `dscp`, `ecn`, `len`, `id`, `off`, `rf`, `df`, `mf`,
  `fragoff`, `ttl`, `proto`, `sum`, `src`, `dst`; `tcp` or `udp` or none `sport`, `dport`; `udp len`, `sum`;
  `tcp seq`, `ack`, `hl`, `flags`, `fin`, `syn`, `rst`, `psh`, `ackf`, `urg`, `win`, `sum`, `urp`; `icmp
  type`, `code`, `sum`), or `ip`, `transp`, `tcp`, `udp`, `icmp` or `data` with `[OFFSET]`, `[OFFSET:LENGTH]`
  or `[FIRST-LAST]` in bytes, or the same in braces in bits; behind it perhaps `/BITS` (the upper ones) or `&
  MASK` (bits in a row). At most 32 bits. `INCREMENTAL` (default false): the field follows the old value's
  bits. `UNSHIFT_IP_ADDR` (default false): a part of an address keeps its place in the address
- **annotations**: sets `AGGREGATE`
- **handlers**: `header`, `bit_offset`, `bit_length` (read)
- **drop reasons**: `no-field`: there is no output 1
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::None,
    make,
};

/// The header that a field is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Header {
    Ip,
    /// A transport header of one of these protocols, or of any.
    Transport(&'static [u8]),
    Payload,
}

/// Some bits of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BitField {
    header: Header,
    bit: u32,
    width: u32,
}

const ANY: &[u8] = &[];
const PORTS: &[u8] = &[TCP, UDP];

/// What a word at the beginning of a field says.
const HEADERS: &[(&str, Header)] = &[
    ("ip", Header::Ip),
    ("tcp", Header::Transport(&[TCP])),
    ("udp", Header::Transport(&[UDP])),
    ("tcpudp", Header::Transport(PORTS)),
    ("icmp", Header::Transport(&[ICMP])),
    ("transp", Header::Transport(ANY)),
    ("transport", Header::Transport(ANY)),
    ("data", Header::Payload),
    ("payload", Header::Payload),
];

const fn ip(bit: u32, width: u32) -> BitField {
    BitField { header: Header::Ip, bit, width }
}

const fn transport(protocols: &'static [u8], bit: u32, width: u32) -> BitField {
    BitField { header: Header::Transport(protocols), bit, width }
}

const FIELDS: &[(&str, BitField)] = &[
    ("vers", ip(0, 4)),
    ("hl", ip(4, 4)),
    ("tos", ip(8, 8)),
    ("dscp", ip(8, 6)),
    ("ecn", ip(14, 2)),
    ("len", ip(16, 16)),
    ("id", ip(32, 16)),
    ("off", ip(48, 16)),
    ("rf", ip(48, 1)),
    ("df", ip(49, 1)),
    ("mf", ip(50, 1)),
    ("fragoff", ip(51, 13)),
    ("ttl", ip(64, 8)),
    ("proto", ip(72, 8)),
    ("sum", ip(80, 16)),
    ("csum", ip(80, 16)),
    ("src", ip(96, 32)),
    ("dst", ip(128, 32)),
    ("sport", transport(PORTS, 0, 16)),
    ("dport", transport(PORTS, 16, 16)),
    ("len", transport(&[UDP], 32, 16)),
    ("sum", transport(&[UDP], 48, 16)),
    ("csum", transport(&[UDP], 48, 16)),
    ("seq", transport(&[TCP], 32, 32)),
    ("seqno", transport(&[TCP], 32, 32)),
    ("ack", transport(&[TCP], 64, 32)),
    ("ackno", transport(&[TCP], 64, 32)),
    ("hl", transport(&[TCP], 96, 4)),
    ("flags", transport(&[TCP], 104, 8)),
    ("urg", transport(&[TCP], 106, 1)),
    ("ackf", transport(&[TCP], 107, 1)),
    ("psh", transport(&[TCP], 108, 1)),
    ("rst", transport(&[TCP], 109, 1)),
    ("syn", transport(&[TCP], 110, 1)),
    ("fin", transport(&[TCP], 111, 1)),
    ("win", transport(&[TCP], 112, 16)),
    ("sum", transport(&[TCP], 128, 16)),
    ("csum", transport(&[TCP], 128, 16)),
    ("urp", transport(&[TCP], 144, 16)),
    ("type", transport(&[ICMP], 0, 8)),
    ("code", transport(&[ICMP], 8, 8)),
    ("sum", transport(&[ICMP], 16, 16)),
    ("csum", transport(&[ICMP], 16, 16)),
];

impl Header {
    /// Whether a field of the header `other` is one of this, which the user named.
    fn admits(self, other: Header) -> bool {
        match (self, other) {
            (Header::Transport(wanted), Header::Transport(known)) => {
                wanted.is_empty() || wanted.iter().all(|protocol| known.contains(protocol))
            }
            _ => self == other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Header::Ip => "ip",
            Header::Transport(_) => "transp",
            Header::Payload => "payload",
        }
    }
}

/// Reads a field. The error is a sentence.
fn read_field(text: &str) -> Result<BitField, String> {
    let text = text.trim();
    let word_end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (first, rest) = text.split_at(word_end);
    let header = HEADERS.iter().find(|(name, _)| *name == first).map(|(_, header)| *header);
    let rest = if header.is_some() { rest.trim_start() } else { text };
    let (field, rest) = match (rest.strip_prefix(['[', '{']), header) {
        (Some(inner), Some(header)) => {
            let (unit, close) = if rest.starts_with('[') { (8, ']') } else { (1, '}') };
            let (range, rest) =
                inner.split_once(close).ok_or_else(|| format!("expected `{close}` at its end"))?;
            let (bit, width) = read_range(range, unit)?;
            (BitField { header, bit, width }, rest)
        }
        _ => {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            (named_field(name, header)?, rest)
        }
    };
    let field = masked(field, rest.trim())?;
    if field.width > 32 {
        return Err("it has more than 32 bits: add `/BITS` or `& MASK`".into());
    }
    Ok(field)
}

fn named_field(name: &str, header: Option<Header>) -> Result<BitField, String> {
    let admits = |field: &BitField| header.is_none_or(|header| header.admits(field.header));
    let mut found = FIELDS.iter().filter(|(known, field)| *known == name && admits(field));
    match (found.next(), found.next()) {
        (Some((_, field)), None) => {
            // `tcp sport` is of TCP only.
            Ok(BitField {
                header: header
                    .filter(|h| matches!(h, Header::Transport(p) if !p.is_empty()))
                    .unwrap_or(field.header),
                ..*field
            })
        }
        (Some(_), Some(_)) => {
            Err(format!("`{name}` is a field of several headers: put `ip`, `tcp`, `udp` or `icmp` before it"))
        }
        (None, _) if name.is_empty() => Err("the name of a field is expected, or `[OFFSET:LENGTH]`".into()),
        (None, _) => Err(format!("there is no field `{name}`")),
    }
}

/// The offset and the width in bits of `OFFSET`, `OFFSET:LENGTH` or `FIRST-LAST`.
fn read_range(text: &str, unit: u32) -> Result<(u32, u32), String> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number <= 0xffff);
    let range = match (text.split_once([':', ',', '+']), text.split_once('-')) {
        (Some((offset, length)), _) => number(offset).zip(number(length)),
        (None, Some((first, last))) => number(first)
            .zip(number(last))
            .and_then(|(first, last)| Some((first, last.checked_sub(first)? + 1))),
        (None, None) => number(text).map(|offset| (offset, 1)),
    };
    let (offset, length) = range
        .filter(|(_, length)| *length > 0)
        .ok_or_else(|| format!("`{text}` is no range: expected OFFSET, OFFSET:LENGTH or FIRST-LAST"))?;
    Ok((offset * unit, length * unit))
}

/// A field with what follows it: `/BITS` or `& MASK`.
fn masked(field: BitField, rest: &str) -> Result<BitField, String> {
    if rest.is_empty() {
        return Ok(field);
    }
    if let Some(bits) = rest.strip_prefix('/') {
        let bits = bits.trim().parse::<u32>().ok().filter(|bits| (1..=field.width).contains(bits));
        let bits = bits.ok_or_else(|| format!("`/BITS` has to be between `/1` and `/{}`", field.width))?;
        return Ok(BitField { width: bits, ..field });
    }
    let Some(mask) = rest.strip_prefix('&') else { return Err(format!("`{rest}` follows the field")) };
    let mask = parse::plain(mask.trim(), parse::u64).ok_or("expected a number behind `&`")?;
    let (low, ones) = (mask.trailing_zeros(), mask.count_ones());
    let is_row = mask != 0 && (mask >> low).count_ones() == (mask >> low).trailing_ones();
    if !is_row {
        return Err("the mask has to have ones in one row".into());
    }
    if field.width < 64 && mask >> field.width != 0 {
        return Err(format!("the mask is wider than the field, which has {} bits", field.width));
    }
    Ok(BitField { bit: field.bit + field.width - low - ones, width: ones, ..field })
}

fn field(text: &Spanned, _names: &dyn Names) -> Parsed<BitField> {
    let text = unquote(text);
    read_field(text.as_str()).map_err(|reason| {
        Diagnostic::error(text.span, format!("`{text}` is no field of IP packets: {reason}"))
    })
}

struct AggregateIp {
    field: BitField,
    incremental: bool,
    /// How far the value is moved to the left.
    unshift: u32,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let field = args.mandatory_positional("FIELD", field);
        let incremental = args.keyword("INCREMENTAL", parse::bool).unwrap_or(false);
        let unshift = args.keyword("UNSHIFT_IP_ADDR", parse::bool).unwrap_or(false);
        let field = field?;
        if incremental && field.width == 32 {
            let span = args.span();
            args.error(span, "INCREMENTAL needs a field of fewer than 32 bits");
        }
        let last = field.bit + field.width;
        let is_address =
            field.header == Header::Ip && field.bit >= 96 && last <= 160 && field.bit / 32 == (last - 1) / 32;
        let unshift = if unshift && is_address { last.next_multiple_of(32) - last } else { 0 };
        Some(AggregateIp { field, incremental, unshift })
    })
}

impl BitField {
    /// The field's value; `None` if the packet does not have it.
    fn read(self, packet: &Packet) -> Option<u32> {
        let from_net = from_network(packet)?;
        let bytes = PacketBytes::new(&from_net);
        let [first, protocol] = [bytes.u8(0)?, bytes.u8(9)?];
        let is_first = bytes.u16(6)? & 0x1fff == 0;
        if first >> 4 != 4 {
            return None;
        }
        let trans = || transport_offset(packet).filter(|_| is_first);
        let base = match (self.header, protocol) {
            (Header::Ip, _) => 0,
            (Header::Transport(wanted), _) => {
                trans().filter(|_| wanted.is_empty() || wanted.contains(&protocol))?
            }
            (Header::Payload, TCP) => trans()? + usize::from(bytes.u8(trans()? + 12)? >> 4) * 4,
            (Header::Payload, UDP) => trans()? + 8,
            (Header::Payload, _) => return None,
        };
        // At most 32 bits are in at most 5 bytes.
        let (first, last) = (self.bit / 8, (self.bit + self.width - 1) / 8);
        let mut word = [0; 8];
        let place = word.get_mut(8 - (last - first + 1) as usize..)?;
        if !bytes.copy_out(base + first as usize, place) {
            return None;
        }
        let value = u64::from_be_bytes(word) >> ((last + 1) * 8 - self.bit - self.width);
        Some((value & ((1 << self.width) - 1)) as u32)
    }
}

impl AggregateIp {
    /// Sets a packet's annotation; whether it has the field.
    fn set(&self, packet: &mut Packet) -> bool {
        let Some(value) = self.field.read(packet) else { return false };
        let old = if self.incremental { AGGREGATE.load(&packet.anno) << self.field.width } else { 0 };
        AGGREGATE.store(&mut packet.anno, (old + (u64::from(value) << self.unshift)) & 0xffff_ffff);
        true
    }
}

impl Opaque for AggregateIp {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.set(batch.packet_mut(index)) {
                true => batch.emit(index, 0),
                false => batch.emit_or_drop(index, 1, 0),
            }
        }
    }
}

impl Element for AggregateIp {
    element::facts!(writes: false, reasons: &["no-field"], handlers: HANDLERS);
}

const HANDLERS: &[Row<AggregateIp>] = &[
    Row::read("header", |element, _| Some(element.field.header.name().to_string())),
    Row::read("bit_offset", |element, _| Some(element.field.bit.to_string())),
    Row::read("bit_length", |element, _| Some(element.field.width.to_string())),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bits_are_named_in_many_ways() {
        for text in
            ["ip src/8", "ip src & 0xFF000000", "ip[12]", "ip[12:1]", "ip[12,1]", "ip{96,8}", "ip {96-103}"]
        {
            assert_eq!(read_field(text), Ok(ip(96, 8)), "{text}");
        }
        assert_eq!(read_field("tcp sport"), Ok(transport(&[TCP], 0, 16)));
        assert_eq!(read_field("sport"), Ok(transport(PORTS, 0, 16)));
        assert_eq!(read_field("seq & 0xff0"), Ok(transport(&[TCP], 52, 8)));
        assert_eq!(read_field("data[0:4]"), Ok(BitField { header: Header::Payload, bit: 0, width: 32 }));
    }

    #[test]
    fn what_is_no_field_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "name of a field"),
            ("ip", "name of a field"),
            ("ip nonsense", "no field `nonsense`"),
            ("sum", "several headers"),
            ("udp seq", "no field `seq`"),
            ("ip[12", "expected `]`"),
            ("ip[x]", "no range"),
            ("ip[3-2]", "no range"),
            ("ip[0:5]", "more than 32"),
            ("ip[99999999]", "no range"),
            ("ip src/33", "between `/1`"),
            ("ip src & 0x101", "in one row"),
            ("ip src & 0", "in one row"),
            ("ip tos & 0x100", "wider"),
            ("ip tos x", "follows"),
        ] {
            let error = read_field(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
