//! `TimeFilter`: lets packets of a time pass.

use super::signed_time::{signed_ns, time_text};
use click::config::parse;
use element::value::set;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::basic::handler_call::HandlerCall;
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "TimeFilter",
    summary: "filters packets by timestamp",
    page: "\
# TimeFilter([START, END, keywords START_DELAY, START_AFTER, END_DELAY, END_AFTER, INTERVAL, STOP, END_CALL])

Passes packets whose timestamps are in a range of time.

- **ports**: 1 input, 1 or 2 outputs, agnostic. Packets with other timestamps leave by output 1, where that is wired and
  packets are pushed
- **arguments**, times in seconds or with a unit: `START`: the first timestamp; or `START_DELAY`: so long after the run
  began, or `START_AFTER`: so long after the timestamp of the first packet. `END`: the timestamp before which the range
  ends; or `END_DELAY` and `END_AFTER`, in the same way, or `INTERVAL`: so long after the start. `END_CALL` (`HANDLER
  [VALUE]`): a write handler that is called for a packet at the end or behind it; `$t` in the value is its timestamp.
  Unless the handler moves the end, it is called once. `STOP` (default false): the run ends there
- **annotations**: reads the timestamp
- **handlers**: `start`, `end` (read/write); `interval` (read/write): the end less the start; `extend_interval` (write):
  moves the end
- **drop reasons**: `too-early`, `too-late`: there is no output 1
- **difference**: with several workers each filters, and calls, for itself
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::PerWorker,
    make,
};

element::reasons!(TOO_EARLY = "too-early", TOO_LATE = "too-late");

/// What a time counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    Epoch,
    Run,
    FirstPacket,
    Start,
}

/// The most calls for a packet: each has moved the end.
const MOST_CALLS: usize = 1 << 16;

struct TimeFilter {
    name: String,
    start_ns: i64,
    end_ns: i64,
    start_from: From,
    end_from: From,
    call: Option<HandlerCall>,
    /// Whether the call waits for a packet at the end.
    is_armed: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let name = cx.name.to_string();
    cx.opaque(|args| {
        let starts = [
            (args.positional("START", signed_ns), From::Epoch),
            (args.keyword("START_DELAY", signed_ns), From::Run),
            (args.keyword("START_AFTER", signed_ns), From::FirstPacket),
        ];
        let ends = [
            (args.positional("END", signed_ns), From::Epoch),
            (args.keyword("END_DELAY", signed_ns), From::Run),
            (args.keyword("END_AFTER", signed_ns), From::FirstPacket),
            (args.keyword("INTERVAL", signed_ns), From::Start),
        ];
        let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
        let call = args.keyword("END_CALL", HandlerCall::parse);
        let span = args.span();
        for (given, names) in [
            (starts.iter().filter(|(time, _)| time.is_some()).count(), "START, START_DELAY and START_AFTER"),
            (
                ends.iter().filter(|(time, _)| time.is_some()).count(),
                "END, END_DELAY, END_AFTER and INTERVAL",
            ),
            (usize::from(stop) + usize::from(call.is_some()), "STOP and END_CALL"),
        ] {
            if given > 1 {
                args.error(span, format!("{given} of {names} are given")).help("give one of them");
            }
        }
        let one =
            |times: &[(Option<i64>, From)]| times.iter().find_map(|(time, from)| Some(((*time)?, *from)));
        let (start_ns, start_from) = one(&starts).unwrap_or((0, From::Epoch));
        let (end_ns, end_from) = one(&ends).unwrap_or((i64::MAX, From::Epoch));
        let call = call.or_else(|| stop.then(HandlerCall::stop));
        let is_armed = call.is_some();
        Some(TimeFilter { name, start_ns, end_ns, start_from, end_from, call, is_armed })
    })
}

impl TimeFilter {
    /// Makes times absolute that count from here.
    fn count_from(&mut self, from: From, now_ns: i64) {
        if self.start_from == from {
            self.start_ns = self.start_ns.saturating_add(now_ns);
            self.start_from = From::Epoch;
        }
        if self.end_from == from {
            self.end_ns = self.end_ns.saturating_add(now_ns);
            self.end_from = From::Epoch;
        }
        if self.end_from == From::Start && self.start_from == From::Epoch {
            self.end_ns = self.end_ns.saturating_add(self.start_ns);
            self.end_from = From::Epoch;
        }
    }

    /// Calls the handler for a packet that is not before the end, and again each time that it has moved the end.
    fn call(&mut self, time_ns: i64, work: &mut Work<'_>) {
        for _ in 0..MOST_CALLS {
            let Some(call) = self.call.as_ref().filter(|_| self.is_armed && time_ns >= self.end_ns) else {
                return;
            };
            let call = call.with("t", &time_text(time_ns.cast_unsigned()));
            let end_ns = self.end_ns;
            self.is_armed = false;
            call.call(&self.name, work);
            work.follow_writes();
            for (handler, value) in work.take_own_writes() {
                let written = self.handlers().write(&handler, &value, &mut []);
                if let Err(mistake) = written {
                    work.print(&format!("{}.{handler}: {mistake}", self.name));
                }
            }
            if self.end_ns <= end_ns {
                return;
            }
        }
    }
}

impl Opaque for TimeFilter {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            let time_ns = batch.packet(index).timestamp_ns.cast_signed();
            self.count_from(From::FirstPacket, time_ns);
            if time_ns < self.start_ns {
                batch.emit_or_drop(index, 1, TOO_EARLY);
                continue;
            }
            self.call(time_ns, work);
            match time_ns < self.end_ns {
                true => batch.emit(index, 0),
                false => batch.emit_or_drop(index, 1, TOO_LATE),
            }
        }
    }
}

impl Element for TimeFilter {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn start(&mut self, work: &mut Work<'_>) {
        self.count_from(From::Run, work.now_ns().cast_signed());
        self.count_from(From::Epoch, 0);
    }
}

/// Sets the end, which then is absolute.
fn set_end(filter: &mut TimeFilter, end_ns: i64) {
    filter.end_ns = end_ns;
    filter.end_from = From::Epoch;
    filter.is_armed = filter.call.is_some();
}

const HANDLERS: &[Row<TimeFilter>] = &[
    Row::read_write(
        "start",
        |filter, _| Some(time_text(filter.start_ns.cast_unsigned())),
        |filter, value, _| {
            set(&mut filter.start_ns, value, signed_ns)?;
            filter.start_from = From::Epoch;
            filter.count_from(From::Epoch, 0);
            Ok(())
        },
    ),
    Row::read_write(
        "end",
        |filter, _| Some(time_text(filter.end_ns.cast_unsigned())),
        |filter, value, _| {
            let end_ns = element::value::written(value, signed_ns)?;
            set_end(filter, end_ns);
            Ok(())
        },
    ),
    Row::read_write(
        "interval",
        |filter, _| Some(time_text(filter.end_ns.saturating_sub(filter.start_ns).cast_unsigned())),
        |filter, value, _| {
            let interval_ns = element::value::written(value, signed_ns)?;
            set_end(filter, filter.start_ns.saturating_add(interval_ns));
            Ok(())
        },
    ),
    Row::write("extend_interval", |filter, value, _| {
        let more_ns = element::value::written(value, signed_ns)?;
        filter.end_ns = filter.end_ns.saturating_add(more_ns);
        filter.is_armed = filter.call.is_some();
        Ok(())
    }),
];
