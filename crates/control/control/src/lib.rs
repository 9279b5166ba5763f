//! The interface of a daemon: what can be asked of it and said to it, by HTTP over a UNIX socket.
//!
//! - [`api`]: the types on the wire, whose answers are also what `millrace ... --json` prints
//! - [`platform`]: what a daemon implements
//! - [`server`]: serves a platform; checks who is at the other end of the socket
//! - [`client`]: asks a daemon
//! - [`metrics`]: the same figures for Prometheus
//! - [`place`]: where the sockets are
//!
//! Nothing of this runs on a packet thread: a platform reads counters that others write, and leaves word.

pub mod api;
pub mod client;
pub mod metrics;
pub mod place;
pub mod platform;
pub mod server;

pub use client::{Client, ClientError};
pub use place::Place;
pub use platform::{Platform, Refusal};
