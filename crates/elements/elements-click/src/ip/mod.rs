//! Elements that make UDP flows and pings, answer pings, or make packets of any bytes; Click's names of ICMP messages.

use element::Class;

mod fast_udp_flows;
mod force;
pub(crate) mod icmp_name;
mod icmp_ping_source;
mod icmppingresponder;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &fast_udp_flows::CLASS,
    &force::ICMP,
    &force::IP,
    &force::TCP,
    &force::UDP,
    &icmp_ping_source::CLASS,
    &icmppingresponder::CLASS,
];

#[cfg(test)]
mod tests;
