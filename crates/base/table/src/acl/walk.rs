//! Walking a batch through the forest, level by level.
//!
//! Packets are processed in groups of [`GROUP`]. Each pass moves every packet of the group one step and
//! prefetches the line of its next step, so that it is in the cache in the next pass. Index lists contain
//! the packets that are still walking, by the kind of their node. The lists are compacted without
//! branches, since a branch predictor cannot predict whether a walk ends here.

use super::forest::{BLOCKS, Forest, HASH, RANK, Word};
use super::row::{ID_LANE, Key};
use super::rule::MISS;
use super::simd::{Job, Lanes, prefetch};

/// Packets walked together. The limit is the lines in flight: each packet has a key and one or two
/// prefetched lines, which together fit well into a 32 KiB first-level cache.
const GROUP: usize = 64;

/// Packets walked together in a small batch: half as much state to set up.
const SMALL_GROUP: usize = 32;

/// A batch of keys: the values of packet `p` start at `keys[p * stride]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) words: &'a [u32],
    pub(super) stride: usize,
    pub(super) dims: usize,
}

impl Keys<'_> {
    #[inline(always)]
    pub(super) fn load(&self, packet: u16) -> Key {
        let rest = &self.words[usize::from(packet) * self.stride..];
        // Lanes past the dimensions may have any value, so eight words are copied if there are eight: one
        // vector load.
        if let Some(eight) = rest.first_chunk() {
            return Key(*eight);
        }
        let mut key = Key::default();
        key.0[..self.dims].copy_from_slice(&rest[..self.dims]);
        key
    }
}

/// An index list and its length.
struct List<const G: usize> {
    at: [u8; G],
    len: usize,
}

impl<const G: usize> List<G> {
    #[inline(always)]
    fn new() -> Self {
        Self { at: [0; G], len: 0 }
    }

    /// An index below `G`.
    #[inline(always)]
    fn get(&self, place: usize) -> usize {
        usize::from(self.at[place & (G - 1)]) & (G - 1)
    }

    /// Writes the index; keeps it only if `keep` is true.
    #[inline(always)]
    fn push_if(&mut self, index: usize, keep: bool) {
        self.at[self.len & (G - 1)] = index as u8;
        self.len += usize::from(keep);
    }
}

/// Classifies the listed packets; `out` is indexed by packet.
pub(super) struct Batch<'a> {
    pub(super) forest: &'a Forest,
    pub(super) keys: Keys<'a>,
    pub(super) list: &'a [u16],
    pub(super) out: &'a mut [u32],
}

impl Job for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        if self.list.len() <= SMALL_GROUP {
            self.run_groups::<L, SMALL_GROUP>(lanes);
        } else {
            self.run_groups::<L, GROUP>(lanes);
        }
    }
}

impl Batch<'_> {
    #[inline(always)]
    fn run_groups<L: Lanes, const G: usize>(self, lanes: L) {
        const { assert!(G.is_power_of_two() && G <= 256, "indices are bytes under a mask") };
        let mut group = Group {
            forest: self.forest,
            inline_ids: self.keys.dims <= ID_LANE,
            keys: [Key::default(); G],
            best: [MISS; G],
            cursor: [0; G],
            left: [0; G],
        };
        for packets in self.list.chunks(G) {
            for ((key, best), &packet) in group.keys.iter_mut().zip(&mut group.best).zip(packets) {
                *key = self.keys.load(packet);
                *best = MISS;
            }
            for tree in &self.forest.trees {
                let mut walking = List::new();
                for index in 0..packets.len() {
                    walking.push_if(index, group.best[index & (G - 1)] > tree.first_rule);
                }
                group.walk(lanes, tree.root, walking);
            }
            for (&packet, &best) in packets.iter().zip(&group.best) {
                self.out[usize::from(packet)] = best;
            }
        }
    }
}

struct Group<'a, const G: usize> {
    forest: &'a Forest,
    inline_ids: bool,
    keys: [Key; G],
    best: [u32; G],
    /// Next word, or next row or first block once in a leaf.
    cursor: [u32; G],
    /// The leaf's kind, and from bit 8 on the rows or blocks left in it.
    left: [u32; G],
}

