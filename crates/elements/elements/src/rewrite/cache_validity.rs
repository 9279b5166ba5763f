//! The cache validity of mappings: how long the flow cache may use a mapping without a lookup.
//!
//! The flow cache runs the program for a flow once in each lease, which records the use. If a mapping's last
//! use is older than the lease, the cache does not hold it. So the reaper waits for a lease longer, and a
//! mapping that is removed earlier counts as a change.

use super::flow::{Kind, at};
use super::mappings::Mappings;
use super::timeouts::Timeouts;
use ir::{CacheValidity, Lasting};
use table::flow::RecordId;

/// Most removed lines that are listed.
const MOST_GONE: usize = 8192;
/// The longest lease.
const LONGEST_NS: u64 = 2_000_000_000;

impl Timeouts {
    fn lease_ns(&self) -> u64 {
        (self.shortest_ns() / 8).min(LONGEST_NS)
    }
}

impl Mappings {
    pub(super) fn cache_validity(&self) -> Option<CacheValidity> {
        let ns = self.settings.timeouts.lease_ns();
        (ns > 0).then_some(CacheValidity {
            ns,
            misses: false,
            changes: self.leased.lost_count,
            gone: Some(self.leased.gone.len()),
        })
    }

    pub(super) fn lasting(&self, offset: u16) -> Lasting {
        match offset {
            at::KEEP_MASK if self.settings.kind == Kind::Address => Lasting::Fixed,
            // A FIN or RST is never missed: only packets without it are remembered.
            at::LAST_NS | at::OPEN_NS => Lasting::Time,
            at::FIN_NS | at::RST_NS | at::SEEN | at::CONDEMNED => Lasting::Moving,
            _ => Lasting::Fixed,
        }
    }

    /// Records that a mapping is removed, which was last used at a time.
    pub(super) fn note_going(&mut self, record: RecordId, last_ns: u64) {
        if self.leased.ns == 0 || last_ns.saturating_add(self.leased.ns) < self.now_ns {
            return;
        }
        if self.leased.gone.len() >= MOST_GONE {
            self.leased.gone.clear();
            self.leased.lost_count += 1;
        }
        let lines = self.lines(record);
        self.leased.gone.extend(lines);
    }
}
