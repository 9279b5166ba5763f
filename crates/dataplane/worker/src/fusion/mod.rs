//! Fused regions of transparent elements that run as one program.
//!
//! A *fused region* is a set of push elements with programs that are wired to each other. Packets that enter it
//! from elsewhere run through the linked program ([`synth::link`]) and come out at its exits: a wire to an
//! element that is not of the fused region, a drop, a slow path. The elements stay: they own the tables, answer
//! handlers, have slow paths, and run one by one what enters the fused region in its middle, which is rare: what
//! a slow path let go, what an element sends by itself. Cells are the same in both ways, see
//! [`crate::graph::Node::cells`].
//!
//! - [`FusedRegion`]: a fused region of one worker, and what it is linked of (`source`)
//! - [`find()`]: the fused regions in a graph
//! - [`CompiledRegion`]: the program that is run; `cpu`: where it is made
//! - `cache`: its flow cache, and `users`: which entries of that hang on which records
//!
//! A burst's way through it is `worker::region`'s, which keeps its counters, too.

mod cache;
mod compiled;
mod cpu;
mod find;
mod fused_region;
mod region_source;
mod users;

pub(crate) use cache::Cache;
pub use cache::{CacheCounts, FlowCache};
pub use compiled::CompiledRegion;
pub use find::{Cut, find};
pub use fused_region::{FormWanted, FusedRegion, How};
