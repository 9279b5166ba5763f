//! `TimedSink`: pulls a packet now and then, and drops it.

use super::interval::interval_text;
use click::config::{Args, parse};
use element::value::written;
use element::{Class, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work};
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "TimedSink",
    summary: "periodically pulls and drops packets",
    page: "\
# TimedSink([INTERVAL])

Pulls a packet every INTERVAL and drops it.

- **ports**: 1 pull input, no output
- **arguments**: `INTERVAL` (seconds, default 0.5)
- **handlers**: `interval` (read/write)
- **drop reasons**: `discarded`
- **difference**: with several workers each pulls a packet every INTERVAL
",
    codes: PortCodes::new("1/0", "l/l"),
    state: StateScope::PerWorker,
    make: |cx| cx.opaque(make),
};

struct TimedSink {
    interval_ns: u64,
    next_ns: u64,
}

fn make(args: &mut Args<'_>) -> Option<TimedSink> {
    let interval = args.positional("INTERVAL", |text, names| {
        let interval = parse::seconds_ns(text, names)?;
        let none = || diag::Diagnostic::error(text.span, "an interval longer than 0 is expected");
        if interval > 0 { Ok(interval) } else { Err(none()) }
    });
    Some(TimedSink { interval_ns: interval.unwrap_or(500_000_000), next_ns: 0 })
}

impl Opaque for TimedSink {}

impl Task for TimedSink {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let late_ns = work.now_ns().checked_sub(self.next_ns);
        // An interval shorter than a turn of the worker: several packets are due.
        let due = late_ns.map_or(0, |late_ns| late_ns / self.interval_ns + 1);
        if due == 0 {
            work.wake_at(self.next_ns);
            return Progress::Idle;
        }
        self.next_ns = self.next_ns.saturating_add(due.saturating_mul(self.interval_ns));
        let most = usize::try_from(due).unwrap_or(usize::MAX).min(work.burst());
        let pulled = work.pull(0, most, vector);
        let (packets, list) = vector.parts();
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            work.drop(0, std::slice::from_ref(packet));
        }
        vector.clear();
        // Packets may come meanwhile from what does not run at once: virtual time must not go past the next turn.
        work.wake_at(self.next_ns);
        if pulled > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for TimedSink {
    element::facts!(writes: false, reasons: &["discarded"], handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn start(&mut self, work: &mut Work<'_>) {
        self.next_ns = work.now_ns().saturating_add(self.interval_ns);
    }
}

const HANDLERS: &[Row<TimedSink>] = &[Row::read_write(
    "interval",
    |sink, _| Some(interval_text(sink.interval_ns)),
    |sink, value, _| match written(value, parse::seconds_ns)? {
        0 => Err("an interval longer than 0 is expected".into()),
        interval_ns => {
            sink.interval_ns = interval_ns;
            Ok(())
        }
    },
)];
