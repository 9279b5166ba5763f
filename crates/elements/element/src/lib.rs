//! The element library: each element says its ports, arguments, handlers and drop reasons, and either
//! lowers to the packet IR (*transparent*) or works on batches itself (*opaque*).
//!
//! - [`class`]: what a class is
//! - [`element`]: what an element does
//! - [`configure`]: what an element learns when it is made
//! - [`vector`]: packets in the hands of a worker
//! - [`work`]: what an element asks of the worker while it runs
//! - [`nf`]: what runs as a process of its own, and what becomes of packets there
//! - [`handler`]: values that can be read and written from outside
//! - [`steering`]: which worker a packet belongs to
//! - [`record`]: records for tables that programs read
//!
//! The elements stand in folders by what they are about; a folder's `mod.rs` lists its classes.

pub mod class;
pub mod configure;
pub mod element;
pub mod handler;
pub mod nf;
pub(crate) mod random;
pub mod record;
pub mod steering;
pub(crate) mod value;
pub mod vector;
pub mod work;

pub mod basic;
pub mod device;
pub mod ether;
pub mod filter;
pub mod io;
pub mod ip;
pub mod ip6;
pub mod queue;
pub mod resolve;
pub mod rewrite;
pub mod route;
pub mod script;
pub mod steer;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use class::{Class, StateScope, find};
pub use configure::{Configure, Scope, Services, Shape};
pub use element::{Element, Progress};
pub use handler::{Access as HandlerAccess, Handler, Merge};
pub use vector::{Batch, Vector};
pub use work::{Host, Work};

/// The classes, by folder.
pub const CLASSES: &[&[&Class]] = &[
    basic::CLASSES,
    device::CLASSES,
    ether::CLASSES,
    filter::CLASSES,
    io::CLASSES,
    ip::CLASSES,
    ip6::CLASSES,
    queue::CLASSES,
    resolve::CLASSES,
    rewrite::CLASSES,
    route::CLASSES,
    script::CLASSES,
    steer::CLASSES,
];
