//! `AggregateIPFlows`: numbers TCP and UDP flows.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::ip::header::from_network;
use packet::Access;
use packet::anno::{AGGREGATE, PAINT};
use packet::view::protocol::{ICMP, TCP, UDP};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// The class.
pub const CLASS: Class = Class {
    name: "AggregateIPFlows",
    summary: "sets aggregate annotation based on flow",
    page: "\
# AggregateIPFlows([keywords TCP_TIMEOUT, TCP_DONE_TIMEOUT, UDP_TIMEOUT, FRAGMENT_TIMEOUT, REAP, ICMP, FRAGMENTS])

Numbers TCP and UDP flows from 1 on. Sets the aggregate annotation to the number of a packet's flow, and the paint
annotation to its direction: 0 for that of the flow's first packet, 1 for the other.

- **ports**: 1 input, 1 or 2 outputs, push. Packets that belong to no flow leave by output 1
- **needs**: the network header annotation, and timestamps: packets without one get the time
- **arguments**, times in seconds or with a unit: `TCP_TIMEOUT` (default 24 hours), `UDP_TIMEOUT` (default 60 s): after
  which a flow without packets has ended; `TCP_DONE_TIMEOUT` (default 30 s): the same after a reset or after both sides
  have ended, where a SYN begins a new flow at once; `FRAGMENTS` (default true): fragments belong to the flow of their
  first one, and those that come before it are held until it comes, with the packets behind them between the same two
  hosts; false: only first fragments belong to a flow. `FRAGMENT_TIMEOUT` (default 30 s): the longest time for which
  they are held;
  `REAP` (default 20 minutes): how often ended flows are removed; `ICMP` (default false): ICMP errors belong to the flow
  of the packet that they report, with paint 2 for an error about a packet of direction 0, and 3
- **annotations**: sets `AGGREGATE` and `PAINT`
- **handlers**: `flows`, `held` (read): their numbers; `clear` (write): drops what is held, forgets all flows and goes
  on numbering
- **drop reasons**: `no-flow`: there is no output 1; `no-first-fragment`: held for too long, or until the run ended;
  `too-many-held`: 4096 packets are held already; `too-many-flows`: there are 4194304 flows already
- **workers**: one worker numbers
- **difference**: push only; times are those of the packets' timestamps, as in Click. No element is told of new flows,
  and there is no TRACEINFO. Packets leave as soon as their flow is known, where Click holds all fragments until a
  packet comes FRAGMENT_TIMEOUT later
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::OneWorker,
    make,
};

element::reasons!(
    NO_FLOW = "no-flow",
    NO_FIRST = "no-first-fragment",
    MANY_HELD = "too-many-held",
    MANY_FLOWS = "too-many-flows",
);

const SECOND: u64 = 1_000_000_000;
/// The most packets that wait for first fragments.
const MOST_HELD: usize = 4096;
/// The most flows: some 300 MB.
const MOST_FLOWS: usize = 1 << 22;
/// The most datagrams whose flow is kept for later fragments.
const MOST_DATAGRAMS: usize = 1 << 16;

/// Bits of TCP's flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
/// Both sides have ended.
const OVER: u8 = 3;

/// Two hosts, the lower address first, and the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Hosts {
    addresses: [u32; 2],
    protocol: u8,
}

struct Flow {
    number: u32,
    /// Whether its first packet went from the higher end to the lower.
    is_reverse: bool,
    /// Sides that have ended, as bits.
    over: u8,
    last_ns: u64,
}

/// The datagram of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Datagram {
    hosts: Hosts,
    source: u32,
    id: u16,
}

/// The numbers that a packet gets.
#[derive(Clone, Copy)]
struct Mark {
    flow: u32,
    paint: u8,
}

impl Mark {
    fn store(self, packet: &mut Packet) {
        AGGREGATE.store(&mut packet.anno, self.flow.into());
        PAINT.store(&mut packet.anno, self.paint.into());
    }
}

/// A packet that waits, for the first fragment of its datagram or behind one that does.
struct Waiting {
    packet: Packet,
    /// Its datagram, if that one's first fragment has not come.
    waits_for: Option<Datagram>,
}

