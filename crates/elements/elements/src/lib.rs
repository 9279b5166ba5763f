//! The elements of chains: devices, headers, filters, rewriters, routes, neighbours, queues, and instances of
//! NFs.
//!
//! Each folder is about one subject, and its `mod.rs` lists the classes. The crate `elements-click` has those
//! that only configurations written for Click use.

pub mod basic;
pub mod device;
pub mod ether;
pub mod filter;
pub mod instance_switch;
pub mod io;
pub mod ip;
pub mod ip6;
pub mod queue;
pub mod resolve;
pub mod rewrite;
pub mod route;

mod program;
#[cfg(test)]
mod testing;

use element::Class;

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
    instance_switch::CLASSES,
];
