//! `TimestampDiff`: how long packets took from a `RecordTimestamp` on.

use super::number_packet::NumberPlace;
use super::record_timestamp::PassTimes;
use click::config::parse::{self, plain};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope, Work};
use shm::burst::Batch;
use std::sync::Arc;

/// The class.
pub const CLASS: Class = Class {
    name: "TimestampDiff",
    summary: "computes the time that packets took since RecordTimestamp",
    page: "\
# TimestampDiff(RECORDER [, keywords OFFSET, N, MAXDELAY, VERBOSE])

Computes how long each packet took since it passed the RecordTimestamp RECORDER, by the number that NumberPacket wrote
into it.

- **ports**: 1 input, 1 or 2 outputs, push; packets whose time is not recorded leave by output 1
- **arguments**: `RECORDER`: a RecordTimestamp; `OFFSET` (0 to 65000, default 40): where the packet's number begins, in
  the recorder's byte order; `N` (0 to 67108864, default 0): the most delays that are kept; 0: 67108864, for which
  room is made as they come; `MAXDELAY` (milliseconds, default 1000): longer delays are not kept; `VERBOSE` (default
  true): print packets with longer delays
- **handlers**: in microseconds: `average` (`avg`), `min`, `max`, `stddev`, `median`, `perc00`, `perc01`, `perc05`,
  `perc10`, `perc25`, `perc75`, `perc90`, `perc95`, `perc99`, `perc100` (read; an argument leaves out so many of the
  first delays); `perc P [FROM]` (read): percentile P; `index`: the number of delays less 1; `last`: the last delay;
  `dump`: a line `NUMBER: DELAY` for each
- **drop reasons**: `no-timestamp`: the packet has no number, or no time is recorded for it
- **workers**: one worker computes
- **difference**: the clock is read once for each burst, here and in the recorder. Delays keep their order when a
  percentile is read, where FastClick sorts them
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::OneWorker,
    make,
};

/// The most delays: 256 MB.
const MOST: i64 = 1 << 26;

struct TimestampDiff {
    name: String,
    times: Arc<PassTimes>,
    offset: usize,
    /// In microseconds.
    delays: Vec<u32>,
    most: usize,
    max_delay_ms: u64,
    verbose: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let name = cx.name.to_string();
    let mut args = cx.args();
    let recorder = args.mandatory_positional("RECORDER", parse::element);
    let offset = args.keyword("OFFSET", parse::int_in(0..=65_000)).unwrap_or(40) as usize;
    let limit = args.keyword("N", parse::int_in(0..=MOST)).unwrap_or(0) as usize;
    let max_delay_ms = args.keyword("MAXDELAY", parse::u32).unwrap_or(1000).into();
    let verbose = args.keyword("VERBOSE", parse::bool).unwrap_or(true);
    let fine = args.finish();
    let recorder = recorder?;
    let (recorded_by, class) = cx.element(&recorder)?;
    if class != "RecordTimestamp" {
        cx.error(recorder.span, format!("`{recorder}` is a {class}, not a RecordTimestamp"));
        return None;
    }
    let times = cx.shared(Scope::Worker, &recorded_by, PassTimes::default)?;
    let most = if limit == 0 { MOST as usize } else { limit };
    let delays = Vec::with_capacity(limit);
    let diff = TimestampDiff { name, times, offset, delays, most, max_delay_ms, verbose };
    fine.then(|| BoxElement::opaque(diff))
}

