//! `ToDevice` and `ToDPDKDevice`: packets to a port.

use super::files::{self, FLUSH_NS};
use super::from_device::DRIVER_KEYWORDS;
use click::config::parse;
use element::{
    BoxElement, Class, Configure, Direction, Element, Opaque, PortCodes, Progress, Row, StateScope, Task,
    Work,
};
use port::{Port, PortStats};
use shm::burst::{Batch, Vector};

/// The class.
pub const TO_DEVICE: Class = Class {
    name: "ToDevice",
    summary: "sends packets to a port",
    page: "\
# ToDevice(DEVNAME [, keywords])

Sends packets out of a port: pulled ones as the port takes them, pushed ones at once.

- **ports**: 1 input, push or pull; no output
- **arguments**: `DEVNAME` as for FromDevice; `BURST` (packets pulled at a time, default: the run's).
  Keywords that configure Click's drivers are accepted and have no effect
- **handlers**: `count`, `byte_count` (read), `reset_counts` (write)
- **drop reasons**: `port-full`: pushed to a port that did not take it
- **difference**: Click's ToDevice is pull only. Packets pass a Queue in front, and wait in it only while the
  port takes none. Without a Queue, a pushed packet that the port does not take is dropped
  and counted
",
    codes: PortCodes::new("1/0-2", "a/h"),
    state: StateScope::PerWorker,
    make,
};

/// The class.
pub const TO_DPDK_DEVICE: Class = Class {
    name: "ToDPDKDevice",
    summary: "sends packets to a DPDK port",
    page: "\
# ToDPDKDevice(PORT [, keywords])

As ToDevice, with the name and arguments of FastClick's element.

- **handlers**: `count`, `byte_count` (read), `reset_counts` (write)
- **drop reasons**: `port-full`
- **difference**: keeps no internal queue (`IQUEUE`, `BLOCKING`, `TIMEOUT` have no effect): a burst is sent
  when it arrives
",
    ..TO_DEVICE
};

element::reasons!(PORT_FULL = "port-full");

struct ToDevice {
    port: Box<dyn Port>,
    burst: Option<usize>,
    count: u64,
    byte_count: u64,
    /// Whether packets pass the queue in front of it.
    is_passed: bool,
    /// Packets from the queue in front that the port has not taken yet.
    waiting: Vec<shm::Packet>,
    next_flush_ns: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("DEVNAME", parse::string);
    let burst = args.keyword("BURST", parse::int_in(1..=256)).map(|burst| burst as usize);
    for keyword in DRIVER_KEYWORDS.split(' ') {
        let _ = args.keyword(keyword, parse::any);
    }
    let fine = args.finish();
    let name = name?;
    let port = cx.open_port(&name, Direction::Send)?;
    if !port.can_send() {
        cx.error(name.span, format!("nothing can be sent to `{}`", name.as_str()));
        return None;
    }
    if !files::record_port(cx, &name, Direction::Send) {
        return None;
    }
    let waiting = Vec::with_capacity(shm::burst::LIST_CAPACITY);
    let (count, byte_count, next_flush_ns, is_passed) = (0, 0, 0, false);
    let element = ToDevice { port, burst, count, byte_count, is_passed, waiting, next_flush_ns };
    fine.then(|| BoxElement::opaque(element))
}

impl ToDevice {
    /// Sends listed packets; returns how many from the list's front the port took.
    fn send(&mut self, packets: &mut [shm::Packet], list: &[u16], work: &mut Work<'_>) -> usize {
        let moved = self.port.send(work.pool(), packets, list);
        let sent = moved.packets.min(list.len());
        self.count += sent as u64;
        self.byte_count += moved.bytes;
        work.count_sent(sent, moved.bytes);
        sent
    }
}

impl Opaque for ToDevice {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let list = batch.list();
        // What waits came before.
        let sent = if self.waiting.is_empty() { self.send(batch.packets(), list, work) } else { 0 };
        if self.is_passed {
            self.waiting.extend(list[sent..].iter().map(|index| *batch.packet(*index)));
            work.hold(list.len() - sent);
            return;
        }
        for &index in &list[sent..] {
            batch.drop(index, PORT_FULL);
        }
    }
}

impl Task for ToDevice {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.waiting.is_empty() {
            let burst = work.burst_or(self.burst);
            work.pull(0, burst, vector);
        } else {
            let count = self.waiting.len().min(vector.room());
            work.release(count);
            self.waiting.drain(..count).for_each(|packet| {
                vector.push(&packet);
            });
        }
        if vector.is_empty() {
            return Progress::Idle;
        }
        let (packets, list) = vector.parts();
        let sent = self.send(packets, list, work);
        // With a full port the element stops pulling, as with a full device: the queue in front fills.
        work.hold(list.len() - sent);
        // In front of those for which the vector had no room.
        self.waiting.splice(..0, list[sent..].iter().map(|index| packets[usize::from(*index)]));
        vector.clear();
        if sent > 0 { Progress::Worked } else { Progress::Idle }
    }

    fn takes_at_once(&self, packets: usize) -> Result<(), &'static str> {
        match () {
            () if !self.waiting.is_empty() => Err("has packets that its port did not take"),
            () if self.burst.is_some_and(|burst| burst < packets) => {
                Err("pulls fewer packets at a time than a burst has")
            }
            () => Ok(()),
        }
    }

    fn note_passing(&mut self) {
        self.is_passed = true;
    }
}

impl Element for ToDevice {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn start(&mut self, _work: &mut Work<'_>) {
        // A port that cannot be written reports it in its warnings.
        let _ = self.port.flush();
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + FLUSH_NS;
            let _ = self.port.flush();
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        work.drop_held(PORT_FULL, &self.waiting);
        self.waiting.clear();
        let _ = self.port.flush();
    }

    fn take_warnings(&mut self) -> Vec<String> {
        // A port that cannot store sent packets reports it in its warnings.
        let failed = self.port.flush().err().map(|error| error.to_string());
        let found = self.port.take_warnings();
        if found.is_empty() { failed.into_iter().collect() } else { found }
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        Some((self.port.name().to_string(), self.port.stats()))
    }
}

const HANDLERS: &[Row<ToDevice>] = &[
    Row::sum("count", |device, _| Some(device.count.to_string())),
    Row::sum("byte_count", |device, _| Some(device.byte_count.to_string())),
    Row::button("reset_counts", |device, _| (device.count, device.byte_count) = (0, 0)),
];
