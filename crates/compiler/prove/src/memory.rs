//! A packet's bytes after writes, bit by bit.

use crate::blast::{Blaster, Run};
use crate::gates::{Bit, Gates, Word};
use std::collections::{BTreeMap, BTreeSet};
use synth::classes::expr::{Bits, Id, Root, Write};

/// The differences of two packets' bytes, and the overlaps that prevent a comparison; if all are 0, the bytes
/// are equal.
pub struct Differences {
    /// Bits that differ, each with the place that it has in the packet.
    pub bits: Vec<((Root, i32), Bit)>,
    /// Whether two ranges that are counted from different headers overlap, if that would matter.
    pub overlaps: Vec<Bit>,
}

impl Blaster<'_> {
    /// Writes as runs, without bits that later writes of the same run cover.
    pub fn runs(&mut self, writes: &[Write]) -> Vec<Run> {
        let mut runs: Vec<Run> = vec![];
        for Write { bits, value } in writes {
            if runs.last().is_none_or(|(root, _)| *root != bits.root) {
                runs.push((bits.root, BTreeMap::new()));
            }
            let value = self.word(*value);
            if let Some((_, run)) = runs.last_mut() {
                for low in 0..bits.width {
                    let bit = self.gates.at(&value, low.into());
                    run.insert(bits.end() - 1 - i32::from(low), bit);
                }
            }
        }
        runs
    }

    /// Compares bytes after writes. With the same ranges in the same order, their values are compared.
    /// Otherwise ranges from different roots must not overlap.
    pub fn differences(&mut self, a: &[Run], b: &[Run]) -> Differences {
        let mut all = Differences { bits: vec![], overlaps: vec![] };
        if a == b {
            return all;
        }
        let places = |of: &Run| (of.0, of.1.keys().copied().collect::<Vec<i32>>());
        if a.iter().map(places).eq(b.iter().map(places)) {
            let both = a.iter().zip(b).flat_map(|(a, b)| a.1.iter().map(|at| (a.0, at)).zip(b.1.values()));
            for ((root, (place, a)), b) in both {
                all.bits.push(((root, *place), self.gates.xor(*a, *b)));
            }
            return all;
        }
        let merged = |of: &[Run]| {
            let mut all: BTreeMap<(Root, i32), Bit> = BTreeMap::new();
            for (root, bits) in of {
                all.extend(bits.iter().map(|(bit, value)| ((*root, *bit), *value)));
            }
            all
        };
        let (all_a, all_b) = (merged(a), merged(b));
        let places: BTreeSet<(Root, i32)> = all_a.keys().chain(all_b.keys()).copied().collect();
        for place in &places {
            let own = self.packet_bit(place.0, place.1);
            let value = |of: &BTreeMap<(Root, i32), Bit>| of.get(place).copied().unwrap_or(own);
            all.bits.push((*place, self.gates.xor(value(&all_a), value(&all_b))));
        }
        let mut hulls: BTreeMap<Root, (i32, i32)> = BTreeMap::new();
        for (root, bit) in &places {
            let hull = hulls.entry(*root).or_insert((*bit, *bit));
            *hull = (hull.0.min(*bit), hull.1.max(*bit));
        }
        let hulls: Vec<(Root, (i32, i32))> = hulls.into_iter().collect();
        for (at, (root, hull)) in hulls.iter().enumerate() {
            for (other, other_hull) in &hulls[at + 1..] {
                let (Root::At(root), Root::At(other)) = (root, other) else { continue };
                let (root, other) = (self.word(*root), self.word(*other));
                let (first, last) = ends(&mut self.gates, &root, *hull);
                let (other_first, other_last) = ends(&mut self.gates, &other, *other_hull);
                let meets_front = self.gates.at_most(&first, &other_last);
                let meets_back = self.gates.at_most(&other_first, &last);
                all.overlaps.push(self.gates.and(meets_front, meets_back));
            }
        }
        all
    }

    /// Compares bytes after writes, whichever of them overlap: each place that either side writes is read
    /// after all writes of each. More gates than [`Blaster::differences`], and no difference but in bits.
    pub fn differences_as_read(&mut self, a: &[Run], b: &[Run]) -> Differences {
        let mut all = Differences { bits: vec![], overlaps: vec![] };
        let written = |of: &[Run]| -> Vec<(Root, i32)> {
            of.iter().flat_map(|(root, bits)| bits.keys().map(|bit| (*root, *bit))).collect()
        };
        let places: BTreeSet<(Root, i32)> = written(a).into_iter().chain(written(b)).collect();
        for (root, bit) in places {
            let (mine, theirs) = (self.read_bit(a, root, bit), self.read_bit(b, root, bit));
            all.bits.push(((root, bit), self.gates.xor(mine, theirs)));
        }
        all
    }

    /// A number that is read after writes which may overlap it, from any root.
    pub fn read(&mut self, writes: &[Write], bits: Bits) -> Word {
        let runs = self.runs(writes);
        let low_first = (0..i32::from(bits.width)).map(|low| bits.end() - 1 - low);
        let word = low_first.map(|bit| self.read_bit(&runs, bits.root, bit)).collect();
        self.gates.trimmed(word)
    }

    /// A bit after writes which may overlap it, from any root.
    fn read_bit(&mut self, runs: &[Run], from: Root, bit: i32) -> Bit {
        let mut now = self.packet_bit(from, bit);
        for (root, written) in runs {
            if self.gates.is_over() {
                break;
            }
            if *root == from {
                now = written.get(&bit).copied().unwrap_or(now);
                continue;
            }
            let (Root::At(mine), Root::At(theirs)) = (from, *root) else { continue };
            let (mine, theirs) = (self.word(mine), self.word(theirs));
            for (other, value) in written.range(..).filter(|(other, _)| (**other - bit) % 8 == 0) {
                let hits = self.is_behind(&mine, &theirs, (other - bit) / 8);
                now = self.gates.choose(hits, *value, now);
            }
        }
        now
    }

    /// Whether one offset is that many bytes behind another one.
    fn is_behind(&mut self, one: &[Bit], other: &[Bit], bytes: i32) -> Bit {
        let behind = self.gates.sub(one, other);
        let far = self.gates.number(i64::from(bytes) as u64);
        self.gates.equal(&behind, &far)
    }

    /// Bits that are counted from two headers are one bit where the headers are as far apart as in the
    /// solution: returns whether the solution has two values for one, and makes it impossible.
    pub fn unite_bits(&mut self) -> bool {
        let mut by_root: BTreeMap<Id, BTreeMap<i32, Bit>> = BTreeMap::new();
        for (&(root, bit), &of) in self.packet_bits() {
            if let Root::At(root) = root {
                by_root.entry(root).or_default().insert(bit, of);
            }
        }
        let roots: Vec<(Id, BTreeMap<i32, Bit>)> = by_root.into_iter().collect();
        let mut found = false;
        for (at, (one, bits)) in roots.iter().enumerate() {
            for (other, others) in &roots[at + 1..] {
                let (one, other) = (self.word(*one), self.word(*other));
                // The other one's bit is `far` bytes before, seen from this one.
                let far = self.gates.value(&one).wrapping_sub(self.gates.value(&other)) as i64;
                let Some(far) = i32::try_from(far).ok().filter(|far| far.unsigned_abs() < 1 << 16) else {
                    continue;
                };
                let shared: Vec<(Bit, Bit)> =
                    bits.iter().filter_map(|(bit, of)| Some((*of, *others.get(&(bit + far * 8))?))).collect();
                if shared.iter().all(|(a, b)| self.gates.bit(*a) == self.gates.bit(*b)) {
                    continue;
                }
                found = true;
                let apart = !self.is_behind(&one, &other, far);
                for (a, b) in shared {
                    self.gates.clause(&[apart, !a, b]);
                    self.gates.clause(&[apart, a, !b]);
                }
            }
        }
        found
    }
}

fn ends(gates: &mut Gates, root: &[Bit], hull: (i32, i32)) -> (Word, Word) {
    // Counted from far in front, so that no offset is negative.
    let at = |bit: i32| (0x1_0000 + i64::from(bit.div_euclid(8))) as u64;
    let (first, last) = (gates.number(at(hull.0)), gates.number(at(hull.1)));
    (gates.add(root, &first), gates.add(root, &last))
}
