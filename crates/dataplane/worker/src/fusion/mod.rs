//! Fused regions of transparent elements that run as one program.
//!
//! A *fused region* is a set of push elements with programs that are wired to each other. Packets that enter
//! it from outside run through the linked program ([`synth::link`]) and leave it at its exits: a wire to an
//! element outside the region, a drop, a slow path. The elements stay in the graph: they own the tables,
//! answer handlers and have the slow paths. Packets that enter the region in its middle run through the
//! elements one by one. Such packets are rare: a slow path released them, or an element emitted them by
//! itself. Both execution modes use the same cells, see [`crate::graph::Node::cells`].
//!
//! - [`FusedRegion`]: a fused region of one worker, and the programs from which it is linked
//!   (`region_source`)
//! - [`RegionLayout`]: the parts of a region; [`find()`]: the fused regions in a graph; `usual_wires`: where packets usually go in one,
//!   and `turns`: where they would turn back; `in_order`: where packets are put in order between regions;
//!   `senders`: which elements without a program send packets
//! - [`TooLarge`]: a region that is too large to be compiled, and what made it so
//! - [`CompiledRegion`]: the program that runs; `cpu`: the threads that compile it
//! - [`FastWork`]: what a fast path leaves for the flow cache to save
//! - `cache`: its flow cache; `first_packet`: first packets of flows, for it; `admission`: which flows
//!   get an entry; `entries`: its entries, and
//!   merging what they count; `users`: the entries that use each table record; `makers`: the tables that may
//!   end records; `flow_set`: flows that are known for something
//! - `part_tables`: the tables of a region's elements; `unions`: those that are asked in a row by one key, as one
//!
//! `worker::fused_regions` pushes bursts through a region and settles its counters.

mod admission;
mod cache;
mod compiled;
mod cpu;
mod entries;
mod fast_work;
mod find;
mod first_packet;
mod flow_set;
mod fused_region;
mod in_order;
mod layout;
mod limits;
mod makers;
mod part_tables;
mod region_source;
mod senders;
mod turns;
mod unions;
mod users;
mod usual_wires;

pub(crate) use cache::Cache;
pub use cache::{CacheCounts, FlowCache};
pub use compiled::CompiledRegion;
pub use fast_work::FastWork;
pub use find::find;
pub use fused_region::{FusedRegion, How};
pub use layout::{Leads, RegionLayout, RegionPart};
pub use limits::{Measured, TooLarge};
pub(crate) use part_tables::PartTables;
pub use region_source::NotFused;
