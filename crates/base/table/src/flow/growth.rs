//! Growth without a pause: the steps from one index to one twice as large.

use super::FlowTable;
use super::index::{Growth, Index};

/// Buckets moved with each change while an index grows.
pub const MIGRATE_BUCKETS: usize = 4;

/// Pages prepared with each change before an index grows.
const PREPARE_PAGES: usize = 1;
const PAGE_BYTES: usize = 4096;

impl<const W: usize> FlowTable<W> {
    /// Does one step of growth, if it is in progress or due. Every insertion does one; a caller that has
    /// stopped inserting may call it when idle.
    pub fn maintain(&mut self) {
        match &mut self.growth {
            Growth::None => {
                if self.index.used() < self.index.comfortable() {
                    return;
                }
                // Out of memory is not an error yet: the index takes more entries until its limit, and
                // the next insertion tries again.
                if let Ok(larger) = Index::new(self.index.buckets() * 2) {
                    self.growth = Growth::Preparing { larger, touched_bytes: 0 };
                }
            }
            Growth::Preparing { larger, touched_bytes } => {
                let region = larger.region_mut();
                for _ in 0..PREPARE_PAGES {
                    region.touch(*touched_bytes);
                    *touched_bytes += PAGE_BYTES;
                }
                if *touched_bytes >= region.bytes()
                    && let Growth::Preparing { larger, .. } =
                        std::mem::replace(&mut self.growth, Growth::None)
                {
                    let smaller = std::mem::replace(&mut self.index, larger);
                    self.growth = Growth::Migrating { smaller, next_bucket: 0 };
                }
            }
            Growth::Migrating { smaller, next_bucket } => {
                for _ in 0..MIGRATE_BUCKETS.min(smaller.buckets() - *next_bucket) {
                    smaller.drain(*next_bucket, |key, line| {
                        // Twice as large and no fuller than the smaller one: it has room.
                        let moved = self.index.insert(self.seed.hash(&key), &key, line);
                        debug_assert!(moved);
                    });
                    *next_bucket += 1;
                }
                if *next_bucket == smaller.buckets() {
                    debug_assert_eq!(smaller.used(), 0);
                    self.growth = Growth::None;
                }
            }
        }
    }
}
