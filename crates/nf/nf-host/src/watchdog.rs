//! The watchdog of an NF: whether it returns packets, and whether its loop runs.
//!
//! The worker that enqueues to an NF records its activity ([`NfActivity`]). The NF counts its turns in a word
//! of its page (the heartbeat). The supervisor reads both periodically ([`Watch`]). An NF of the SDK counts
//! at least every 10 ms, with or without packets. An NF that has packets, returns none and does not count for
//! [`QUIET_PATIENCE`] has missed hundreds of turns: it is blocked, or it loops, which its CPU time shows. An
//! NF that still counts may keep packets on purpose (a delay, a shaper). It is ended only if it has used up
//! its quota while other packets wait for room, for [`HOARD_PATIENCE`].
//!
//! An NF can forge all values that are read here. It can then run for longer, but never hold more than its
//! quota.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long an NF with packets may neither return a packet nor count a turn.
pub const QUIET_PATIENCE: Duration = Duration::from_secs(5);
/// How long an NF may return no packet while others wait because its quota is used up.
pub const HOARD_PATIENCE: Duration = Duration::from_secs(30);

/// The activity that the link records. Only the link writes these words.
#[derive(Debug, Default)]
pub struct NfActivity {
    /// Packets that the NF returned, over all processes.
    given: AtomicU64,
    /// Packets that the NF holds.
    held: AtomicU64,
    /// How often packets found no room.
    crowded: AtomicU64,
}

impl NfActivity {
    /// Records how many packets this process has returned, and how many it holds.
    #[inline]
    pub fn observe(&self, given: u64, held: u64) {
        self.given.store(given, Relaxed);
        self.held.store(held, Relaxed);
    }

    /// Packets that the NF holds.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Records that packets found no room.
    #[inline]
    pub fn note_crowded(&self) {
        self.crowded.store(self.crowded.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The kernel's statistics of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    /// Its state: `R`, `S`, `T`, `t` and so on.
    pub state: u8,
    /// CPU time in hundredths of a second.
    pub ticks: u64,
}

impl Running {
    /// The statistics of a process id.
    pub fn of(pid: u64) -> Option<Running> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Running::parse(&stat)
    }

    /// Parses `/proc/PID/stat`. The second field is a name in parentheses that may contain any character.
    fn parse(stat: &[u8]) -> Option<Running> {
        let behind = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = stat.get(behind + 1..)?.split(|byte| *byte == b' ').skip(1);
        let state = *fields.next()?.first()?;
        let mut number =
            |skip: usize| std::str::from_utf8(fields.nth(skip)?).ok()?.trim_end().parse::<u64>().ok();
        let (user, system) = (number(10)?, number(0)?);
        Some(Running { state, ticks: user + system })
    }
}

/// The watchdog's record of one process.
#[derive(Debug)]
pub struct Watch {
    given: u64,
    crowded: u64,
    beats: u64,
    /// Since when the NF has held packets and returned none.
    owing_since: Instant,
    /// When the NF last counted a turn.
    beat_at: Instant,
    /// The process's state and CPU time at half of the patience.
    suspected: Option<Running>,
}

impl Watch {
    /// Starts the watchdog for a process that receives packets from now on.
    pub fn new(now: Instant) -> Watch {
        Watch { given: 0, crowded: 0, beats: 0, owing_since: now, beat_at: now, suspected: None }
    }

