//! `DelayUnqueue` and `DelayShaper`: delay packets from their timestamps on.

use super::interval::interval_text;
use click::config::parse;
use element::value::set;
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use shm::Packet;
use shm::burst::Vector;

/// The class.
pub const DELAY_UNQUEUE: Class = Class {
    name: "DelayUnqueue",
    summary: "delay inducing pull-to-push converter",
    page: "\
# DelayUnqueue(DELAY)

Pulls packets, holds each until DELAY after its timestamp, and pushes it. Packets without timestamp get
the time at which they were pulled. The timestamp is set to the time at which the packet may leave.

- **ports**: 1 pull input, 1 push output
- **arguments**: `DELAY` (seconds, or with a unit)
- **annotations**: reads and sets the timestamp
- **handlers**: `delay` (read/write)
- **drop reasons**: `delay-stopped`: held when the run ended
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, true),
};

/// The class.
pub const DELAY_SHAPER: Class = Class {
    name: "DelayShaper",
    summary: "shapes traffic to meet delay requirements",
    page: "\
# DelayShaper(DELAY)

Packets can be pulled through it no earlier than DELAY after their timestamps. Packets without timestamp
get the time at which they were pulled. The timestamp is set to the time at which the packet may leave.

- **ports**: 1 pull input, 1 pull output
- **arguments**: `DELAY` (seconds, or with a unit)
- **annotations**: reads and sets the timestamp
- **handlers**: `delay` (read/write)
- **drop reasons**: `delay-stopped`: held when the run ended
",
    codes: PortCodes::new("1/1", "l/l"),
    make: |cx| make(cx, false),
    ..DELAY_UNQUEUE
};

struct Delay {
    /// Whether it pushes what it pulls.
    pushes: bool,
    delay_ns: u64,
    /// The held packet; its timestamp is the time at which it may leave.
    waiting: Option<Packet>,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>, pushes: bool) -> Option<BoxElement> {
    cx.opaque(|args| {
        Some(Delay {
            pushes,
            delay_ns: args.mandatory_positional("DELAY", parse::seconds_ns)?,
            waiting: None,
            arrivals: Vector::new(),
        })
    })
}

impl Delay {
    /// Pulls a packet from upstream.
    fn next(&mut self, work: &mut Work<'_>) -> Option<Packet> {
        self.arrivals.clear();
        work.pull(0, 1, &mut self.arrivals);
        let mut packet = *self.arrivals.iter().next()?;
        let since_ns = if packet.timestamp_ns == 0 { work.now_ns() } else { packet.timestamp_ns };
        packet.timestamp_ns = since_ns.saturating_add(self.delay_ns);
        Some(packet)
    }
}

impl Opaque for Delay {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        into.push_from(most, || {
            if self.waiting.is_none() {
                self.waiting = self.next(work);
                work.hold(usize::from(self.waiting.is_some()));
            }
            let packet = self.waiting.take_if(|packet| packet.timestamp_ns <= work.now_ns());
            match (packet, &self.waiting) {
                (Some(_), _) => work.release(1),
                (None, Some(packet)) => work.wake_at(packet.timestamp_ns),
                (None, None) => {}
            }
            packet
        })
    }
}

impl Task for Delay {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.pull(0, work.burst(), vector, work) > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for Delay {
    element::facts!(writes: false, reasons: &["delay-stopped"], handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        self.pushes.then_some(self)
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        if let Some(packet) = self.waiting.take() {
            work.drop_held(0, &[packet]);
        }
    }
}

const HANDLERS: &[Row<Delay>] = &[Row::read_write(
    "delay",
    |delay, _| Some(interval_text(delay.delay_ns)),
    |delay, value, _| set(&mut delay.delay_ns, value, parse::seconds_ns),
)];
