//! The facts about a packet at one point of a program.

use super::byte_range::{Anchor, Anchors, ByteRange, Point, Position};
use super::linear::Linear;
use super::value::{Facts, Values, Version, Vn};
use ir::BinOp;
use ir::analysis::extent::Extent;
use ir::analysis::interval::Interval;
use packet::anno;
use packet::field::{Base, Field};

/// Beyond this number locations are discarded, oldest first: the work per block stays bounded.
const MOST_PLACES: usize = 64;
const MOST_LOOKUPS: usize = 8;
const MOST_ENDS: usize = 8;
/// The most writes to a header of which its new checksum is computed as an update.
const MOST_CHANGES: usize = 4;

/// Whether a header annotation is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsSet {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It may be.
    Maybe,
}

/// The IPv4 header at a position has a correct checksum, up to a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RightSum {
    /// The position of the header.
    pub at: Position,
    /// Its length in bytes, if a value has it.
    pub length: Option<Vn>,
    /// The residue of the sum of its words modulo 0xffff; 0 if it is correct.
    pub sum: Linear,
    /// What was written to its words since it was correct, if that is whole words and few.
    pub changes: Option<Vec<WordChange>>,
}

/// A write to one or two words of the IPv4 header, in its first 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordChange {
    /// The first bit, counted from the header's start.
    pub bit: i64,
    /// Bits.
    pub width: u8,
    /// The content before.
    pub old: Vn,
    /// The content behind.
    pub new: Vn,
}

impl WordChange {
    /// Whether a bit of the header was written.
    pub fn holds(&self, bit: i64) -> bool {
        (self.bit..self.bit + i64::from(self.width)).contains(&bit)
    }
}

impl RightSum {
    /// The header at a position has a correct checksum.
    pub fn now(at: Position, length: Option<Vn>) -> RightSum {
        RightSum { at, length, sum: Linear::default(), changes: Some(vec![]) }
    }

    /// Records a write, with the sum's residue behind it.
    pub fn add(&mut self, change: WordChange) {
        if self.sum.is_zero() {
            self.changes = Some(vec![]);
            return;
        }
        let of_words = change.bit % 16 == 0 && [16, 32].contains(&change.width);
        self.changes.take_if(|changes| !of_words || changes.len() == MOST_CHANGES);
        self.changes.iter_mut().for_each(|changes| changes.push(change));
    }
}

/// The outcome of a lookup.
pub type Looked = (u16, Vec<Vn>, Option<Vn>);

/// The facts at one point.
#[derive(Clone, Debug)]
pub struct OptimizerState {
    /// The position of each base.
    pub at: [Position; 4],
    /// Whether it is set.
    pub set: [IsSet; 4],
    /// The verifier's facts about bytes and headroom.
    pub extent: Extent,
    /// Lower bounds of the bytes from an anchor to the end of the first segment.
    pub ends: Vec<Bound>,
    /// Upper bounds of the bytes from an anchor to that end, where a test has shown that more are not there. Nothing
    /// moves the end further.
    pub less: Vec<Bound>,
    /// Bytes from a position to that end, where the program read them.
    pub avails: Vec<(Position, Vn)>,
    /// The packet's length, if the program read it.
    pub len: Option<Vn>,
    /// Whether it has one segment only.
    pub single: bool,
    /// Changes with each cut of the packet's end, and its length.
    pub end_version: Version,
    /// Changes with each write: one version of the packet, one of all other locations.
    pub versions: [Version; 2],
    /// Contents of locations.
    pub places: Vec<(ByteRange, Vn)>,
    /// The bytes of the annotations that nothing has set yet, a bit for each: they are 0.
    pub unset_annos: u64,
    /// Lookups, with no creation in the table since.
    pub looked: Vec<Looked>,
    /// Intervals of values.
    pub facts: Facts,
    /// The current sum of the IPv4 header.
    pub ip_sum: Option<(Position, Vn)>,
    /// Whether it is correct.
    pub right: Option<RightSum>,
}

impl OptimizerState {
    /// The facts at an entry.
    pub fn at_entry(values: &mut Values, anchors: &mut Anchors, mac_at_data: bool) -> OptimizerState {
        let mut at = [0u32; 4].map(|_| {
            let point = Point::Somewhere(values.fresh());
            Position { anchor: anchors.of(point), bytes: 0 }
        });
        if mac_at_data {
            at[Base::Mac as usize] = at[Base::Data as usize];
        }
        OptimizerState {
            at,
            set: [IsSet::Yes, IsSet::Maybe, IsSet::Maybe, IsSet::Maybe],
            extent: Extent::default(),
            ends: vec![(at[Base::Data as usize].anchor, 0)],
            less: vec![],
            avails: vec![],
            len: None,
            single: false,
            end_version: values.fresh(),
            versions: [values.fresh(), values.fresh()],
            places: vec![],
            unset_annos: 0,
            looked: vec![],
            facts: Facts::default(),
            ip_sum: None,
            right: None,
        }
    }

