//! Updates of checksums in a normal form (RFC 1624, equation 3).
//!
//! An update of `s` for a word that changes from `old` to `new` is `~F(~s + ~old + new)`, where `F` adds the
//! carries of 16 bits to the rest until there are none. `F(x)` depends on `x` modulo 65535 and on whether `x`
//! is 0, and on nothing else: it is 0 for 0, and else the number from 1 to 65535 with that residue. So
//! `F(F(x) + y)` is `F(x + y)`: a row of updates is one of everything added up, in any order. A word that is
//! new in one update and old in another one adds `~word + word`, which is 0 modulo 65535, but not 0.
//!
//! The normal form of a row of updates: of words by their numbers in the pool, pair by pair, and one
//! constant. Where what is added is certainly not 0, only its residue counts: words that the facts show to be
//! sums are taken apart, so that a byte in a word before and in another one behind does not change.

use super::expr::{Atom, Id, Node, Pool};
use super::simplify::Maker;
use super::sums::delta;
use ir::analysis::interval::ones;
use std::collections::BTreeMap;

/// The largest part of a sum of words that is seen as that many words, and the most words of a row.
const MOST_TIMES: u64 = 8;
const MOST_WORDS: usize = 256;
/// The depth to which words are taken apart.
const DEPTH: usize = 8;
/// The largest word of 16 bits, which is the modulus as well.
const WORD: u64 = 0xffff;

/// What updates add to the complement of a checksum.
#[derive(Default)]
struct Change {
    /// How often each word is added; negative if it is subtracted.
    words: BTreeMap<Id, i64>,
    /// The constant that is added, modulo 65535.
    constant: u64,
    /// Whether what is added is certainly not 0.
    is_positive: bool,
}

impl Change {
    /// Adds `~old + new`, of words of that many bits.
    fn update(&mut self, make: &Maker<'_>, old: Id, new: Id, bits: u8) {
        // The complement of the largest word is 0.
        let is_largest = make.pool.max(old) >= ones(bits);
        self.is_positive |= make.facts.hull(make.pool, old).1 < ones(bits);
        self.is_positive |= make.facts.hull(make.pool, new).0 > 0;
        self.add(make.pool, old, -1, !is_largest);
        self.add(make.pool, new, 1, true);
    }

    /// The same change with words in parts, if it is certainly not 0.
    fn in_parts(&self, make: &mut Maker<'_>) -> Option<Change> {
        if !self.is_positive {
            return None;
        }
        let whole = self.with_parts(make, |_, _| None)?;
        let changes = self.words.keys().filter(|word| change_of(make.pool, **word).is_some()).count();
        // Of a row of translators, only what an address that is written behind it leaves of them counts.
        if changes == 0 || changes == whole.words.len() {
            Some(whole)
        } else {
            self.with_parts(make, change_of).or(Some(whole))
        }
    }

    /// The same change with words in parts, and words that are the change of others as those.
    fn with_parts(
        &self,
        make: &mut Maker<'_>,
        change_of: fn(&mut Pool, Id) -> Option<(Id, Id)>,
    ) -> Option<Change> {
        let mut parts = Change { constant: self.constant, is_positive: true, ..Change::default() };
        for (word, times) in &self.words {
            match change_of(make.pool, *word) {
                None => parts.add_parts(make, *word, *times, DEPTH),
                Some((before, behind)) => {
                    parts.add_halves(make, before, -times);
                    parts.add_halves(make, behind, *times);
                }
            }
        }
        let known = |word: &Id| make.facts.known(make.pool, *word).only();
        let settled: Vec<(Id, u64)> =
            parts.words.keys().filter_map(|word| Some((*word, known(word)?))).collect();
        for (word, number) in settled {
            let times = parts.words.remove(&word).unwrap_or_default();
            parts.constant_by(number, times);
        }
        let mut sides = [BTreeMap::new(), BTreeMap::new()];
        for (word, times) in std::mem::take(&mut parts.words) {
            // The smaller of the two numbers that are the same modulo 65535.
            let times = times.rem_euclid(WORD as i64);
            let (side, times) = if times > WORD as i64 / 2 { (0, WORD as i64 - times) } else { (1, times) };
            if times != 0 {
                sides[side].insert(word, times as u64);
            }
        }
        for (mut side, sign) in sides.into_iter().zip([-1, 1]) {
            make.join_bits(&mut side);
            for (word, times) in side {
                if times > MOST_TIMES {
                    if make.pool.width(word) > 16 {
                        return None;
                    }
                    let many = make.scaled(word, times);
                    parts.word(many, sign);
                } else {
                    parts.word(word, sign * times as i64);
                }
            }
        }
        Some(parts)
    }

