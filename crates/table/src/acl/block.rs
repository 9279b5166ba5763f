//! Short rule lists: sixteen rules side by side, one vector for each end of each dimension.
//!
//! Dimensions that no rule narrows are moved out of the way at build time: `dims` counts those that
//! are compared, and `order` says which key value each is.

use super::forest::Key;
use super::rule::{MAX_DIMS, MISS, Rule, Schema};
use super::simd::Lanes;

/// Rules in a block: sixteen 32-bit lanes are one cache line.
pub(super) const BLOCK: usize = 16;

/// Up to this many rules a list is compared as blocks, without a tree.
pub const LINEAR_MAX: usize = 2 * BLOCK;

/// One dimension of sixteen rules; a rule matches where `value - lo <= span`.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Lane {
    pub(super) lo: [u32; BLOCK],
    pub(super) span: [u32; BLOCK],
}

/// Sixteen rules. Unused places are the empty set in every dimension as long as there is a
/// dimension: see [`Blocks::new`].
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) lanes: [Lane; MAX_DIMS],
}

/// A short rule list.
#[derive(Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    rules: u32,
    /// Dimensions compared: up to the last one that any rule narrows.
    dims: usize,
}

impl Blocks {
    pub(super) fn new(schema: &Schema, rules: &[Rule]) -> Self {
        let dims = (0..schema.dims())
            .rev()
            .find(|&dim| {
                rules.iter().any(|rule| {
                    rule.ranges.get(dim).is_some_and(|range| range.lo != 0 || range.hi != schema.max(dim))
                })
            })
            .map_or(0, |last| last + 1);
        let blocks = rules
            .chunks(BLOCK)
            .map(|chunk| Block {
                lanes: std::array::from_fn(|dim| Lane {
                    lo: std::array::from_fn(|at| chunk.get(at).map_or(0, |rule| rule.ranges[dim].lo)),
                    span: std::array::from_fn(|at| {
                        chunk.get(at).map_or(0, |rule| rule.ranges[dim].hi - rule.ranges[dim].lo)
                    }),
                }),
            })
            .collect();
        Self { blocks, rules: rules.len() as u32, dims }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }

    /// First rule that the key lies in, else [`MISS`].
    #[inline(always)]
    pub(super) fn first<L: Lanes>(&self, lanes: L, key: &Key) -> u32 {
        let mut base = 0;
        for block in &self.blocks {
            let hits = lanes.block_matches(key, block, self.dims);
            let found = base + hits.trailing_zeros();
            // Unused places come last and may match: an index past the end is no match.
            if hits != 0 {
                return if found < self.rules { found } else { MISS };
            }
            base += BLOCK as u32;
        }
        MISS
    }
}
