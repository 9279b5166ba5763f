//! The interface of a daemon: requests and responses by HTTP over a UNIX socket.
//!
//! - [`api`]: the serialized types; `millrace ... --json` prints the responses
//! - [`platform`]: the operations that a daemon implements
//! - [`server`]: serves a platform, and checks the user at the other end of the socket
//! - [`client`]: sends requests to a daemon
//! - [`metrics`]: the counters for Prometheus
//! - [`runtime_dir`]: the folder of the sockets
//!
//! No packet thread runs this code. A platform reads counters that packet threads write, and queues requests
//! for them.

pub mod api;
pub mod client;
pub mod metrics;
pub mod platform;
pub mod runtime_dir;
pub mod server;

pub use client::{Client, ClientError};
pub use platform::{ChainRefusal, Platform, Refusal};
pub use runtime_dir::RuntimeDir;