impl Opaque for TimestampDiff {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let now_ns = work.clock_ns();
        let place = NumberPlace { offset: self.offset, net_order: self.times.is_net_order() };
        let times = self.times.lock();
        for &index in batch.list() {
            let number = place.read(batch.packet(index));
            let passed_ns = number.and_then(|number| times.get(usize::try_from(number).ok()?));
            let Some(passed_ns) = passed_ns.filter(|time_ns| **time_ns > 0) else {
                batch.emit_or_drop(index, 1, 0);
                continue;
            };
            let delay_us = now_ns.saturating_sub(*passed_ns) / 1000;
            if delay_us / 1000 > self.max_delay_ms {
                if self.verbose {
                    let (number, delay_ms) = (number.unwrap_or(0), delay_us / 1000);
                    let (name, max) = (&self.name, self.max_delay_ms);
                    let line = format!("{name}: packet {number} took {delay_ms} ms, more than {max} ms");
                    work.print_about(index, &line);
                }
            } else if self.delays.len() < self.most {
                // A delay below the limit in milliseconds may still be longer than what is kept.
                self.delays.push(u32::try_from(delay_us).unwrap_or(u32::MAX));
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for TimestampDiff {
    element::facts!(writes: false, reasons: &["no-timestamp"], handlers: HANDLERS);

    fn prints(&self) -> bool {
        self.verbose
    }
}

impl TimestampDiff {
    /// The delays from a place on, which an argument names; all of them without an argument. `None` if the
    /// argument is no number.
    fn from(&self, argument: &str) -> Option<&[u32]> {
        let from = match argument.trim() {
            "" => 0,
            from => plain(from, parse::u32)? as usize,
        };
        Some(self.delays.get(from..).unwrap_or_default())
    }

    /// A percentile, as FastClick takes it: the delay at that part of the sorted list.
    fn percentile(&self, percent: f64, argument: &str) -> Option<String> {
        let mut delays = self.from(argument)?.to_vec();
        let place = (percent * delays.len() as f64 / 100.0).max(0.0) as usize;
        let Some(last) = delays.len().checked_sub(1) else { return Some("0".into()) };
        let (_, delay, _) = delays.select_nth_unstable(place.min(last));
        Some(delay.to_string())
    }
}

fn mean(delays: &[u32]) -> f64 {
    delays.iter().map(|delay| u64::from(*delay)).sum::<u64>() as f64 / delays.len().max(1) as f64
}

fn average(diff: &TimestampDiff, argument: &str) -> Option<String> {
    Some(mean(diff.from(argument)?).to_string())
}

fn deviation(diff: &TimestampDiff, argument: &str) -> Option<String> {
    let delays = diff.from(argument)?;
    let mean = mean(delays);
    let squares = delays.iter().fold(0.0, |sum, delay| sum + (f64::from(*delay) - mean).powi(2));
    Some((squares / delays.len().max(1) as f64).sqrt().to_string())
}

fn smallest(diff: &TimestampDiff, argument: &str) -> Option<String> {
    Some(diff.from(argument)?.iter().min().unwrap_or(&0).to_string())
}

fn largest(diff: &TimestampDiff, argument: &str) -> Option<String> {
    Some(diff.from(argument)?.iter().max().unwrap_or(&0).to_string())
}

/// Handlers that can be read with an argument and without.
macro_rules! delays {
    ($($name:literal: $value:expr),* $(,)?) => {
        &[
            $(
                Row::read($name, |diff, _| $value(diff, "")).or_ask($value),
            )*
            Row::ask("perc", |diff, arguments| {
                let (percent, from) = arguments.split_once(' ').unwrap_or((arguments, ""));
                diff.percentile(plain(percent, parse::f64)?, from)
            }),
            Row::read("index", |diff, _| Some((diff.delays.len() as i64 - 1).to_string())),
            Row::read("last", |diff, _| Some(diff.delays.last().unwrap_or(&0).to_string())),
            Row::read("dump", |diff, _| {
                let lines = diff.delays.iter().enumerate().map(|(number, delay)| format!("{number}: {delay}"));
                Some(lines.collect::<Vec<_>>().join("\n"))
            }),
        ]
    };
}

const HANDLERS: &[Row<TimestampDiff>] = delays! {
    "average": average,
    "avg": average,
    "min": smallest,
    "max": largest,
    "stddev": deviation,
    "perc00": smallest,
    "perc01": |diff, argument| TimestampDiff::percentile(diff, 1.0, argument),
    "perc05": |diff, argument| TimestampDiff::percentile(diff, 5.0, argument),
    "perc10": |diff, argument| TimestampDiff::percentile(diff, 10.0, argument),
    "perc25": |diff, argument| TimestampDiff::percentile(diff, 25.0, argument),
    "median": |diff, argument| TimestampDiff::percentile(diff, 50.0, argument),
    "perc75": |diff, argument| TimestampDiff::percentile(diff, 75.0, argument),
    "perc90": |diff, argument| TimestampDiff::percentile(diff, 90.0, argument),
    "perc95": |diff, argument| TimestampDiff::percentile(diff, 95.0, argument),
    "perc99": |diff, argument| TimestampDiff::percentile(diff, 99.0, argument),
    "perc100": largest,
};
