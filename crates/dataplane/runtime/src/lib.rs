//! Assembles, opens, starts, observes and ends a chain.
//!
//! - [`registry`]: the element classes; [`packages`]: the packages that `require` may name
//! - [`mod@assemble`]: from a flat configuration to one graph for each worker; [`services`]: the host's
//!   services for elements that are being built
//! - [`ports`]: resolves port names and gives each worker its queue; [`traffic`]: the frames of ports with
//!   generated traffic
//! - [`resources`]: the ports, NFs and L3 interfaces of a chain together
//! - [`launch`]: all of these steps in order, for a loaded chain
//! - [`nfs`]: the start of NFs in processes of their own, and their packet memory
//! - [`running`]: a running chain; [`handlers`]: its handlers, those of NFs in processes included
//! - [`mod@check`]: checks NFs in processes of their own; [`mod@ask`]: starts them to ask whether they would run
//! - [`nf_process`]: the process of an NF that is a Click configuration: this program, started again;
//!   [`brief`]: its configuration
//! - [`cores`]: keeps the processes of NFs off the cores of packet threads; [`machine`]: reports what a chain
//!   needs and this machine lacks
//!
//! The crate `worker` processes the packets, and `nf_host` has the host's end of NFs in processes.

pub mod ask;
pub mod assemble;
pub mod brief;
pub mod check;
pub mod cores;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod handlers;
pub mod launch;
mod loops;
pub mod machine;
pub mod nf_process;
pub mod nfs;
pub mod packages;
pub mod ports;
pub mod registry;
pub mod resources;
pub mod running;
pub mod services;
pub mod traffic;

pub use assemble::{AssembleError, Assembly, Options, assemble};
pub use registry::KnownClasses;
pub use running::{Outcome, Running};
pub use services::Opener;
