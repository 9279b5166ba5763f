//! `EtherSwitch`: a learning bridge.
//!
//! All workers learn into one table, which is locked once for each batch. The number of addresses is bounded;
//! frames to addresses that do not fit are flooded, as those to any unknown address.

use crate::basic::tee::Copier;
use click::config::parse;
use element::value::{ether_text, set};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope, Work};
use packet::access::Access;
use shm::burst::Batch;
use shm::burst::LIST_CAPACITY;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The class.
pub const CLASS: Class = Class {
    name: "EtherSwitch",
    summary: "learning, forwarding Ethernet switch",
    page: "\
# EtherSwitch([keyword TIMEOUT])

Connects as many LANs as it has inputs: input and output with the same number are one LAN. It learns each frame's
source address with the input. A frame to a learned address leaves to that LAN. A frame to any other address, or
to a group, leaves to all LANs but its own.

- **ports**: 1 or more push inputs, as many push outputs
- **arguments**: `TIMEOUT` (default 300): seconds without a frame after which an address is forgotten; with 0
  it is a hub and learns nothing
- **handlers**: `table` (read): each address with its LAN; `timeout` (read/write); `copy_failures` (read):
  copies that could not be made, because no packet was free
- **drop reasons**: `same-port`: to an address in the LAN that the frame came from; `no-other-port`: there is
  one LAN only; `short-frame`: no two addresses in it
- **difference**: learns 16,384 addresses at most, and floods frames to others; group addresses are no
  sources; time is the run's, not the packets'. Copies leave after their batch: later frames of the batch may
  overtake a flooded one
",
    codes: PortCodes { ports: "1-/=", processing: "h/h", flow: "#/[^#]" },
    state: StateScope::Shared,
    make,
};

element::reasons!(SAME_PORT = "same-port", NO_OTHER_PORT = "no-other-port", SHORT_FRAME = "short-frame");

const MOST_ADDRESSES: usize = 1 << 14;
/// How often expired addresses are removed.
const SWEEP_NS: u64 = 1_000_000_000;

/// Where an address was last seen.
#[derive(Clone, Copy)]
struct LearnedAddress {
    port: usize,
    at_ns: u64,
}

/// The table that all workers share.
struct Lans {
    seen: HashMap<[u8; 6], LearnedAddress>,
    timeout_ns: u64,
    next_sweep_ns: u64,
}

struct EtherSwitch {
    ports: usize,
    lans: Arc<Mutex<Lans>>,
    copier: Copier,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let ports = cx.shape.outputs;
    let timeout_ns =
        cx.read(|args| Some(args.keyword("TIMEOUT", parse::seconds_ns).unwrap_or(300_000_000_000)))?;
    let lans = cx.shared(Scope::AllWorkers, cx.name, || {
        let seen = HashMap::with_capacity(MOST_ADDRESSES);
        Mutex::new(Lans { seen, timeout_ns, next_sweep_ns: 0 })
    })?;
    Some(BoxElement::opaque(EtherSwitch { ports, lans, copier: Copier::default() }))
}

impl Lans {
    fn learn(&mut self, address: [u8; 6], seen: LearnedAddress) {
        let is_group = address[0] & 1 != 0;
        let fits = self.seen.len() < MOST_ADDRESSES || self.seen.contains_key(&address);
        if !is_group && fits {
            self.seen.insert(address, seen);
        }
    }

    fn find(&self, address: [u8; 6], now_ns: u64) -> Option<usize> {
        let seen = self.seen.get(&address)?;
        (now_ns.saturating_sub(seen.at_ns) < self.timeout_ns).then_some(seen.port)
    }
}

impl EtherSwitch {
    fn lock(&self) -> MutexGuard<'_, Lans> {
        self.lans.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Opaque for EtherSwitch {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        let (mut flooded, mut floods) = ([0; LIST_CAPACITY], 0);
        let last = (0..self.ports).rfind(|port| *port != input);
        let mut lans = self.lock();
        for &index in batch.list() {
            let mut addresses = [0; 12];
            if !batch.bytes(index).copy_out(0, &mut addresses) {
                batch.drop(index, SHORT_FRAME);
                continue;
            }
            let [mut to, mut from] = [[0; 6]; 2];
            to.copy_from_slice(&addresses[..6]);
            from.copy_from_slice(&addresses[6..]);
            let mut known = None;
            if lans.timeout_ns > 0 {
                lans.learn(from, LearnedAddress { port: input, at_ns: now_ns });
                known = lans.find(to, now_ns);
            }
            match known {
                Some(port) if port == input => batch.drop(index, SAME_PORT),
                Some(port) => batch.emit(index, port),
                None if last.is_none() => batch.drop(index, NO_OTHER_PORT),
                None => {
                    flooded[floods] = index;
                    floods += 1;
                }
            }
        }
        drop(lans);
        let Some(last) = last else { return };
        let others = (0..last).filter(|port| *port != input);
        self.copier.send_to_all(batch, &flooded[..floods], others, last, work);
    }
}

impl Element for EtherSwitch {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn tick(&mut self, now_ns: u64) {
        let mut lans = self.lock();
        if now_ns >= lans.next_sweep_ns {
            lans.next_sweep_ns = now_ns + SWEEP_NS;
            let timeout_ns = lans.timeout_ns;
            lans.seen.retain(|_, seen| now_ns.saturating_sub(seen.at_ns) < timeout_ns);
        }
    }
}

impl EtherSwitch {
    fn table(&self, _cells: &[u64]) -> Option<String> {
        let lans = self.lock();
        let mut lines: Vec<([u8; 6], usize)> =
            lans.seen.iter().map(|(address, seen)| (*address, seen.port)).collect();
        lines.sort_unstable();
        let line = |(address, port): ([u8; 6], usize)| format!("{} {port}", ether_text(address));
        Some(lines.into_iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

const HANDLERS: &[Row<EtherSwitch>] = &[
    Row::read("table", EtherSwitch::table),
    Row::read_write(
        "timeout",
        |switch, _| Some((switch.lock().timeout_ns as f64 / 1e9).to_string()),
        |switch, value, _| set(&mut switch.lock().timeout_ns, value, parse::seconds_ns),
    ),
    Row::sum("copy_failures", |switch, _| Some(switch.copier.failures().to_string())),
];
