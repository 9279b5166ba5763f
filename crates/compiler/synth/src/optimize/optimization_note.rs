//! The reads and writes of an instruction of a rewritten program, for the later passes.

use super::byte_range::{Anchor, Anchors, ByteRange, Point};
use super::known::DelayedPulls;
use super::value::{Facts, Values};
use ir::Inst;
use packet::field::Base;

/// A range of bits that an instruction reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The anchor that they are counted from.
    pub anchor: Anchor,
    /// The first bit.
    pub lo: i64,
    /// The bit after the last.
    pub hi: i64,
    /// The kind of object that they are bits of.
    pub kind: Kind,
    /// A range that contains them, counted from an anchor that more of the packet is counted from.
    among: Option<(Anchor, i64, i64)>,
}

/// The object that bits belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The packet's bytes.
    Packet,
    /// Annotations and packet type.
    Aside,
    /// A state cell.
    Cell,
    /// A record.
    Record,
}

impl Touch {
    /// The bits of a location; the facts about distances are those at the point where it is made.
    pub fn of(place: ByteRange, anchors: &Anchors, values: &Values, facts: &Facts) -> Touch {
        let (lo, hi) = (place.bit, place.end());
        let kind = match anchors.point(place.anchor) {
            Point::Somewhere(_) | Point::Behind(..) => Kind::Packet,
            Point::Anno | Point::Type => Kind::Aside,
            Point::Cell(_) => Kind::Cell,
            Point::Record(_) => Kind::Record,
        };
        let mut from = place.anchor;
        while let Point::Behind(next, _) = anchors.point(from) {
            from = next;
        }
        let among = anchors
            .distance(from, place.anchor, values, facts)
            .map(|distance| (from, lo + 8 * distance.lo, hi + 8 * distance.hi));
        Touch { anchor: place.anchor, lo, hi, kind, among }
    }

    /// Bits from its first one on.
    pub fn behind(self, bit: i64, width: i64) -> Touch {
        let among = self.among.map(|(from, lo, hi)| (from, lo + bit, hi - 1 + bit + width));
        Touch { lo: self.lo + bit, hi: self.lo + bit + width, among, ..self }
    }

    /// The part of it between two bits.
    pub fn part(self, lo: i64, hi: i64) -> Touch {
        Touch { lo, hi, ..self }
    }

    /// The same bits, where the facts that its distances are known by do not hold.
    pub fn anywhere(self) -> Touch {
        let among = self.among.filter(|(from, ..)| *from == self.anchor);
        Touch { among, ..self }
    }

    /// The same bits, where either the facts of this range hold or those of another one for them.
    pub fn by_either(self, other: &Touch) -> Touch {
        match (self.among, other.among) {
            (Some((from, lo, hi)), Some((same, first, last))) if from == same => {
                Touch { among: Some((from, lo.min(first), hi.max(last))), ..self }
            }
            _ => self.anywhere(),
        }
    }

    /// Whether all bits of another range are among these.
    pub fn contains(&self, other: &Touch) -> bool {
        self.anchor == other.anchor && self.lo <= other.lo && other.hi <= self.hi
    }

    /// Where a part of the bits is in the number that all are, of which the packet's first bits are the highest: how many
    /// bits are behind it, and as many ones as it has bits.
    pub fn place_of(&self, part: &Touch) -> (u64, u64) {
        ((self.hi - part.hi) as u64, u64::MAX >> (64 - (part.hi - part.lo)))
    }

    /// Whether two ranges are the same bits.
    pub fn is_same(&self, other: &Touch) -> bool {
        self.contains(other) && other.contains(self)
    }

    /// Whether two ranges may have bits in common.
    pub fn may_meet(&self, other: &Touch) -> bool {
        if self.kind != other.kind {
            return false;
        }
        let meets = self.lo < other.hi && other.lo < self.hi;
        if self.anchor == other.anchor {
            return meets;
        }
        match self.kind {
            Kind::Aside | Kind::Cell => false,
            Kind::Record => meets,
            Kind::Packet => match (self.among, other.among) {
                (Some((from, lo, hi)), Some((same, first, last))) if from == same => lo < last && first < hi,
                _ => true,
            },
        }
    }
}

/// The bits that an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// Nothing that can be written.
    Nothing,
    /// Some bits.
    Bits(Touch),
    /// Any byte of the packet.
    Packet,
}

/// Those of each block's instructions.
pub type Notes = Vec<Vec<OptimizationNote>>;

/// The reads and writes of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptimizationNote {
    /// What it reads.
    pub reads: Reads,
    /// Its write: every bit of it, whatever the content was.
    pub writes: Option<Touch>,
    /// Bases that its locations are relative to, by bit.
    pub uses: u8,
    /// The base that it sets or clears.
    pub moves: Option<Base>,
    /// For a pull whose bytes are there: which pulls are delayed if it is.
    pub whole: DelayedPulls,
}

impl OptimizationNote {
    /// For an instruction on values only.
    pub const PURE: OptimizationNote = OptimizationNote {
        reads: Reads::Nothing,
        writes: None,
        uses: 0,
        moves: None,
        whole: DelayedPulls::None,
    };

    /// For an instruction that accesses a location.
    pub fn of(inst: Inst) -> OptimizationNote {
        match inst {
            Inst::Load(field) | Inst::Store(field, _) => OptimizationNote::using(field.base),
            _ => OptimizationNote::PURE,
        }
    }

    /// Whether it reads or writes some of these bits.
    pub fn meets(&self, touch: &Touch) -> bool {
        let reads = match self.reads {
            Reads::Nothing => false,
            Reads::Bits(read) => read.may_meet(touch),
            Reads::Packet => touch.kind == Kind::Packet,
        };
        reads || self.writes.is_some_and(|written| written.may_meet(touch))
    }

    /// For an instruction relative to a base.
    pub fn using(base: Base) -> OptimizationNote {
        OptimizationNote { uses: 1 << base as u8, ..OptimizationNote::PURE }
    }
}
