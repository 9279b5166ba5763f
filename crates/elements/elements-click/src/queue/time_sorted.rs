//! `TimeSortedSched`: merges streams of packets by their timestamps.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::Packet;
use shm::burst::Vector;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The class.
pub const CLASS: Class = Class {
    name: "TimeSortedSched",
    summary: "merges sorted packet streams by timestamp",
    page: "\
# TimeSortedSched([keywords STOP, BUFFER])

Pulls packets from its inputs and lets them be pulled in the order of their timestamps. Streams that are not sorted
themselves are sorted as far as BUFFER packets of each reach.

- **ports**: 1 or more pull inputs, 1 pull output
- **arguments**: `STOP` (default false): ends the run when no input has had a packet for 0.1 s and all have been pulled
  from it; `BUFFER` (1 to 65536, default 1): packets of each input that it holds
- **annotations**: reads the timestamp
- **handlers**: `well_ordered` (read): whether all packets with a timestamp left in its order
- **drop reasons**: `scheduler-stopped`: held when the run ended
- **difference**: Click stops at once when the sources of all inputs say that they are empty; here inputs are asked.
  Packets with the same timestamp leave in the order in which they were pulled from the inputs
",
    codes: PortCodes::new("1-/1", "l/l"),
    state: StateScope::PerWorker,
    make,
};

/// How long all inputs must be empty before the run ends.
const EMPTY_NS: u64 = 100_000_000;

/// A held packet. The order is that of the timestamps, then that of the pulls.
struct Held {
    place: (u64, u64),
    input: usize,
    packet: Packet,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.place == other.place
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}

struct TimeSorted {
    stop: bool,
    buffer: usize,
    /// Packets that it holds of each input.
    held_of: Vec<usize>,
    held: BinaryHeap<Reverse<Held>>,
    /// Packets that were pulled from the inputs.
    pulls: u64,
    /// The timestamp of the last packet that had one.
    last_ns: u64,
    well_ordered: bool,
    /// Since when all inputs have been empty.
    empty_since_ns: Option<u64>,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| {
        let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
        let buffer = args.keyword("BUFFER", parse::int_in(1..=65_536)).unwrap_or(1) as usize;
        Some(TimeSorted {
            stop,
            buffer,
            held_of: vec![0; inputs],
            held: BinaryHeap::with_capacity(inputs.saturating_mul(buffer).min(1 << 16)),
            pulls: 0,
            last_ns: 0,
            well_ordered: true,
            empty_since_ns: None,
            arrivals: Vector::new(),
        })
    })
}

impl TimeSorted {
    /// Pulls from every input until its buffer is full or it has no packet.
    fn fill(&mut self, work: &mut Work<'_>) {
        for (input, held_of) in self.held_of.iter_mut().enumerate() {
            while *held_of < self.buffer {
                self.arrivals.clear();
                let room = (self.buffer - *held_of).min(self.arrivals.room());
                let count = work.pull(input, room, &mut self.arrivals);
                if count == 0 {
                    break;
                }
                work.hold(count);
                *held_of += count;
                for packet in self.arrivals.iter() {
                    let place = (packet.timestamp_ns, self.pulls);
                    self.pulls += 1;
                    self.held.push(Reverse(Held { place, input, packet: *packet }));
                }
            }
        }
    }

    /// The packet that is due next; it is not held any more.
    fn next(&mut self, work: &mut Work<'_>) -> Option<Packet> {
        let Reverse(Held { input, packet, .. }) = self.held.pop()?;
        if let Some(held_of) = self.held_of.get_mut(input) {
            *held_of -= 1;
        }
        work.release(1);
        if packet.timestamp_ns > 0 {
            self.well_ordered &= packet.timestamp_ns >= self.last_ns;
            self.last_ns = packet.timestamp_ns;
        }
        Some(packet)
    }

    /// Ends the run if nothing has come for long enough.
    fn look_for_the_end(&mut self, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        let since_ns = *self.empty_since_ns.get_or_insert(now_ns);
        if !self.stop {
            return;
        }
        if now_ns.saturating_sub(since_ns) < EMPTY_NS {
            work.wake_at(since_ns.saturating_add(EMPTY_NS));
            return;
        }
        self.stop = false;
        work.stop();
    }
}

impl Opaque for TimeSorted {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let count = into.push_from(most, || {
            self.fill(work);
            self.next(work)
        });
        if count > 0 {
            self.empty_since_ns = None;
        } else if most > 0 {
            self.look_for_the_end(work);
        }
        count
    }
}

impl Element for TimeSorted {
    element::facts!(writes: false, reasons: &["scheduler-stopped"], handlers: HANDLERS);

    fn stop(&mut self, work: &mut Work<'_>) {
        for Reverse(Held { packet, .. }) in std::mem::take(&mut self.held) {
            work.drop_held(0, &[packet]);
        }
    }
}

const HANDLERS: &[Row<TimeSorted>] =
    &[Row::read("well_ordered", |sched, _| Some(sched.well_ordered.to_string()))];
