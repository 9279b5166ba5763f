//! Lookup structures for the packet path: flow tables, longest-prefix match, rule sets and
//! port pools.
//!
//! Everything here but [`directory`] is owned by one core: nothing locks, nothing reads a clock (time is an
//! argument), and nothing allocates in a lookup. Structures that grow do so in bounded steps.
//! Figures: `cargo run --release -p millrace-table --example lookup_cycles`.

pub mod acl;
pub mod directory;
mod error;
pub mod flow;
pub mod lpm;
mod memory;
pub mod portpool;
mod prefetch;
mod random;

pub use error::TableError;
pub use random::Random;
