//! The elements behind virtual devices of a chain file: dispatch by policy, and ways to send.
//!
//! - `dispatch`: sends a frame to all devices that want it
//! - `origin_switch`: chooses the output by the port that a packet came in by
//! - `peel`: removes tags and tunnel headers
//! - `flow_switch`: sends all packets of a flow to one port
//!
//! The chain file adds them to the configuration; any Click configuration may use them, too.

use element::class::Class;

mod dispatch;
mod flow_switch;
mod origin_switch;
mod peel;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&dispatch::CLASS, &flow_switch::CLASS, &origin_switch::CLASS, &peel::CLASS];

#[cfg(test)]
mod tests;
