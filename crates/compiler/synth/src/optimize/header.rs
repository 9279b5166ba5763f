//! The sum over the IPv4 header.
//!
//! The result of [`Inst::IpSum`] is 0xffff when the sum of the header's 16-bit words is a multiple of 0xffff
//! and not 0. Once a test has shown that, every write to the header changes the sum by a difference that
//! [`Linear`] derives from the old and the new content. Where all changes together are congruent to 0, the
//! next test has the same outcome. That the sum is not 0 needs no proof: the first byte contains the header's
//! length, which is not 0, and a write to it discards the facts about the sum.
//!
//! An update by RFC 1624 is congruent to the change that it stands for, whichever of 0 and 0xffff it yields
//! (see `Values::csum`), so it makes no difference which of the two is in the header.

use super::byte_range::{ByteRange, Point};
use super::forward::Forward;
use super::linear::{Linear, is_short, linear, settled, without, zero_sums};
use super::optimization_note::{OptimizationNote, Reads, Touch};
use super::optimizer_state::{IsSet, OptimizerState, RightSum, WordChange};
use super::value::{Expr, Facts, Vn};
use ir::analysis::interval::Interval;
use ir::{BinOp, Inst};
use packet::field::{Base, Field, IP_HL, IP_SUM};

const RIGHT: u64 = 0xffff;
/// Bits of the shortest and of the longest header.
const SHORTEST: i64 = 20 * 8;
const LONGEST: i64 = 60 * 8;
/// The first byte, which contains the header's length.
const FIRST: i64 = 8;
/// The first bit of the checksum.
const CHECKSUM: i64 = 80;

