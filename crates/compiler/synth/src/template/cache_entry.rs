//! Offsets in an entry. Numbers are little-endian, as programs read them.

/// From then on a packet of the flow takes the whole program, which notes its time (8 bytes).
pub const RENEW_NS: u16 = 0;
/// From then on the entry says nothing (8 bytes).
pub const END_NS: u16 = 8;
/// The template's number (2 bytes).
pub const TEMPLATE: u16 = 16;
/// Where the flow's own numbers start.
pub const PARAMS: u16 = 18;
/// No entry has more bytes.
pub const MOST_BYTES: usize = 256;
