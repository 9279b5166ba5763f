//! Ethernet headers, VLAN tags and ARP.

use element::Class;

pub mod arp_message;
mod arp_querier;
mod arp_resolved;
mod arp_responder;
mod arp_table;
mod arp_waiting;
mod drop_broadcasts;
mod ensure_ether;
mod ether_encap;
mod ether_mirror;
mod ether_rewrite;
mod ether_switch;
mod ether_vlan_encap;
pub mod header;
mod host_ether_filter;
mod mark_mac_header;
mod neighbours;
mod store_ether_address;
mod vlan;
mod vlan_anno;
mod vlan_tag;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &arp_querier::CLASS,
    &arp_responder::CLASS,
    &arp_table::CLASS,
    &drop_broadcasts::CLASS,
    &ensure_ether::CLASS,
    &ether_encap::CLASS,
    &ether_mirror::CLASS,
    &ether_rewrite::CLASS,
    &ether_switch::CLASS,
    &ether_vlan_encap::ENCAP,
    &ether_vlan_encap::STRIP,
    &host_ether_filter::CLASS,
    &mark_mac_header::CLASS,
    &store_ether_address::CLASS,
    &vlan::VLAN_DECAP,
    &vlan::VLAN_ENCAP,
    &vlan_anno::CLASS,
];

#[cfg(test)]
mod tests;