impl Forward<'_> {
    pub(super) fn ip_sum(&mut self) -> Vn {
        let at = self.state.at[Base::Net as usize];
        if let Some(right) = &mut self.state.right {
            right.sum = settled(&right.sum, &mut self.values, &self.state.facts);
            let zeros = zero_sums(&mut self.values, &self.state.facts);
            if without(right.sum.clone(), &zeros).is_zero() {
                *right = RightSum::now(right.at, right.length);
            }
        }
        if self.state.has_right_sum() && self.state.set[Base::Net as usize] == IsSet::Yes {
            return self.values.constant(RIGHT);
        }
        if let Some(number) = self.updated_sum() {
            self.state.ip_sum = Some((at, number));
            self.value(number);
            return number;
        }
        let number = match self.state.ip_sum {
            Some((place, number)) if place == at => number,
            _ => self.values.own(Interval::up_to(RIGHT)),
        };
        self.state.ip_sum = Some((at, number));
        if self.operand(number).is_none() {
            let reads = Reads::Bits(self.header_bits());
            let note = OptimizationNote { reads, ..OptimizationNote::using(Base::Net) };
            self.write(number, Inst::IpSum, note);
        }
        number
    }

    /// The sum of a header that was correct until some of its words were written, with a checksum of 0 now: the
    /// complement of the old checksum's update by the other words.
    ///
    /// Both are congruent to 0 less the old checksum, and plus what the words have changed by. The sum is not 0,
    /// because the first byte is not; so they are equal where what the update adds is not 0 either.
    fn updated_sum(&mut self) -> Option<Vn> {
        let right = self.state.header_sum().cloned()?;
        let changes = right.changes.filter(|_| self.state.set[Base::Net as usize] == IsSet::Yes)?;
        let is_checksum = |change: &&WordChange| change.bit == CHECKSUM && change.width == 16;
        let (checksum, others): (Vec<_>, Vec<_>) = changes.iter().partition(is_checksum);
        let [&WordChange { old: before, new: none, .. }] = checksum[..] else { return None };
        let facts = self.state.facts.clone();
        if self.values.number(none) != Some(0) || others.iter().any(|change| change.holds(CHECKSUM)) {
            return None;
        }
        let mut is_positive = self.values.range(before, &facts).hi < RIGHT;
        let mut updated = before;
        for &WordChange { old, new, width, .. } in others {
            is_positive |= self.values.never_zero(updated, (old, new, width), &facts);
            updated = self.values.csum(updated, old, new, width, &facts);
        }
        let sum = self.values.bin_const(BinOp::Xor, updated, RIGHT, &facts);
        (is_positive && self.is_at_hand(sum)).then_some(sum)
    }

    /// The bits that may be of the IPv4 header. Its length is one of them, whatever it is.
    fn header_bits(&mut self) -> Touch {
        let words = self.state.held(self.place(IP_HL), &mut self.values, &self.anchors);
        let words = words.map_or(15, |words| self.values.range(words, &self.state.facts).hi);
        self.touch(self.place(Field::new(Base::Net, 0, 1))).behind(0, words.clamp(1, 15) as i64 * 32)
    }

    /// A test has shown two values to be equal.
    pub(super) fn learn_sum(&mut self, a: Vn, b: Vn, state: &mut OptimizerState) {
        let at = state.at[Base::Net as usize];
        if self.values.number(b) != Some(RIGHT) || state.ip_sum != Some((at, a)) {
            return;
        }
        let none = Facts::default();
        let words = state.held(self.place(IP_HL), &mut self.values, &self.anchors);
        let length = words.map(|words| self.values.bin_const(BinOp::Shl, words, 2, &none));
        if let Some(length) = length {
            // The sum of a header that is too short is 0.
            let _ = self.values.assume_range(length, Interval { lo: 20, hi: 60 }, &mut state.facts);
        }
        state.set[Base::Net as usize] = IsSet::Yes;
        state.note_bytes(at, SHORTEST / 8);
        state.right = Some(RightSum::now(at, length));
    }

    /// Updates the facts about the sum for a write to the packet; called before the write.
    pub(super) fn track_sum(&mut self, place: ByteRange, value: Vn) {
        if self.renews_sum(place, value) {
            self.state.right = self.state.right.take().map(|right| RightSum::now(right.at, right.length));
            self.state.ip_sum = None;
            return;
        }
        let at = self.state.at[Base::Net as usize];
        if let Some((header, _)) = self.state.ip_sum {
            let near = ByteRange { anchor: header.anchor, bit: header.bytes * 8, width: 64 };
            if header != at || !self.is_outside(place, near, None) {
                self.state.ip_sum = None;
            }
        }
        let Some(mut right) = self.state.right.take() else { return };
        let start = ByteRange { anchor: right.at.anchor, bit: right.at.bytes * 8, width: 1 };
        if self.is_outside(place, start, right.length) {
            self.state.right = Some(right);
            return;
        }
        let (first, end) = (place.bit - start.bit, place.end() - start.bit);
        if place.anchor != start.anchor || first < FIRST || end > SHORTEST {
            return;
        }
        let before = self.content(place);
        if self.sums_left > 0 {
            // The sum may be an update by what is there now.
            self.read_content(before, place);
        }
        let [old, new] = [before, value].map(|number| linear(&mut self.values, number, &self.state.facts));
        // A sum that each of a row of translators changes: what it is congruent to stays short, and is found
        // at once behind the next one.
        let everywhere = linear(&mut self.values, value, &Facts::default());
        if everywhere != Linear::only(value) && is_short(&everywhere) {
            if let Expr::Bin(BinOp::Xor, sum, ones) = self.values.expr(value)
                && self.values.number(ones) == Some(RIGHT)
            {
                // The next one starts from the complement.
                self.values.residues.insert(sum, Linear::default().plus(&everywhere, RIGHT - 1));
            }
            self.values.residues.insert(value, everywhere);
        }
        right.sum.change(&old, &new, (-end).rem_euclid(16) as u32);
        right.add(WordChange { bit: first, width: place.width, old: before, new: value });
        if is_short(&right.sum) {
            self.state.right = Some(right);
        }
    }

    /// A number was read from a record that may be the change of a checksum: notes what it is congruent to.
    pub(super) fn learn_delta(&mut self, record: Vn, at: u16, number: Vn) {
        let Some((table, key)) = self.records.get(&record) else { return };
        let decl = &self.program.tables[usize::from(*table)];
        let Some(delta) = decl.deltas.iter().find(|delta| delta.at == at) else { return };
        let Some(&old) = key.get(usize::from(delta.key)) else { return };
        // Here the content may be known as a number, which is congruent to itself and nothing else.
        if self.values.number(number).is_some() || self.values.residues.contains_key(&number) {
            return;
        }
        let anchor = self.anchors.of(Point::Record(record));
        let new = self.content_anywhere(ByteRange { anchor, bit: i64::from(delta.to) * 8, width: 64 });
        let mut residue = Linear::default();
        // The number has the residue wherever it is, so that it must not rest on what holds here only.
        let none = Facts::default();
        let [old, new] = [old, new].map(|number| linear(&mut self.values, number, &none));
        residue.change(&old, &new, 0);
        if is_short(&residue) {
            self.values.residues.insert(number, residue);
        }
    }

    /// Whether a write corrects the header's checksum for every content of the header: it stores the
    /// complement of its sum, computed while the checksum was 0.
    fn renews_sum(&mut self, place: ByteRange, value: Vn) -> bool {
        let at = self.state.at[Base::Net as usize];
        let Some((header, number)) = self.state.ip_sum else { return false };
        // A correct sum implies that the header is there: otherwise the sum would be 0.
        let is_there = self.state.right.as_ref().is_some_and(|right| right.at == at);
        if header != at || !is_there || place != self.place(IP_SUM) {
            return false;
        }
        let is_complement = match self.values.expr(value) {
            Expr::Bin(BinOp::Xor, a, b) => [(a, b), (b, a)]
                .iter()
                .any(|(sum, ones)| *sum == number && self.values.number(*ones) == Some(RIGHT)),
            _ => false,
        };
        let old = self.content(place);
        is_complement && self.values.range(old, &self.state.facts).number() == Some(0)
    }

    /// Whether a location is outside the IPv4 header that starts at another one.
    fn is_outside(&self, place: ByteRange, header: ByteRange, length: Option<Vn>) -> bool {
        let behind = match self.anchors.point(place.anchor) {
            Point::Behind(from, by) => from == header.anchor && Some(by) == length,
            _ => false,
        };
        if behind && place.bit >= header.bit {
            return true;
        }
        let way = self.anchors.distance(header.anchor, place.anchor, &self.values, &self.state.facts);
        way.is_some_and(|way| {
            let longest = length.map_or(LONGEST, |length| {
                LONGEST.min(8 * self.values.range(length, &self.state.facts).hi.min(60) as i64)
            });
            place.end() + way.hi * 8 <= header.bit || place.bit + way.lo * 8 >= header.bit + longest
        })
    }
}
