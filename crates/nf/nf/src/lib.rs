//! The library that a network function links: it receives packets by descriptor, and reads and writes them in
//! place.
//!
//! A program that Millrace starts, or that attaches to it, receives packets from the host and returns every
//! one of them: sent out of an interface, dropped for a reason, or held for later. There are two interfaces.
//! [`run`] calls a function for each batch (NetVM's NetLib):
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
//! [`Link`] gives packets to a loop of the NF (MVMP's mvAPI): [`Link::receive`], [`Link::send`],
//! [`Link::drop_for`], [`Link::hold`], [`Link::make`].
//!
//! An NF never frees a slot: it has no access to a free list (design: "NFs never touch a free list"). A
//! [`Packet`] that is dropped as a Rust value counts as a packet dropped by the NF.
//!
//! - [`message`] and [`socket`]: the handshake, over a UNIX socket that passes memory
//! - `attach`: the NF's side of the handshake
//! - [`ends`]: the NF's ends of its rings
//! - [`neighbours`]: next hops, whose Ethernet addresses the host resolves
//! - [`handler`]: values that operators read and write
//! - `link`, `batch`, `packet`, `metadata`: the interface that NFs use
//!
//! Invariants: every packet that was received is returned once. Slots that the host granted for new packets
//! are used for nothing else. Data that an NF can write is never used as data of the host.

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

/// Views of headers, checksums, flow keys: the crate that reads and writes packets by [`Access`].
pub use ::packet as headers;
pub use ::packet::access::Access;

pub use crate::packet::Packet;
pub use attach::{Attached, GroupFiles, Options, attach};
pub use batch::{Batch, Nf, run, run_with};
pub use handler::{Call, Handler, HandlerAccess, Merge};
pub use link::{Held, Link};
pub use metadata::Metadata;
pub use neighbours::Neighbour;

use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable with the address of the host: `fd:N`, a socket that this program inherited, or
/// the path of a daemon's socket.
pub const ENVIRONMENT: &str = "MILLRACE_NF";

/// The environment variable with the name of the NF in the chain, which a daemon needs.
pub const NAME_ENVIRONMENT: &str = "MILLRACE_NF_NAME";

/// The environment variable that is set when the host only asks whether the NF would run; see
/// [`Link::is_check`].
pub const CHECK_ENVIRONMENT: &str = "MILLRACE_NF_CHECK";

/// Whether a host has started this process, and reports what it sends.
pub(crate) static IS_STARTED_BY_HOST: AtomicBool = AtomicBool::new(false);

/// An error between an NF and its host. Its `Debug` text is the same sentence, because a `main` that returns
/// the error prints it by `Debug`; only a reason that the host was told, which started the program and prints
/// it, is not in it.
#[derive(thiserror::Error)]
pub enum NfError {
    /// The program was not started by Millrace.
    #[error(
        "{ENVIRONMENT} is not set: this program is a network function; name it in a chain file \
         (`program = \"...\"`) and start that with `millrace run`, or set {ENVIRONMENT} to the socket of a daemon"
    )]
    NoHost,
    /// The environment variable contains no address of a host.
    #[error("{ENVIRONMENT} is `{0}`, which is neither `fd:NUMBER` nor the path of a socket")]
    BadHost(String),
    /// The socket failed.
    #[error("cannot {action} the host: {source}")]
    Socket {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The other side closed the socket.
    #[error("the host hung up")]
    HungUp,
    /// The received bytes are no message.
    #[error("the other side sent what is no message: {0}")]
    BadMessage(String),
    /// The host refused this NF.
    #[error("the host refused: {0}")]
    Refused(String),
    /// The two sides have different versions of the protocol.
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
    /// The NF reports that it cannot run.
    #[error("{0}")]
    CannotStart(String),
    /// The host wrote an impossible index: the rings were overwritten.
    #[error("the rings are broken: somebody wrote over them")]
    Broken,
}

impl std::fmt::Debug for NfError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The host prints the reason: it is not to be read twice.
            NfError::CannotStart(_) if IS_STARTED_BY_HOST.load(Ordering::Relaxed) => {
                f.write_str("this network function cannot run; its host was told why")
            }
            _ => std::fmt::Display::fmt(self, f),
        }
    }
}