    /// Keeps only the facts that hold on another path, too.
    pub fn meet(&mut self, other: &OptimizerState, values: &mut Values, anchors: &mut Anchors) {
        let are_right = [&*self, other].map(OptimizerState::has_right_sum);
        let moved = self.meet_positions(other, values, anchors);
        if let (Some(mine), Some(theirs)) = (&mut self.right, &other.right)
            && mine.changes != theirs.changes
        {
            mine.changes = None;
        }
        let is_same = match (&self.right, &other.right) {
            (Some(mine), Some(theirs)) => {
                (mine.at, mine.length, &mine.sum) == (theirs.at, theirs.length, &theirs.sum)
            }
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        if !is_same {
            let lengths =
                [&self.right, &other.right].map(|right| right.as_ref().and_then(|right| right.length));
            let length = lengths[0].filter(|_| lengths[0] == lengths[1]);
            let at = self.at[Base::Net as usize];
            self.right = (are_right == [true; 2]).then(|| RightSum::now(at, length));
        }
        for base in 0..4 {
            if self.set[base] != other.set[base] {
                self.set[base] = IsSet::Maybe;
            }
        }
        self.extent.meet(&other.extent);
        meet_bounds(&mut self.ends, &other.ends, i64::min);
        meet_bounds(&mut self.less, &other.less, i64::max);
        for (at, bytes) in moved {
            self.note_bytes(at, bytes);
        }
        self.avails.retain(|avail| other.avails.contains(avail));
        if self.len != other.len {
            self.len = None;
        }
        self.single &= other.single;
        if self.end_version != other.end_version {
            self.end_version = values.fresh();
        }
        for (version, theirs) in self.versions.iter_mut().zip(other.versions) {
            if *version != theirs {
                *version = values.fresh();
            }
        }
        let mut places = Vec::with_capacity(self.places.len());
        for &(place, value) in &self.places {
            if other.places.contains(&(place, value)) {
                places.push((place, value));
                continue;
            }
            // Both paths may have written the same number there, each known by its own value.
            let theirs = other.places.iter().rev().find(|theirs| theirs.0 == place).map(|theirs| theirs.1);
            let mine = values.range(value, &self.facts);
            if mine.lo == mine.hi && theirs.is_some_and(|theirs| values.range(theirs, &other.facts) == mine) {
                places.push((place, values.constant(mine.lo)));
            }
        }
        self.places = places;
        self.unset_annos &= other.unset_annos;
        self.looked.retain(|looked| other.looked.contains(looked));
        self.facts.meet(&other.facts);
        if self.ip_sum != other.ip_sum {
            self.ip_sum = None;
        }
    }

    /// A new position for a base: behind one that is in front of it on either path, however far.
    fn somewhere(
        &self,
        base: usize,
        other: &OptimizerState,
        old: [Position; 4],
        values: &mut Values,
        anchors: &mut Anchors,
    ) -> Position {
        for near in (0..base).rev() {
            let distance = |at: &[Position; 4], facts| {
                let distance = anchors.distance(at[near].anchor, at[base].anchor, values, facts)?;
                let bytes = at[base].bytes - at[near].bytes;
                let ends = [distance.lo + bytes, distance.hi + bytes].map(u64::try_from);
                Some(Interval { lo: ends[0].ok()?, hi: ends[1].ok()? })
            };
            if let Some(mine) = distance(&old, &self.facts)
                && let Some(theirs) = distance(&other.at, &other.facts)
            {
                let by = values.own(mine.hull(theirs));
                return Position {
                    anchor: anchors.of(Point::Behind(self.at[near].anchor, by)),
                    bytes: self.at[near].bytes,
                };
            }
        }
        Position { anchor: anchors.of(Point::Somewhere(values.fresh())), bytes: 0 }
    }

    /// Whether the IPv4 header is where the base says, with a correct checksum.
    pub fn has_right_sum(&self) -> bool {
        self.header_sum().is_some_and(|right| right.sum.is_zero())
    }

    /// What is known of the sum of the IPv4 header where the base says.
    pub fn header_sum(&self) -> Option<&RightSum> {
        self.right.as_ref().filter(|right| right.at == self.at[Base::Net as usize])
    }

    /// Where the bases are, if the packet comes from either path. A header at the same distance from another one on
    /// both is there at the join, too, wherever that is. Returns the positions that have a new name, with the bytes
    /// that are known to be behind them.
    fn meet_positions(
        &mut self,
        other: &OptimizerState,
        values: &mut Values,
        anchors: &mut Anchors,
    ) -> Vec<(Position, i64)> {
        let [mine, theirs] =
            [&*self, other].map(|state| state.at.map(|at| anchors.resolved(at, values, &state.facts)));
        let old = self.at;
        let mut moved = vec![];
        for base in 0..4 {
            if self.at[base] == other.at[base] {
                continue;
            }
            let bytes = self.bytes_from(self.at[base]).min(other.bytes_from(other.at[base]));
            let from =
                |near: &usize| Some((mine[base].from(mine[*near])?, theirs[base].from(theirs[*near])?));
            let near = (0..base).find_map(|near| {
                from(&near).filter(|(mine, theirs)| mine == theirs).map(|(by, _)| (near, by))
            });
            self.at[base] = match near {
                _ if mine[base] == theirs[base] => mine[base],
                Some((near, by)) => Position { bytes: self.at[near].bytes + by, ..self.at[near] },
                None => self.somewhere(base, other, old, values, anchors),
            };
            if bytes > i64::MIN {
                moved.push((self.at[base], bytes));
            }
        }
        moved
    }

    /// The location of a field.
    pub fn place(&self, field: Field) -> ByteRange {
        let at = self.at[field.base as usize];
        ByteRange { anchor: at.anchor, bit: at.bytes * 8 + i64::from(field.bit), width: field.width }
    }

    /// The fields that are at a location of the packet.
    pub fn fields_at(&self, place: ByteRange) -> Vec<Field> {
        let field = |base: Base| {
            let at = self.at[base as usize];
            let bit = u16::try_from(place.bit - at.bytes * 8).ok()?;
            (at.anchor == place.anchor).then_some(Field::new(base, bit, place.width))
        };
        Base::ALL.into_iter().filter_map(field).collect()
    }

    /// The content of a location, if it is known: wholly, as part of a wider one, or in up to three
    /// pieces.
    pub fn held(&self, place: ByteRange, values: &mut Values, anchors: &Anchors) -> Option<Vn> {
        if self.is_unset(place, anchors) {
            return Some(values.constant(0));
        }
        let packet = anchors.is_packet(place.anchor);
        let mut at = place.bit;
        let mut all: Option<Vn> = None;
        for _ in 0..3 {
            // The widest one that contains the next bit.
            let covers = |known: &&(ByteRange, Vn)| {
                known.0.anchor == place.anchor && known.0.bit <= at && known.0.end() > at
            };
            let exact = self.places.iter().rev().find(|known| known.0 == place);
            let whole = self.places.iter().rev().find(|known| known.0.holds(place));
            let next = self.places.iter().rev().filter(covers).max_by_key(|known| known.0.end());
            let &(known, value) = exact.or(whole).or(next)?;
            let end = known.end().min(place.end());
            let part = ByteRange { anchor: place.anchor, bit: at, width: (end - at) as u8 };
            let piece = cut(value, known, part, packet, values);
            all = Some(match all {
                None => piece,
                Some(front) if packet => {
                    let front = values.bin_const(BinOp::Shl, front, u64::from(part.width), &Facts::default());
                    values.bin(BinOp::Or, front, piece, &Facts::default())
                }
                Some(front) => {
                    let by = (at - place.bit) as u64;
                    let piece = values.bin_const(BinOp::Shl, piece, by, &Facts::default());
                    values.bin(BinOp::Or, front, piece, &Facts::default())
                }
            });
            at = end;
            if at == place.end() {
                return all;
            }
        }
        None
    }

    /// Whether it is annotations that nothing has set.
    fn is_unset(&self, place: ByteRange, anchors: &Anchors) -> bool {
        anchors.point(place.anchor) == Point::Anno && bytes_of(place) & !self.unset_annos == 0
    }

    /// Records the content of a location that was read.
    pub fn record_load(&mut self, place: ByteRange, value: Vn, anchors: &Anchors) {
        self.places.push((place, value));
        if self.places.len() > MOST_PLACES {
            // Records of rewriters have many numbers, each read once. The packet is read again.
            let oldest = self.places.iter().position(|(place, _)| !anchors.is_packet(place.anchor));
            self.places.remove(oldest.unwrap_or(0));
        }
    }

    /// Records the content of a location that was written, and discards what the write covers.
    pub fn write(&mut self, place: ByteRange, value: Vn, values: &mut Values, anchors: &Anchors) {
        self.spoil(place, values, anchors);
        self.record_load(place, value, anchors);
    }

    /// Discards the contents that a write to a location covers.
    pub fn spoil(&mut self, place: ByteRange, values: &mut Values, anchors: &Anchors) {
        if anchors.point(place.anchor) == Point::Anno {
            self.unset_annos &= !bytes_of(place);
        }
        let packet = anchors.is_packet(place.anchor);
        self.versions[usize::from(!packet)] = values.fresh();
        let mut kept = Vec::with_capacity(self.places.len() + 2);
        for &(known, value) in &self.places {
            if !anchors.may_meet(place, known, values, &self.facts) {
                kept.push((known, value));
            } else if known.anchor == place.anchor {
                // The remaining parts on both sides.
                for (bit, end) in [(known.bit, place.bit), (place.end(), known.end())] {
                    if bit < end {
                        let part = ByteRange { anchor: known.anchor, bit, width: (end - bit) as u8 };
                        kept.push((part, cut(value, known, part, packet, values)));
                    }
                }
            }
        }
        let extra = kept.len().saturating_sub(MOST_PLACES);
        kept.drain(..extra);
        self.places = kept;
    }

    /// Discards facts that other packets may change while this one waits at a stage boundary.
    pub fn pass_barrier(&mut self, values: &mut Values, anchors: &Anchors) {
        let waits =
            |place: &ByteRange| matches!(anchors.point(place.anchor), Point::Cell(_) | Point::Record(_));
        self.places.retain(|(place, _)| !waits(place));
        self.versions[1] = values.fresh();
    }

    /// Records a lookup's outcome.
    pub fn note_lookup(&mut self, looked: Looked) {
        push_bounded(&mut self.looked, looked, MOST_LOOKUPS);
    }

    /// A lower bound of the bytes from a position to the end of the first segment.
    pub fn bytes_from(&self, at: Position) -> i64 {
        let end = self.ends.iter().find(|end| end.0 == at.anchor);
        end.map_or(i64::MIN, |end| end.1 - at.bytes)
    }

    /// An upper bound of them, if a test has shown one.
    pub fn most_bytes_from(&self, at: Position) -> Option<i64> {
        self.less.iter().find(|less| less.0 == at.anchor).map(|less| less.1 - at.bytes)
    }

    /// Whether a test has shown that fewer bytes are there.
    pub fn lacks(&self, at: Position, bytes: i64) -> bool {
        self.most_bytes_from(at).is_some_and(|most| most < bytes)
    }

    /// Records that fewer bytes are there.
    pub fn note_lack(&mut self, at: Position, bytes: i64) {
        note_bound(&mut self.less, (at.anchor, at.bytes + bytes - 1), i64::min);
    }

    /// Records that at least that many bytes are there.
    pub fn note_bytes(&mut self, at: Position, bytes: i64) {
        note_bound(&mut self.ends, (at.anchor, at.bytes + bytes), i64::max);
    }
}

/// The bytes of a range of annotations, a bit for each.
fn bytes_of(place: ByteRange) -> u64 {
    anno::bytes((place.bit / 8) as u8, place.width / 8)
}

/// A bound of the bytes from an anchor to the end of the first segment.
type Bound = (Anchor, i64);

/// Keeps the bounds of anchors that both have, as `looser` gives them.
fn meet_bounds(mine: &mut Vec<Bound>, theirs: &[Bound], looser: fn(i64, i64) -> i64) {
    mine.retain_mut(|(anchor, bytes)| {
        let theirs = theirs.iter().find(|bound| bound.0 == *anchor);
        theirs.is_some_and(|(_, theirs)| {
            *bytes = looser(*bytes, *theirs);
            true
        })
    });
}

/// Records a bound; of two, the one that `tighter` gives.
fn note_bound(bounds: &mut Vec<Bound>, new: Bound, tighter: fn(i64, i64) -> i64) {
    match bounds.iter_mut().find(|bound| bound.0 == new.0) {
        Some(bound) => bound.1 = tighter(bound.1, new.1),
        None => push_bounded(bounds, new, MOST_ENDS),
    }
}

/// Appends to a list; beyond a number of items, the oldest is discarded.
pub fn push_bounded<T>(list: &mut Vec<T>, item: T, most: usize) {
    list.push(item);
    if list.len() > most {
        list.remove(0);
    }
}

/// A part of a location's content.
fn cut(value: Vn, place: ByteRange, part: ByteRange, packet: bool, values: &mut Values) -> Vn {
    if part == place {
        return value;
    }
    let none = Facts::default();
    let by = if packet { place.end() - part.end() } else { part.bit - place.bit };
    let value = values.bin_const(BinOp::Shr, value, by as u64, &none);
    let mask = u64::MAX >> (64 - u32::from(part.width));
    values.bin_const(BinOp::And, value, mask, &none)
}
