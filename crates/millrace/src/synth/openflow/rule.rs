//! A rule for a switch, and which goes before which.

use super::matches::Match;

/// Priorities: of classes, of the first and last of a list, of frames by their type, of types that another rule leaves
/// out, of all other types.
pub const OF_CLASS: u16 = 60_000;
pub const OF_LIST: (u16, u16) = (50_000, 1_000);
pub const OF_TYPE: u16 = 200;
pub const OF_TYPE_LEFT: u16 = 150;
pub const OF_OTHER_TYPES: u16 = 100;

/// A rule of the table that decides.
pub struct Rule {
    pub priority: u16,
    pub class: usize,
    pub what: Match,
    pub drop: bool,
}
