//! Choosing how to split the rules of one node.
//!
//! Every candidate is evaluated on the rules themselves: the number of copies, and the number of rules in
//! the child that a packet for a random rule reaches (`sum n^2 / sum n`). From these two numbers follows
//! an estimate in cycles, and the smallest estimate wins. The constants were fitted to measurements on
//! the machine class that `docs/cycles.md` names. They affect speed only, never the answer.

use super::forest::{HashCut, slot_of};
use super::row::SEPARATORS;
use super::rule::{Interval, MAX_DIMS, Rule, Schema};

/// Rules considered when candidates are compared; larger sets are sampled evenly, which bounds the time
/// per node.
const SAMPLE: usize = 4096;

/// Blocks that one rule may be copied to in a hash node; wider ones do not fit.
const MAX_COPIES: u64 = 8;

/// Most slots of a hash node: 2^18 words are 2 MiB.
const MAX_SLOT_BITS: u8 = 18;

/// How a node is split.
#[derive(Debug, Clone)]
pub(super) enum Cut {
    Hash(HashCut),
    Rank { dim: usize, separators: Vec<u32> },
}

/// A cut with its expected cost.
#[derive(Debug)]
pub(super) struct ForestPlan {
    pub(super) cut: Cut,
    /// Expected cycles for a packet from this node on, later trees included.
    pub(super) estimate: f64,
}

/// Cycles for comparing the rules of a leaf: one by one in short leaves, by sixteen in long ones.
fn leaf_estimate(rows: f64) -> f64 {
    if rows <= 8.0 { 8.0 + 5.0 * rows } else { 16.0 + 32.0 * (rows / 16.0).ceil() }
}

/// Expected cycles of a node with that many rules, without copies.
fn node_estimate(rules: f64) -> f64 {
    if rules <= 3.0 { leaf_estimate(rules) } else { leaf_estimate(3.0) + 5.0 * (rules / 3.0).log2() }
}

/// How the roots of the first trees are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Roots {
    /// Each by the cut with the best estimate.
    Estimated,
    /// By the leading bits (this share of each width) of the two dimensions that distinguish most rules:
    /// first a tree for the rules that are narrow in both, then one for each dimension with the rules
    /// that are narrow in it. (CutSplit and related algorithms form such groups, too.)
    Leading(u8),
}

/// A way to grow a forest. No estimate predicts the copies at lower levels, so a forest is grown in each
/// of these ways, and the one that is fastest for sample keys is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    roots: Roots,
    /// The assumed cost of further trees, relative to [`Policy::later_estimate`].
    later: f64,
    /// Cycles for each doubling of the rows by copies, down to the leaves.
    growth: f64,
}

/// The best expected first, if there is time for one only.
pub(super) const POLICIES: [Policy; 3] = [
    Policy { roots: Roots::Leading(4), later: 1.0, growth: 4.0 },
    Policy { roots: Roots::Leading(2), later: 1.0, growth: 4.0 },
    Policy { roots: Roots::Estimated, later: 1.5, growth: 4.0 },
];

impl Policy {
    /// Expected cycles of rules that are deferred to later trees.
    fn later_estimate(self, rules: f64) -> f64 {
        if rules < 0.5 { 0.0 } else { self.later * (20.0 + 6.0 * rules.log2()) }
    }

    /// Expected cycles of copies when a cut turns `rules` into `copies`, a packet reaches `met` of them,
    /// and the cuts below do the same.
    fn growth_estimate(self, rules: f64, copies: f64, met: f64) -> f64 {
        let levels = ((rules / 4.0).max(1.0).ln() / (rules / met).max(1.05).ln()).clamp(1.0, 4.0);
        self.growth * (copies / rules).log2().max(0.0) * levels
    }
}

const HASH_CYCLES: f64 = 12.0;
const RANK_CYCLES: f64 = 14.0;

/// The number of blocks of `2^shift` values that an interval touches, and the first of them.
pub(super) fn blocks(range: Interval, shift: u8) -> (u32, u64) {
    let first = range.lo.checked_shr(u32::from(shift)).unwrap_or(0);
    let last = range.hi.checked_shr(u32::from(shift)).unwrap_or(0);
    (first, u64::from(last - first) + 1)
}

