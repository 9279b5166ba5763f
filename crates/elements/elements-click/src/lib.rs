//! What configurations that were written for Click name beside what chains need: scripts, captures as elements, summary
//! dumps, generators, shapers, schedulers and active queue management, and elements that print.
//!
//! All of it ships, and stands in folders as in the crate `elements`, which needs none of it.

pub mod basic;
pub mod ether;
pub mod io;
pub mod ip;
pub mod queue;
pub mod script;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

use element::Class;

/// The classes, by folder.
pub const CLASSES: &[&[&Class]] =
    &[basic::CLASSES, ether::CLASSES, io::CLASSES, ip::CLASSES, queue::CLASSES, script::CLASSES];
