//! Growth of the forest within its limits.
//!
//! Pending nodes are in a heap, the one with most rules first, so that time and bytes are used where they
//! help most. Before a node is split, the bytes needed if all pending nodes became leaves are known
//! exactly; a split that would exceed the limit is not made. At the deadline all pending nodes become
//! leaves. Both limits therefore end in a correct, only slower, structure.

use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use super::Limits;
use super::block::Blocks;
use super::forest::{Forest, Line, Tree, Word};
use super::forest_plan::{Cut, POLICIES, Planner, Sample, each_slot, fits, rank_children};
use super::generate::inside;
use super::row::{ID_LANE, Key, Row, SEPARATORS};
use super::rule::{AclError, Interval, MISS, Rule, Schema};
use super::simd::{Lanes, Portable};
use super::walk::{Single, Steps};
use crate::Random;

/// The maximum number of trees; the last takes all remaining rules.
const MAX_TREES: usize = 8;

/// Rule lists of nodes up to this length are searched for rules hidden by earlier ones.
const HIDDEN_SEARCH: usize = 64;

/// Even if the limit is generous, no node is split once all rows together are this many times the
/// rules: above it, cache misses cost more than shorter leaves save.
const MAX_GROWTH: usize = 24;

/// Bytes that rows may always use, however few the rules.
const GROWTH_FLOOR_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodePlace {
    Root(usize),
    Child(u32),
}

/// A node that is neither split nor a leaf yet.
#[derive(Debug)]
struct Pending {
    place: NodePlace,
    /// Indices into the rule list, ascending.
    ids: Vec<u32>,
    bounds: Vec<Interval>,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.ids.len() == other.ids.len()
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.ids.len().cmp(&other.ids.len())
    }
}

/// Grows a forest over rules that were checked against the schema.
pub(super) fn grow(schema: &Schema, rules: &[Rule], limits: Limits) -> Result<Forest, AclError> {
    // A list of all rules in one leaf, with a tree around it.
    let least = leaf_bytes(schema, rules.len()) + MAX_TREES * size_of::<Tree>();
    if least > limits.max_bytes {
        return Err(AclError::OutOfBytes { rules: rules.len(), needed: least, limit: limits.max_bytes });
    }
    let growth = least.saturating_mul(MAX_GROWTH).max(GROWTH_FLOOR_BYTES);
    let max_bytes = limits.max_bytes.min(growth);
    let start = Instant::now();
    let allowed = Duration::from_millis(limits.max_build_ms);
    let mut best: Option<(f64, Forest)> = None;
    for (round, policy) in (1..).zip(POLICIES) {
        // A forest that needs far more bytes than the best one so far is not worth its build time.
        let max_bytes = best.as_ref().map_or(max_bytes, |(_, forest)| {
            max_bytes.min(forest.bytes().saturating_mul(4).max(GROWTH_FLOOR_BYTES).max(least))
        });
        let mut grower = Grower {
            schema,
            rules,
            max_bytes,
            deadline: start.checked_add(allowed),
            planner: Planner::new(policy),
            pending: BinaryHeap::new(),
            bytes: least,
            forest: Forest { blocks: Blocks::new(schema.dims()), ..Forest::default() },
            leaves: HashMap::new(),
        };
        grower.plant((0..rules.len() as u32).collect());
        grower.run();
        // Long leaves, the result of hostile rules or a short deadline, take long to sample as well.
        if start.elapsed() > allowed && best.is_none() {
            return Ok(grower.forest);
        }
        let cycles = sampled_cycles(schema, rules, &grower.forest);
        if best.as_ref().is_none_or(|(least, _)| cycles < *least) {
            best = Some((cycles, grower.forest));
        }
        // The next round is assumed to take up to three times the average of the rounds so far.
        if start.elapsed() / round * 3 + start.elapsed() > allowed {
            break;
        }
    }
    Ok(best.map_or_else(Forest::default, |(_, forest)| forest))
}

/// Keys looked up to compare forests.
const SAMPLE_KEYS: usize = 2_000;

/// Expected cycles of a packet for a random rule, derived from the steps of sample keys. The weights were
/// measured; see `forest_plan`.
fn sampled_cycles(schema: &Schema, rules: &[Rule], forest: &Forest) -> f64 {
    let mut random = Random::new(rules.len() as u64);
    let mut steps = Steps::default();
    for _ in 0..SAMPLE_KEYS {
        let Some(rule) = rules.get(random.below(rules.len() as u64) as usize) else { break };
        let key = Key(inside(&mut random, schema, rule));
        let mut found = MISS;
        let inline_ids = schema.dims() <= ID_LANE;
        Portable.enter(Single { forest, inline_ids, key, out: &mut found, steps: &mut steps });
    }
    let steps_cycles =
        9 * steps.trees + 8 * steps.hash_nodes + 9 * steps.rank_nodes + 7 * steps.rows + 25 * steps.blocks;
    // Past the second-level cache each doubling costs some more misses.
    let misses = (forest.bytes() as f64 / f64::from(512 << 10)).log2().max(0.0);
    steps_cycles as f64 / SAMPLE_KEYS as f64 + 4.0 * misses
}

