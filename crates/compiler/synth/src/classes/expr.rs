//! Values that depend on a packet as it arrived: a graph of shared expressions.
//!
//! Equal expressions are one node, so that behaviours are compared by comparing numbers. Only
//! [`super::simplify`] makes nodes, in a normal form: wide numbers are concatenations of fields
//! ([`Node::Cat`]), arithmetic is linear ([`Node::Sum`]), and every condition on one value is a set of
//! numbers ([`Node::In`]).
//!
//! Offsets in packets are counted from the start of the buffer, in bytes; [`Atom::Room`] is the offset of the
//! first byte of the packet as it arrived.

use ir::BinOp;
use ir::analysis::interval::{Interval, IntervalSet, ones};
use ir::analysis::ones_complement::largest_fold;
use ir::program::RecordDelta;
use packet::anno::ANNO_BYTES;
use packet::field::Base;
use rustc_hash::FxHashMap;
use shm::descriptor::BUF_BYTES;
use std::hash::Hash;

/// Added to differences, so that they are unsigned numbers.
pub const BIAS: u64 = 1 << 62;

/// A factor in a sum as a signed number.
pub fn signed(by: u64) -> i128 {
    i128::from(by as i64)
}

/// The first and the last of the numbers whose products with `by` are from `first` to `last`.
pub fn quotients(first: i128, last: i128, by: i128) -> Option<(u64, u64)> {
    let (first, last) = if by > 0 { (first, last) } else { (-last, -first) };
    let size = by.abs();
    let first = first.div_euclid(size) + i128::from(first.rem_euclid(size) != 0);
    let last = last.div_euclid(size);
    let bound = |n: i128| n.clamp(0, i128::from(u64::MAX)) as u64;
    (last >= 0 && first <= last).then(|| (bound(first), bound(last)))
}

/// The smallest and the largest value of a sum over the integers; `range` returns those of a term.
pub fn sum_range(constant: u64, terms: &[(Id, u64)], range: impl Fn(Id) -> (u64, u64)) -> (i128, i128) {
    terms.iter().fold((signed(constant), signed(constant)), |(low, high), (term, by)| {
        let (least, most) = range(*term);
        let (a, b) = (signed(*by).saturating_mul(least.into()), signed(*by).saturating_mul(most.into()));
        (low.saturating_add(a.min(b)), high.saturating_add(a.max(b)))
    })
}

/// An expression of a [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Id(u32);

impl Id {
    /// Its number: nodes are numbered in the order of their creation.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The origin that bits are counted from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Root {
    /// An offset in the packet's buffer: an expression without constant part.
    At(Id),
    /// The annotations. The last byte comes first, so that numbers in the machine's byte order
    /// have their highest bit first, as in packets.
    Anno,
}

/// Bits of a packet or of its annotations, the highest bit first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Bits {
    /// The origin of the count.
    pub root: Root,
    /// The first bit.
    pub bit: i32,
    /// Their number, 1 to 64.
    pub width: u8,
}

impl Bits {
    /// The bit after the last.
    pub fn end(self) -> i32 {
        self.bit + i32::from(self.width)
    }

    /// An annotation's bits.
    pub fn anno(offset: u8, len: u8) -> Bits {
        let behind = i32::from(offset) + i32::from(len);
        Bits { root: Root::Anno, bit: (ANNO_BYTES as i32 - behind) * 8, width: len * 8 }
    }

    /// The `width` bits from bit `low`, counted from the lowest bit of this number.
    pub fn part(self, low: u8, width: u8) -> Bits {
        Bits { bit: self.end() - i32::from(low) - i32::from(width), width, ..self }
    }

    /// The bits in both ranges, which have the same root.
    pub fn common(self, other: Bits) -> Option<Bits> {
        let (bit, end) = (self.bit.max(other.bit), self.end().min(other.end()));
        (self.root == other.root && bit < end).then(|| Bits { bit, width: (end - bit) as u8, ..self })
    }

