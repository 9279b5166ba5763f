//! Expressions over the field table, from which lowering starts.
//!
//! An expression of [`super::expr`] becomes a formula over *variables*: the value of a header field, or
//! whether the packet has enough bytes of a header. A field is read only if its header is known to be there:
//! every atom of a field outside of the first 20 bytes of the IP header follows its [`Var::Reach`] in a
//! conjunction.

use super::expr::{
    Carrier, Compare, Direction, Expr, HeaderField, Layer, PortProtocol, Relation, Six, Test, Values,
};
use click::config::Ip6Prefix;
use ir::analysis::interval::IntervalSet;
use packet::field::{self, Base, Field};
use packet::view::ethernet::{ARP, IPV6, MPLS, MPLS_UPSTREAM, QINQ, QINQ_OLD, VLAN};
use packet::view::ipv6;
use std::collections::BTreeMap;

/// Bytes of the IP header that the elements check first.
pub const IP_BYTES: u16 = 20;
/// Bytes of the transport header that a test of ports needs.
pub const PORT_BYTES: u16 = 4;

/// A value that every packet has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Var {
    /// The value of a field.
    Field(Field),
    /// 1 if the packet has that many bytes from a header on, else 0. For the transport header also 0 in
    /// fragments other than the first.
    Reach(Base, u16),
}

impl Var {
    /// The largest value.
    pub fn largest(self) -> u64 {
        match self {
            Var::Field(field) => field.max_value(),
            Var::Reach(..) => 1,
        }
    }
}

impl std::fmt::Display for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Var::Field(field) => f.write_str(&ir::text::field_name(*field)),
            Var::Reach(base, bytes) => write!(f, "{}+{bytes}", base.name()),
        }
    }
}

/// A formula over variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Formula {
    /// Always or never.
    Const(bool),
    /// The variable's value lies in the set.
    Atom(Var, IntervalSet),
    /// The opposite.
    Not(Box<Formula>),
    /// All.
    All(Vec<Formula>),
    /// At least one.
    Any(Vec<Formula>),
    /// The second where the first holds, else the third.
    If(Box<[Formula; 3]>),
}

pub fn not(formula: Formula) -> Formula {
    match formula {
        Formula::Const(value) => Formula::Const(!value),
        other => Formula::Not(Box::new(other)),
    }
}

/// The values up to `max` for which a comparison without a mask holds.
pub fn values(compare: Compare, max: u64) -> IntervalSet {
    let (compare, negated) = compare.split();
    let ranges = match (compare.relation, compare.values) {
        (Relation::Greater, Values::One(value)) => IntervalSet::range(value.saturating_add(1), max),
        (Relation::GreaterEqual, Values::One(value)) => IntervalSet::range(value, max),
        (_, Values::One(value)) => IntervalSet::one(value),
        (_, Values::Range(first, last)) => IntervalSet::range(first, last),
    };
    if negated { ranges.complement(max) } else { ranges.intersection(&IntervalSet::range(0, max)) }
}

/// A run of bits of a mask.
#[derive(Clone, Copy)]
struct Run {
    field: Field,
    shift: u32,
}

impl Run {
    /// The run's bits of a number of the whole field.
    fn part(self, number: u64) -> u64 {
        number.checked_shr(self.shift).unwrap_or(0) & self.field.max_value()
    }

    fn atom(self, ranges: IntervalSet) -> Formula {
        Formula::Atom(Var::Field(self.field), ranges)
    }
}

/// The runs of ones of a mask over a field, high ones first.
fn runs(field: Field, mask: u64) -> Vec<Run> {
    let mut runs = vec![];
    let mut left = mask & field.max_value();
    while left != 0 {
        let shift = left.trailing_zeros();
        let width = (left >> shift).trailing_ones();
        let bit = field.bit + u16::from(field.width) - (shift + width) as u16;
        runs.push(Run { field: Field::new(field.base, bit, width as u8), shift });
        left &= !(((1u128 << width) - 1) as u64).checked_shl(shift).unwrap_or(0);
    }
    runs.reverse();
    runs
}

/// Under a mask, equal to a number.
fn equal(runs: &[Run], value: u64) -> Formula {
    Formula::All(runs.iter().map(|run| run.atom(IntervalSet::one(run.part(value)))).collect())
}

/// Under a mask, above a number that has no bits outside of it.
fn above(runs: &[Run], value: u64) -> Formula {
    let Some((first, rest)) = runs.split_first() else { return Formula::Const(false) };
    let part = first.part(value);
    let here = first.atom(IntervalSet::range(part + 1, first.field.max_value()));
    if rest.is_empty() {
        return here;
    }
    let level = first.atom(IntervalSet::one(part));
    Formula::Any(vec![here, Formula::All(vec![level, above(rest, value)])])
}

