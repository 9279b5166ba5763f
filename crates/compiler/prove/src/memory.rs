//! A packet's bytes after writes, bit by bit.

use crate::blast::{Blaster, Run};
use crate::gates::{Bit, Gates, Word};
use std::collections::{BTreeMap, BTreeSet};
use synth::classes::expr::{Bits, Root, Write};

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

    /// A number that is read after writes which may overlap it, from any root.
    pub fn read(&mut self, writes: &[Write], bits: Bits) -> Word {
        let runs = self.runs(writes);
        let mut word = Vec::with_capacity(bits.width.into());
        for low in 0..i32::from(bits.width) {
            let bit = bits.end() - 1 - low;
            let mut now = self.packet_bit(bits.root, bit);
            for (root, written) in &runs {
                if self.gates.is_over() {
                    break;
                }
                if *root == bits.root {
                    now = written.get(&bit).copied().unwrap_or(now);
                    continue;
                }
                let (Root::At(mine), Root::At(theirs)) = (bits.root, *root) else { continue };
                let (mine, theirs) = (self.word(mine), self.word(theirs));
                let behind = self.gates.sub(&mine, &theirs);
                for (other, value) in written.range(..).filter(|(other, _)| (**other - bit) % 8 == 0) {
                    let far = self.gates.number(i64::from((other - bit) / 8) as u64);
                    let hits = self.gates.equal(&behind, &far);
                    now = self.gates.choose(hits, *value, now);
                }
            }
            word.push(now);
        }
        self.gates.trimmed(word)
    }
}

fn ends(gates: &mut Gates, root: &[Bit], hull: (i32, i32)) -> (Word, Word) {
    // Counted from far in front, so that no offset is negative.
    let at = |bit: i32| (0x1_0000 + i64::from(bit.div_euclid(8))) as u64;
    let (first, last) = (gates.number(at(hull.0)), gates.number(at(hull.1)));
    (gates.add(root, &first), gates.add(root, &last))
}
