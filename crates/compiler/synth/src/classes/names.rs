//! Names of the parts of a packet as it arrived: field names where they fit.
//!
//! Bits may have several names: an ARP operation and an IPv4 fragment offset are the same bits. The other
//! conditions of a filter decide which name is used.

use super::expr::{Atom, Bits, Id, Node, Pool, Root};
use super::filter::Filter;
use packet::anno::{self, ANNO_BYTES};
use packet::field::{Base, Field, TABLE};
use std::net::Ipv4Addr;

/// Names with lower priority than the others.
const RARE: [&str; 6] = ["arp.", "ip6.", "nd.", "icmp6.", "vlan", "icmp."];
const ARP: u64 = 0x0806;
const IP6: u64 = 0x86dd;
const IP4: u64 = 0x0800;

/// The known protocols of a packet.
#[derive(Clone, Copy, Default, Debug)]
pub struct Context {
    first: Option<&'static str>,
    transport: Option<&'static str>,
}

impl Context {
    /// The protocols that follow from a filter.
    pub fn of(pool: &Pool, filter: &Filter) -> Context {
        let mut context = Context::default();
        for (id, set) in filter.conditions() {
            let Node::Atom(Atom::Bits(bits)) = pool.node(id) else { continue };
            let (Some(only), Some(name)) = (set.only(), name_of(pool, *bits, &Context::default())) else {
                continue;
            };
            match (name.as_str(), only) {
                ("eth.type", ARP) => context.first = Some("arp."),
                ("eth.type", IP6) | ("ip.version", 6) => context.first = Some("ip6."),
                ("ip.proto", 6) => context.transport = Some("tcp."),
                ("ip.proto", 17) => context.transport = Some("udp."),
                ("ip.proto", 1) => context.transport = Some("icmp."),
                _ => {}
            }
        }
        context
    }

    fn rank(&self, name: &str) -> usize {
        let fits = |prefix: Option<&str>| prefix.is_some_and(|prefix| name.starts_with(prefix));
        match fits(self.first) || fits(self.transport) {
            true => 0,
            false => 1 + usize::from(RARE.iter().any(|rare| name.starts_with(rare))),
        }
    }
}

/// Headers that bits may be counted from, each with the bits' offset in it; the nearest one first.
fn headers(pool: &Pool, root: Id, bit: i32) -> Vec<(Base, i32)> {
    let mut known: Vec<(i32, Base)> =
        pool.names.iter().filter(|(at, ..)| *at == root).map(|(_, offset, base)| (*offset, *base)).collect();
    match pool.node(root) {
        Node::Atom(Atom::Place(base)) => known.push((0, *base)),
        Node::Atom(Atom::Room) => known.push((0, Base::Data)),
        _ => {}
    }
    known.retain(|(offset, _)| offset * 8 <= bit);
    known.sort_by_key(|(offset, base)| (-offset, std::cmp::Reverse(*base as usize)));
    known.into_iter().map(|(offset, base)| (base, bit - offset * 8)).collect()
}

/// The field name of bits, if they have one.
fn name_of(pool: &Pool, bits: Bits, context: &Context) -> Option<String> {
    let Root::At(root) = bits.root else {
        let found = anno::TABLE.iter().find(|(_, anno)| Bits::anno(anno.offset, anno.len) == bits);
        return found.map(|(name, _)| (*name).to_string());
    };
    headers(pool, root, bits.bit).into_iter().find_map(|(base, bit)| {
        let field = Field::new(base, u16::try_from(bit).ok()?, bits.width);
        let names = TABLE.iter().filter(|(_, known)| *known == field).map(|(name, _)| *name);
        names.min_by_key(|name| context.rank(name)).map(str::to_string)
    })
}

/// A name of bits.
pub fn bits(pool: &Pool, bits: Bits, context: &Context) -> String {
    if let Some(name) = name_of(pool, bits, context) {
        return name;
    }
    match bits.root {
        Root::Anno => {
            let low = ANNO_BYTES as i32 * 8 - bits.end();
            format!("anno[{low}:{}]", bits.width)
        }
        Root::At(root) => match headers(pool, root, bits.bit).first() {
            Some((base, bit)) => part_of(*base, *bit, bits.width, context)
                .unwrap_or_else(|| format!("{}[{bit}:{}]", base.name(), bits.width)),
            None => format!("place{}[{}:{}]", root.index(), bits.bit, bits.width),
        },
    }
}

