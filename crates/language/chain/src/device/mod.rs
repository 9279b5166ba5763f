//! Virtual devices (MVMP, section 3.1): ports in the hands of several NFs, and queues between NFs.
//!
//! - `read`: the tables `[device.NAME]`
//! - `flows`: which NFs packets can go between, through devices
//! - `build`: the elements that a device becomes
//!
//! A device is no element and no object at run time: it is resolved when the chain is composed, so that it means
//! the same in every way that a chain can run.

mod build;
mod flows;
mod read;

pub(super) use build::{Nfs, build};
pub(super) use flows::{Flow, Openers, flows, joined};
pub(super) use read::read;
