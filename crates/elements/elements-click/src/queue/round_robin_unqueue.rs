//! `RoundRobinUnqueue`: pulls from its inputs in turn.

use click::config::parse;
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "RoundRobinUnqueue",
    summary: "pull-to-push converter with several inputs",
    page: "\
# RoundRobinUnqueue([BURST])

Pulls packets from its inputs in turn and pushes them out of the output with the same number.

- **ports**: any number of pull inputs, as many push outputs
- **arguments**: `BURST`: packets pulled at a time, 0 for as many as there are
- **handlers**: `packets` (read): how many it has pulled
- **difference**: `BURST` is the run's burst where it is not given (Click: 1), because packets travel in bursts here
",
    codes: PortCodes::new("1-/=", "l/h"),
    state: StateScope::PerWorker,
    make,
};

struct RoundRobinUnqueue {
    /// The run's if it is not given.
    burst: Option<usize>,
    inputs: usize,
    next: usize,
    packets: u64,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| {
        let burst = args.positional("BURST", parse::u32);
        let burst = burst.map(|burst| if burst == 0 { usize::MAX } else { burst as usize });
        Some(RoundRobinUnqueue { burst, inputs, next: 0, packets: 0, arrivals: Vector::new() })
    })
}

impl Opaque for RoundRobinUnqueue {}

impl Task for RoundRobinUnqueue {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let most = work.burst_or(self.burst).min(vector.room());
        for _ in 0..self.inputs {
            let input = self.next;
            self.next = (input + 1) % self.inputs;
            self.arrivals.clear();
            let count = work.pull(input, most, &mut self.arrivals);
            if count > 0 {
                self.arrivals.iter().for_each(|packet| work.emit(input, packet));
                self.packets += count as u64;
                return Progress::Worked;
            }
        }
        Progress::Idle
    }
}

impl Element for RoundRobinUnqueue {
    element::facts!(writes: false, handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }
}

const HANDLERS: &[Row<RoundRobinUnqueue>] =
    &[Row::concat("packets", |unqueue, _| Some(format!("{} packets", unqueue.packets)))];
