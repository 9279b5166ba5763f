//! Lookup structures for the packet path: flow tables, longest-prefix match, rule sets and
//! port pools.
//!
//! One core owns each structure except [`directory`]: there are no locks, no clock is read (time is an
//! argument), and a lookup does not allocate. Structures that grow do so in bounded steps. Figures: `cargo
//! run --release -p millrace-table --example lookup_cycles`.

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
