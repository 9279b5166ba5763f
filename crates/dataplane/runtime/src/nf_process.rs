//! The process of an NF that is a Click configuration: its elements, with rings for ports.
//!
//! Elements process packets in place. A packet that they drop is returned to the host as dropped. Elements
//! make packets in slots that the host granted, of which the host keeps some available. A made packet that is
//! dropped leaves its slot for another one.

use crate::assemble::{Options, assemble};
use crate::running::{Outcome, RunPlan, Running};
use crate::services::{Opened, Opener};
use chain::{Body, ProcessNf, instances};
use diag::Diagnostics;
use element::configure::Direction;
use nf::Call;
use nf::ends::Ends;
use nf::message::FromNf;
use port::{Moved, Port, PortError, PortInfo, PortStats};
use shm::Packet;
use shm::pool::{PacketPool, Pool, PoolStats};
use shm::ring::Action;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The empty slots that an NF which makes packets needs for each packet that it takes.
const SPARE: usize = 4;
/// How long such an NF waits for empty slots. It is longer than a host on a busy machine is without a core,
/// and shorter than the time after which the watchdog ends an NF. After a wait without success, the NF does
/// not wait again before it receives slots.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often the process checks for messages of the host.
const TURN: Duration = Duration::from_millis(20);
/// How long the process tries to return its packets when it ends.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// The state that the ports and the pool of an NF share.
struct Interior {
    ends: Ends,
    /// Whether elements make packets, and since when they wait for slots.
    makes: bool,
    starving_since: Option<Instant>,
    /// Received packets by input, which no element has taken yet.
    came: Vec<VecDeque<Packet>>,
}

type Shared = Arc<Mutex<Interior>>;

fn lock(interior: &Shared) -> MutexGuard<'_, Interior> {
    interior.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Interior {
    /// Fetches packets that the host enqueued, once all earlier ones are taken.
    fn fetch(&mut self) {
        let Interior { ends, came, .. } = self;
        if came.iter().any(|queue| !queue.is_empty()) {
            ends.flush();
            return;
        }
        ends.fetch(|input, packet| {
            if let Some(queue) = came.get_mut(usize::from(input)) {
                queue.push_back(packet);
            }
        });
    }

    /// How many packets an element may take: an NF that makes packets waits until it has slots for them, but
    /// only for a limited time.
    fn ready_for(&mut self, wanted: usize) -> usize {
        if !self.makes {
            return wanted;
        }
        let ready = self.ends.granted() / SPARE;
        if ready > 0 {
            self.starving_since = None;
            return wanted.min(ready);
        }
        let since = *self.starving_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE { wanted } else { 0 }
    }
}

/// One interface of the NF.
struct RingPort {
    name: String,
    interior: Shared,
    /// Number of the input or output.
    number: usize,
    stats: PortStats,
}

impl Port for RingPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        PortInfo::default()
    }

    fn set_origin(&mut self, _origin: u16) {}

    fn receive(&mut self, _pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let mut interior = lock(&self.interior);
        if interior.came.get(self.number).is_some_and(VecDeque::is_empty) {
            interior.fetch();
        }
        let mut moved = Moved::default();
        let most = interior.ready_for(out.len());
        let out = &mut out[..most];
        let Some(queue) = interior.came.get_mut(self.number) else { return moved };
        for (place, packet) in out.iter_mut().zip(std::iter::from_fn(|| queue.pop_front())) {
            *place = packet;
            moved.packets += 1;
            moved.bytes += u64::from(packet.total());
        }
        self.stats.rx_packets += moved.packets as u64;
        self.stats.rx_bytes += moved.bytes;
        moved
    }

    fn send(&mut self, _pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let mut interior = lock(&self.interior);
        let mut moved = Moved::default();
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            interior.ends.give(packet, Action::Emit, self.number as u16);
            moved.packets += 1;
            moved.bytes += u64::from(packet.total());
        }
        interior.ends.flush();
        self.stats.tx_packets += moved.packets as u64;
        self.stats.tx_bytes += moved.bytes;
        moved
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn flush(&mut self) -> Result<(), PortError> {
        lock(&self.interior).ends.flush();
        Ok(())
    }
}

/// The pool of an NF: it allocates granted slots, and returns the freed slots of other packets to the host.
struct GrantedPool {
    interior: Shared,
    refused: u64,
}

impl Pool for GrantedPool {
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        let mut interior = lock(&self.interior);
        interior.makes = true;
        let mut count = 0;
        for (place, packet) in out.iter_mut().zip(std::iter::from_fn(|| interior.ends.make())) {
            *place = packet;
            count += 1;
        }
        self.refused += (out.len() - count) as u64;
        count
    }

    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        let mut interior = lock(&self.interior);
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            interior.ends.free(packet, 0);
        }
        interior.ends.flush();
    }

    fn free_all(&mut self, packets: &[Packet]) {
        let mut interior = lock(&self.interior);
        packets.iter().for_each(|packet| interior.ends.free(packet, 0));
        interior.ends.flush();
    }

    fn capacity(&self) -> usize {
        0
    }

    fn available(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats { refused: self.refused, bad_frees: 0 }
    }
}

