//! Virtual devices (MVMP, section 3.1): ports that several NFs share, and queues between NFs.
//!
//! - `read`: the tables `[device.NAME]`
//! - `flows`: the NFs between which devices pass packets
//! - `build`: the elements that a device becomes
//!
//! A device is no element and no object at run time. It is resolved when the chain is composed, so that it
//! means the same in every execution mode.

mod build;
mod flows;
mod read;

pub(super) use build::{Nfs, build};
pub(super) use flows::{Flow, Openers, flows, joined};
pub(super) use read::read;
