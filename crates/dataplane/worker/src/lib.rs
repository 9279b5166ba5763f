//! A packet thread and its graph.
//!
//! A packet's trip: a source's task fills a vector. [`Worker`] runs element after element over index lists
//! into it, until every packet was sent, dropped or kept. Each worker has its own copy of the graph;
//! [`element::StateScope`] defines the state that copies of an element share. This crate depends on no
//! element class: the graph holds the elements.
//!
//! - [`clock`]: the clocks; [`virtual_clock`]: virtual time; [`counters`]: the packet counters of a node; `caller`: elements that call handlers
//!   at certain packets
//! - [`graph`]: an element in a graph, and the wires of its ports
//! - [`fusion`]: fused regions of elements that run as one program
//! - [`passage`]: queues that packets pass
//! - [`mailbox`]: requests from other threads to a worker; [`exchange`]: exchanges elements for ones with
//!   another configuration
//! - [`handoff`]: packets that one worker hands over to another; `deferred`: packets that elements emit
//!   outside their batches; `waiting`: packets in the middle of a burst; `order`: the nodes' order;
//!   `printed`: lines about packets until the burst has passed
//! - [`profile`]: measures a worker's cycles for each element on request
//! - [`quiescence`]: the workers' progress and the end of a run; [`stop_requests`]: the end that elements
//!   request; `ending`: what a worker does before it; [`report`]: the packet accounting; [`texts`]: the
//!   configuration, for its handlers
//! - `worker`: the loop, and the paths of packets through the graph
//!
//! No code here waits, allocates, locks or calls the system for each packet. `runtime` builds the graphs.

mod caller;
pub mod clock;
pub mod counters;
mod deferred;
mod ending;
pub mod exchange;
pub mod fusion;
pub mod graph;
pub mod handoff;
pub mod mailbox;
mod order;
pub mod passage;
mod printed;
pub mod profile;
pub mod quiescence;
pub mod report;
pub mod stop_requests;
pub mod texts;
pub mod virtual_clock;
mod waiting;
mod worker;

pub use worker::{DEFAULT_BURST, Worker};