    /// Adds both words of 32 bits of a number of 64.
    fn add_halves(&mut self, make: &mut Maker<'_>, number: Id, times: i64) {
        for low in [0, 32] {
            let half = make.slice(number, low, 32);
            self.add_parts(make, half, times, DEPTH);
        }
    }

    /// Adds a word's parts, which may be in other words, too.
    fn add_parts(&mut self, make: &mut Maker<'_>, word: Id, times: i64, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.word(word, times) };
        let times = times.rem_euclid(WORD as i64);
        match make.pool.node(word).clone() {
            Node::Const(number) => self.constant_by(number, times),
            Node::Atom(Atom::Bits(bits)) if (9..=16).contains(&bits.width) => {
                // Where bytes begin in the packet.
                let low = (bits.end().rem_euclid(8) as u8).min(bits.width - 1);
                let low = if low == 0 { 8 } else { low };
                let (front, back) = (bits.part(low, bits.width - low), bits.part(0, low));
                let (front, back) = (make.pool.atom(Atom::Bits(front)), make.pool.atom(Atom::Bits(back)));
                self.add_parts(make, front, times << low, depth);
                self.add_parts(make, back, times, depth);
            }
            Node::Cat(parts) if make.pool.width(word) <= 16 || parts.len() == 1 => {
                for (low, part) in parts {
                    self.add_parts(make, part, times << low, depth);
                }
            }
            Node::Sum(constant, terms) => {
                match make.facts.small_sum(make.pool, constant, &terms).filter(|(low, _)| *low >= 0) {
                    None => self.word(word, times),
                    Some(_) => {
                        let constant = (constant as i64).rem_euclid(WORD as i64);
                        self.constant_by(constant as u64, times);
                        for (term, by) in terms {
                            let by = (by as i64).rem_euclid(WORD as i64);
                            self.add_parts(make, term, times * by, depth);
                        }
                    }
                }
            }
            _ => self.word(word, times),
        }
    }

    /// Adds a number that many times.
    fn constant_by(&mut self, number: u64, times: i64) {
        let times = times.rem_euclid(WORD as i64) as u64;
        self.constant = (self.constant + number % WORD * times) % WORD;
    }

    /// Adds a word, or subtracts it. Only words that may be seen as the sum of others are.
    fn add(&mut self, pool: &Pool, word: Id, sign: i64, in_parts: bool) {
        match pool.node(word) {
            Node::Const(number) => {
                self.constant_times(*number, sign);
                self.is_positive |= sign > 0 && *number > 0;
            }
            Node::Sum(constant, terms)
                if in_parts
                    && *constant <= ones(32)
                    && terms.iter().all(|(term, by)| *by <= MOST_TIMES && pool.width(*term) <= 32) =>
            {
                self.constant_times(*constant, sign);
                self.is_positive |= sign > 0 && *constant > 0;
                terms.iter().for_each(|(term, by)| self.word(*term, sign * *by as i64));
            }
            _ => self.word(word, sign),
        }
    }

    fn constant_times(&mut self, number: u64, sign: i64) {
        let number = number % WORD;
        self.constant = (self.constant + if sign > 0 { number } else { WORD - number }) % WORD;
    }

    fn word(&mut self, word: Id, times: i64) {
        let own = self.words.entry(word).or_default();
        // A word and its complement are not 0.
        self.is_positive |= own.signum() * times.signum() < 0;
        *own += times;
    }

    /// The words before and behind, without those that are the same.
    fn sides(&self) -> [Vec<Id>; 2] {
        let side = |sign: i64| {
            let words = self.words.iter().filter(|(_, times)| times.signum() == sign);
            words
                .flat_map(|(word, times)| std::iter::repeat_n(*word, times.unsigned_abs() as usize))
                .collect()
        };
        [side(-1), side(1)]
    }
}

