//! Ageing: a clock's hand that walks the records at the caller's pace.

use super::{FlowTable, RecordId};
use std::num::NonZeroU32;

/// The distance from the hand at which records are fetched ahead.
const AHEAD: u32 = 8;

impl<const W: usize> FlowTable<W> {
    /// Moves the clock's hand past `budget` record numbers and removes the flows that have expired.
    ///
    /// `expiry_ns` returns the expiry time of a record (`None`: never). `expired` is called for each
    /// expired record just before it is removed, to free ports and count. Both receive the record's
    /// address. Returns the number of removed records. Also does one step of growth.
    pub fn expire(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut expiry_ns: impl FnMut(*mut u8) -> Option<u64>,
        mut expired: impl FnMut(RecordId, *mut u8),
    ) -> usize {
        self.maintain();
        let mut budget = budget.min(self.touched());
        let mut removed = 0;
        while let Some(record) = self.step(&mut budget) {
            let address = self.record_ptr(record);
            if expiry_ns(address).is_some_and(|due_ns| due_ns <= now_ns) {
                expired(record, address);
                self.remove(record);
                removed += 1;
            }
        }
        removed
    }

    /// The highest record number that was ever in use: the end of the hand's cycle.
    pub fn touched(&self) -> usize {
        self.records.touched as usize
    }

    /// Moves the clock's hand past record numbers, as long as `budget` lasts, to the next record in use,
    /// for callers that read records by [`FlowTable::load`] and decide themselves.
    pub fn step(&mut self, budget: &mut usize) -> Option<RecordId> {
        let touched = self.records.touched;
        while *budget > 0 && touched > 0 {
            *budget -= 1;
            self.hand = if self.hand >= touched { 1 } else { self.hand + 1 };
            if let Some(ahead) = NonZeroU32::new(self.hand + AHEAD).filter(|ahead| ahead.get() <= touched) {
                self.records.fetch(RecordId(ahead));
            }
            if let Some(record) = self.records.live_at(self.hand) {
                return Some(record);
            }
        }
        None
    }
}