impl<const G: usize> Group<'_, G> {
    #[inline(always)]
    fn walk<L: Lanes>(&mut self, lanes: L, root: Word, mut walking: List<G>) {
        let words = self.forest.words.as_slice();
        let rows = self.forest.rows.as_slice();
        let mut leaf = List::new();
        match root.kind() {
            _ if root.is_leaf() => {
                for at in 0..walking.len {
                    let i = walking.get(at);
                    self.cursor[i] = root.base();
                    self.left[i] = root.0 as u32;
                }
                (leaf, walking) = (walking, leaf);
            }
            HASH => {
                for at in 0..walking.len {
                    let i = walking.get(at);
                    let child = root.hash_child(&self.keys[i]);
                    self.cursor[i] = child;
                    prefetch(words, child as usize);
                }
            }
            _ => {
                for at in 0..walking.len {
                    let i = walking.get(at);
                    self.step_rank(lanes, root, i);
                }
            }
        }
        while walking.len > 0 {
            let (mut hash, mut rank) = (List::<G>::new(), List::<G>::new());
            for at in 0..walking.len {
                let i = walking.get(at);
                let word = words[self.cursor[i] as usize];
                self.left[i] = word.0 as u32;
                let kind = word.kind();
                hash.push_if(i, kind == HASH);
                rank.push_if(i, kind == RANK);
                leaf.push_if(i, word.is_leaf() && word.rows() != 0);
                if word.is_leaf() {
                    self.cursor[i] = word.base();
                    prefetch(rows, word.base() as usize);
                }
            }
            walking.len = 0;
            for at in 0..hash.len {
                let i = hash.get(at);
                let word = words[self.cursor[i] as usize];
                let child = word.hash_child(&self.keys[i]);
                self.cursor[i] = child;
                prefetch(words, child as usize);
                walking.push_if(i, true);
            }
            for at in 0..rank.len {
                let i = rank.get(at);
                let word = words[self.cursor[i] as usize];
                self.step_rank(lanes, word, i);
                walking.push_if(i, true);
            }
        }
        self.leaves(lanes, leaf);
    }

    #[inline(always)]
    fn step_rank<L: Lanes>(&mut self, lanes: L, word: Word, i: usize) {
        let line = &self.forest.lines[word.line() as usize];
        let child = word.base() + lanes.rank(self.keys[i].0[word.dim()], &line.0);
        self.cursor[i] = child;
        prefetch(&self.forest.words, child as usize);
    }

    /// Compares leaf rows, one for each packet in a pass, until a match, the end of the leaf, or a row
    /// after the packet's best match.
    #[inline(always)]
    fn leaves<L: Lanes>(&mut self, lanes: L, mut open: List<G>) {
        if self.forest.blocks.len() > 0 {
            open = self.long_leaves(lanes, &open);
        }
        let rows = self.forest.rows.as_slice();
        while open.len > 0 {
            let count = open.len;
            open.len = 0;
            for at in 0..count {
                let i = open.get(at);
                let cursor = self.cursor[i] as usize;
                let row = &rows[cursor];
                let id = if self.inline_ids { row.lo[ID_LANE] } else { self.forest.ids[cursor] };
                let hit = lanes.row_matches(&self.keys[i], row);
                let best = self.best[i];
                self.best[i] = if hit && id < best { id } else { best };
                self.cursor[i] = cursor as u32 + 1;
                self.left[i] -= 1 << 8;
                open.push_if(i, !hit & (id < best) & (self.left[i] >= 1 << 8));
            }
        }
    }

    /// Compares all blocks of the long leaves; returns the packets in other leaves.
    #[inline(always)]
    fn long_leaves<L: Lanes>(&mut self, lanes: L, open: &List<G>) -> List<G> {
        let mut others = List::new();
        for at in 0..open.len {
            let i = open.get(at);
            let word = Word(u64::from(self.left[i]) | u64::from(self.cursor[i]) << 32);
            if word.kind() == BLOCKS {
                let (from, count) = (word.base() as usize, word.rows() as usize);
                self.best[i] = self.forest.blocks.first(lanes, &self.keys[i], from, count, self.best[i]);
            }
            others.push_if(i, word.kind() != BLOCKS);
        }
        others
    }
}

/// The steps of one key through the forest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Trees entered.
    pub trees: usize,
    /// Hash nodes passed.
    pub hash_nodes: usize,
    /// Separator nodes passed.
    pub rank_nodes: usize,
    /// Rules compared one by one.
    pub rows: usize,
    /// Blocks of sixteen rules in long leaves, compared at once.
    pub blocks: usize,
}

/// A single key: no passes, no lists.
pub(super) struct Single<'a> {
    pub(super) forest: &'a Forest,
    pub(super) inline_ids: bool,
    pub(super) key: Key,
    pub(super) out: &'a mut u32,
    pub(super) steps: &'a mut Steps,
}

impl Job for Single<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let forest = self.forest;
        let mut best = MISS;
        for tree in &forest.trees {
            if tree.first_rule >= best {
                continue;
            }
            let mut word = tree.root;
            self.steps.trees += 1;
            while !word.is_leaf() {
                let child = if word.kind() == HASH {
                    self.steps.hash_nodes += 1;
                    word.hash_child(&self.key)
                } else {
                    self.steps.rank_nodes += 1;
                    let line = &forest.lines[word.line() as usize];
                    word.base() + lanes.rank(self.key.0[word.dim()], &line.0)
                };
                word = forest.words[child as usize];
            }
            let first = word.base() as usize;
            if word.kind() == BLOCKS {
                self.steps.blocks += word.rows() as usize;
                best = forest.blocks.first(lanes, &self.key, first, word.rows() as usize, best);
                continue;
            }
            let rows = &forest.rows[first..first + word.rows() as usize];
            for (at, row) in rows.iter().enumerate() {
                let id = if self.inline_ids { row.lo[ID_LANE] } else { forest.ids[first + at] };
                self.steps.rows += 1;
                if id >= best {
                    break;
                }
                if lanes.row_matches(&self.key, row) {
                    best = id;
                    break;
                }
            }
        }
        *self.out = best;
    }
}
