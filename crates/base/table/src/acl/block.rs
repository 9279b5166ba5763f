//! Blocks: sixteen rules, with one vector for each end of each dimension.
//!
//! Short lists consist of blocks only, and so do the long leaves that overlapping rules cause in a tree.
//! The walk compares sixteen rules at a time, in the order of the rules, and the processor's own prefetch
//! runs ahead.

use super::row::{BLOCK, Key, Lane};
use super::rule::{MISS, Rule, Schema};
use super::simd::Lanes;

/// The maximum number of rules of a list that is compared as blocks, without a tree.
pub const LINEAR_MAX: usize = 2 * BLOCK;

/// Rule indices of a block, ascending; [`MISS`] in unused slots, which are the last ones.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Ids([u32; BLOCK]);

/// Any number of blocks, one after another.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// `dims` lanes for each block.
    lanes: Vec<Lane>,
    ids: Vec<Ids>,
    /// Dimensions compared.
    dims: usize,
}

impl Blocks {
    pub(super) fn new(dims: usize) -> Self {
        Self { lanes: Vec::new(), ids: Vec::new(), dims }
    }

    /// A separate list, over the dimensions up to the last that any rule narrows.
    pub(super) fn of_list(schema: &Schema, rules: &[Rule]) -> Self {
        let any = Rule::any(schema);
        let narrowed = |dim: &usize| rules.iter().any(|rule| rule.ranges.get(*dim) != any.ranges.get(*dim));
        let mut blocks = Self::new((0..schema.dims()).rev().find(narrowed).map_or(0, |last| last + 1));
        let ids: Vec<u32> = (0..rules.len() as u32).collect();
        blocks.push(rules, &ids);
        blocks
    }

    /// Appends the rules with these indices; returns the first block and the number of blocks.
    pub(super) fn push(&mut self, rules: &[Rule], ids: &[u32]) -> (u32, u32) {
        let first = self.ids.len();
        for chunk in ids.chunks(BLOCK) {
            let range = |at: usize, dim: usize| {
                let rule = rules.get(*chunk.get(at)? as usize)?;
                rule.ranges.get(dim)
            };
            self.lanes.extend((0..self.dims).map(|dim| Lane {
                lo: std::array::from_fn(|at| range(at, dim).map_or(0, |range| range.lo)),
                span: std::array::from_fn(|at| range(at, dim).map_or(0, |range| range.hi - range.lo)),
            }));
            self.ids.push(Ids(std::array::from_fn(|at| chunk.get(at).copied().unwrap_or(MISS))));
        }
        (first as u32, (self.ids.len() - first) as u32)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.lanes.as_slice()) + size_of_val(self.ids.as_slice())
    }

    /// Bytes for that many rules.
    pub(super) fn bytes_for(dims: usize, rules: usize) -> usize {
        rules.div_ceil(BLOCK) * (dims * size_of::<Lane>() + size_of::<Ids>())
    }

    /// First rule of these blocks that matches the key, or `best` if that is earlier.
    #[inline(always)]
    pub(super) fn first<L: Lanes>(&self, lanes: L, key: &Key, from: usize, count: usize, best: u32) -> u32 {
        for (at, ids) in self.ids[from..from + count].iter().enumerate() {
            if ids.0[0] >= best {
                break;
            }
            let start = (from + at) * self.dims;
            let hits = lanes.block_matches(key, &self.lanes[start..start + self.dims]);
            if hits != 0 {
                // An unused slot may match, but only after all others, and its index is that of a miss.
                return best.min(ids.0[hits.trailing_zeros() as usize & (BLOCK - 1)]);
            }
        }
        best
    }
}
