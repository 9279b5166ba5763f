//! Elements that make UDP flows and pings, or answer pings, and Click's names of ICMP messages.

use element::Class;

mod fast_udp_flows;
pub(crate) mod icmp_name;
mod icmp_ping_source;
mod icmppingresponder;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&fast_udp_flows::CLASS, &icmp_ping_source::CLASS, &icmppingresponder::CLASS];

#[cfg(test)]
mod tests;
