//! The interface of a daemon: what can be asked of it and said to it, by HTTP over a UNIX socket.
//!
//! - [`api`]: the types on the wire, whose answers are also what `millrace ... --json` prints
//! - [`platform`]: what a daemon implements
//! - [`server`]: serves a platform; checks who is at the other end of the socket
//! - [`client`]: asks a daemon
//! - [`metrics`]: the same figures for Prometheus
//! - [`runtime_dir`]: where the sockets are
//!
//! Nothing of this runs on a packet thread: a platform reads counters that others write, and leaves word.

pub mod api;
pub mod client;
pub mod metrics;
pub mod platform;
pub mod runtime_dir;
pub mod server;

pub use client::{Client, ClientError};
pub use platform::{Platform, Refusal};
pub use runtime_dir::RuntimeDir;
