//! Offsets in a flow-cache entry. Numbers are little-endian, as programs read them.

/// From this time on a packet of the flow runs through the whole program, which updates its time (8
/// bytes).
pub const RENEW_NS: u16 = 0;
/// From this time on the entry is invalid (8 bytes).
pub const END_NS: u16 = 8;
/// The template's number (2 bytes).
pub const TEMPLATE: u16 = 16;
/// The start of the flow's own numbers.
pub const PARAMS: u16 = 18;
/// The maximum size of an entry.
pub const MOST_BYTES: usize = 256;
