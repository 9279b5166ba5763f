//! `Queue` and related classes: packets in a ring.
//!
//! Invariants: the ring holds at most `capacity` packets, and has room for all of them before the first one
//! comes. Packets that a handler drops leave with the next packet in or out, since handlers have no packet
//! pool; `length` does not count them.

use super::length::QueueLength;
use click::config::parse;
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, Merge, Opaque, PortCodes, Row, Scope, StateScope, Work,
};
use ir::Builder;
use shm::Packet;
use shm::burst::{Batch, Vector};
use std::collections::VecDeque;
use std::sync::Arc;

macro_rules! page {
    ($name:literal, $what:literal, $back_pressure:expr, $difference:literal) => {
        concat!(
            "# ",
            $name,
            "([CAPACITY])\n\n",
            $what,
            "\n\n- **ports**: 1 push input; 1 pull output, and 1 push output for packets that do not fit\n",
            "- **passing**: where what pulls from it takes every burst at once (a port, an Unqueue, a\n",
            "  Discard), packets pass it, and only those wait in it that the port does not take;\n",
            "  `millrace synth` names the queues in which packets wait, and why\n",
            "- **arguments**: `CAPACITY` (default 1000): packets that it keeps at most\n",
            "- **handlers**: `length`, `highwater_length` (of packets that waited), `drops` (read); ",
            "`capacity` (read/write); ",
            "`reset_counts`\n  (write): sets `drops` to 0 and `highwater_length` to `length`; `reset` ",
            "(write): drops all packets\n",
            "- **drop reasons**: `queue-full`; `queue-reset`: dropped by the handlers `reset` and ",
            "`capacity`;\n  `queue-stopped`: kept when the run ended\n",
            $back_pressure,
            "- **difference**: each worker has a queue of its own of that capacity, because packets do ",
            "not cross\n  workers here",
            $difference,
            "\n"
        )
    };
}

/// The class.
pub const QUEUE: Class = Class {
    name: "Queue",
    summary: "stores packets in a FIFO queue",
    page: page!(
        "Queue",
        "Keeps packets in the order in which they came. Drops packets that come when it is full.",
        "- **back-pressure**: an InfiniteSource all of whose packets end in such queues makes none while\n  they \
         are full (as well as before FullNoteQueue, ThreadSafeQueue, QuickNoteQueue)\n",
        ""
    ),
    codes: PortCodes::new("1/1-2", "h/lh"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, Full::DropNew),
};

/// The class.
pub const SIMPLE_QUEUE: Class = Class {
    name: "SimpleQueue",
    page: page!("SimpleQueue", "As Queue, without back-pressure.", "", ""),
    ..QUEUE
};

/// The class.
pub const NOTIFIER_QUEUE: Class = Class {
    name: "NotifierQueue",
    page: page!(
        "NotifierQueue",
        "As Queue, without back-pressure.",
        "",
        "; nobody is notified of packets, because\n  workers poll"
    ),
    ..QUEUE
};

/// The class.
pub const FULL_NOTE_QUEUE: Class =
    Class { name: "FullNoteQueue", page: page!("FullNoteQueue", "The same as Queue.", "", ""), ..QUEUE };

/// The class.
pub const QUICK_NOTE_QUEUE: Class = Class {
    name: "QuickNoteQueue",
    page: page!(
        "QuickNoteQueue",
        "The same as Queue.",
        "",
        "; nobody is notified of packets, because\n  workers poll"
    ),
    ..QUEUE
};

/// The class.
pub const THREAD_SAFE_QUEUE: Class = Class {
    name: "ThreadSafeQueue",
    page: page!(
        "ThreadSafeQueue",
        "The same as Queue.",
        "",
        "; what a worker pushes the same\n  worker pulls"
    ),
    ..QUEUE
};

/// The class.
pub const FRONT_DROP_QUEUE: Class = Class {
    name: "FrontDropQueue",
    summary: "stores packets in a FIFO queue, dropping the oldest when full",
    page: page!(
        "FrontDropQueue",
        "Keeps packets in the order in which they came. Drops its oldest packet for each that comes when it is full.",
        "",
        ""
    ),
    make: |cx| make(cx, Full::DropOld),
    ..QUEUE
};

/// The class.
pub const MIXED_QUEUE: Class = Class {
    name: "MixedQueue",
    summary: "stores packets in a FIFO/LIFO queue",
    page: "\
# MixedQueue([CAPACITY])

Keeps packets from input 0 behind those that it has, and packets from input 1 in front of them: first in, first out,
and last in, first out. When it is full, a packet from input 0 is dropped; for a packet from input 1, the packet that
would be pulled last is dropped.

- **ports**: 2 push inputs; 1 pull output, and 1 push output for packets that do not fit
- **arguments**: `CAPACITY` (default 1000): packets that it keeps at most
- **handlers**: as those of Queue
- **drop reasons**: those of Queue
- **difference**: each worker has a queue of its own of that capacity, because packets do not cross workers here;
  nobody is notified, because workers poll
",
    codes: PortCodes::new("2/1-2", "h/lh"),
    make: |cx| make(cx, Full::Mixed),
    ..QUEUE
};

/// What to drop when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    DropNew,
    DropOld,
    /// As the first at input 0. At input 1 packets are put in front, and the last one is dropped.
    Mixed,
}

element::reasons!(FULL = "queue-full", RESET = "queue-reset", STOPPED = "queue-stopped");

struct Queue {
    ring: VecDeque<Packet>,
    capacity: usize,
    full: Full,
    has_overflow_output: bool,
    /// Packets at the ring's front that a handler has dropped.
    doomed: usize,
    highwater: usize,
    drops: u64,
    published: Arc<QueueLength>,
}

