//! Expiry of mappings.
//!
//! A mapping expires its timeout after its last packet. During its guarantee it cannot be evicted from a full
//! table. The timeout depends on the flow: whether TCP was closed, whether both directions had payload,
//! whether UDP streams.
//!
//! Each tick looks at a few records, so many that each is seen once in a *round*: a fraction of the shortest
//! timeout, and at most the reap interval. So there is no pause, and a mapping is removed within a round
//! after its timeout.

use super::flow::{Kind, at};
use super::held_lines::MOST;
use super::mappings::Mappings;
use super::program::{SEEN_PAYLOAD, SEEN_PLAIN, SEEN_SYN};
use super::standing::Standing;
use table::flow::RecordId;

const SECOND_NS: u64 = 1_000_000_000;

/// The age of a mapping, from both its lines.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    /// Input that made it.
    pub input: u8,
    /// Protocol.
    pub protocol: u8,
    /// Its end if no packet comes.
    pub due_ns: u64,
    /// Until then it cannot be evicted.
    pub guaranteed_ns: u64,
    /// When its last packet was recorded.
    pub last_ns: u64,
    /// How far the flow has come.
    pub standing: Standing,
}

/// The longest round.
const ROUND_NS: u64 = 10 * SECOND_NS;
/// The most records that one tick looks at, whose lines a flow cache may all be asked for.
const MOST_PER_TICK: usize = MOST / 2;
impl Mappings {
    /// How old a mapping is.
    pub(super) fn age(&self, record: RecordId) -> Age {
        let lines = self.lines(record);
        let get = |at: u16| self.flows.load(lines[0], usize::from(at), 1) as u8;
        let (input, protocol) = (get(at::INPUT), get(at::PROTOCOL));
        let both = |at: u16, bytes: u8| lines.map(|line| self.flows.load(line, usize::from(at), bytes));
        let (seen, [forward_ns, reply_ns]) = (both(at::SEEN, 1), both(at::LAST_NS, 8));
        let last_ns = forward_ns.max(reply_ns);
        let timeouts = &self.settings.timeouts;
        let (timeout_ns, guarantee_ns, standing) = if timeouts.watches(protocol) {
            let rst_ns = both(at::RST_NS, 8).into_iter().fold(0, u64::max);
            let (fin_ns, open_ns) = (both(at::FIN_NS, 8), both(at::OPEN_NS, 8));
            let closed = |(fin_ns, open_ns): (u64, u64)| {
                (fin_ns > 0 && fin_ns >= open_ns) || (rst_ns > 0 && rst_ns >= open_ns)
            };
            let is_done = fin_ns.into_iter().zip(open_ns).all(closed);
            let timeout_ns = if is_done {
                timeouts.tcp_done_ns
            } else if seen[0] & seen[1] & SEEN_PAYLOAD != 0 {
                timeouts.tcp_data_ns
            } else {
                timeouts.tcp_nodata_ns
            };
            let standing = match seen {
                _ if is_done => Standing::Ended,
                [0, _] | [_, 0] => Standing::Unanswered,
                [a, b] if (a | b) & SEEN_PLAIN == 0 => Standing::Unanswered,
                [a, b] if a & b & SEEN_SYN != 0 => Standing::Established,
                _ => Standing::Answered,
            };
            (timeout_ns, timeouts.tcp_guarantee_ns, standing)
        } else {
            let has_ports = self.settings.kind == Kind::Ports;
            let streams = has_ports && seen[1] > 0 && seen[0] + seen[1] >= 3;
            let timeout_ns = if streams { timeouts.streaming_ns } else { timeouts.other_ns };
            let is_answered = if has_ports { seen[1] > 0 } else { reply_ns > 0 };
            let standing = if is_answered { Standing::Answered } else { Standing::Unanswered };
            (timeout_ns, timeouts.guarantee_ns, standing)
        };
        let guaranteed_ns = last_ns.saturating_add(guarantee_ns);
        let due_ns = last_ns.saturating_add(timeout_ns).max(guaranteed_ns);
        let standing = if due_ns <= self.now_ns { Standing::Ended } else { standing };
        Age { input, protocol, due_ns, guaranteed_ns, last_ns, standing }
    }

    fn round_ns(&self) -> u64 {
        let round = (self.settings.timeouts.shortest_ns() / 4).min(ROUND_NS);
        round.min(self.settings.reap_interval_ns).max(1)
    }

    /// Removes expired mappings among as many records as the time since the last call allows.
    pub(super) fn reap(&mut self) {
        let now_ns = self.now_ns;
        let since_ns = now_ns - self.reaper.last_ns.unwrap_or(now_ns).min(now_ns);
        self.reaper.last_ns = Some(now_ns);
        // What nobody answered in the last tick has no cache any more.
        self.held.asked.clear();
        self.end_due();
        if self.settings.reap_interval_ns == 0 || self.flows.is_empty() {
            self.reaper.credit = 0;
            return;
        }
        // Record numbers are reused, so that the highest is not far above what was ever in use at once.
        let (round, records) = (u128::from(self.round_ns()), self.flows.touched() as u128);
        let credit = (self.reaper.credit + u128::from(since_ns) * records).min(round * records);
        let mut budget = usize::try_from(credit / round).unwrap_or(MOST_PER_TICK).min(MOST_PER_TICK);
        self.reaper.credit = credit - budget as u128 * round;
        while let Some(record) = self.flows.step(&mut budget) {
            if self.age(record).due_ns <= now_ns {
                self.reaper.due.push(record);
                self.ask_for(record);
            }
        }
        if self.held.unanswered == 0 {
            self.end_due();
        }
    }

    /// Removes the mappings that were due and still are: once all answers are there, and at the next tick if
    /// nobody answers. They go in the walk's order, with and without a cache: later mappings take their
    /// places, and the walk comes by these places.
    pub(super) fn end_due(&mut self) {
        self.held.unanswered = 0;
        let mut due = std::mem::take(&mut self.reaper.due);
        for record in due.drain(..) {
            // A handler may have removed it since.
            if self.flows.is_live(record) && self.age(record).due_ns <= self.now_ns {
                self.remove(record);
            }
        }
        self.reaper.due = due;
    }

    /// Removes mappings until there are no more than the budget allows; between bursts only.
    pub(super) fn shrink(&mut self) {
        use std::sync::atomic::Ordering::Relaxed;
        let used = self.budget.used.load(Relaxed);
        let over = used.saturating_sub(self.budget.limit.load(Relaxed)) as usize;
        if over == 0 {
            return;
        }
        let mut ranks: Vec<_> = self.flows.iter().map(|record| (self.rank(record), record)).collect();
        ranks.sort_unstable();
        ranks.into_iter().take(over).for_each(|(_, record)| self.remove(record));
    }
}
