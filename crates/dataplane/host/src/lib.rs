//! Runs chains: workers, the element graph, handlers, accounts.
//!
//! A packet's trip: a source's task fills a vector ([`worker`]); [`forward`] runs element after
//! element over index lists into it, until every packet was sent, dropped or kept. Each worker has an
//! instance of the whole graph; what elements share they say ([`element::StateScope`]).
//!
//! - [`mod@assemble`]: from a flat configuration to one graph for each worker
//! - [`node`]: an element in a graph, with its books
//! - [`packages`]: what `require` may ask for
//! - [`worker`]: the loop of a packet thread
//! - [`forward`]: pushing and pulling through the graph
//! - [`fused`]: stretches of elements that run as one program
//! - [`control`]: handlers and stops, from other threads
//! - [`handlers`]: the same for a whole chain, NFs in processes too
//! - [`live`]: other configurations for elements that run
//! - [`made`]: the frames of ports with made-up traffic
//! - [`running`]: a chain that runs
//! - [`mod@check`]: mistakes of NFs in processes of their own
//! - [`nf_process`]: the process of an NF that is a Click configuration: this program again; [`brief`]: what it is told
//! - [`cores`]: cores that processes of NFs are kept off
//! - [`probe`]: where a worker's cycles go, while somebody asks
//! - [`registry`]: the element classes
//! - [`report`]: what went where
//! - [`services`]: ports and shared state

pub mod assemble;
pub mod brief;
pub mod check;
pub mod clock;
pub mod control;
pub mod cores;
pub mod forward;
pub mod fused;
pub mod handlers;
pub mod live;
pub mod made;
pub mod nf_process;
pub mod node;
pub mod packages;
pub mod ports;
pub mod probe;
pub mod registry;
pub mod report;
pub mod running;
pub mod services;
pub mod worker;

pub use assemble::{AssembleError, Assembly, Options, assemble};
pub use registry::KnownClasses;
pub use report::{NodeReport, Report};
pub use running::{Outcome, Running};
pub use services::PortOpener;