/// The blocks of a rule in the two dimensions of a hash cut: first block and number of blocks in each.
pub(super) fn footprint(rule: &Rule, cut: HashCut) -> [(u32, u64); 2] {
    let range = |dim: u8| rule.ranges[usize::from(dim) % MAX_DIMS];
    [blocks(range(cut.dim_a), cut.shift_a), blocks(range(cut.dim_b), cut.shift_b)]
}

/// Whether a rule fits below a hash cut.
pub(super) fn fits(rule: &Rule, cut: HashCut) -> bool {
    let [(_, a), (_, b)] = footprint(rule, cut);
    a <= MAX_COPIES && b <= MAX_COPIES && a * b <= MAX_COPIES
}

/// Calls `visit` with each slot of a rule. A slot may be visited twice.
pub(super) fn each_slot(rule: &Rule, cut: HashCut, mut visit: impl FnMut(u32)) {
    let [(a, count_a), (b, count_b)] = footprint(rule, cut);
    for step_a in 0..count_a {
        for step_b in 0..count_b {
            visit(slot_of(a + step_a as u32, b + step_b as u32, u32::from(cut.slot_bits)));
        }
    }
}

/// Smallest shift for which the interval is one block: its prefix "width".
fn level(range: Interval) -> u8 {
    (32 - (range.lo ^ range.hi).leading_zeros()) as u8
}

/// Some of a node's rules.
pub(super) struct Sample {
    rules: Vec<Rule>,
    /// The number of the node's rules, and how many of them each rule here stands for.
    count: usize,
    scale: f64,
}

impl Sample {
    /// At most [`SAMPLE`] of the rules with these indices.
    pub(super) fn of(all: &[Rule], ids: &[u32]) -> Self {
        let step = ids.len().div_ceil(SAMPLE).max(1);
        let rules: Vec<Rule> =
            ids.iter().step_by(step).filter_map(|&id| all.get(id as usize).copied()).collect();
        let scale = ids.len() as f64 / rules.len().max(1) as f64;
        Self { rules, count: ids.len(), scale }
    }
}

/// Chooses cuts; keeps its working memory.
#[derive(Debug)]
pub(super) struct Planner {
    policy: Policy,
    /// The two dimensions of [`Roots::Leading`], chosen once over all rules.
    leading: Option<[usize; 2]>,
    counts: Vec<u32>,
    ends: Vec<u32>,
}

