//! Shared by the examples that measure: cores, the clock, and the summary of several rounds.

use rustix::thread::CpuSet;
use std::time::{Duration, Instant};
pub use testkit::cycles::per_ns as ticks_per_ns;

/// How long a row runs before it is measured.
pub const WARM: Duration = Duration::from_millis(30);
/// Rounds, in each of which all rows run in turn.
pub const ROUNDS: usize = 9;

pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).expect("a core of this machine");
}

/// Runs turns for the given time and measures them. Each turn returns how many packets it processed. The
/// result is in cycles for each packet or, without packets, for each half of a turn.
pub fn clock(ticks_per_ns: f64, measured: Duration, mut turn: impl FnMut() -> usize) -> f64 {
    let (mut through, mut turns, mut start, mut long) = (0, 0u64, Instant::now(), WARM);
    loop {
        through += turn();
        turns += 1;
        if turns.is_multiple_of(64) && start.elapsed() > long {
            if long == measured {
                break;
            }
            (through, turns, start, long) = (0, 0, Instant::now(), measured);
        }
    }
    let count = if through == 0 { 2 * turns } else { through as u64 };
    start.elapsed().as_nanos() as f64 * ticks_per_ns / count as f64
}

/// The median of the rounds' figures and their spread.
pub fn median_and_range(figures: &mut [f64]) -> String {
    figures.sort_by(f64::total_cmp);
    let [low, middle, high] = [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at]);
    format!("{middle:>7.1}  {low:.1} to {high:.1}")
}
