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
use ir::{CacheValidity, HeldRecord, Holder, Lasting, Merge};
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
            at::FIN_NS | at::RST_NS | at::CONDEMNED.. => Lasting::Moving,
            _ => Lasting::Fixed,
        }
    }

    /// The mapping of a line, and which of its lines it is.
    fn place_of(&self, line: u64) -> Option<(RecordId, u16)> {
        let record = self.flows.record_at(line)?;
        let [first, _] = self.lines(record);
        Some((record, ((line - first) / LINE_BYTES as u64) as u16))
    }

    fn held(&self, record: RecordId, offset: u16, bytes: u8) -> u64 {
        let [_, second] = self.lines(record);
        self.flows.load(second, usize::from(offset), bytes)
    }

    fn set_held(&mut self, record: RecordId, offset: u16, bytes: u8, value: u64) {
        let [_, second] = self.lines(record);
        self.flows.store(second, usize::from(offset), bytes, value);
    }

    /// What of a flow cache uses a line of a mapping.
    fn holder_at(&self, record: RecordId, number: u16) -> Holder {
        let entry = self.held(record, at::HOLDERS + 3 * number, 3) as u32;
        Holder { entry, is_shared: self.held(record, at::HELD, 1) >> number & 1 != 0 }
    }

    /// What of a flow cache uses a line.
    pub(super) fn holder(&self, line: u64) -> Holder {
        self.place_of(line).map(|(record, number)| self.holder_at(record, number)).unwrap_or_default()
    }

    /// Notes what of a flow cache uses a line.
    pub(super) fn hold_line(&mut self, line: u64, by: Holder) {
        let Some((record, number)) = self.place_of(line) else { return };
        let bits = self.held(record, at::HELD, 1) & !(1 << number);
        self.set_held(record, at::HELD, 1, bits | u64::from(by.is_shared) << number);
        self.set_held(record, at::HOLDERS + 3 * number, 3, u64::from(by.entry));
    }

    /// The lines of a mapping that are held.
    fn held_lines(&self, record: RecordId) -> impl Iterator<Item = HeldRecord> + use<> {
        let lines = self.lines(record);
        let holders = [0, 1].map(|number| self.holder_at(record, number));
        let all = lines.into_iter().zip(holders).map(|(record, holder)| HeldRecord { record, holder });
        all.filter(|line| line.holder != Holder::default())
    }

    /// Whether a flow cache may have counted packets of a mapping.
    pub(super) fn is_held(&self, record: RecordId) -> bool {
        self.held_lines(record).next().is_some()
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

    /// Asks for the numbers of a mapping that is due by its own, if a cache holds it.
    pub(super) fn ask_for(&mut self, record: RecordId) {
        let lines = self.held_lines(record);
        self.held.asked.extend(lines);
        self.held.unanswered = self.held.asked.len();
    }

    /// Notes that a line's numbers, which were asked for, are merged. Behind the last one, the mappings that
    /// are due all the same are removed.
    pub(super) fn settle_line(&mut self, line: u64, is_held: bool) {
        if !is_held {
            self.hold_line(line, Holder::default());
        }
        self.held.unanswered = self.held.unanswered.saturating_sub(1);
        if self.held.unanswered == 0 {
            self.end_due();
        }
    }
}
