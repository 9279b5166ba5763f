//! Which flows get an entry of a flow cache beside those for which it is worth its lookup.
//!
//! Only a recording tells whether an entry is worth it, which costs as much as a hundred packets. What is not worth it is
//! remembered: else such flows take the time for recording from others that share their input. Once many packets use
//! entries all packets are looked up anyway, and those without an entry part the bursts of the others: then every flow
//! that a table knows gets one. Where few do even so, most bursts pass the cache by. Where most entries are over before a
//! packet used them, because flows end each other's records, recording is only tried.

use super::flow_set::FlowSet;
use synth::template::KEY_WORDS;

/// For how many ticks, of a millisecond, they are known: what is worth an entry changes with tables and programs, but
/// what is recorded anew costs time.
const TICKS: u32 = 8000;
/// The part of the packets that has to use entries for all flows to get one, and the part for the cache to be worth it.
const SOME: u64 = 16;
const MANY: u64 = 4;
/// The packets of a tick that say how many do.
const ENOUGH: u64 = 256;
/// Where fewer than that part do for so many ticks, and no entries are added, bursts pass the cache by, all but one in so
/// many.
const FEW_TICKS: u32 = 32;
const SAMPLED: u32 = 16;
/// The refused flows in [`TICKS`] for which recordings go on as if they had yielded an entry: about 15 ms of recording.
const PROGRESS: u32 = 1024;
/// So many new entries tell whether they last.
const ADDED: u32 = 256;

/// Decides which flows get an entry.
#[derive(Debug)]
pub(super) struct Admission {
    refused: FlowSet,
    ticks: u32,
    /// The packets that used entries, and all, until the last tick.
    before: (u64, u64),
    admits_all: bool,
    /// The packets since the last tick that passed the cache by, the ticks for which few packets have used entries, and
    /// the bursts meanwhile.
    passed_by: u64,
    few_ticks: u32,
    bursts: u32,
    /// How many refused flows count as progress yet, and whether one did since this was asked.
    progress_left: u32,
    has_progress: bool,
    /// The entries that were added since it was last decided whether they last, how many ended unused meanwhile, and what
    /// was decided.
    added: u32,
    unused: u32,
    are_lost: bool,
}

impl Admission {
    pub fn new() -> Admission {
        Admission {
            refused: FlowSet::new(),
            ticks: 0,
            before: (0, 0),
            admits_all: false,
            passed_by: 0,
            few_ticks: 0,
            bursts: 0,
            progress_left: PROGRESS,
            has_progress: false,
            added: 0,
            unused: 0,
            are_lost: false,
        }
    }

    /// Takes how many entries were added, and how many ended before a packet had used them.
    pub fn note_entries(&mut self, added: u32, unused: u32) {
        self.added += added;
        self.unused += unused;
        if self.added >= ADDED {
            self.are_lost = self.unused >= self.added / 2;
            (self.added, self.unused) = (0, 0);
        }
    }

    /// Whether entries are used before they end, as far as is known.
    pub fn entries_last(&self) -> bool {
        !self.are_lost
    }

    /// Whether every flow that a table knows gets an entry.
    pub fn admits_all(&self) -> bool {
        self.admits_all
    }

    /// Whether a flow is known not to get one.
    pub fn is_refused(&self, key: &[u64; KEY_WORDS]) -> bool {
        !self.admits_all && self.refused.has(key)
    }

    /// Remembers that a flow does not get one.
    pub fn refuse(&mut self, key: &[u64; KEY_WORDS]) {
        self.refused.add(key);
        self.has_progress |= self.progress_left > 0;
        self.progress_left = self.progress_left.saturating_sub(1);
    }

