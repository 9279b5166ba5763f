//! The memory layout that the walk reads: node words, separators, rule rows.
//!
//! One node is one 64-bit word, so that a level costs one memory access (two for a separator node). Child
//! words are adjacent in `words`.
//!
//! | bits | leaf | long leaf | hash | separators |
//! |---|---|---|---|---|
//! | 0..2 | kind | kind | kind | kind |
//! | 2..5 | | | first dimension | dimension |
//! | 5..10 | | | first shift | |
//! | 10..13 | | | second dimension | |
//! | 13..19 | | | second shift (32: unused) | |
//! | 19..24 | | | bits of the slot number | |
//! | 8..32 | rows | blocks | | separator line |
//! | 32..64 | first row | first block | first child | first child |
//!
//! The word 0 is the leaf with no rows. Leaves have even kinds.

use super::block::Blocks;
use super::row::{Key, Row, SEPARATORS};
use super::rule::MAX_DIMS;

/// The maximum number of rows in a leaf word.
pub(super) const MAX_LEAF_ROWS: usize = (1 << 24) - 1;

/// A node's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Word(pub(super) u64);

/// Word kinds.
pub(super) const LEAF: u64 = 0;
/// A node that hashes leading bits of one or two dimensions.
pub(super) const HASH: u64 = 1;
/// A node that ranks one dimension among separators.
pub(super) const RANK: u64 = 3;
/// A leaf of blocks instead of rows.
pub(super) const BLOCKS: u64 = 2;

/// How a hash node maps keys to slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HashCut {
    pub(super) dim_a: u8,
    pub(super) shift_a: u8,
    pub(super) dim_b: u8,
    /// 32 if only the first dimension is hashed.
    pub(super) shift_b: u8,
    pub(super) slot_bits: u8,
}

/// 2^64 divided by the golden ratio: distributes any one or two fields over the top bits.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The slot of a pair of shifted values.
#[inline(always)]
pub(super) fn slot_of(a: u32, b: u32, slot_bits: u32) -> u32 {
    let mixed = (u64::from(a) | u64::from(b) << 32).wrapping_mul(HASH_MULTIPLIER);
    (mixed >> (64 - slot_bits)) as u32
}

impl Word {
    /// The leaf with no rows.
    pub(super) const EMPTY: Self = Self(LEAF);

    pub(super) fn leaf(first_row: u32, rows: u32) -> Self {
        Self(LEAF | u64::from(rows) << 8 | u64::from(first_row) << 32)
    }

    pub(super) fn blocks(first_block: u32, blocks: u32) -> Self {
        Self(BLOCKS | u64::from(blocks) << 8 | u64::from(first_block) << 32)
    }

    pub(super) fn hash(cut: HashCut, first_child: u32) -> Self {
        Self(
            HASH | u64::from(cut.dim_a) << 2
                | u64::from(cut.shift_a) << 5
                | u64::from(cut.dim_b) << 10
                | u64::from(cut.shift_b) << 13
                | u64::from(cut.slot_bits) << 19
                | u64::from(first_child) << 32,
        )
    }

    pub(super) fn rank(dim: u8, line: u32, first_child: u32) -> Self {
        Self(RANK | u64::from(dim) << 2 | u64::from(line) << 8 | u64::from(first_child) << 32)
    }

    #[inline(always)]
    pub(super) fn kind(self) -> u64 {
        self.0 & 3
    }

    #[inline(always)]
    pub(super) fn is_leaf(self) -> bool {
        self.0 & 1 == 0
    }

    /// First child, or first row or block of a leaf.
    #[inline(always)]
    pub(super) fn base(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Rows or blocks of a leaf.
    #[inline(always)]
    pub(super) fn rows(self) -> u32 {
        (self.0 as u32) >> 8
    }

    /// Separator line of a rank node.
    #[inline(always)]
    pub(super) fn line(self) -> u32 {
        (self.0 as u32) >> 8
    }

    /// The (first) dimension of an inner node.
    #[inline(always)]
    pub(super) fn dim(self) -> usize {
        (self.0 >> 2) as usize & (MAX_DIMS - 1)
    }

    /// The child of a hash node for a key.
    #[inline(always)]
    pub(super) fn hash_child(self, key: &Key) -> u32 {
        let word = self.0;
        let a = key.0[self.dim()] >> (word >> 5 & 31);
        let b = u64::from(key.0[(word >> 10) as usize & (MAX_DIMS - 1)]) >> (word >> 13 & 63);
        self.base().wrapping_add(slot_of(a, b as u32, (word >> 19 & 31) as u32))
    }
}

/// One tree: its root, and its first rule, so that a packet with an earlier match skips it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    pub(super) root: Word,
    pub(super) first_rule: u32,
}

/// One line of separators: the last value of each child but the last, ascending, padded with `u32::MAX`.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u32; SEPARATORS]);

/// The trees, and the arrays that their words point into.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub(super) trees: Vec<Tree>,
    pub(super) words: Vec<Word>,
    pub(super) lines: Vec<Line>,
    pub(super) rows: Vec<Row>,
    /// Rule index of each row, for schemas that leave no lane of the row free.
    pub(super) ids: Vec<u32>,
    /// Rules of long leaves.
    pub(super) blocks: Blocks,
}

impl Forest {
    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.trees.as_slice())
            + size_of_val(self.words.as_slice())
            + size_of_val(self.lines.as_slice())
            + size_of_val(self.rows.as_slice())
            + size_of_val(self.ids.as_slice())
            + self.blocks.bytes()
    }
}