/// What a packet says of itself.
struct PacketFacts {
    hosts: Hosts,
    source: u32,
    /// Source and destination port, if they are there.
    ports: Option<[u16; 2]>,
    tcp_flags: u8,
    /// The datagram, of a fragment.
    fragment: Option<Datagram>,
    is_error: bool,
}

struct IpFlows {
    tcp_ns: u64,
    tcp_done_ns: u64,
    udp_ns: u64,
    fragment_ns: u64,
    reap_ns: u64,
    icmp: bool,
    fragments: bool,
    next: u32,
    flows: HashMap<(Hosts, [u16; 2]), Flow>,
    held: HashMap<Hosts, VecDeque<Waiting>>,
    held_packets: usize,
    /// Datagrams whose first fragments have come, and when.
    datagrams: HashMap<Datagram, (Mark, u64)>,
    /// When ended flows are looked for again, by the packets' timestamps.
    reap_at_ns: u64,
    clear: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let mut seconds = |name, default: u64| {
            args.keyword(name, parse::seconds_ns).unwrap_or(default.saturating_mul(SECOND))
        };
        let tcp_ns = seconds("TCP_TIMEOUT", 24 * 3600);
        let tcp_done_ns = seconds("TCP_DONE_TIMEOUT", 30);
        let udp_ns = seconds("UDP_TIMEOUT", 60);
        let fragment_ns = seconds("FRAGMENT_TIMEOUT", 30);
        let reap_ns = seconds("REAP", 20 * 60);
        let icmp = args.keyword("ICMP", parse::bool).unwrap_or(false);
        let fragments = args.keyword("FRAGMENTS", parse::bool).unwrap_or(true);
        Some(IpFlows {
            tcp_ns,
            tcp_done_ns,
            udp_ns,
            fragment_ns,
            reap_ns,
            icmp,
            fragments,
            next: 1,
            flows: HashMap::new(),
            held: HashMap::new(),
            held_packets: 0,
            datagrams: HashMap::new(),
            reap_at_ns: 0,
            clear: false,
        })
    })
}

/// Reads a header at an offset; `None` if it is no TCP or UDP packet, or cut off before its ports.
fn look(bytes: &PacketBytes<'_>, at: usize, is_error: bool) -> Option<PacketFacts> {
    let first = bytes.u8(at)?;
    let header_bytes = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    let [id, offset] = [bytes.u16(at + 4)?, bytes.u16(at + 6)?];
    let protocol = bytes.u8(at + 9)?;
    let address = |at: usize| Some(u32::from(bytes.u16(at)?) << 16 | u32::from(bytes.u16(at + 2)?));
    let (source, destination) = (address(at + 12)?, address(at + 16)?);
    let is_flow = matches!(protocol, TCP | UDP) && (source, destination) != (0, 0);
    let is_fragment = offset & 0x3fff != 0;
    let trans = at + header_bytes;
    let ports = match offset & 0x1fff {
        0 => Some([bytes.u16(trans)?, bytes.u16(trans + 2)?]),
        _ => None,
    };
    let tcp_flags = if protocol == TCP && ports.is_some() { bytes.u8(trans + 13).unwrap_or(0) } else { 0 };
    let hosts = Hosts { addresses: [source.min(destination), source.max(destination)], protocol };
    let fragment = is_fragment.then_some(Datagram { hosts, source, id });
    is_flow.then_some(PacketFacts { hosts, source, ports, tcp_flags, fragment, is_error })
}

impl IpFlows {
    fn look(&self, packet: &Packet) -> Option<PacketFacts> {
        /// Types of ICMP messages about a packet.
        const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
        const ICMP_BYTES: usize = 8;
        let from_net = from_network(packet)?;
        let bytes = PacketBytes::new(&from_net);
        if !self.icmp || bytes.u8(9)? != ICMP || bytes.u16(6)? & 0x1fff != 0 {
            return look(&bytes, 0, false);
        }
        let at = usize::from(bytes.u8(0)? & 15) * 4;
        let is_error = ERRORS.contains(&bytes.u8(at)?);
        if is_error { look(&bytes, at + ICMP_BYTES, true) } else { None }
    }