    /// Whether flows were refused since the last call, so few that it is worth to go on.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_progress)
    }

    /// Whether a burst of so many packets passes the cache by.
    #[inline]
    pub fn passes_by(&mut self, packets: usize) -> bool {
        if self.few_ticks < FEW_TICKS {
            return false;
        }
        self.bursts = self.bursts.wrapping_add(1);
        let passes_by = !self.bursts.is_multiple_of(SAMPLED);
        self.passed_by += if passes_by { packets as u64 } else { 0 };
        passes_by
    }

    /// Takes the packets so far that used entries, and those that did not; and whether entries are being added. Forgets
    /// refused flows from time to time.
    pub fn tick(&mut self, hits: u64, whole: u64, is_learning: bool) {
        let (hits_before, all_before) = self.before;
        let hits_now = hits.wrapping_sub(hits_before);
        let all_now = (hits + whole).wrapping_sub(all_before).saturating_sub(self.passed_by);
        if is_learning {
            self.few_ticks = 0;
        }
        if all_now >= ENOUGH {
            self.admits_all = hits_now.saturating_mul(SOME) >= all_now;
            self.few_ticks = match hits_now.saturating_mul(MANY) < all_now && !is_learning {
                true => self.few_ticks.saturating_add(1),
                false => 0,
            };
            self.before = (hits, hits + whole);
            self.passed_by = 0;
        }
        self.ticks += 1;
        if self.ticks >= TICKS {
            (self.ticks, self.progress_left) = (0, PROGRESS);
            self.refused.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(flow: u64) -> [u64; KEY_WORDS] {
        let mut key = [7; KEY_WORDS];
        key[1] = flow << 20;
        key
    }

    #[test]
    fn refused_flows_are_known_until_they_are_forgotten() {
        let mut admission = Admission::new();
        assert!(!(0..5000).any(|flow| admission.is_refused(&key(flow))));
        (0..500).for_each(|flow| admission.refuse(&key(flow)));
        let known = (0..500).filter(|flow| admission.is_refused(&key(*flow))).count();
        // Some have taken the slot of others: of 500 in 4,096 slots, about 30.
        assert!(known > 400, "{known}");
        assert!(!(500..50_000).any(|flow| admission.is_refused(&key(flow))));
        (0..TICKS).for_each(|_| admission.tick(0, 0, false));
        assert!(!(0..500).any(|flow| admission.is_refused(&key(flow))));
    }

    #[test]
    fn all_flows_get_an_entry_while_many_packets_use_one() {
        let mut admission = Admission::new();
        admission.refuse(&key(1));
        admission.tick(50, 950, false);
        assert!(!admission.admits_all() && admission.is_refused(&key(1)));
        admission.tick(100 + 100, 900 + 900, false);
        assert!(admission.admits_all() && !admission.is_refused(&key(1)));
        // A few packets say nothing.
        admission.tick(200, 1800 + ENOUGH - 1, false);
        assert!(admission.admits_all());
        admission.tick(200, 1800 + 1000, false);
        assert!(!admission.admits_all());
    }

    #[test]
    fn entries_that_end_unused_show_that_none_last() {
        let mut admission = Admission::new();
        admission.note_entries(ADDED - 1, ADDED);
        assert!(admission.entries_last(), "too few to tell");
        admission.note_entries(1, 0);
        assert!(!admission.entries_last());
        admission.note_entries(ADDED, ADDED / 2 - 1);
        assert!(admission.entries_last());
    }

    #[test]
    fn bursts_pass_a_cache_by_that_few_packets_use() {
        let mut admission = Admission::new();
        let mut whole = 0;
        let mut bursts = |admission: &mut Admission, hits: u64, is_learning| {
            let passed = (0..160).filter(|_| admission.passes_by(32)).count();
            whole += 160 * 32;
            admission.tick(hits, whole, is_learning);
            passed
        };
        // While entries are added, nothing is known.
        assert!((0..100).all(|_| bursts(&mut admission, 0, true) == 0));
        assert!((0..FEW_TICKS).all(|_| bursts(&mut admission, 0, false) == 0));
        assert_eq!(bursts(&mut admission, 0, false), 150);
        // Of the sampled packets many use entries: none passes by any more.
        assert_eq!(bursts(&mut admission, 200, false), 150);
        assert_eq!(bursts(&mut admission, 300, false), 0);
    }
}
