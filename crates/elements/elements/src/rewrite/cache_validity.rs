//! What the mappings guarantee to a flow cache.
//!
//! A cache may use a mapping's line without a lookup while it *holds* it, and then counts the packets and
//! their times itself. Each line has a bit for that. A held mapping that goes is reported. One that would
//! expire by its own numbers is asked for first: the cache merges what it counted, and the mapping's age is
//! determined again. So mappings expire as without a cache.

use super::flow::{Kind, LINE_BYTES, at};
use super::held_lines::MOST;
use super::mappings::Mappings;
use super::program::STREAMING_PACKETS;
use ir::{CacheValidity, Lasting, Merge};
use packet::view::protocol;
use table::flow::RecordId;

impl Mappings {
    pub(super) fn cache_validity(&self) -> CacheValidity {
        CacheValidity { misses: false, changes: self.held.lost_count, gone: Some(self.held.gone.len()) }
    }

    pub(super) fn lasting(&self, line: u64, offset: u16) -> Lasting {
        let is_tcp = || {
            let of = self.flows.load(line, usize::from(at::PROTOCOL), 1);
            self.settings.timeouts.tcp && of == u64::from(protocol::TCP)
        };
        match offset {
            at::KEEP_MASK if self.settings.kind == Kind::Address => Lasting::Fixed,
            at::LAST_NS | at::OPEN_NS => Lasting::Merged(Merge::Max),
            at::SEEN if is_tcp() => Lasting::Merged(Merge::Or),
            at::SEEN => Lasting::Merged(Merge::SumTo(STREAMING_PACKETS)),
            // A FIN or RST is never missed: only packets without it have entries.
            at::FIN_NS | at::RST_NS | at::CONDEMNED | at::HELD => Lasting::Moving,
            _ => Lasting::Fixed,
        }
    }

    /// The mapping of a line, and the line's bit among those that are held.
    fn held_bit(&self, line: u64) -> Option<(RecordId, u64)> {
        let record = self.flows.record_at(line)?;
        let [first, _] = self.lines(record);
        Some((record, 1 << ((line - first) / LINE_BYTES as u64)))
    }

    fn set_held(&mut self, record: RecordId, held: u64) {
        let [_, second] = self.lines(record);
        self.flows.store(second, usize::from(at::HELD), 1, held);
    }

    /// The bits of a mapping's lines that are held.
    pub(super) fn held_bits(&self, record: RecordId) -> u64 {
        let [_, second] = self.lines(record);
        self.flows.load(second, usize::from(at::HELD), 1)
    }

    /// Marks a line as held.
    pub(super) fn hold_line(&mut self, line: u64) {
        if let Some((record, bit)) = self.held_bit(line) {
            self.set_held(record, self.held_bits(record) | bit);
        }
    }

    /// The lines of a mapping that are held.
    fn held_lines(&self, record: RecordId) -> impl Iterator<Item = u64> + use<> {
        let held = self.held_bits(record);
        (0..).zip(self.lines(record)).filter(move |(number, _)| held >> number & 1 != 0).map(|(_, line)| line)
    }

    /// Records that a mapping is removed, or that one of its keys leads elsewhere.
    pub(super) fn note_going(&mut self, record: RecordId) {
        if self.held.gone.len() >= MOST {
            self.held.gone.clear();
            self.held.lost_count += 1;
        }
        let lines = self.held_lines(record);
        self.held.gone.extend(lines);
    }

    /// Asks for the numbers of a mapping that is due by its own; false if nobody holds it.
    pub(super) fn ask_for(&mut self, record: RecordId) -> bool {
        let is_held = self.held_bits(record) != 0;
        // The others are asked for in a later round.
        if is_held && self.held.asked.len() < MOST {
            let lines = self.held_lines(record);
            self.held.asked.extend(lines);
        }
        is_held
    }

    /// Removes a mapping whose numbers were asked for and merged if it is due all the same.
    pub(super) fn settle_line(&mut self, line: u64, is_held: bool) {
        let Some((record, bit)) = self.held_bit(line) else { return };
        if !is_held {
            self.set_held(record, self.held_bits(record) & !bit);
        }
        if self.age(record).due_ns <= self.now_ns {
            self.remove(record);
        }
    }
}
