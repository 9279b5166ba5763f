//! What chains are made of: where packets come in and go out, headers, filters, rewriters, routes, next hops, queues,
//! instances of NFs.
//!
//! The elements stand in folders by what they are about; a folder's `mod.rs` lists its classes. What only
//! configurations that were written for Click name stands in the crate `elements-click`.

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
