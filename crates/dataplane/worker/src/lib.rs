//! A packet thread and its graph.
//!
//! A packet's trip: a source's task fills a vector; [`Worker`] runs element after element over index lists into it,
//! until every packet was sent, dropped or kept. Each worker has an instance of the whole graph; what elements share
//! they say ([`element::StateScope`]). No element of the library is known here: they are what is in the graph.
//!
//! - [`clock`]: time; [`counters`]: what goes in and out of a node
//! - [`graph`]: an element in a graph, and where its packets go
//! - [`fusion`]: fused regions of elements that run as one program
//! - [`mailbox`]: handlers and elements that other threads leave for a worker; [`exchange`]: other configurations for
//!   elements that run
//! - [`handoff`]: packets from worker to worker; `deferred`: what elements emit beside their batches
//! - [`profile`]: where a worker's cycles go, while somebody asks
//! - [`quiescence`]: how far workers are, and when a run is over; [`report`]: what went where
//! - `worker`: the loop, and packets' ways through the graph
//!
//! Nothing here waits, allocates, locks or asks the system for each packet. How a graph is made is `runtime`'s.

pub mod clock;
pub mod counters;
mod deferred;
pub mod exchange;
pub mod fusion;
pub mod graph;
pub mod handoff;
pub mod mailbox;
pub mod profile;
pub mod quiescence;
pub mod report;
mod worker;

pub use worker::{DEFAULT_BURST, Worker};
