//! Offsets in a flow-cache entry. Numbers are little-endian, as programs read them.

/// The template's number, or [`OVER`] (2 bytes).
pub const TEMPLATE: u16 = 0;
/// The template's number for the host, which also merges entries that are over (2 bytes).
pub const MERGED_AS: u16 = 2;
/// The host's time of the last merging, in milliseconds modulo 2^32 (4 bytes).
pub const MERGED_MS: u16 = 4;
/// The time of the flow's last packet that the entry noted, in nanoseconds; 0 for none (8 bytes).
pub const LAST_NS: u16 = 8;
/// The start of the flow's own numbers: tallies, parameters, and the addresses of its records.
pub const PARAMS: u16 = 16;
/// The template's number in an entry that packets may not use any more.
pub const OVER: u64 = 0xffff;
/// The maximum size of an entry.
pub const MOST_BYTES: usize = 512;