/// The name of the field that bits are in, or of the header where they are in none.
pub fn field_of(pool: &Pool, bits: Bits) -> String {
    let mut name = self::bits(pool, bits, &Context::default());
    name.truncate(name.find('[').unwrap_or(name.len()));
    name
}

/// The usual fields of a header: name, first bit, and the bit after the last.
fn usual(base: Base, context: Context) -> impl Iterator<Item = (&'static str, i32, i32)> {
    let fields = TABLE.iter().filter(move |(name, field)| field.base == base && context.rank(name) < 2);
    fields.map(|(name, field)| (*name, field.bit.into(), i32::from(field.bit) + i32::from(field.width)))
}

/// Bits of a named field, such as `tcp.flags[0:1]`: from its highest bit.
fn part_of(base: Base, bit: i32, width: u8, context: &Context) -> Option<String> {
    let around = usual(base, *context).filter(|(_, from, to)| *from <= bit && bit + i32::from(width) <= *to);
    let (name, from, _) = around.min_by_key(|(name, from, to)| (context.rank(name), to - from))?;
    Some(format!("{name}[{}:{width}]", bit - from))
}

/// The text of a number in a field of that name.
pub fn value(name: &str, number: u64) -> String {
    let address = ["ip.src", "ip.dst", "arp.spa", "arp.tpa", "DST_IP", "icmp.gateway"];
    if address.contains(&name) {
        return Ipv4Addr::from_bits(number as u32).to_string();
    }
    match (name, number) {
        ("eth.dst" | "eth.src" | "arp.sha" | "arp.tha", _) => {
            let bytes = number.to_be_bytes();
            bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        ("eth.type" | "vlan.type", IP4) => "ip".into(),
        ("eth.type" | "vlan.type", IP6) => "ip6".into(),
        ("eth.type" | "vlan.type", ARP) => "arp".into(),
        ("ip.proto", 6) => "tcp".into(),
        ("ip.proto", 17) => "udp".into(),
        ("ip.proto", 1) => "icmp".into(),
        (_, 0..=0xffff) => number.to_string(),
        _ => format!("{number:#x}"),
    }
}

/// The text of an interval of numbers in a field of that name.
pub fn interval(name: &str, first: u64, last: u64) -> String {
    let size = last.wrapping_sub(first).wrapping_add(1);
    if first == last {
        return value(name, first);
    }
    let is_address = value(name, first).contains('.') && last <= u64::from(u32::MAX);
    if is_address && size.is_power_of_two() && first & (size - 1) == 0 {
        return format!("{}/{}", value(name, first), 32 - size.trailing_zeros());
    }
    format!("{}-{}", value(name, first), value(name, last))
}

/// The number of bits, from the first one, that are a complete field; 0 if no field starts there.
pub fn first_field(pool: &Pool, bits: Bits) -> u8 {
    let Root::At(root) = bits.root else { return 0 };
    let found = headers(pool, root, bits.bit).into_iter().find_map(|(base, bit)| {
        let starting = usual(base, Context::default()).filter(|(_, from, _)| *from == bit);
        starting.map(|(_, from, to)| to - from).filter(|width| *width <= bits.width.into()).min()
    });
    found.unwrap_or(0) as u8
}

/// The number of bits, from the first one, that belong to a field that starts before the first one; 0 if
/// there is none.
pub fn rest_of_field(pool: &Pool, bits: Bits) -> u8 {
    let Root::At(root) = bits.root else { return 0 };
    let found = headers(pool, root, bits.bit).into_iter().find_map(|(base, bit)| {
        let around = usual(base, Context::default()).filter(|(_, from, to)| *from < bit && bit < *to);
        around.map(|(.., to)| to - bit).min()
    });
    found.unwrap_or(0).min(bits.width.into()) as u8
}

/// The field that starts with these bits, if they have no name of their own: its name and width.
pub fn field_of_first(pool: &Pool, bits: Bits, context: &Context) -> Option<(String, u8)> {
    let Root::At(root) = bits.root else { return None };
    if name_of(pool, bits, context).is_some() {
        return None;
    }
    headers(pool, root, bits.bit).into_iter().find_map(|(base, bit)| {
        let starting = usual(base, *context).filter(|(_, from, _)| *from == bit);
        let wider = starting.filter(|(_, from, to)| to - from > bits.width.into());
        let (name, from, to) = wider.min_by_key(|(name, from, to)| (context.rank(name), to - from))?;
        Some((name.to_string(), (to - from) as u8))
    })
}
