//! Which elements without a program send packets into a region.

use crate::graph::Node;

/// Elements without a program that answer few packets of many, or report on them.
const ANSWERING: [&str; 5] = ["ARPResponder", "ICMP6Error", "ICMPError", "ICMPRewriter", "IP6NDAdvertiser"];

/// Whether more than a few packets may come from a node. Where only few come, no packets enter: they run element by
/// element.
pub(super) fn can_send(node: &Node) -> bool {
    node.class.name != "Idle" && !ANSWERING.contains(&node.class.name)
}