/// The largest number without bits outside of the mask that is at most `value`.
pub fn floor(value: u64, mask: u64) -> u64 {
    let outside = value & !mask;
    if outside == 0 {
        return value;
    }
    // From the highest bit that a masked number lacks downwards, all bits of the mask may be set.
    let below = (1u64 << (63 - outside.leading_zeros())) - 1;
    value & mask & !below | mask & below
}

/// Whether a field passes a comparison.
fn compare(field: Field, compare: Compare) -> Formula {
    let mask = match compare.mask {
        None => return Formula::Atom(Var::Field(field), values(compare, field.max_value())),
        Some(mask) => mask & field.max_value(),
    };
    let runs = runs(field, mask);
    let (compare, negated) = compare.split();
    let above = |value: u64| above(&runs, floor(value, mask));
    let at_least = |value: u64| match value.checked_sub(1) {
        Some(below) => above(below),
        None => Formula::Const(true),
    };
    let formula = match (compare.relation, compare.values) {
        (Relation::Greater, Values::One(value)) => above(value),
        (Relation::GreaterEqual, Values::One(value)) => at_least(value),
        (_, Values::One(value)) => equal(&runs, value),
        (_, Values::Range(first, last)) => Formula::All(vec![at_least(first), not(above(last))]),
    };
    if negated { not(formula) } else { formula }
}

/// A formula over one or both fields of a pair, by direction; `negated` negates all of it.
fn pair(direction: Direction, of: impl Fn(bool) -> Formula, negated: bool) -> Formula {
    let formula = match direction {
        Direction::Src => of(true),
        Direction::Dst => of(false),
        Direction::Either => Formula::Any(vec![of(true), of(false)]),
        Direction::Both => Formula::All(vec![of(true), of(false)]),
    };
    if negated { not(formula) } else { formula }
}

/// Whether one or both of a source and a destination field pass a comparison.
fn ends(direction: Direction, (src, dst): (Field, Field), wanted: Compare, negated: bool) -> Formula {
    pair(direction, |is_src| compare(if is_src { src } else { dst }, wanted), negated)
}

fn reach(base: Base, bytes: u16) -> Formula {
    Formula::Atom(Var::Reach(base, bytes), IntervalSet::one(1))
}

fn masked(mask: u64, value: u64) -> Compare {
    Compare { mask: Some(mask), ..Compare::equal(value) }
}

const TCP_UDP: &[u64] = &[6, 17];

/// Whether a field with a protocol's number is one of those that have ports.
fn has_ports(field: Field, protocol: PortProtocol) -> Formula {
    match protocol {
        PortProtocol::TcpUdp => one_of(field, TCP_UDP),
        PortProtocol::One(protocol) => one_of(field, &[protocol.into()]),
    }
}

impl From<Test> for Formula {
    fn from(test: Test) -> Formula {
        match test {
            Test::Host { direction, address, mask, negated } => {
                ends(direction, (field::IP_SRC, field::IP_DST), masked(mask.into(), address.into()), negated)
            }
            Test::Ether { direction, address, mask, negated } => {
                let addresses = (field::ETH_SRC, field::ETH_DST);
                let address = ends(direction, addresses, masked(mask, address), negated);
                Formula::All(vec![reach(Base::Mac, 12), address])
            }
            Test::Proto(wanted) => compare(field::IP_PROTO, wanted),
            Test::TcpUdp => one_of(field::IP_PROTO, TCP_UDP),
            Test::Fragment(wanted) => {
                let zero = |field| Formula::Atom(Var::Field(field), IntervalSet::one(0));
                let whole = Formula::All(vec![zero(field::IP_FRAG), zero(field::IP_MF)]);
                if wanted { not(whole) } else { whole }
            }
            Test::Port { direction, protocol, compare: wanted } => {
                let protocol = has_ports(field::IP_PROTO, protocol);
                let (positive, negated) = wanted.split();
                let ports = ends(direction, (field::L4_SPORT, field::L4_DPORT), positive, negated);
                Formula::All(vec![protocol, reach(Base::Trans, PORT_BYTES), ports])
            }
            Test::TcpFlags(flags) => {
                let set = compare(field::TCP_FLAGS, masked(flags.into(), flags.into()));
                Formula::All(vec![
                    one_of(field::IP_PROTO, &[6]),
                    reach(Base::Trans, field::TCP_FLAGS.end_byte()),
                    set,
                ])
            }
            Test::Field(at, wanted) => header_field(at, wanted),
            Test::Layer(layer, wanted) => of_layer(layer, wanted),
            Test::Six(six) => of_six(six),
        }
    }
}