/// The words before and behind, of 64 bits each, whose difference a word of a record is.
fn change_of(pool: &mut Pool, word: Id) -> Option<(Id, Id)> {
    let Node::RecLoad(log, record, at, 2) = *pool.node(word) else { return None };
    let (key, to) = delta(pool, record, at)?;
    Some((key, pool.add(Node::RecLoad(log, record, to, 8))))
}

/// A word that changes.
#[derive(Clone, Copy)]
struct Update {
    old: Option<Id>,
    new: Option<Id>,
    bits: u8,
}

impl Maker<'_> {
    /// RFC 1624, equation 3.
    pub fn checksum_update(&mut self, sum: Id, old: Id, new: Id, bits: u8) -> Id {
        let (sum, old, new) = (self.slice(sum, 0, 16), self.slice(old, 0, bits), self.slice(new, 0, bits));
        let mut change = Change::default();
        change.update(self, old, new, bits);
        let mut base = sum;
        while let Node::Csum(before, old, new, bits) = *self.pool.node(base) {
            change.update(self, old, new, bits);
            base = before;
        }
        if let Some(number) = self.pool.constant(base) {
            change.constant_times(WORD - number, 1);
            change.is_positive |= number != WORD;
            base = self.number(WORD);
        }
        let change = change.in_parts(self).unwrap_or(change);
        let [before, behind] = change.sides();
        if before.len().max(behind.len()) > MOST_WORDS {
            return self.pool.add(Node::Csum(sum, old, new, bits));
        }
        let pool = &*self.pool;
        let mut updates: Vec<Update> = vec![];
        for bits in [32, 16] {
            let of = |words: &[Id]| -> Vec<Id> {
                words.iter().copied().filter(|word| (pool.width(*word) > 16) == (bits == 32)).collect()
            };
            let (old, new) = (of(&before), of(&behind));
            let at = |words: &[Id], at: usize| words.get(at).copied();
            let pairs = 0..old.len().max(new.len());
            updates.extend(pairs.map(|nth| Update { old: at(&old, nth), new: at(&new, nth), bits }));
        }
        // Whether the updates add something without the constant.
        let adds = |update: &Update| update.old.is_some_and(|old| pool.max(old) < ones(update.bits));
        let is_positive = pool.max(base) < WORD || updates.iter().any(adds);
        let constant = match change.constant {
            0 if is_positive || !change.is_positive => 0,
            0 => WORD,
            constant => constant,
        };
        self.updated(base, &updates, constant)
    }

    /// The checksum after updates and one that adds a constant, if that is not 0.
    fn updated(&mut self, base: Id, updates: &[Update], constant: u64) -> Id {
        let mut base = base;
        let mut left = constant;
        for Update { old, new, bits } in updates {
            // The constant takes the place of a word that is not there.
            let old = old.unwrap_or_else(|| self.number(ones(*bits) - std::mem::take(&mut left)));
            let new = new.unwrap_or_else(|| self.number(std::mem::take(&mut left)));
            base = self.pool.add(Node::Csum(base, old, new, *bits));
        }
        match (left, self.pool.constant(base)) {
            (0, _) => base,
            // All that is known.
            (left, Some(WORD)) => self.number(WORD - left),
            (left, _) => {
                let (old, new) = (self.number(WORD - left), self.number(0));
                self.pool.add(Node::Csum(base, old, new, 16))
            }
        }
    }

    /// The update whose complement is the one's complement sum of two words, one of which is a complement.
    pub(super) fn update_of_fold(&mut self, sum: Id) -> Option<Id> {
        let Node::Sum(WORD, terms) = self.pool.node(sum) else { return None };
        let (old, new) = match **terms {
            [(old, u64::MAX), (new, 1)] | [(new, 1), (old, u64::MAX)] => (old, new),
            _ => return None,
        };
        if self.pool.width(old) > 16 || self.pool.width(new) > 16 {
            return None;
        }
        let none = self.number(WORD);
        Some(self.checksum_update(old, none, new, 16))
    }
}