impl Planner {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, leading: None, counts: Vec::new(), ends: Vec::new() }
    }

    /// The root cut of a tree over these rules, which may defer some of them to the next tree, or none if
    /// a leaf is best.
    pub(super) fn root(
        &mut self,
        sample: &Sample,
        bounds: &[Interval],
        schema: &Schema,
        tree: usize,
    ) -> Option<ForestPlan> {
        if let Roots::Leading(share) = self.policy.roots {
            let [a, b] = *self.leading.get_or_insert_with(|| telling_dims(&sample.rules, schema, share));
            let shift = |dim: usize| leading_shift(schema, dim, share);
            let one = |dim: usize| HashCut {
                dim_a: dim as u8,
                shift_a: shift(dim),
                dim_b: dim as u8,
                shift_b: 32,
                slot_bits: 1,
            };
            let cut = match tree {
                0 => Some(HashCut { dim_b: b as u8, shift_b: shift(b), ..one(a) }),
                1 => Some(one(a)),
                2 => Some(one(b)),
                _ => None,
            };
            if let Some(plan) = cut.and_then(|cut| self.hash_cut(sample, cut, true)) {
                return Some(plan);
            }
        }
        self.best(sample, bounds, true)
    }

    /// The best cut for these rules of a node with these bounds, or none if a leaf is expected to be as
    /// good. With `may_defer`, rules that do not fit a hash may be deferred to the next tree.
    pub(super) fn best(
        &mut self,
        sample: &Sample,
        bounds: &[Interval],
        may_defer: bool,
    ) -> Option<ForestPlan> {
        let mut best: Option<ForestPlan> = None;
        let mut consider = |plan: Option<ForestPlan>| {
            if let Some(plan) = plan
                && best.as_ref().is_none_or(|best| plan.estimate < best.estimate)
            {
                best = Some(plan);
            }
        };
        for dim in 0..bounds.len() {
            consider(self.rank_cut(sample, dim, bounds));
        }
        for cut in hash_candidates(&sample.rules, bounds.len()) {
            consider(self.hash_cut(sample, cut, may_defer));
        }
        best.filter(|plan| plan.estimate < leaf_estimate(sample.count as f64))
    }

    fn rank_cut(&mut self, sample: &Sample, dim: usize, bounds: &[Interval]) -> Option<ForestPlan> {
        let Sample { rules, scale, .. } = sample;
        let bound = *bounds.get(dim)?;
        self.ends.clear();
        for rule in rules {
            let range = rule.ranges.get(dim)?;
            if range.lo > bound.lo {
                self.ends.push(range.lo - 1);
            }
            if range.hi < bound.hi {
                self.ends.push(range.hi);
            }
        }
        self.ends.sort_unstable();
        let separators = pick_separators(&self.ends);
        if separators.is_empty() {
            return None;
        }
        let mut counts = [0u32; SEPARATORS + 1];
        for rule in rules {
            let (first, last) = rank_children(rule.ranges.get(dim)?, &separators);
            for count in counts.get_mut(first..=last)? {
                *count += 1;
            }
        }
        let (met, copies) = weigh(&counts);
        let growth = self.policy.growth_estimate(rules.len() as f64, copies, met);
        let estimate = RANK_CYCLES + node_estimate(met * scale) + growth;
        (met * 1.1 < rules.len() as f64)
            .then_some(ForestPlan { cut: Cut::Rank { dim, separators }, estimate })
    }

    /// Counts the rules in each slot, and the slots with rules.
    fn count_slots(&mut self, sample: &[Rule], cut: HashCut) -> usize {
        self.counts.clear();
        self.counts.resize(1 << cut.slot_bits, 0);
        let counts = &mut self.counts;
        for rule in sample.iter().filter(|rule| fits(rule, cut)) {
            each_slot(rule, cut, |slot| {
                if let Some(count) = counts.get_mut(slot as usize) {
                    *count += 1;
                }
            });
        }
        counts.iter().filter(|&&count| count > 0).count()
    }

    fn hash_cut(&mut self, sample: &Sample, mut cut: HashCut, may_defer: bool) -> Option<ForestPlan> {
        let Sample { rules, scale, .. } = sample;
        let (mut copies, mut fitting) = (0u64, 0usize);
        for rule in rules {
            if fits(rule, cut) {
                let [(_, a), (_, b)] = footprint(rule, cut);
                copies += a * b;
                fitting += 1;
            }
        }
        let deferred = rules.len() - fitting;
        if fitting == 0 || (deferred > 0 && !may_defer) {
            return None;
        }
        let slot_bits = |copies: f64| (copies.max(1.0).log2().ceil() as u8 + 1).min(MAX_SLOT_BITS);
        cut.slot_bits = slot_bits(copies as f64);
        let mut used = self.count_slots(rules, cut);
        if slot_bits(used as f64) < cut.slot_bits {
            cut.slot_bits = slot_bits(used as f64);
            used = self.count_slots(rules, cut);
        }
        // A slot with all rules would be the same node again.
        let most = self.counts.iter().copied().max().unwrap_or(0) as usize;
        if most >= rules.len() {
            return None;
        }
        let (met, copies) = weigh(&self.counts);
        if *scale > 1.0 {
            cut.slot_bits = slot_bits(used as f64 * scale);
        }
        if deferred == 0 && met * 1.1 >= rules.len() as f64 {
            return None;
        }
        let estimate = HASH_CYCLES
            + node_estimate(met * scale)
            + self.policy.growth_estimate(fitting as f64, copies, met)
            + self.policy.later_estimate(deferred as f64 * scale);
        Some(ForestPlan { cut: Cut::Hash(cut), estimate })
    }
}