    /// The distance from the lowest bit of this range up to the lowest bit of a part.
    pub fn low_of(self, part: Bits) -> u8 {
        (self.end() - part.end()) as u8
    }
}

/// A property of a packet, or of the state, at the time when the packet arrives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Atom {
    /// Bits as they arrived.
    Bits(Bits),
    /// The offset of the packet's first byte in its buffer: the free headroom.
    Room,
    /// Bytes of the first segment.
    Head,
    /// Bytes of the other segments; 0 if and only if there is one segment.
    Rest,
    /// The offset in a header annotation; 0xffff where it is not set.
    Place(Base),
    /// Bytes from a header annotation to the end of the first segment; 0 where it is not set.
    Reach(Base),
    /// The value of a state cell.
    Cell(u16),
    /// The burst's clock.
    Now,
    /// The receive timestamp.
    Timestamp,
    /// Click's packet type.
    PacketType,
    /// The port's flow hash.
    FlowHash,
    /// The port that received the packet.
    Origin,
}

impl Atom {
    /// The largest value that it may have.
    pub fn max(self) -> u64 {
        match self {
            Atom::Bits(bits) => ones(bits.width),
            Atom::Room | Atom::Head | Atom::Reach(_) => BUF_BYTES as u64,
            Atom::Place(_) | Atom::Origin => u64::from(u16::MAX),
            Atom::Rest | Atom::FlowHash => u64::from(u32::MAX),
            Atom::PacketType => 0xff,
            Atom::Cell(_) | Atom::Now | Atom::Timestamp => u64::MAX,
        }
    }
}

/// A write to a packet or to annotations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Write {
    /// The bits that are written.
    pub bits: Bits,
    /// The value: its low bits are written.
    pub value: Id,
}

/// A write to a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RecWrite {
    /// The record.
    pub rec: Id,
    /// Its table.
    pub table: u16,
    /// Offset in bytes.
    pub offset: u16,
    /// Bytes.
    pub bytes: u8,
    /// The value: its low bytes are written.
    pub value: Id,
}

/// The writes before a read, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Log(u32);

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A number.
    Const(u64),
    /// A property of the packet as it arrived.
    Atom(Atom),
    /// Adjacent parts: each with the position of its lowest bit. A constant part, if there is one, is first
    /// and at position 0.
    Cat(Box<[(u8, Id)]>),
    /// Bits of a number: the lowest bit, and the number of bits.
    Slice(Id, u8, u8),
    /// A constant and multiples of terms, wrapping.
    Sum(u64, Box<[(Id, u64)]>),
    /// The low 16 bits of a sum and its carry, added once: a one's complement sum.
    Fold(Id),
    /// Other arithmetic.
    Bin(BinOp, Id, Id),
    /// Whether a number is in a set.
    In(Id, IntervalSet),
    /// The second operand where the first is not 0, else the third.
    Select(Id, Id, Id),
    /// RFC 1624 equation 3.
    Csum(Id, Id, Id, u8),
    /// `IpSum` of the header at an offset, of a first segment with an end offset, after writes.
    IpSum(Log, Id, Id),
    /// `TransportSum`.
    TransportSum(Box<TransportSum>),
    /// Bits read after writes that may or may not overlap them.
    Read(Log, Bits),
    /// Whether a table has, or creates, a record.
    Found(Box<Find>),
    /// The record of a [`Node::Found`].
    Record(Id),
    /// A number of a record, after writes: record, offset, bytes.
    RecLoad(Log, Id, u16, u8),
}

/// The inputs of a transport checksum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TransportSum {
    /// Writes before it.
    pub log: Log,
    /// The network header's offset.
    pub net: Id,
    /// The transport header's offset.
    pub trans: Id,
    /// The end of the first segment.
    pub end: Id,
    /// Bytes after the first segment.
    pub rest: Id,
    /// The protocol.
    pub proto: Id,
}