/// Leaves with this many rules or more consist of blocks.
const LONG_LEAF: usize = 9;

/// The maximum bytes of a leaf with that many rules. It is monotonic in the rules, so that the estimate
/// before a split is an upper bound for its parts after pruning.
fn leaf_bytes(schema: &Schema, rules: usize) -> usize {
    let row_bytes = size_of::<Row>() + if schema.dims() > ID_LANE { size_of::<u32>() } else { 0 };
    if rules < LONG_LEAF {
        rules * row_bytes
    } else {
        (rules * row_bytes).max(Blocks::bytes_for(schema.dims(), rules))
    }
}

struct Grower<'a> {
    schema: &'a Schema,
    rules: &'a [Rule],
    max_bytes: usize,
    deadline: Option<Instant>,
    planner: Planner,
    pending: BinaryHeap<Pending>,
    /// Bytes needed if every pending node became a leaf now.
    bytes: usize,
    forest: Forest,
    /// Each leaf by its rules: equal leaves are stored once.
    leaves: HashMap<Vec<u32>, Word>,
}

impl Grower<'_> {
    fn out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn leaf_bytes(&self, rules: usize) -> usize {
        leaf_bytes(self.schema, rules)
    }

    fn rule(&self, id: u32) -> &Rule {
        &self.rules[id as usize]
    }

    /// Creates the trees: each takes the rules that fit its root, the next gets the others.
    fn plant(&mut self, ids: Vec<u32>) {
        let bounds = Rule::any(self.schema).ranges[..self.schema.dims()].to_vec();
        let mut rest = Pending { place: NodePlace::Root(0), ids, bounds: bounds.clone() };
        self.prune_counted(&mut rest);
        let mut ids = rest.ids;
        while !ids.is_empty() {
            let tree = self.forest.trees.len();
            let mut cut = None;
            if tree + 1 < MAX_TREES && !self.out_of_time() {
                let plan = self.planner.root(&Sample::of(self.rules, &ids), &bounds, self.schema, tree);
                cut = plan.map(|plan| plan.cut);
            }
            let (mut taken, mut later) = match cut {
                Some(Cut::Hash(hash)) => ids.iter().partition(|&&id| fits(self.rule(id), hash)),
                _ => (ids.clone(), Vec::new()),
            };
            // Two leaves may take more bytes than one with all their rules, by a part of a block.
            let apart = self.leaf_bytes(taken.len()) + self.leaf_bytes(later.len());
            let after = self.bytes - self.leaf_bytes(ids.len()) + apart;
            if after > self.max_bytes {
                (cut, taken, later) = (None, ids, Vec::new());
            } else {
                self.bytes = after;
            }
            let first_rule = taken.first().copied().unwrap_or(MISS);
            self.forest.trees.push(Tree { root: Word::EMPTY, first_rule });
            let node = Pending { place: NodePlace::Root(tree), ids: taken, bounds: bounds.clone() };
            match cut {
                Some(cut) => self.split(node, cut),
                None => self.pending.push(node),
            }
            ids = later;
        }
    }

    fn run(&mut self) {
        while let Some(mut node) = self.pending.pop() {
            self.prune_counted(&mut node);
            let plan = if node.ids.len() <= 2 || self.out_of_time() {
                None
            } else {
                self.planner.best(&Sample::of(self.rules, &node.ids), &node.bounds, false)
            };
            match plan {
                Some(plan) => self.split(node, plan.cut),
                None => self.leaf(node),
            }
        }
        // Roots with an early rule first, so that later trees are skipped more often.
        self.forest.trees.sort_by_key(|tree| tree.first_rule);
    }

    fn prune_counted(&mut self, node: &mut Pending) {
        let before = node.ids.len();
        self.prune(node);
        self.bytes -= self.leaf_bytes(before) - self.leaf_bytes(node.ids.len());
    }

    /// Removes rules that cannot be the first match of any packet of this node.
    fn prune(&self, node: &mut Pending) {
        let inside = |id: u32, bounds: &[Interval]| {
            self.rule(id).ranges.iter().zip(bounds).all(|(range, bound)| range.covers(*bound))
        };
        if let Some(at) = node.ids.iter().position(|&id| inside(id, &node.bounds)) {
            node.ids.truncate(at + 1);
        }
        if node.ids.len() > HIDDEN_SEARCH {
            return;
        }
        let mut kept: Vec<u32> = Vec::with_capacity(node.ids.len());
        for &id in &node.ids {
            let clipped: Vec<Interval> = self
                .rule(id)
                .ranges
                .iter()
                .zip(&node.bounds)
                .map(|(range, bound)| Interval { lo: range.lo.max(bound.lo), hi: range.hi.min(bound.hi) })
                .collect();
            if !kept.iter().any(|&earlier| inside(earlier, &clipped)) {
                kept.push(id);
            }
        }
        node.ids = kept;
    }

    fn set(&mut self, place: NodePlace, word: Word) {
        let slot = match place {
            NodePlace::Root(tree) => self.forest.trees.get_mut(tree).map(|tree| &mut tree.root),
            NodePlace::Child(at) => self.forest.words.get_mut(at as usize),
        };
        if let Some(slot) = slot {
            *slot = word;
        }
    }

    fn leaf(&mut self, node: Pending) {
        let word = match self.leaves.get(&node.ids) {
            Some(&word) => {
                self.bytes -= self.leaf_bytes(node.ids.len());
                word
            }
            None if node.ids.len() < LONG_LEAF => self.leaf_of_rows(&node.ids),
            None => {
                let (first, count) = self.forest.blocks.push(self.rules, &node.ids);
                Word::blocks(first, count)
            }
        };
        self.set(node.place, word);
        self.leaves.entry(node.ids).or_insert(word);
    }

    fn leaf_of_rows(&mut self, ids: &[u32]) -> Word {
        if ids.is_empty() {
            return Word::EMPTY;
        }
        let first = self.forest.rows.len() as u32;
        for &id in ids {
            self.forest.rows.push(Row::new(self.schema, &self.rules[id as usize], id));
            if self.schema.dims() > ID_LANE {
                self.forest.ids.push(id);
            }
        }
        Word::leaf(first, ids.len() as u32)
    }

    /// Splits a node, or makes it a leaf if the split would take too many bytes.
    fn split(&mut self, node: Pending, cut: Cut) {
        let children = match &cut {
            Cut::Hash(hash) => {
                let mut children = vec![Vec::new(); 1 << hash.slot_bits];
                self.deal(&node.ids, |rule, give| each_slot(rule, *hash, give), &mut children);
                children
            }
            Cut::Rank { dim, separators } => {
                let mut children = vec![Vec::new(); SEPARATORS + 1];
                let reach = |rule: &Rule, give: &mut dyn FnMut(u32)| {
                    if let Some(range) = rule.ranges.get(*dim) {
                        let (first, last) = rank_children(range, separators);
                        (first..=last).for_each(|child| give(child as u32));
                    }
                };
                self.deal(&node.ids, reach, &mut children);
                children
            }
        };
        // A hash child with all the rules would be the same node again, without end.
        let stuck = matches!(cut, Cut::Hash(_)) && children.iter().any(|ids| ids.len() == node.ids.len());
        let leaves_bytes: usize = children.iter().map(|ids| self.leaf_bytes(ids.len())).sum();
        let own_bytes = children.len() * size_of::<Word>()
            + if matches!(cut, Cut::Rank { .. }) { size_of::<Line>() } else { 0 };
        let after = self.bytes - self.leaf_bytes(node.ids.len()) + leaves_bytes + own_bytes;
        let first_child = self.forest.words.len();
        if (stuck && !matches!(node.place, NodePlace::Root(_)))
            || after > self.max_bytes
            || first_child + children.len() > u32::MAX as usize
        {
            return self.leaf(node);
        }
        self.bytes = after;
        self.forest.words.resize(first_child + children.len(), Word::EMPTY);
        let word = match &cut {
            Cut::Hash(hash) => Word::hash(*hash, first_child as u32),
            Cut::Rank { dim, separators } => {
                let mut line = [u32::MAX; SEPARATORS];
                line.iter_mut().zip(separators).for_each(|(slot, &value)| *slot = value);
                self.forest.lines.push(Line(line));
                let at = self.forest.lines.len() as u32 - 1;
                Word::rank(*dim as u8, at, first_child as u32)
            }
        };
        self.set(node.place, word);
        for (at, ids) in children.into_iter().enumerate().filter(|(_, ids)| !ids.is_empty()) {
            let mut bounds = node.bounds.clone();
            if let Cut::Rank { dim, separators } = &cut
                && let Some(bound) = bounds.get_mut(*dim)
            {
                if let Some(&before) = at.checked_sub(1).and_then(|at| separators.get(at)) {
                    bound.lo = before + 1;
                }
                if let Some(&last) = separators.get(at) {
                    bound.hi = last;
                }
            }
            let place = NodePlace::Child((first_child + at) as u32);
            self.pending.push(Pending { place, ids, bounds });
        }
    }

    /// Adds each rule to the children that it reaches, once each.
    fn deal(&self, ids: &[u32], reach: impl Fn(&Rule, &mut dyn FnMut(u32)), children: &mut [Vec<u32>]) {
        for &id in ids {
            reach(self.rule(id), &mut |child| {
                if let Some(list) = children.get_mut(child as usize)
                    && list.last() != Some(&id)
                {
                    list.push(id);
                }
            });
        }
    }
}