/// The two dimensions whose leading bits distinguish rules best, the better one first: by entropy, where
/// rules too wide for a block add nothing.
fn telling_dims(sample: &[Rule], schema: &Schema, share: u8) -> [usize; 2] {
    let mut scores: Vec<(f64, usize)> = (0..schema.dims())
        .map(|dim| {
            let shift = leading_shift(schema, dim, share);
            let mut firsts: Vec<u32> = sample
                .iter()
                .filter_map(|rule| rule.ranges.get(dim))
                .map(|range| blocks(*range, shift))
                .filter(|&(_, count)| count <= MAX_COPIES)
                .map(|(first, _)| first)
                .collect();
            firsts.sort_unstable();
            let entropy: f64 = firsts
                .chunk_by(|a, b| a == b)
                .map(|group| group.len() as f64 / sample.len() as f64)
                .map(|part| -part * part.log2())
                .sum();
            (entropy, dim)
        })
        .collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let dim = |at: usize| scores.get(at).or(scores.first()).map_or(0, |&(_, dim)| dim);
    [dim(0), dim(1)]
}

/// The shift that keeps the leading bits of a dimension.
fn leading_shift(schema: &Schema, dim: usize, share: u8) -> u8 {
    schema.bits(dim) - schema.bits(dim).div_ceil(share)
}

/// The expected number of rules in the child that a packet for a random rule reaches, and the number of
/// all copies.
fn weigh(counts: &[u32]) -> (f64, f64) {
    let (mut squares, mut copies) = (0u64, 0u64);
    for &count in counts {
        squares += u64::from(count) * u64::from(count);
        copies += u64::from(count);
    }
    (squares as f64 / copies.max(1) as f64, copies as f64)
}

/// First and last child that an interval reaches below these separators.
pub(super) fn rank_children(range: &Interval, separators: &[u32]) -> (usize, usize) {
    let rank = |value: u32| separators.partition_point(|&last| last < value);
    (rank(range.lo), rank(range.hi))
}

/// Up to sixteen separators out of sorted interval ends, with about as many ends between each two
/// neighbours.
fn pick_separators(ends: &[u32]) -> Vec<u32> {
    let mut distinct = ends.to_vec();
    distinct.dedup();
    if distinct.len() <= SEPARATORS {
        return distinct;
    }
    let mut picked: Vec<u32> =
        (1..=SEPARATORS).filter_map(|k| ends.get(k * ends.len() / (SEPARATORS + 1)).copied()).collect();
    picked.dedup();
    picked
}

/// Hash masks to be tried: for each pair of dimensions, the block sizes that contain a fixed share of the
/// rules whole.
fn hash_candidates(sample: &[Rule], dims: usize) -> Vec<HashCut> {
    let shifts: Vec<Vec<u8>> = (0..dims)
        .map(|dim| {
            let mut levels: Vec<u8> =
                sample.iter().filter_map(|rule| rule.ranges.get(dim)).map(|r| level(*r)).collect();
            levels.sort_unstable();
            let last = levels.len().saturating_sub(1);
            let mut shifts: Vec<u8> = [0, 25, 50, 75, 90, 97, 100]
                .iter()
                .filter_map(|share| levels.get(last * share / 100).copied())
                .filter(|&shift| shift < 32)
                .collect();
            shifts.dedup();
            shifts
        })
        .collect();
    let mut cuts = Vec::new();
    for (dim_a, of_a) in shifts.iter().enumerate() {
        for &shift_a in of_a {
            let one = HashCut { dim_a: dim_a as u8, shift_a, dim_b: dim_a as u8, shift_b: 32, slot_bits: 1 };
            cuts.push(one);
            for (dim_b, of_b) in shifts.iter().enumerate().skip(dim_a + 1) {
                cuts.extend(of_b.iter().map(|&shift_b| HashCut { dim_b: dim_b as u8, shift_b, ..one }));
            }
        }
    }
    cuts
}