/// A lookup, or the creation of a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Find {
    /// The table.
    pub table: u16,
    /// The key.
    pub key: Box<[Id]>,
    /// The arguments for creating a record; `None` for a lookup.
    pub args: Option<Box<[Id]>>,
    /// Number of earlier creations in that table.
    pub nth: u16,
}

/// All expressions of a walk.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    nodes: Vec<Node>,
    max: Vec<u64>,
    known: FxHashMap<Node, Id>,
    logs: Logs<Write>,
    rec_logs: Logs<RecWrite>,
    /// The offsets that header annotations were set to: offsets are named after them.
    pub(super) names: Vec<(Id, i32, Base)>,
    /// What the records of tables have of checksums, by table.
    pub(super) deltas: Vec<(u16, RecordDelta)>,
}

/// Lists of writes, each stored once. The first is the empty one.
#[derive(Clone, Debug)]
struct Logs<W> {
    all: Vec<Box<[W]>>,
    numbers: FxHashMap<Box<[W]>, Log>,
}

impl<W: Clone + Eq + Hash> Default for Logs<W> {
    fn default() -> Logs<W> {
        let mut logs = Logs { all: vec![], numbers: FxHashMap::default() };
        logs.number(&[]);
        logs
    }
}

impl<W: Clone + Eq + Hash> Logs<W> {
    fn number(&mut self, writes: &[W]) -> Log {
        if let Some(&known) = self.numbers.get(writes) {
            return known;
        }
        let log = Log(self.all.len() as u32);
        self.all.push(writes.into());
        self.numbers.insert(writes.into(), log);
        log
    }
}

/// No writes.
pub const NO_WRITES: Log = Log(0);

impl Pool {
    /// The node of an expression.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    /// The largest value that an expression may have, independent of any facts.
    pub fn max(&self, id: Id) -> u64 {
        self.max[id.index()]
    }

    /// The number of bits of its largest value.
    pub fn width(&self, id: Id) -> u8 {
        (64 - self.max(id).leading_zeros()) as u8
    }

