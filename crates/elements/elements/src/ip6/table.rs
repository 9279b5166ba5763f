//! Records of IPv6 routes.
//!
//! As in [`crate::route::table`]; a record is 24 bytes: the gateway's halves and the output.

use super::address::halves;
use super::line::Hop;
use crate::route::hops::Next;
use element::record::Records;

/// Offset of the gateway's high half in a record.
pub const HIGH: u16 = 0;
/// Offset of the low half.
pub const LOW: u16 = 8;
/// Offset of the output.
pub const PORT: u16 = 16;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

impl Next for Hop {
    type Address = u128;
    const KEY_WORDS: usize = 2;
    const BYTES: usize = RECORD_BYTES;

    #[inline(always)]
    fn address(keys: &[u64], at: usize) -> u128 {
        u128::from(keys[at]) << 64 | u128::from(keys[at + 1])
    }

    fn store(&self, records: &Records, record: u64) {
        let (high, low) = halves(self.gateway);
        records.store(record, HIGH, 8, high);
        records.store(record, LOW, 8, low);
        records.store(record, PORT, 4, u64::from(self.port));
    }
}
