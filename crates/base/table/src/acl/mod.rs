//! Packet classification by large rule lists: first match wins.
//!
//! A [`Rule`] is one closed interval for each dimension of a [`Schema`] (a prefix is an interval, a
//! wildcard is the whole range); [`Classifier::build`] compiles a list of them into a structure that
//! finds the first rule that matches a key.
//!
//! How it works, and why:
//!
//! - Up to [`LINEAR_MAX`] rules are compared sixteen at a time, dimension by dimension, without a branch:
//!   below that size no structure with pointers is faster.
//! - Larger lists become a few trees (a *forest*). A tree node either hashes the leading bits of one or
//!   two dimensions (as tuple-space search does, but with one coarse mask, so that one or two tables
//!   contain nearly all rules) or ranks one dimension among sixteen separators that fill one cache line.
//!   Rules too wide for the root's mask are moved to the next tree instead of being copied many times. A
//!   leaf is a run of rules, one cache line each, compared over all dimensions by one vector operation.
//! - No estimate predicts how often rules are copied at lower levels, so a few forests are grown in
//!   different ways, sample keys are looked up in each, and the one that takes fewest steps is kept.
//! - A batch is walked level by level, the next line of each packet prefetched one pass ahead, and the
//!   lists of packets still walking are compacted without branches.
//!
//! Invariants:
//!
//! - The result is that of a linear scan ([`first_match`]), always: trees only choose which rules are
//!   compared, every candidate is compared over all dimensions.
//! - Building never exceeds [`Limits::max_bytes`], and stops refining after [`Limits::max_build_ms`];
//!   unrefined nodes become longer leaves, which are slower and still correct. A build fails only for
//!   rules that contradict their schema, or a byte limit below one cache line for each rule.
//!
//! Not in this module: updates in place (a rule set is an immutable snapshot, build another), masks with
//! holes (write several intervals), flow caches.

mod block;
mod build;
pub mod classbench;
mod classifier;
mod forest;
mod forest_plan;
pub mod generate;
mod list;
mod row;
mod rule;
mod simd;
#[cfg(test)]
mod tests;
mod walk;

pub use block::LINEAR_MAX;
pub use classifier::{Classifier, Shape};
pub use list::{FiveTuple, RuleList};
pub use rule::{AclError, Interval, MAX_DIMS, MISS, Rule, Schema, first_match};
pub use walk::Steps;

/// The limits of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Upper bound of [`Classifier::bytes`]. During a build there may be two candidates, and lists of
    /// four bytes for each stored rule.
    pub max_bytes: usize,
    /// Time after which no node is refined any more. Completion takes a little longer: the time to copy
    /// at most `max_bytes`.
    pub max_build_ms: u64,
}

impl Default for Limits {
    /// 64 MiB and two seconds.
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_build_ms: 2_000 }
    }
}
