//! Elements that Click configurations name and chains do not need: scripts, control sockets, captures as elements, summary
//! dumps, measurements, generators, shapers, schedulers, active queue management, printers, and elements for tests.
//!
//! The folders are those of the crate `elements`, which does not use this one, and a few more.

pub mod analysis;
pub mod basic;
pub mod checks;
pub mod control;
pub mod ether;
pub mod io;
pub mod ip;
pub mod ip6;
pub mod queue;
pub mod script;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

use element::Class;

/// The classes, by folder.
pub const CLASSES: &[&[&Class]] = &[
    analysis::CLASSES,
    basic::CLASSES,
    checks::CLASSES,
    control::CLASSES,
    ether::CLASSES,
    io::CLASSES,
    ip::CLASSES,
    ip6::CLASSES,
    queue::CLASSES,
    script::CLASSES,
];
