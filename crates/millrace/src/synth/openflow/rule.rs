//! A rule for a switch, and the priorities of rules.

use super::matches::Match;

/// The priority of rules of a class of IPv4 packets.
pub const OF_CLASS: u16 = 60_000;
/// The priorities of the first and the last rule of a list.
pub const OF_LIST: (u16, u16) = (50_000, 1_000);
/// The priority of drops of an Ethernet type.
pub const OF_TYPE: u16 = 200;
/// The priority of Ethernet types that a drop of all others leaves out.
pub const OF_TYPE_LEFT: u16 = 150;
/// The priority of drops of all other Ethernet types.
pub const OF_OTHER_TYPES: u16 = 100;

/// A rule of the table that drops or forwards.
pub struct Rule {
    pub priority: u16,
    pub class: usize,
    pub what: Match,
    pub drop: bool,
}
