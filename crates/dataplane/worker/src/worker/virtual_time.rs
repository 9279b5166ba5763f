//! Virtual time ([`crate::virtual_clock`]): what a worker does when nothing is left to do for now.

use super::Worker;
use super::turn::TICK_NS;
use crate::fusion::FusedRegion;
use crate::virtual_clock::VirtualClock;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest step while nothing happens: elements do housekeeping after each, as often as those of a worker that
/// sleeps.
const MOST_IDLE_NS: u64 = 10_000_000;
/// How long that is so. Behind it steps grow with the time that has passed: a packet of a capture may be due in a
/// century.
const LONG_IDLE_NS: u64 = 3_600_000_000_000;
/// How long a worker sleeps that waits for something outside of virtual time.
const WAIT: Duration = Duration::from_micros(50);

/// How far the time goes at once when nothing has happened for so long.
fn step_ns(idle_ns: u64) -> u64 {
    let step_ns = (idle_ns / 100).max(TICK_NS);
    if idle_ns > LONG_IDLE_NS { step_ns } else { step_ns.min(MOST_IDLE_NS) }
}

impl Worker {
    /// Whether the time stands still, and packets with it: at its end, and until a program is compiled.
    pub(super) fn stands_still(&mut self, clock: &VirtualClock) -> bool {
        let is_at_end = clock.is_at_end();
        if !is_at_end && !self.regions.iter().any(FusedRegion::is_in_the_making) {
            return false;
        }
        self.tick();
        std::thread::sleep(WAIT);
        true
    }

    /// Lets the time go on after a turn in which nothing was to do: until the next thing is due, in steps with
    /// housekeeping.
    pub(super) fn pass_time(&mut self, clock: &VirtualClock, mut epoch: u64, idle_since_ns: u64) {
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let due_ns = timer_ns.min(self.wakes_at_ns).max(self.now_ns + 1);
        loop {
            let step_ns = step_ns(self.now_ns.saturating_sub(idle_since_ns));
            if !clock.idle(self.number, epoch, due_ns, step_ns) {
                // Another worker is busy.
                std::thread::yield_now();
                return;
            }
            let now_ns = clock.now_ns();
            let is_due = now_ns >= due_ns || due_ns == u64::MAX;
            if is_due || clock.is_at_end() || self.mailbox.has_requests() || self.stop.load(Ordering::Relaxed)
            {
                return;
            }
            epoch = clock.epoch();
            self.now_ns = now_ns;
            self.tick();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_century_passes_in_some_thousand_steps_behind_an_hour_of_short_ones() {
        assert_eq!([0, 1_000_000_000, LONG_IDLE_NS].map(step_ns), [TICK_NS, MOST_IDLE_NS, MOST_IDLE_NS]);
        let (mut idle_ns, mut steps) = (LONG_IDLE_NS + 1, 0);
        while idle_ns < 100 * 365 * 24 * LONG_IDLE_NS {
            idle_ns += step_ns(idle_ns);
            steps += 1;
        }
        assert!(steps < 2_000, "{steps}");
    }
}
