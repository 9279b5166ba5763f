//! `DRRSched`: pulls from its inputs by deficit round robin.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use shm::Packet;
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "DRRSched",
    summary: "pulls from inputs with deficit round robin",
    page: "\
# DRRSched([QUANTUM])

Pulls packets from its inputs so that each gets the same share of the bytes (deficit round robin: Shreedhar
and Varghese, 1995).

- **ports**: 1 or more pull inputs, 1 pull output
- **arguments**: `QUANTUM` (default 500): bytes that an input may send in a round
- **drop reasons**: `scheduler-stopped`: held when the run ended
",
    codes: PortCodes::new("1-/1", "l/l"),
    state: StateScope::PerWorker,
    make,
};

#[derive(Clone, Default)]
struct Client {
    /// The held packet, which is too long for this round.
    head: Option<Packet>,
    deficit_bytes: u64,
}

struct Drr {
    quantum_bytes: u64,
    clients: Vec<Client>,
    next: usize,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let clients = vec![Client::default(); cx.shape.inputs];
    cx.opaque(|args| {
        let quantum = args.positional("QUANTUM", parse::int_in(1..=1 << 30)).unwrap_or(500);
        let quantum_bytes = quantum as u64;
        Some(Drr { quantum_bytes, clients, next: 0, arrivals: Vector::new() })
    })
}

impl Drr {
    /// The next packet of any input.
    fn next_packet(&mut self, work: &mut Work<'_>) -> Option<Packet> {
        let mut empty = 0;
        while empty < self.clients.len() {
            let client = self.clients.get_mut(self.next)?;
            if client.head.is_none() {
                self.arrivals.clear();
                let count = work.pull(self.next, 1, &mut self.arrivals);
                work.hold(count);
                client.head = self.arrivals.iter().next().copied();
            }
            let deficit_bytes = client.deficit_bytes;
            match client.head.take_if(|packet| u64::from(packet.total()) <= deficit_bytes) {
                Some(packet) => {
                    client.deficit_bytes -= u64::from(packet.total());
                    work.release(1);
                    return Some(packet);
                }
                None if client.head.is_some() => empty = 0,
                None => {
                    client.deficit_bytes = 0;
                    empty += 1;
                }
            }
            self.next = (self.next + 1) % self.clients.len();
            if let Some(client) = self.clients.get_mut(self.next) {
                client.deficit_bytes += self.quantum_bytes;
            }
        }
        None
    }
}

impl Opaque for Drr {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        into.push_from(most, || self.next_packet(work))
    }
}

impl Element for Drr {
    element::facts!(writes: false, reasons: &["scheduler-stopped"]);

    fn stop(&mut self, work: &mut Work<'_>) {
        for packet in self.clients.iter_mut().filter_map(|client| client.head.take()) {
            work.drop_held(0, &[packet]);
        }
    }
}
