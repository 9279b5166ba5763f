//! Checksum updates, and several such updates as one.

use super::value::{Expr, Facts, Values, Vn};
use ir::BinOp;
use ir::analysis::interval::{Interval, ones};
use ir::eval::checksum_update;

impl Values {
    /// The update of a checksum for a word that changes, at a point of the program.
    ///
    /// [`ir::analysis::ones_complement`] describes its residue, and the case that `T` is 0.
    pub fn csum(&mut self, sum: Vn, old: Vn, new: Vn, width: u8, facts: &Facts) -> Vn {
        let mask = ones(width);
        let sum = self.bin_const(BinOp::And, sum, 0xffff, facts);
        let old = self.bin_const(BinOp::And, old, mask, facts);
        let new = self.bin_const(BinOp::And, new, mask, facts);
        if let (Some(sum), Some(old), Some(new)) = (self.number(sum), self.number(old), self.number(new)) {
            return self.constant(checksum_update(sum, old, new, width));
        }
        if let Some(merged) = self.merged_csum(sum, (old, new, width), facts) {
            return merged;
        }
        let (old, new, width) = self.constant_change(old, new, width);
        self.intern(Expr::Csum(sum, old, new, width), Interval::up_to(0xffff), 0xffff)
    }

    /// A normal form for all changes by constants: from their difference, below 0xffff, to 0. It is exact
    /// unless the change is from `m` to 0, see [`Values::csum`]: that one is kept.
    fn constant_change(&mut self, old: Vn, new: Vn, width: u8) -> (Vn, Vn, u8) {
        match (self.number(old), self.number(new)) {
            (Some(before), Some(after)) if before != ones(width) || after != 0 => {
                let change = (before % 0xffff + 0xffff - after % 0xffff) % 0xffff;
                (self.constant(change), self.constant(0), 16)
            }
            _ => (old, new, width),
        }
    }

    /// Whether `T` is never 0 for a change of a checksum, a word of so many bits from one value to another one.
    pub fn never_zero(&self, sum: Vn, (old, new, width): (Vn, Vn, u8), facts: &Facts) -> bool {
        self.range(sum, facts).hi < 0xffff
            || self.range(old, facts).hi < ones(width)
            || self.range(new, facts).lo > 0
    }

    /// Two changes as one. Both results are congruent, so they are equal if `T` is 0 neither for the
    /// second nor for the merged change (it may be for the first: 0xffff and 0 are congruent).
    fn merged_csum(&mut self, sum: Vn, second: (Vn, Vn, u8), facts: &Facts) -> Option<Vn> {
        let Expr::Csum(start, old, new, width) = self.expr(sum) else { return None };
        let first = (old, new, width);
        // Both changes are of the same word, and the second one's `T` is never 0. `T` would be 0 only if
        // the first result is 0xffff, which requires 0 as the word in between, and if the word in between
        // is the largest one: it cannot be both.
        if second.0 == first.1 && second.2 == first.2 {
            let merged = (first.0, second.1, second.2);
            if self.never_zero(start, merged, facts) {
                return Some(self.csum(start, merged.0, merged.1, merged.2, facts));
            }
        }
        let largest_first = self.range(sum, facts).hi < 0xffff || self.never_zero(start, first, facts);
        if !largest_first && !self.never_zero(sum, second, facts) {
            return None;
        }
        // Sums of 16-bit words are words of 32 bits, far from the largest one.
        let all = [first.0, first.1, second.0, second.1];
        if all.into_iter().any(|word| self.range(word, facts).hi > 0xffff) {
            return None;
        }
        let old = self.bin(BinOp::Add, first.0, second.0, facts);
        let new = self.bin(BinOp::Add, first.1, second.1, facts);
        Some(self.csum(start, old, new, 32, facts))
    }
}