    /// The number, if it is a constant.
    pub fn constant(&self, id: Id) -> Option<u64> {
        match self.node(id) {
            Node::Const(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether it is 0 or 1 for every packet.
    pub fn is_truth(&self, id: Id) -> bool {
        self.max(id) <= 1
    }

    /// Two truth values of which both must hold ([`BinOp::And`]), or one ([`BinOp::Or`]). A number masked by
    /// a truth value is excluded: 2 is not 0, and yet its lowest bit is 0.
    pub fn connective(&self, id: Id) -> Option<(BinOp, Id, Id)> {
        match *self.node(id) {
            Node::Bin(op @ (BinOp::And | BinOp::Or), a, b) if self.is_truth(a) && self.is_truth(b) => {
                Some((op, a, b))
            }
            _ => None,
        }
    }

    /// The number of expressions.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let id = Id(self.nodes.len() as u32);
        self.max.push(self.largest(&node));
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// The expression of an existing node.
    pub fn find(&self, node: &Node) -> Option<Id> {
        self.known.get(node).copied()
    }

    pub(super) fn number(&mut self, number: u64) -> Id {
        self.add(Node::Const(number))
    }

    pub(super) fn atom(&mut self, atom: Atom) -> Id {
        self.add(Node::Atom(atom))
    }

    fn largest(&self, node: &Node) -> u64 {
        match node {
            Node::Const(number) => *number,
            Node::Atom(atom) => Atom::max(*atom),
            Node::Cat(parts) => parts.iter().fold(0, |sum, (low, part)| sum | self.max(*part) << low),
            Node::Slice(of, low, width) => ones(*width).min(self.max(*of) >> low),
            Node::Sum(constant, terms) => self.largest_sum(*constant, terms),
            Node::Fold(sum) => largest_fold(self.max(*sum)),
            Node::Bin(op, a, b) => {
                let [a, b] = [a, b].map(|id| match self.constant(*id) {
                    Some(number) => Interval::only(number),
                    None => Interval::up_to(self.max(*id)),
                });
                Interval::of(*op, a, b).hi
            }
            Node::In(..) | Node::Found(_) => 1,
            Node::Select(_, a, b) => self.max(*a).max(self.max(*b)),
            Node::Csum(..) | Node::IpSum(..) | Node::TransportSum(_) => 0xffff,
            Node::Read(_, bits) => ones(bits.width),
            Node::Record(_) => u64::MAX,
            Node::RecLoad(_, _, _, bytes) => ones(bytes * 8),
        }
    }

    fn largest_sum(&self, constant: u64, terms: &[(Id, u64)]) -> u64 {
        // The range over the integers, if it does not wrap.
        let (low, high) = sum_range(constant, terms, |term| (0, self.max(term)));
        u64::try_from(high).ok().filter(|_| low >= 0).unwrap_or(u64::MAX)
    }

    /// The number whose low 16 bits are `low` and whose other bits are `high`.
    pub(super) fn folded(&self, low: Id, high: Id) -> Option<Id> {
        match (self.node(low), self.node(high)) {
            (Node::Slice(of, 0, 16), Node::Slice(same, 16, width)) => {
                (of == same && 16 + width >= self.width(*of)).then_some(*of)
            }
            _ => None,
        }
    }

    /// What the records of a table have of checksums.
    pub fn deltas_of(&self, table: u16) -> impl Iterator<Item = &RecordDelta> {
        self.deltas.iter().filter(move |(of, _)| *of == table).map(|(_, delta)| delta)
    }

    /// The lookup that a record is from.
    pub fn lookup_of(&self, record: Id) -> Option<&Find> {
        let Node::Record(found) = self.node(record) else { return None };
        let Node::Found(find) = self.node(*found) else { return None };
        Some(find)
    }

    pub(super) fn log(&mut self, writes: &[Write]) -> Log {
        self.logs.number(writes)
    }

    pub(super) fn rec_log(&mut self, writes: &[RecWrite]) -> Log {
        self.rec_logs.number(writes)
    }

    /// Writes to packets.
    pub fn writes(&self, log: Log) -> &[Write] {
        &self.logs.all[log.0 as usize]
    }

    /// Writes to records.
    pub fn rec_writes(&self, log: Log) -> &[RecWrite] {
        &self.rec_logs.all[log.0 as usize]
    }

    /// The operands of an expression.
    pub fn children(&self, id: Id) -> Vec<Id> {
        let root = |bits: &Bits| match bits.root {
            Root::At(root) => Some(root),
            Root::Anno => None,
        };
        let of_log = |log: &Log, own: &[Id]| {
            let writes = self.writes(*log).iter();
            let of_writes = writes.flat_map(|write| root(&write.bits).into_iter().chain([write.value]));
            of_writes.chain(own.iter().copied()).collect()
        };
        match self.node(id) {
            Node::Const(_) => vec![],
            Node::Atom(Atom::Bits(bits)) => root(bits).into_iter().collect(),
            Node::Atom(_) => vec![],
            Node::Cat(parts) => parts.iter().map(|(_, part)| *part).collect(),
            Node::Slice(of, ..) | Node::In(of, _) | Node::Record(of) | Node::Fold(of) => vec![*of],
            Node::Sum(_, terms) => terms.iter().map(|(term, _)| *term).collect(),
            Node::Bin(_, a, b) => vec![*a, *b],
            Node::Select(a, b, c) | Node::Csum(a, b, c, _) => vec![*a, *b, *c],
            Node::IpSum(log, net, end) => of_log(log, &[*net, *end]),
            Node::TransportSum(sum) => of_log(&sum.log, &[sum.net, sum.trans, sum.end, sum.rest, sum.proto]),
            Node::Read(log, bits) => of_log(log, root(bits).as_slice()),
            Node::Found(find) => find.key.iter().chain(find.args.iter().flatten()).copied().collect(),
            Node::RecLoad(log, rec, ..) => {
                let writes = self.rec_writes(*log).iter();
                writes.flat_map(|write| [write.rec, write.value]).chain([*rec]).collect()
            }
        }
    }
}
