//! What virtual devices of a chain file are made of: dispatch by policy, and ways to send.
//!
//! - `dispatch`: to all devices that want a frame
//! - `origin_switch`: the port across from the one that a packet came in by
//! - `peel`: tags and tunnels off frames
//! - `flow_switch`: all packets of a flow by one port
//!
//! The chain file puts them into the configuration; they can stand in any Click configuration, too.

use element::class::Class;

mod dispatch;
mod flow_switch;
mod origin_switch;
mod peel;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&dispatch::CLASS, &flow_switch::CLASS, &origin_switch::CLASS, &peel::CLASS];

#[cfg(test)]
mod tests;