/// Opens the NF's interfaces as ports.
struct Interfaces<'a> {
    nf: &'a ProcessNf,
    interior: Shared,
}

impl Opener for Interfaces<'_> {
    fn open_port(&mut self, name: &str, direction: Direction, _worker: usize) -> Opened {
        let names = if direction == Direction::Receive { &self.nf.inputs } else { &self.nf.outputs };
        let number = names.iter().position(|known| known == name);
        let number = number.ok_or_else(|| format!("NF `{}` has no interface `{name}`", self.nf.name))?;
        let (name, interior) = (name.to_string(), Arc::clone(&self.interior));
        Ok(Box::new(RingPort { name, interior, number, stats: PortStats::default() }))
    }
}

/// Runs an NF until the host ends it; `None` if its configuration has errors, which are in `diags`.
///
/// # Errors
/// The reason why it does not run, as a sentence.
pub fn serve(
    nf: &ProcessNf,
    ends: Ends,
    options: &Options,
    stop: &AtomicBool,
    diags: &mut Diagnostics,
) -> Result<Option<Outcome>, String> {
    let burst = ends.welcome().burst;
    let came = nf.inputs.iter().map(|_| VecDeque::new()).collect();
    let interior = Arc::new(Mutex::new(Interior { ends, makes: false, starving_since: None, came }));
    let mut interfaces = Interfaces { nf, interior: Arc::clone(&interior) };
    let Body::Click(graph) = &nf.body else { return Err("it is no Click configuration".into()) };
    // The elements have the same names as in the host's process.
    let mut graph = graph.clone();
    graph
        .elements
        .iter_mut()
        .for_each(|element| element.name = instances::element_name(&nf.name, &element.name));
    let options = Options { burst, ..options.clone() };
    let assembly = assemble(&graph, &options, &mut interfaces, diags).map_err(|error| error.to_string())?;
    let Some(assembly) = assembly else {
        let mistakes: Vec<&str> = diags.iter().map(|mistake| mistake.message.as_str()).collect();
        lock(&interior).ends.say(&FromNf::Failed { why: mistakes.join("; ") });
        return Ok(None);
    };
    let print = |line: &str| eprintln!("{line}");
    let plan = RunPlan { burst, print, ends_with: None, ..RunPlan::default() };
    let pool = |_| PacketPool::Foreign(Box::new(GrantedPool { interior: Arc::clone(&interior), refused: 0 }));
    let mut running = Running::start(assembly, &plan, pool).map_err(|error| error.to_string())?;
    // Before the host starts its sources: their end must not end the run before the scripts.
    let mut holds = running.is_held();
    if holds {
        lock(&interior).ends.say(&FromNf::HoldsRun { holds });
    }
    lock(&interior).ends.ready().map_err(|error| error.to_string())?;
    let next_call = || lock(&interior).ends.next_call();
    let answer = |call: &Call, said| lock(&interior).ends.answer(call, said);
    let asked_to_end = || {
        let mut interior = lock(&interior);
        interior.ends.listen();
        stop.load(Ordering::Relaxed) || interior.ends.is_over()
    };
    let (mut told, mut last) = (false, vec![]);
    while !asked_to_end() {
        while let Some(call) = next_call() {
            match call.is_last() {
                true => last.push(call),
                false => answer(&call, running.handlers().call(call.handler(), call.value())),
            }
        }
        if (running.is_over() || running.is_end_requested()) && !std::mem::replace(&mut told, true) {
            // An element requested the end of the run: the host decides. Until then packets are processed.
            lock(&interior).ends.say(&FromNf::Over);
        }
        let is_held = running.is_held();
        if std::mem::replace(&mut holds, is_held) != is_held {
            lock(&interior).ends.say(&FromNf::HoldsRun { holds: is_held });
        }
        std::thread::sleep(TURN);
    }
    last.extend(std::iter::from_fn(next_call));
    let names: Vec<String> = last.iter().map(|call| call.handler().to_string()).collect();
    running.read_last(&names);
    running.stop();
    let mut outcome = running.wait();
    for call in last.into_iter().chain(std::iter::from_fn(next_call)) {
        answer(
            &call,
            match call.value() {
                None => outcome.read_here(call.handler()),
                Some(_) => Err("the NF has ended".into()),
            },
        );
    }
    let mut interior = lock(&interior);
    for warning in &outcome.warnings {
        interior.ends.say(&FromNf::Finding { text: warning.clone() });
    }
    // Packets that no element has taken, and packets that did not fit the ring.
    let Interior { ends, came, .. } = &mut *interior;
    came.iter_mut().flat_map(std::mem::take).for_each(|packet| ends.give(&packet, Action::Drop, 0));
    ends.close(CLOSE_PATIENCE);
    Ok(Some(outcome))
}