/// Types that announce a VLAN tag.
pub(super) const TAGS: &[u64; 3] = &[VLAN as u64, QINQ as u64, QINQ_OLD as u64];
/// The type field of a frame, by the number of tags before it.
const TYPES: [Field; 3] = [field::ETH_TYPE, field::VLAN_TYPE, field::VLAN2_TYPE];

/// The set of some numbers.
pub fn set_of(numbers: impl IntoIterator<Item = u64>) -> IntervalSet {
    IntervalSet::from_intervals(numbers.into_iter().map(|number| (number, number)))
}

fn one_of(field: Field, values: &[u64]) -> Formula {
    Formula::Atom(Var::Field(field), set_of(values.iter().copied()))
}

/// `then`, behind exactly so many tags, in a frame of at least `reaches` bytes.
fn behind(tags: usize, reaches: u16, then: Vec<Formula>) -> Formula {
    let mut parts = vec![reach(Base::Mac, reaches)];
    parts.extend(TYPES.iter().take(tags).map(|field| one_of(*field, TAGS)));
    parts.extend(then);
    Formula::All(parts)
}

fn of_layer(layer: Layer, wanted: Option<Compare>) -> Formula {
    // For each number of tags; a third tag is not followed.
    let typed = |of: &dyn Fn(Field) -> Formula, number: Option<Compare>| {
        let way = |(tags, field): (usize, &Field)| {
            let mut then = vec![of(*field)];
            if tags < 2 {
                then.push(not(one_of(*field, TAGS)));
            }
            let mut reaches = field.end_byte();
            if let Some(wanted) = number {
                // The number is the first 20 bits of a label.
                let label = Field::new(Base::Mac, reaches * 8, 20);
                reaches += 4;
                then.push(compare(label, wanted));
            }
            behind(tags, reaches, then)
        };
        Formula::Any(TYPES.iter().enumerate().map(way).collect())
    };
    let numbered = |field: Field| wanted.map(|wanted| compare(field, wanted));
    match layer {
        Layer::Vlan => behind(1, 18, numbered(field::VLAN_ID).into_iter().collect()),
        Layer::Qinq => behind(2, 22, numbered(field::VLAN2_ID).into_iter().collect()),
        Layer::Arp => typed(&|field| one_of(field, &[ARP.into()]), None),
        Layer::EtherType => {
            typed(&|field| wanted.map_or(Formula::Const(true), |of| compare(field, of)), None)
        }
        Layer::Mpls => typed(&|field| one_of(field, &[MPLS.into(), MPLS_UPSTREAM.into()]), wanted),
        Layer::Vxlan | Layer::Geneve => {
            let port = Compare::equal(layer.udp_port().unwrap_or(0).into());
            let protocol = PortProtocol::One(17);
            let mut parts =
                vec![Formula::from(Test::Port { direction: Direction::Dst, protocol, compare: port })];
            if let Some(number) = numbered(Field::new(Base::Trans, 12 * 8, 24)) {
                parts.push(reach(Base::Trans, 16));
                if layer == Layer::Vxlan {
                    // The flag that says that there is a number (RFC 7348, section 5).
                    parts.push(one_of(Field::new(Base::Trans, 8 * 8 + 4, 1), &[1]));
                }
                parts.push(number);
            }
            Formula::All(parts)
        }
    }
}

fn of_six(test: Six) -> Formula {
    let way = |(tags, kind): (usize, &Field)| {
        let start = kind.end_byte();
        let bytes = |at: u16, len: u16| Field::new(Base::Mac, (start + at) * 8, (len * 8) as u8);
        let mut then = vec![one_of(*kind, &[IPV6.into()]), one_of(Field::new(Base::Mac, start * 8, 4), &[6])];
        let mut reaches = start + ipv6::HEADER_BYTES as u16;
        let next = bytes(6, 1);
        match test {
            Six::Any => {}
            Six::Host { direction, address, bits, negated } => {
                let mask = Ip6Prefix::mask(bits);
                let word = |at: u16, number: u32| {
                    let shift = 96 - 32 * number;
                    let mask = u64::from(mask.checked_shr(shift).unwrap_or(0) as u32);
                    let wanted = masked(mask, u64::from((address >> shift) as u32));
                    compare(bytes(at + 4 * number as u16, 4), wanted)
                };
                let equal = |src: bool| {
                    let words = (0..u32::from(bits).div_ceil(32))
                        .map(|number| word(if src { 8 } else { 24 }, number));
                    Formula::All(words.collect())
                };
                then.push(pair(direction, equal, negated));
            }
            Six::Proto(wanted) => then.push(compare(next, wanted)),
            Six::Port { direction, protocol, compare: wanted } => {
                reaches += PORT_BYTES;
                then.push(has_ports(next, protocol));
                let (positive, negated) = wanted.split();
                then.push(ends(direction, (bytes(40, 2), bytes(42, 2)), positive, negated));
            }
        }
        behind(tags, reaches, then)
    };
    Formula::Any(TYPES.iter().enumerate().map(way).collect())
}

