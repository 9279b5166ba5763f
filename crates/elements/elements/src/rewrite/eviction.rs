//! The choice of the mapping that a new one replaces in a full table.
//!
//! An established TCP connection is never replaced, nor is a mapping during its guarantee. Of the others those of
//! connections that have ended go first, then those of flows without a reply, then the rest; among these the first to
//! expire, and within a second the one that was made first. If none may go, the new flow is refused; so it is, as in
//! Click, if it has no guarantee itself and would expire before the one that goes.
//!
//! A table of up to 64 mappings is searched whole for each new flow. In a larger one, a search of [`WINDOW`] finds
//! several, which go one after the other, and one that found none counts for some more flows: so a flood of new flows
//! costs a few looks for each. Nothing here depends on the time between two packets, or on how many came in a burst,
//! so that all execution modes choose alike.

use super::ageing::Age;
use super::mappings::{Mappings, Others, Refusal};
use super::standing::{Rank, Standing, WINDOW};
use ir::MERGED_WITHIN_NS;
use table::flow::RecordId;

const SECOND_NS: u64 = 1_000_000_000;

/// The records of the largest table that is searched whole for each new flow. One is that of the mapping that is made
/// before another one goes.
const ALL: u32 = 64 + 1;
/// The part of the searched records that a search yields at most.
const YIELD: u32 = 4;
/// The part of the searched records that is the number of flows for which a search that found none counts.
const PAUSE: u32 = 64;

impl Mappings {
    /// Where a mapping is in the order in which they go.
    pub(super) fn rank(&self, record: RecordId) -> Rank {
        self.rank_of(record, &self.age(record))
    }

    fn rank_of(&self, record: RecordId, age: &Age) -> Rank {
        let creation = self.evictions.creations.get(record.number() as usize).copied().unwrap_or(0);
        Rank { standing: age.standing, due_s: age.due_ns / SECOND_NS, creation }
    }

    /// The same, if the mapping may be evicted now.
    fn may_go(&self, record: RecordId) -> Option<Rank> {
        let age = self.age(record);
        let mut rank = self.rank_of(record, &age);
        if age.standing == Standing::Established || self.is_condemned(record) {
            return None;
        }
        // What a flow cache counted is merged late; only a guarantee must be kept all the same.
        let is_late = age.guaranteed_ns > age.last_ns && !self.is_merged && self.is_held(record);
        let late_ns = if is_late { MERGED_WITHIN_NS } else { 0 };
        let mut guaranteed_ns = age.guaranteed_ns.saturating_add(late_ns);
        // Packets of this burst that have found the mapping, and have not stored anything yet: it lasts longer for
        // them, and may be established by them.
        if self.is_in_use(record) {
            if self.settings.timeouts.watches(age.protocol) {
                return None;
            }
            let since_ns = self.now_ns.saturating_sub(age.last_ns);
            guaranteed_ns = guaranteed_ns.saturating_add(since_ns);
            rank.due_s = age.due_ns.saturating_add(since_ns) / SECOND_NS;
        }
        (guaranteed_ns <= self.now_ns).then_some(rank)
    }

    /// The mapping that makes room for a new one of a protocol.
    pub(super) fn victim(&mut self, protocol: u8) -> Result<RecordId, Refusal> {
        let (rank, record) = self.first_to_go()?;
        let (timeout_ns, guarantee_ns) = self.settings.timeouts.of_new_ns(protocol);
        if guarantee_ns == 0 && self.now_ns.saturating_add(timeout_ns) / SECOND_NS < rank.due_s {
            // For the next flow another one may be the first to go.
            return Err(Refusal::TableFull);
        }
        Ok(record)
    }

    fn first_to_go(&mut self) -> Result<(Rank, RecordId), Refusal> {
        if self.evictions.pause > 0 {
            self.evictions.pause -= 1;
            return Err(Refusal::TableFull);
        }
        // What is left of the last search may not be what it was: the record may belong to another mapping by now, or
        // have seen a packet.
        while let Some((rank, record)) = self.evictions.next.pop() {
            if self.others == Others::MayWaitFor && self.is_in_use(record) {
                self.evictions.next.push((rank, record));
                self.wait_for_others()?;
            }
            if self.flows.is_live(record) && self.may_go(record) == Some(rank) {
                return Ok((rank, record));
            }
        }
        self.wait_for_others()?;
        let looked_at = self.look_for_victims();
        let found = self.evictions.next.pop();
        if found.is_none() && looked_at > ALL {
            self.evictions.pause = looked_at / PAUSE;
        }
        found.ok_or(Refusal::TableFull)
    }

    /// Whether packets earlier in the burst have found a mapping.
    fn is_in_use(&self, record: RecordId) -> bool {
        self.lines(record).iter().any(|line| self.in_use.contains(line))
    }

    /// Searches a part of the table. Returns how many records were looked at.
    fn look_for_victims(&mut self) -> u32 {
        let records = self.flows.touched() as u32;
        let looks = records.min(WINDOW);
        let mut found = std::mem::take(&mut self.evictions.next);
        for _ in 0..looks {
            self.evictions.from = if self.evictions.from >= records { 1 } else { self.evictions.from + 1 };
            let record = self.flows.record_numbered(self.evictions.from);
            found.extend(record.and_then(|record| Some((self.may_go(record)?, record))));
        }
        // The first to go is taken first, from the end of the list. Those of another kind are not kept: mappings that
        // are made meanwhile may be of a kind that goes earlier.
        found.sort_unstable_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        let most = if looks <= ALL { 1 } else { (looks / YIELD) as usize };
        let first = found.last().map(|(rank, _)| rank.standing);
        let kept = found.iter().rev().take(most).take_while(|(rank, _)| Some(rank.standing) == first).count();
        found.drain(..found.len() - kept);
        self.evictions.next = found;
        looks
    }
}
