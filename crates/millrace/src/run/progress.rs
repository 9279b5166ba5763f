//! The progress line of a run.

use crate::text::{count, rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::Running;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A progress line on standard error, where that is a terminal.
pub struct Progress {
    bar: ProgressBar,
    last: Cell<(Instant, u64)>,
}

/// How often the line changes.
const PERIOD: Duration = Duration::from_millis(200);

impl Progress {
    /// A progress line; hidden if not `shown`.
    pub fn new(shown: bool) -> Progress {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Progress { bar, last: Cell::new((Instant::now(), 0)) }
    }

    /// Shows the counters of the run, at most once in a [`PERIOD`].
    pub fn update(&self, running: &Running) {
        let (at, before) = self.last.get();
        let passed = at.elapsed();
        if passed < PERIOD {
            return;
        }
        let report = running.report();
        let received = report.received();
        self.bar.set_message(format!(
            "in {}  out {}  dropped {}  {}",
            count(received),
            count(report.sent()),
            count(report.dropped()),
            rate((received - before) as f64 / passed.as_secs_f64(), "pps")
        ));
        self.bar.tick();
        self.last.set((Instant::now(), received));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