/// The largest capacity: 2 GB of descriptors.
const MOST: i64 = 1 << 24;

fn make(cx: &mut Configure<'_>, full: Full) -> Option<BoxElement> {
    let has_overflow_output = cx.shape.outputs > 1;
    let capacity =
        cx.read(|args| Some(args.positional("CAPACITY", parse::int_in(0..=MOST)).unwrap_or(1000) as usize))?;
    let published = cx.shared(Scope::Worker, cx.name, QueueLength::default)?;
    published.set_capacity(capacity);
    let ring = VecDeque::with_capacity(capacity);
    let (doomed, highwater, drops) = (0, 0, 0);
    let queue = Queue { ring, capacity, full, has_overflow_output, doomed, highwater, drops, published };
    Some(BoxElement::opaque(queue))
}

impl Queue {
    /// Packets that are not doomed.
    fn length(&self) -> usize {
        self.ring.len() - self.doomed
    }

    /// Drops the packet at the ring's front.
    fn drop_front(&mut self, reason: usize, work: &mut Work<'_>) {
        if let Some(packet) = self.ring.pop_front() {
            work.drop_held(reason, std::slice::from_ref(&packet));
        }
    }

    /// Drops the packets that handlers marked.
    fn drop_doomed(&mut self, work: &mut Work<'_>) {
        for _ in 0..std::mem::take(&mut self.doomed) {
            self.drop_front(RESET, work);
        }
    }

    fn push_all_that_fit(&mut self, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let list = batch.list();
        let (fit, excess) = list.split_at(list.len().min(self.capacity.saturating_sub(self.ring.len())));
        self.ring.extend(fit.iter().map(|index| *batch.packet(*index)));
        work.hold(fit.len());
        self.drops += excess.len() as u64;
        for &index in excess {
            batch.emit_or_drop(index, 1, FULL);
        }
    }

    fn push_in_front(&mut self, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            if self.ring.len() >= self.capacity {
                self.drops += 1;
                let Some(last) = self.ring.pop_back() else {
                    batch.emit_or_drop(index, 1, FULL);
                    continue;
                };
                self.give_up(&last, work);
            }
            self.ring.push_front(*batch.packet(index));
            work.hold(1);
        }
    }

    /// Sends a packet that it held out of the second output, or drops it.
    fn give_up(&self, packet: &Packet, work: &mut Work<'_>) {
        work.release(1);
        if self.has_overflow_output {
            work.emit(1, packet);
        } else {
            work.drop(FULL, std::slice::from_ref(packet));
        }
    }

    fn push_over_the_front(&mut self, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            work.place_behind(index);
            if self.ring.len() >= self.capacity {
                self.drops += 1;
                let Some(oldest) = self.ring.pop_front() else {
                    batch.emit_or_drop(index, 1, FULL);
                    continue;
                };
                self.give_up(&oldest, work);
            }
            self.ring.push_back(*batch.packet(index));
            work.hold(1);
        }
    }
}

impl Opaque for Queue {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        if self.doomed > 0 {
            self.drop_doomed(work);
        }
        match self.full {
            Full::Mixed if input == 1 => self.push_in_front(batch, work),
            Full::DropNew | Full::Mixed => self.push_all_that_fit(batch, work),
            Full::DropOld => self.push_over_the_front(batch, work),
        }
        self.highwater = self.highwater.max(self.ring.len());
        self.published.set(self.length());
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        if self.doomed > 0 {
            self.drop_doomed(work);
        }
        let count = self.ring.len().min(most).min(into.room());
        for packet in self.ring.drain(..count) {
            into.push(&packet);
        }
        work.release(count);
        self.published.set(self.length());
        count
    }

    fn lets_pass(&self, packets: usize) -> Result<(), &'static str> {
        match () {
            () if self.full == Full::Mixed => Err("has two inputs"),
            () if !self.ring.is_empty() => Err("has packets that came before"),
            () if packets > self.capacity => Err("has no room for a burst"),
            () if self.published.is_watched() => Err("has a length that an element watches"),
            () => Ok(()),
        }
    }

    fn build_passing(&self, f: &mut Builder) -> bool {
        f.name("Queue");
        f.emit(0);
        self.full != Full::Mixed
    }
}

impl Element for Queue {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn stop(&mut self, work: &mut Work<'_>) {
        self.drop_doomed(work);
        while !self.ring.is_empty() {
            self.drop_front(STOPPED, work);
        }
    }
}

impl Queue {
    fn set_capacity(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        self.capacity = written(value, parse::int_in(0..=MOST))? as usize;
        self.published.set_capacity(self.capacity);
        self.ring.reserve(self.capacity.saturating_sub(self.ring.len()));
        // Packets that no longer fit: the newest or the oldest, as when a packet comes to a full queue.
        let excess = self.length().saturating_sub(self.capacity);
        if self.full != Full::DropOld {
            self.ring.rotate_right(excess);
        }
        self.doomed += excess;
        self.published.set(self.length());
        Ok(())
    }
}

const HANDLERS: &[Row<Queue>] = &[
    Row::sum("length", |queue, _| Some(queue.length().to_string())),
    Row::merged("highwater_length", Merge::Max, |queue, _| Some(queue.highwater.to_string())),
    Row::sum("drops", |queue, _| Some(queue.drops.to_string())),
    Row::read_write("capacity", |queue, _| Some(queue.capacity.to_string()), Queue::set_capacity),
    Row::button("reset_counts", |queue, _| (queue.drops, queue.highwater) = (0, queue.length())),
    Row::button("reset", |queue, _| {
        queue.doomed = queue.ring.len();
        queue.published.set(0);
    }),
];
