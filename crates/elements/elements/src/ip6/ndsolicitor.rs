//! `IP6NDSolicitor`: resolves neighbours' Ethernet addresses.

use super::address::destination;
use super::ndadvertiser::{read, solicit};
use crate::ether::header::{EtherHeader, HEADER_BYTES as ETHER_BYTES, TYPE_IP6};
use click::config::parse;
use element::value::ether_text;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::MacAddr;
use packet::view::nd;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "IP6NDSolicitor",
    summary: "encapsulates IPv6 packets in Ethernet headers found by neighbour discovery",
    page: "\
# IP6NDSolicitor(IP, ETH)

Adds an Ethernet header to IPv6 packets that come in by input 0, from ETH to the station of the packet's
destination annotation. If that is unknown, it queues the packet and sends a neighbour solicitation from IP
(RFC 4861); advertisements come in by input 1, with their Ethernet header.

- **ports**: 2 inputs, 1 or 2 outputs, push; solicitations leave by output 1 if that is wired, else by output 0
- **arguments**: `IP`: this host's address; `ETH`: its Ethernet address
- **annotations**: reads `DST_IP6`
- **handlers**: `table` (read): address, whether it is known, station; `stats` (read)
- **drop reasons**: `replaced`: a newer packet waits in its place; `no-answer`; `table-full`; `no-room`:
  there is no room for a header; `advertisement`: it was read; `bad-advertisement`: not valid
- **state**: on one worker, which gets the answers
- **difference**: one solicitation a second is sent for an address, not one for each packet (RFC 4861,
  7.2.2); a neighbour without answer within 15 to 30 seconds is removed, and its packet dropped;
  advertisements that are not valid (RFC 4861, 7.1.2) change nothing; multicast packets get their
  group's Ethernet address (RFC 2464)
",
    codes: PortCodes { ports: "2/1-2", processing: "h/h", flow: "xy/x" },
    state: StateScope::OneWorker,
    make,
};

element::reasons!(
    REPLACED = "replaced",
    NO_ANSWER = "no-answer",
    TABLE_FULL = "table-full",
    NO_ROOM = "no-room",
    ADVERTISEMENT = "advertisement",
    BAD_ADVERTISEMENT = "bad-advertisement",
);

const SECOND_NS: u64 = 1_000_000_000;
/// How often old entries are removed.
const INTERVAL_NS: u64 = 15 * SECOND_NS;
/// An entry is refreshed after the first time, and removed after the second.
const ASK_AGAIN_NS: u64 = 60 * SECOND_NS;
const FORGET_NS: u64 = 120 * SECOND_NS;
/// Time between solicitations for one address (RFC 4861, RETRANS_TIMER).
const RETRANSMIT_NS: u64 = SECOND_NS;
/// Bounds the memory, whatever destinations packets have.
const MOST_NEIGHBORS: usize = 65_536;

struct NeighbourEntry {
    link_address: Option<MacAddr>,
    /// When the neighbour last answered, or was first solicited.
    since_ns: u64,
    asked_ns: Option<u64>,
    waiting: Option<Packet>,
}

struct Solicitor {
    address: Ipv6Addr,
    own_address: MacAddr,
    query_output: usize,
    neighbors: HashMap<Ipv6Addr, NeighbourEntry>,
    killed: u64,
    queries: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let query_output = cx.shape.outputs.saturating_sub(1);
    cx.opaque(|args| {
        let address = args.mandatory_positional("IP", parse::ip6);
        let station = args.mandatory_positional("ETH", parse::ether);
        let (address, own_address) = (address?, MacAddr(station?));
        let neighbors = HashMap::new();
        Some(Solicitor { address, own_address, query_output, neighbors, killed: 0, queries: 0 })
    })
}

impl Solicitor {
    /// Adds an Ethernet header to a packet.
    fn encapsulate(&self, packet: &mut Packet, to: MacAddr) -> bool {
        use packet::Access as _;
        let header = EtherHeader { dst: to.0, src: self.own_address.0, ethertype: TYPE_IP6 };
        if !packet.make_headroom(ETHER_BYTES) || !packet.push(ETHER_BYTES) {
            return false;
        }
        packet.mac = packet.data();
        PacketBytesMut::new(packet).copy_in(0, &header.bytes())
    }

    /// Solicits an address, unless that was done within the last second.
    fn ask(&mut self, target: Ipv6Addr, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        let Some(entry) = self.neighbors.get_mut(&target) else { return };
        if entry.asked_ns.is_some_and(|asked_ns| now_ns < asked_ns + RETRANSMIT_NS) {
            return;
        }
        // Without a free buffer the next packet solicits.
        let Some(query) = solicit(target, None, (self.own_address, self.address), work) else { return };
        entry.asked_ns = Some(now_ns);
        self.queries += 1;
        work.emit(self.query_output, &query);
    }

