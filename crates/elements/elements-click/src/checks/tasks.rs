//! `NullTask` and `HandlerTask`: tasks without packets.

use click::config::{Args, parse};
use element::{
    BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use elements::basic::handler_call::HandlerCall;
use shm::burst::Vector;

/// `NullTask`.
pub const NULL_TASK: Class = Class {
    name: "NullTask",
    summary: "a task that does nothing",
    page: "\
# NullTask([keywords LIMIT, STOP, ACTIVE])

Has a task that does nothing: for measurements.

- **ports**: none
- **arguments**: `LIMIT` (default 0: no limit): how often the task runs; `STOP` (default false): whether the run ends
  then; `ACTIVE` (default true): whether it runs from the beginning
- **handlers**: `count` (read): how often it ran; `limit`, `scheduled` (read/write); `reset` (write): sets `count` to 0
- **end**: as in Click, a run does not end by itself while it has such an element, whose task may be scheduled any time
- **difference**: with several workers each has a task
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, null),
};

/// `HandlerTask`.
pub const HANDLER_TASK: Class = Class {
    name: "HandlerTask",
    summary: "a task that calls a handler",
    page: "\
# HandlerTask(HANDLER [VALUE] [, keywords ACTIVE, RESCHEDULE])

Has a task that calls a write handler.

- **ports**: none
- **arguments**: `HANDLER`: the handler, and the value that is written; `ACTIVE` (default true): whether the task runs
  once in the beginning; `RESCHEDULE` (default false): whether it runs again and again
- **handlers**: `count` (read): how often it ran; `reschedule` (read/write); `scheduled` (read/write): true lets it run
  again
- **end**: as in Click, a run does not end by itself while it has such an element, whose task may be scheduled any time
- **workers**: one worker has the task
",
    state: StateScope::OneWorker,
    make: |cx| make(cx, handler),
    ..NULL_TASK
};

struct Turns {
    name: String,
    /// `None` for a task that does nothing.
    call: Option<HandlerCall>,
    scheduled: bool,
    reschedule: bool,
    /// 0 for no limit.
    limit: u64,
    stop: bool,
    count: u64,
}

fn null(args: &mut Args<'_>) -> Option<Turns> {
    let limit = u64::from(args.keyword("LIMIT", parse::u32).unwrap_or(0));
    let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
    let scheduled = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    Some(Turns { name: String::new(), call: None, scheduled, reschedule: true, limit, stop, count: 0 })
}

fn handler(args: &mut Args<'_>) -> Option<Turns> {
    let call = args.mandatory_positional("HANDLER", HandlerCall::parse);
    let scheduled = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let reschedule = args.keyword("RESCHEDULE", parse::bool).unwrap_or(false);
    let call = Some(call?);
    Some(Turns { name: String::new(), call, scheduled, reschedule, limit: 0, stop: false, count: 0 })
}

fn make(cx: &mut Configure<'_>, read: fn(&mut Args<'_>) -> Option<Turns>) -> Option<BoxElement> {
    // One worker runs a task that acts on others; they have what it acts on, too.
    let is_first = cx.worker == 0;
    let name = cx.name.to_string();
    cx.opaque(|args| {
        let turns = read(args)?;
        let scheduled = turns.scheduled && (is_first || turns.call.is_none());
        Some(Turns { name, scheduled, ..turns })
    })
}

impl Opaque for Turns {}

impl Task for Turns {
    fn run_task(&mut self, _vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.scheduled {
            return Progress::Idle;
        }
        self.count += 1;
        let ended = self.limit > 0 && self.count >= self.limit;
        self.scheduled = self.reschedule && !ended;
        if let Some(call) = &self.call {
            call.call(&self.name, work);
        }
        if ended && self.stop {
            work.stop();
        }
        Progress::Worked
    }
}

impl Element for Turns {
    element::facts!(writes: false);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = if self.call.is_some() { OF_HANDLER_TASK } else { OF_NULL_TASK };
        Handlers::of(self, rows)
    }
}

const COUNT: Row<Turns> = Row::sum("count", |turns, _| Some(turns.count.to_string()));
const SCHEDULED: Row<Turns> = element::field!(scheduled, parse::bool);
const OF_HANDLER_TASK: &[Row<Turns>] = &[COUNT, SCHEDULED, element::field!(reschedule, parse::bool)];
const OF_NULL_TASK: &[Row<Turns>] =
    &[COUNT, SCHEDULED, element::field!(limit, parse::u64), Row::button("reset", |turns, _| turns.count = 0)];