fn header_field(at: HeaderField, wanted: Compare) -> Formula {
    let base = if at.carrier == Carrier::Ip { Base::Net } else { Base::Trans };
    let field = Field::new(base, at.bit, at.width);
    let mut parts = vec![];
    match at.carrier {
        Carrier::Ip | Carrier::Transport => {}
        Carrier::TcpUdp => parts.push(one_of(field::IP_PROTO, TCP_UDP)),
        Carrier::Protocol(protocol) => parts.push(one_of(field::IP_PROTO, &[protocol.into()])),
    }
    if base == Base::Trans || field.end_byte() > IP_BYTES {
        parts.push(reach(base, field.end_byte()));
    }
    parts.push(compare(field, wanted));
    Formula::All(parts)
}

impl From<&Expr> for Formula {
    fn from(expr: &Expr) -> Formula {
        Formula::of(expr, &Formula::from)
    }
}

impl Formula {
    /// An expression over any frame: each test of IP checks the IP header's first bytes itself.
    pub fn of_frame(expr: &Expr) -> Formula {
        Formula::of(expr, &|test| match test.is_of_ip() {
            true => Formula::All(vec![reach(Base::Net, IP_BYTES), Formula::from(test)]),
            false => Formula::from(test),
        })
    }

    fn of(expr: &Expr, test: &dyn Fn(Test) -> Formula) -> Formula {
        let each = |parts: &[Expr]| parts.iter().map(|part| Formula::of(part, test)).collect();
        match expr {
            Expr::True => Formula::Const(true),
            Expr::False => Formula::Const(false),
            Expr::Test(of) => test(*of),
            Expr::Not(inner) => not(Formula::of(inner, test)),
            Expr::All(parts) => Formula::All(each(parts)),
            Expr::Any(parts) => Formula::Any(each(parts)),
            Expr::If(parts) => Formula::If(Box::new(parts.each_ref().map(|part| Formula::of(part, test)))),
        }
    }
}

impl Formula {
    /// Calls `visit` on every atom.
    pub fn atoms(&self, visit: &mut impl FnMut(Var, &IntervalSet)) {
        match self {
            Formula::Const(_) => {}
            Formula::Atom(var, ranges) => visit(*var, ranges),
            Formula::Not(inner) => inner.atoms(visit),
            Formula::All(parts) | Formula::Any(parts) => parts.iter().for_each(|part| part.atoms(visit)),
            Formula::If(parts) => parts.iter().for_each(|part| part.atoms(visit)),
        }
    }

    fn change_atoms(&mut self, change: &mut impl FnMut(&mut Var, &mut IntervalSet)) {
        match self {
            Formula::Const(_) => {}
            Formula::Atom(var, ranges) => change(var, ranges),
            Formula::Not(inner) => inner.change_atoms(change),
            Formula::All(parts) | Formula::Any(parts) => {
                parts.iter_mut().for_each(|part| part.change_atoms(change));
            }
            Formula::If(parts) => parts.iter_mut().for_each(|part| part.change_atoms(change)),
        }
    }
}

/// Bytes that are there wherever any field of the base is read.
fn always_there(base: Base, ip: bool) -> u16 {
    if base == Base::Net && ip { IP_BYTES } else { 0 }
}

/// Replaces fields by wider ones that start at the same bit (`dscp` by `tos`, `10/8` by the whole address),
/// so that tests of the same bits become tests of the same variable. `ip` is whether the first bytes of an IP
/// header are there.
pub fn unify<'a>(formulas: impl Iterator<Item = &'a mut Formula>, ip: bool) {
    let mut formulas: Vec<&mut Formula> = formulas.collect();
    let mut widest: BTreeMap<(Base, u16), Vec<Field>> = BTreeMap::new();
    for formula in &formulas {
        formula.atoms(&mut |var, _| {
            if let Var::Field(field) = var {
                widest.entry((field.base, field.bit)).or_default().push(field);
            }
        });
    }
    for fields in widest.values_mut() {
        fields.sort_unstable_by_key(|field| std::cmp::Reverse(field.width));
        fields.dedup();
    }
    for formula in &mut formulas {
        formula.change_atoms(&mut |var, ranges| {
            let Var::Field(field) = *var else { return };
            let there = field.end_byte().max(always_there(field.base, ip));
            let fields = widest.get(&(field.base, field.bit)).map_or(&[][..], Vec::as_slice);
            if let Some(&wide) = fields.iter().find(|wide| wide.end_byte() <= there) {
                *ranges = ranges.widen(u32::from(wide.width - field.width));
                *var = Var::Field(wide);
            }
        });
    }
}