    /// Checks an NF; returns why it is to be ended, if it is. Reads the CPU time only of a suspected NF.
    pub fn look(
        &mut self,
        now: Instant,
        activity: &NfActivity,
        beats: u64,
        running: impl FnOnce() -> Option<Running>,
    ) -> Option<&'static str> {
        let (given, held) = (activity.given.load(Relaxed), activity.held.load(Relaxed));
        if given != self.given || held == 0 {
            (self.given, self.owing_since, self.suspected) = (given, now, None);
            self.crowded = activity.crowded.load(Relaxed);
        }
        if beats != self.beats {
            (self.beats, self.beat_at, self.suspected) = (beats, now, None);
        }
        let owing = now.duration_since(self.owing_since);
        let quiet = owing.min(now.duration_since(self.beat_at));
        if quiet > QUIET_PATIENCE / 2 && self.suspected.is_none() {
            self.suspected = running();
            return None;
        }
        if quiet > QUIET_PATIENCE {
            let (before, after) = (self.suspected?, running()?);
            let used = Duration::from_millis(10 * after.ticks.saturating_sub(before.ticks));
            return match after.state {
                // A debugger has stopped it.
                b't' => None,
                _ if used > QUIET_PATIENCE / 20 => {
                    Some("loops (it has packets, uses the processor, and gives nothing back)")
                }
                _ => Some("stalls (it has packets, and does nothing)"),
            };
        }
        let crowded = activity.crowded.load(Relaxed) != self.crowded;
        (owing > HOARD_PATIENCE && crowded)
            .then_some("keeps packets (it has all that it may have, and gives none back)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(20);

    /// Checks repeatedly for the given time; returns why the NF is ended, and when.
    fn watch(
        long: Duration,
        activity: &NfActivity,
        mut each: impl FnMut(u64) -> (u64, Running),
    ) -> Option<(&'static str, Duration)> {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        (1..).map(|turn| (turn, TURN * turn)).take_while(|(_, at)| *at <= long).find_map(|(turn, at)| {
            let (beats, running) = each(u64::from(turn));
            Some((watch.look(start + at, activity, beats, || Some(running))?, at))
        })
    }

    fn running(state: u8, ticks: u64) -> Running {
        Running { state, ticks }
    }

    #[test]
    fn one_that_stands_still_is_told_from_one_that_goes_round() {
        let activity = NfActivity::default();
        activity.observe(9, 1);
        let (why, at) = watch(HOARD_PATIENCE, &activity, |_| (7, running(b'S', 3))).expect("ended");
        assert!(why.starts_with("stalls") && at < QUIET_PATIENCE + 10 * TURN, "{why} {at:?}");
        let (why, at) = watch(HOARD_PATIENCE, &activity, |turn| (7, running(b'R', 2 * turn))).expect("ended");
        assert!(why.starts_with("loops") && at > QUIET_PATIENCE, "{why} {at:?}");
    }

    #[test]
    fn one_without_packets_may_rest() {
        let activity = NfActivity::default();
        activity.observe(9, 0);
        assert_eq!(watch(4 * HOARD_PATIENCE, &activity, |_| (7, running(b'S', 3))), None);
    }

    #[test]
    fn one_that_gives_or_counts_lives() {
        let activity = NfActivity::default();
        let gives = |turn: u64| {
            activity.observe(turn / 200, 5);
            activity.note_crowded();
            (0, running(b'S', 0))
        };
        assert_eq!(watch(4 * HOARD_PATIENCE, &activity, gives), None);
        // The NF counts and has packets, and no packet waits: it may be a delay.
        let activity = NfActivity::default();
        activity.observe(1, 500);
        assert_eq!(watch(4 * HOARD_PATIENCE, &activity, |turn| (turn, running(b'S', 0))), None);
        // Now other packets wait.
        let crowded = |turn| {
            activity.note_crowded();
            (turn, running(b'S', 0))
        };
        let (why, at) = watch(4 * HOARD_PATIENCE, &activity, crowded).expect("ended");
        assert!(why.starts_with("keeps") && at > HOARD_PATIENCE, "{why} {at:?}");
    }

    #[test]
    fn one_in_a_debugger_is_let_be() {
        let activity = NfActivity::default();
        activity.observe(9, 1);
        assert_eq!(watch(2 * QUIET_PATIENCE, &activity, |_| (7, running(b't', 3))), None);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = b"77 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 11 22 0 0 20\n";
        assert_eq!(Running::parse(stat), Some(running(b'R', 33)));
        for end in 0..stat.len() - 10 {
            assert!(Running::parse(&stat[..end]).is_none_or(|found| found.ticks <= 33));
        }
        assert!(Running::of(u64::from(std::process::id())).is_some());
    }
}