    fn send(&mut self, index: u16, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let target = destination(batch.packet(index));
        if target.is_multicast() {
            return self.leave(index, nd::multicast_mac(target), batch);
        }
        let now_ns = work.now_ns();
        let full = self.neighbors.len() >= MOST_NEIGHBORS;
        match self.neighbors.get_mut(&target) {
            Some(NeighbourEntry { link_address: Some(station), since_ns, .. }) => {
                let (station, old) = (*station, now_ns.saturating_sub(*since_ns) > ASK_AGAIN_NS);
                if old {
                    self.ask(target, work);
                }
                self.leave(index, station, batch);
            }
            Some(entry) => {
                let packet = *batch.packet(index);
                if let Some(older) = entry.waiting.replace(packet) {
                    self.killed += 1;
                    work.drop_held(REPLACED, &[older]);
                }
                work.hold(1);
                self.ask(target, work);
            }
            None if full => batch.drop(index, TABLE_FULL),
            None => {
                if self.neighbors.is_empty() {
                    work.fire_at(now_ns + INTERVAL_NS);
                }
                let waiting = Some(*batch.packet(index));
                let entry = NeighbourEntry { link_address: None, since_ns: now_ns, asked_ns: None, waiting };
                self.neighbors.insert(target, entry);
                work.hold(1);
                self.ask(target, work);
            }
        }
    }

    fn leave(&self, index: u16, to: MacAddr, batch: &mut Batch<'_>) {
        if self.encapsulate(batch.packet_mut(index), to) {
            batch.emit(index, 0);
        } else {
            batch.drop(index, NO_ROOM);
        }
    }

    /// Reads an advertisement; false if it is not valid.
    fn learn(&mut self, packet: &Packet, work: &mut Work<'_>) -> bool {
        let Some(received) = read(packet) else { return false };
        let message = received.message;
        // An advertisement to all nodes cannot be a solicited one.
        let sound = !(received.dst.is_multicast() && message.flags & nd::SOLICITED != 0);
        let (true, true, Some(station)) = (message.is_advertisement, sound, message.link_addr) else {
            return false;
        };
        let Some(entry) = self.neighbors.get_mut(&message.target) else { return true };
        (entry.link_address, entry.since_ns) = (Some(station), work.now_ns());
        let Some(mut packet) = entry.waiting.take() else { return true };
        work.release(1);
        if self.encapsulate(&mut packet, station) {
            work.emit(0, &packet);
        } else {
            work.drop(NO_ROOM, &[packet]);
        }
        true
    }
}

impl Opaque for Solicitor {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            work.place_behind(index);
            if input == 0 {
                self.send(index, batch, work);
            } else if self.learn(batch.packet(index), work) {
                batch.drop(index, ADVERTISEMENT);
            } else {
                batch.drop(index, BAD_ADVERTISEMENT);
            }
        }
    }
}

impl Element for Solicitor {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn fire(&mut self, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        self.neighbors.retain(|_, entry| {
            let most_ns = if entry.link_address.is_some() { FORGET_NS } else { INTERVAL_NS };
            let keep = now_ns.saturating_sub(entry.since_ns) < most_ns;
            if let Some(packet) = entry.waiting.take_if(|_| !keep) {
                work.drop_held(NO_ANSWER, &[packet]);
            }
            keep
        });
        if !self.neighbors.is_empty() {
            work.fire_at(now_ns + INTERVAL_NS);
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        let waiting = self.neighbors.drain().filter_map(|(_, entry)| entry.waiting);
        waiting.for_each(|packet| work.drop_held(NO_ANSWER, &[packet]));
    }
}

impl Solicitor {
    fn table(&self, _cells: &[u64]) -> Option<String> {
        let lines = self.neighbors.iter().map(|(address, entry)| {
            let station = entry.link_address.unwrap_or(MacAddr([0; 6]));
            format!("{address} {} {}", u8::from(entry.link_address.is_some()), ether_text(station.0))
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort_unstable();
        Some(lines.join("\n"))
    }
}

const HANDLERS: &[Row<Solicitor>] = &[
    Row::concat("table", Solicitor::table),
    Row::concat("stats", |solicitor, _| {
        let Solicitor { killed, queries, .. } = solicitor;
        Some(format!("{killed} packets killed\n{queries} ND Solicitation Message sent"))
    }),
];
