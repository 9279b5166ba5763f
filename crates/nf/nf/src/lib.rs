//! What a network function links: packets by descriptor, read and written where they lie.
//!
//! A program that Millrace starts, or that attaches to it, takes packets from the host and gives every one of
//! them back: sent out of an interface, dropped for a reason, or held for later. There are two ways to write
//! one. [`run`] calls a function for each batch (NetVM's NetLib):
//!
//! ```no_run
//! # fn main() -> Result<(), nf::NfError> {
//! use nf::Access;
//! let mut bytes = 0;
//! nf::run(&nf::Options::new("counter"), |batch: &mut nf::Batch<'_>| {
//!     bytes += batch.iter().map(|packet| packet.len() as u64).sum::<u64>();
//!     batch.pass();
//! })
//! # }
//! ```
//!
//! [`Link`] gives packets to a loop of the NF's own (MVMP's mvAPI): [`Link::receive`], [`Link::send`],
//! [`Link::drop_for`], [`Link::hold`], [`Link::make`].
//!
//! Nothing here frees memory: an NF never sees a free list (design: "NFs never touch a free list"). A
//! [`Packet`] that goes out of scope is dropped by its NF, and counted so.
//!
//! - [`message`] and [`socket`]: the handshake, over a UNIX socket that passes memory
//! - `attach`: the NF's side of it
//! - [`ends`]: the NF's ends of its rings
//! - [`neighbours`]: next hops, whose Ethernet addresses the host finds out
//! - [`handler`]: values that operators read and write
//! - `link`, `batch`, `packet`, `metadata`: what NFs are written against
//!
//! Invariants: every packet that was received goes back once; slots that the host granted to make packets in
//! are used for nothing else; what an NF's own memory says is never taken for what the host said.

mod attach;
mod batch;
mod direct;
pub mod ends;
pub mod handler;
mod link;
pub mod message;
mod metadata;
pub mod neighbours;
mod packet;
pub mod socket;

/// Views of headers, checksums, flow keys: everything that reads and writes packets by [`Access`].
pub use ::packet as headers;
pub use ::packet::access::Access;

pub use crate::packet::Packet;
pub use attach::{Attached, GroupFiles, Options, attach};
pub use batch::{Batch, Nf, run, run_with};
pub use handler::{Call, Handler, HandlerAccess, Merge};
pub use link::{Held, Link};
pub use metadata::Metadata;
pub use neighbours::Neighbour;

/// The environment variable that says where the host is: `fd:N`, a socket that was left open for this program,
/// or the path of a daemon's socket.
pub const ENVIRONMENT: &str = "MILLRACE_NF";

/// The environment variable that says which NF of the chain a program is, where a daemon asks.
pub const NAME_ENVIRONMENT: &str = "MILLRACE_NF_NAME";

/// What can go wrong between an NF and its host. Its `Debug` form is the sentence, too: that is what a `main`
/// which returns it shows.
#[derive(thiserror::Error)]
pub enum NfError {
    /// The program was not started by Millrace.
    #[error(
        "{ENVIRONMENT} is not set: this program is a network function; name it in a chain file \
         (`program = \"...\"`) and start that with `millrace run`, or set {ENVIRONMENT} to the socket of a daemon"
    )]
    NoHost,
    /// What the environment says is no place of a host.
    #[error("{ENVIRONMENT} is `{0}`, which is neither `fd:NUMBER` nor the path of a socket")]
    BadHost(String),
    /// The socket failed.
    #[error("cannot {action} the host: {source}")]
    Socket {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The other side hung up.
    #[error("the host hung up")]
    HungUp,
    /// A message that is none.
    #[error("the other side sent what is no message: {0}")]
    BadMessage(String),
    /// The host does not want this NF.
    #[error("the host refused: {0}")]
    Refused(String),
    /// The two sides speak different versions.
    #[error(
        "the host speaks version {theirs} of the attach protocol and this program version {ours}: build both from \
         the same release"
    )]
    Version {
        /// The host's.
        theirs: u32,
        /// This program's.
        ours: u32,
    },
    /// Memory cannot be mapped.
    #[error(transparent)]
    Memory(#[from] shm::ShmError),
    /// The NF itself says that it cannot run.
    #[error("{0}")]
    CannotStart(String),
    /// An index of the host cannot be: its memory was written over.
    #[error("the rings are broken: somebody wrote over them")]
    Broken,
}

impl std::fmt::Debug for NfError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
