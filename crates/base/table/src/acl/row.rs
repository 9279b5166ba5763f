//! The operands of vector comparisons: a packet's values, rules (single or in blocks of sixteen), separators.
//! Each fills cache lines.

use super::rule::{MAX_DIMS, Rule, Schema};

/// Separators of one node: one cache line; a node has one more child than that.
pub(super) const SEPARATORS: usize = 16;

/// Rules in a block: sixteen 32-bit lanes are one cache line.
pub(super) const BLOCK: usize = 16;

/// The lane of a row that contains the rule's index, if the schema leaves it free.
pub(super) const ID_LANE: usize = MAX_DIMS - 1;

/// The values of one packet, by dimension; lanes after the schema's dimensions have any value.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
pub(super) struct Key(pub(super) [u32; MAX_DIMS]);

/// One rule, one cache line. Matches where `value - lo <= span` (wrapping) in every lane.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Row {
    pub(super) lo: [u32; MAX_DIMS],
    pub(super) span: [u32; MAX_DIMS],
}

impl Row {
    /// Lanes after the schema's dimensions match any value. With fewer than eight dimensions the `lo` of the
    /// last lane is not needed for matching, and contains the rule's index.
    pub(super) fn new(schema: &Schema, rule: &Rule, id: u32) -> Self {
        let mut row = Self { lo: [0; MAX_DIMS], span: [u32::MAX; MAX_DIMS] };
        for ((lo, span), range) in row.lo.iter_mut().zip(&mut row.span).zip(&rule.ranges).take(schema.dims())
        {
            *lo = range.lo;
            *span = range.hi - range.lo;
        }
        if schema.dims() <= ID_LANE {
            row.lo[ID_LANE] = id;
        }
        row
    }
}

/// One dimension of sixteen rules; a rule matches where `value - lo <= span` (wrapping).
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Lane {
    pub(super) lo: [u32; BLOCK],
    pub(super) span: [u32; BLOCK],
}