    fn timeout_ns(&self, protocol: u8, over: u8) -> u64 {
        match (protocol, over) {
            (UDP, _) => self.udp_ns,
            (_, OVER) => self.tcp_done_ns,
            _ => self.tcp_ns,
        }
    }

    /// The numbers of a packet with ports; a new flow begins if there is none. `None` if there are too
    /// many.
    fn find(&mut self, seen: &PacketFacts, [from, to]: [u16; 2], now_ns: u64) -> Option<Mark> {
        let is_low_first = match seen.hosts.addresses {
            [low, high] if low == high => from <= to,
            [low, _] => seen.source == low,
        };
        let key = (seen.hosts, if is_low_first { [from, to] } else { [to, from] });
        let is_full = self.flows.len() >= MOST_FLOWS;
        let timeouts = [0, OVER].map(|over| self.timeout_ns(seen.hosts.protocol, over));
        let number = self.next;
        let new = Flow { number, is_reverse: !is_low_first, over: 0, last_ns: now_ns };
        let flow = match self.flows.entry(key) {
            Entry::Occupied(known) => {
                let flow = known.into_mut();
                let timeout_ns = timeouts[usize::from(flow.over == OVER)];
                let is_new = flow.over == OVER && seen.tcp_flags & SYN != 0;
                if is_new || now_ns.saturating_sub(flow.last_ns) > timeout_ns {
                    *flow = new;
                }
                flow
            }
            Entry::Vacant(_) if is_full => return None,
            Entry::Vacant(vacant) => vacant.insert(new),
        };
        if flow.number == number {
            self.next = self.next.checked_add(1).unwrap_or(1);
        }
        let direction = u8::from(is_low_first == flow.is_reverse);
        flow.last_ns = flow.last_ns.max(now_ns);
        if !seen.is_error {
            match seen.tcp_flags {
                flags if flags & RST != 0 => flow.over = OVER,
                flags if flags & FIN != 0 => flow.over |= 1 << direction,
                flags if flags & SYN != 0 => flow.over = 0,
                _ => {}
            }
        }
        Some(Mark { flow: flow.number, paint: direction + if seen.is_error { 2 } else { 0 } })
    }

    /// The numbers of a fragment, if the first fragment of its datagram has come. Those of a first fragment are kept for
    /// the others.
    fn of_datagram(&mut self, datagram: Datagram, first: Option<Mark>, now_ns: u64) -> Option<Mark> {
        let Some(mark) = first else {
            let (mark, at_ns) = self.datagrams.get(&datagram)?;
            return (now_ns.saturating_sub(*at_ns) <= self.fragment_ns).then_some(*mark);
        };
        if self.datagrams.len() >= MOST_DATAGRAMS {
            let oldest_ns = now_ns.saturating_sub(self.fragment_ns);
            self.datagrams.retain(|_, (_, at_ns)| *at_ns >= oldest_ns);
        }
        if self.datagrams.len() < MOST_DATAGRAMS {
            self.datagrams.insert(datagram, (mark, now_ns));
        }
        for other in self.held.get_mut(&datagram.hosts).into_iter().flatten() {
            if other.waits_for == Some(datagram) {
                mark.store(&mut other.packet);
                other.waits_for = None;
            }
        }
        Some(mark)
    }

    /// Puts a packet behind those that wait between its hosts.
    fn hold(&mut self, hosts: Hosts, waiting: Waiting, work: &mut Work<'_>) {
        self.held.entry(hosts).or_default().push_back(waiting);
        self.held_packets += 1;
        work.hold(1);
    }

    /// Sends packets of two hosts that wait for nothing any more, and drops those that have waited for too long.
    fn send(&mut self, hosts: Hosts, now_ns: u64, work: &mut Work<'_>) {
        let Some(queue) = self.held.get_mut(&hosts) else { return };
        let oldest_ns = now_ns.saturating_sub(self.fragment_ns);
        let done = |one: &mut Waiting| one.waits_for.is_none() || one.packet.timestamp_ns < oldest_ns;
        while let Some(one) = queue.pop_front_if(done) {
            self.held_packets -= 1;
            work.release(1);
            match one.waits_for {
                None => work.emit(0, &one.packet),
                Some(_) => work.drop(NO_FIRST, &[one.packet]),
            }
        }
        if queue.is_empty() {
            self.held.remove(&hosts);
        }
    }

