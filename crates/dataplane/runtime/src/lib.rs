//! A chain assembled, opened, started, read and ended.
//!
//! - [`registry`]: the element classes; [`packages`]: what `require` may ask for
//! - [`mod@assemble`]: from a flat configuration to one graph for each worker; [`services`]: what elements get
//!   meanwhile
//! - [`ports`]: what names of ports mean, and each worker's share of them; [`traffic`]: the frames of ports with
//!   generated traffic
//! - [`launch`]: all of that in its order, for who has read a chain
//! - [`nfs`]: who starts NFs in processes of their own, and their packet memory
//! - [`running`]: a chain that runs; [`handlers`]: its handlers, NFs in processes too
//! - [`mod@check`]: mistakes of NFs in processes of their own
//! - [`nf_process`]: the process of an NF that is a Click configuration: this program again; [`brief`]: what it is told
//! - [`cores`]: cores that processes of NFs are kept off
//!
//! What a packet meets meanwhile is the crate `worker`'s, and the host's end of NFs in processes `nf_host`'s.

pub mod assemble;
pub mod brief;
pub mod check;
pub mod cores;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod handlers;
pub mod launch;
pub mod nf_process;
pub mod nfs;
pub mod packages;
pub mod ports;
pub mod registry;
pub mod running;
pub mod services;
pub mod traffic;

pub use assemble::{AssembleError, Assembly, Options, assemble};
pub use registry::KnownClasses;
pub use running::{Outcome, Running};
pub use services::PortOpener;
