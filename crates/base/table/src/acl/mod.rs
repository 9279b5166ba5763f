//! Packet classification by large rule lists: first match wins.
//!
//! A [`Rule`] is one closed interval for each dimension of a [`Schema`] (a prefix is an interval,
//! a wildcard is the whole range); [`Classifier::build`] turns a list of them into a structure that
//! answers "which is the first rule that this key lies in".
//!
//! How it works, and why:
//!
//! - Up to [`LINEAR_MAX`] rules are compared sixteen at a time, dimension by dimension, with no
//!   branch: below that size nothing that chases a pointer is faster.
//! - Larger lists become a short row of trees (a *forest*). A tree node either hashes the leading
//!   bits of one or two dimensions (what tuple-space search does, but with one coarse mask, so that
//!   one or two tables take in nearly all rules) or ranks one dimension among sixteen separators
//!   that fill one cache line. Rules too wide for the root's mask go to the next tree instead of
//!   being copied many times. A leaf is a run of rules, one cache line each, compared over all
//!   dimensions by one vector operation.
//! - No estimate foresees how often rules get copied further down, so a few forests are grown in
//!   different ways, sample keys are looked up in each, and the one that takes fewest steps stays.
//! - A batch is walked level by level, the next line of each packet prefetched one pass ahead, and
//!   the lists of packets still walking are compacted without branches.
//!
//! Invariants:
//!
//! - The answer is that of a linear scan ([`first_match`]), always: trees only choose which rules
//!   are compared, every candidate is compared over all dimensions.
//! - Building never exceeds [`Limits::max_bytes`], and stops refining after
//!   [`Limits::max_build_ms`]; what is left unrefined becomes longer leaves, which are slower and
//!   still right. Nothing else ends a build but rules that contradict their schema, or a byte limit
//!   below one cache line for each rule.
//!
//! What this module deliberately does not do: update in place (a rule set is an immutable
//! snapshot, build another), match bits under a mask with holes (write it as several intervals), or
//! cache flows.

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

/// What building may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Upper bound of [`Classifier::bytes`]. While building, two candidates may exist side by side,
    /// and lists of four bytes for each stored rule.
    pub max_bytes: usize,
    /// Time after which no node is refined any more. Finishing up takes a little longer: the time
    /// to copy at most `max_bytes`.
    pub max_build_ms: u64,
}

impl Default for Limits {
    /// 64 MiB and two seconds.
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_build_ms: 2_000 }
    }
}
