//! Locations: the bits that a program reads or writes.
//!
//! A location is counted from an *anchor*, a fixed point while headers are set and bytes pulled and
//! pushed. Two bases with a known distance have the same anchor, so that their fields are compared bit by
//! bit. Annotations, cells, records and the packet type are locations too, with anchors of their own.

use super::value::{Facts, Values, Vn};
use ir::analysis::interval::Interval;
use std::collections::HashMap;

/// A point that locations are counted from.
pub type Anchor = u32;

/// The point of an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Point {
    /// An unknown point of the packet's buffer.
    Somewhere(u32),
    /// That many bytes after another point.
    Behind(Anchor, Vn),
    /// The annotations.
    Anno,
    /// The packet type.
    Type,
    /// A state cell.
    Cell(u16),
    /// A record.
    Record(Vn),
}

/// Some bits from an anchor: in the packet, the most significant bit of a byte first; elsewhere the least
/// significant bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ByteRange {
    /// The anchor.
    pub anchor: Anchor,
    /// The first bit.
    pub bit: i64,
    /// Number of bits.
    pub width: u8,
}

impl ByteRange {
    /// The bit after the last.
    pub fn end(self) -> i64 {
        self.bit + i64::from(self.width)
    }

    /// Whether two locations of one anchor overlap.
    fn meets(self, other: ByteRange) -> bool {
        self.bit < other.end() && other.bit < self.end()
    }

    /// Whether it contains all bits of another location.
    pub fn holds(self, other: ByteRange) -> bool {
        self.anchor == other.anchor && self.bit <= other.bit && self.end() >= other.end()
    }
}

/// The position of a base, if it is set: bytes after an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The anchor.
    pub anchor: Anchor,
    /// Bytes after it.
    pub bytes: i64,
}

impl Position {
    /// How many bytes behind another one it is; `None` if they are not counted from one anchor.
    pub fn from(self, other: Position) -> Option<i64> {
        (self.anchor == other.anchor).then_some(self.bytes - other.bytes)
    }
}

/// All anchors of a program.
#[derive(Default)]
pub struct Anchors {
    points: Vec<Point>,
    known: HashMap<Point, Anchor>,
}

/// Longer chains of points are not followed.
const MOST_STEPS: usize = 4;
/// At this distance a header is not after another one.
const FAR: u64 = 1 << 20;

/// Bytes from one point to another, as an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Distance {
    /// The least.
    pub lo: i64,
    /// The most.
    pub hi: i64,
}

impl Anchors {
    /// The anchor of a point.
    pub fn of(&mut self, point: Point) -> Anchor {
        let next = self.points.len() as Anchor;
        let anchor = *self.known.entry(point).or_insert(next);
        if anchor == next {
            self.points.push(point);
        }
        anchor
    }

    /// The point of an anchor.
    pub fn point(&self, anchor: Anchor) -> Point {
        self.points[anchor as usize]
    }

    /// Whether it is a point of the packet.
    pub fn is_packet(&self, anchor: Anchor) -> bool {
        matches!(self.point(anchor), Point::Somewhere(_) | Point::Behind(..))
    }

    /// The distance from `from` to `to`.
    pub fn distance(&self, from: Anchor, to: Anchor, values: &Values, facts: &Facts) -> Option<Distance> {
        let mut ahead = Distance { lo: 0, hi: 0 };
        let mut up = to;
        for _ in 0..MOST_STEPS {
            let mut behind = Distance { lo: 0, hi: 0 };
            let mut other = from;
            for _ in 0..MOST_STEPS {
                if other == up {
                    return Some(Distance { lo: ahead.lo - behind.hi, hi: ahead.hi - behind.lo });
                }
                let Some((next, step)) = self.step(other, values, facts) else { break };
                other = next;
                behind = Distance { lo: behind.lo + step.lo, hi: behind.hi + step.hi };
            }
            let (next, step) = self.step(up, values, facts)?;
            up = next;
            ahead = Distance { lo: ahead.lo + step.lo, hi: ahead.hi + step.hi };
        }
        None
    }

    /// The point that an anchor is counted from, and the distance from there.
    fn step(&self, anchor: Anchor, values: &Values, facts: &Facts) -> Option<(Anchor, Distance)> {
        let Point::Behind(from, by) = self.point(anchor) else { return None };
        let Interval { lo, hi } = values.range(by, facts);
        (hi <= FAR).then_some((from, Distance { lo: lo as i64, hi: hi as i64 }))
    }

    /// A position, counted from as far in front as its distance from there is known.
    pub fn resolved(&self, mut at: Position, values: &Values, facts: &Facts) -> Position {
        for _ in 0..MOST_STEPS {
            match self.step(at.anchor, values, facts) {
                Some((from, by)) if by.lo == by.hi => at = Position { anchor: from, bytes: at.bytes + by.lo },
                _ => break,
            }
        }
        at
    }

    /// Whether two locations may overlap.
    pub fn may_meet(&self, a: ByteRange, b: ByteRange, values: &Values, facts: &Facts) -> bool {
        if a.anchor == b.anchor {
            return a.meets(b);
        }
        match (self.point(a.anchor), self.point(b.anchor)) {
            // One record may be found twice, and records do not overlap.
            (Point::Record(_), Point::Record(_)) => a.meets(b),
            _ if self.is_packet(a.anchor) && self.is_packet(b.anchor) => {
                let Some(Distance { lo, hi }) = self.distance(a.anchor, b.anchor, values, facts) else {
                    return true;
                };
                b.bit + lo * 8 < a.end() && a.bit < b.end() + hi * 8
            }
            _ => false,
        }
    }
}