    /// Removes what has ended.
    fn reap(&mut self, now_ns: u64, work: &mut Work<'_>) {
        self.send_all(now_ns, work);
        let oldest_ns = now_ns.saturating_sub(self.fragment_ns);
        self.datagrams.retain(|_, (_, at_ns)| *at_ns >= oldest_ns);
        let flows = std::mem::take(&mut self.flows);
        let lives = |hosts: &Hosts, flow: &Flow| {
            now_ns.saturating_sub(flow.last_ns) <= self.timeout_ns(hosts.protocol, flow.over)
        };
        self.flows = flows.into_iter().filter(|((hosts, _), flow)| lives(hosts, flow)).collect();
    }

    fn send_all(&mut self, now_ns: u64, work: &mut Work<'_>) {
        let mut hosts: Vec<Hosts> = self.held.keys().copied().collect();
        hosts.sort_unstable_by_key(|hosts| (hosts.addresses, hosts.protocol));
        hosts.into_iter().for_each(|hosts| self.send(hosts, now_ns, work));
    }
}

impl Opaque for IpFlows {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            let packet = batch.packet_mut(index);
            if packet.timestamp_ns == 0 {
                packet.timestamp_ns = work.now_ns();
            }
            let (packet, now_ns) = (*packet, packet.timestamp_ns);
            work.place_before(index);
            let Some(seen) = self.look(&packet) else {
                batch.emit_or_drop(index, 1, NO_FLOW);
                continue;
            };
            let found = seen.ports.map(|ports| self.find(&seen, ports, now_ns));
            if let Some(None) = found {
                batch.drop(index, MANY_FLOWS);
                continue;
            }
            let fragment = seen.fragment.filter(|_| self.fragments);
            let mark = match fragment {
                Some(datagram) => self.of_datagram(datagram, found.flatten(), now_ns),
                None => found.flatten(),
            };
            let packet = batch.packet_mut(index);
            mark.unwrap_or(Mark { flow: 0, paint: 0 }).store(packet);
            let waits_for = fragment.filter(|_| mark.is_none());
            let waits = waits_for.is_some() || self.held.contains_key(&seen.hosts);
            match (waits, mark) {
                (false, None) => batch.emit_or_drop(index, 1, NO_FLOW),
                (false, Some(_)) => batch.emit(index, 0),
                (true, _) if self.held_packets >= MOST_HELD => batch.drop(index, MANY_HELD),
                (true, None) if waits_for.is_none() => batch.emit_or_drop(index, 1, NO_FLOW),
                (true, _) => {
                    let waiting = Waiting { packet: *packet, waits_for };
                    self.hold(seen.hosts, waiting, work);
                    self.send(seen.hosts, now_ns, work);
                }
            }
            if now_ns >= self.reap_at_ns {
                if self.reap_at_ns > 0 {
                    self.reap(now_ns, work);
                }
                self.reap_at_ns = now_ns.saturating_add(self.reap_ns.max(1));
            }
        }
    }
}

impl Element for IpFlows {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn follow_write(&mut self, work: &mut Work<'_>) {
        if std::mem::take(&mut self.clear) {
            self.send_all(u64::MAX, work);
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        for Waiting { packet, .. } in std::mem::take(&mut self.held).into_values().flatten() {
            work.drop_held(NO_FIRST, &[packet]);
        }
        self.held_packets = 0;
    }
}

const HANDLERS: &[Row<IpFlows>] = &[
    Row::sum("flows", |flows, _| Some(flows.flows.len().to_string())),
    Row::sum("held", |flows, _| Some(flows.held_packets.to_string())),
    Row::button("clear", |flows, _| {
        flows.flows.clear();
        flows.datagrams.clear();
        flows.clear = true;
    }),
];
