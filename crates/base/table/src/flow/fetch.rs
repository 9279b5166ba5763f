//! Prefetches the memory that changes to a table will read: the cache misses of several flows at once instead
//! of one after the other.

use super::{FlowTable, RecordId};

impl<const W: usize> FlowTable<W> {
    /// Prefetches the memory that removing these flows reads: the first two lines of their records, up to two
    /// keys each, and the buckets of those keys. A few dozen at a time are best.
    pub fn fetch_for_removal(&self, records: &[RecordId]) {
        let flows = &self.records;
        records.iter().for_each(|&record| flows.fetch(record));
        records.iter().for_each(|&record| flows.fetch_key(flows.first_key(record)));
        for &record in records {
            self.fetch_bucket(flows.first_key(record));
            flows.fetch_key(flows.key_after(flows.first_key(record)));
        }
        records.iter().for_each(|&record| self.fetch_bucket(flows.key_after(flows.first_key(record))));
    }

    /// Prefetches the bucket of a key.
    pub fn fetch_place(&self, key: &[u64; W]) {
        self.index.prefetch(self.index.first_slot(self.seed.hash(key)));
    }

    fn fetch_bucket(&self, node: u32) {
        if let Some(key) = self.records.key_at(node) {
            self.fetch_place(&key);
        }
    }
}
