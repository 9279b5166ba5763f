//! `ARPQuerier`: resolves Ethernet addresses.
//!
//! The program handles packets to known neighbours: one lookup in the worker's own copy of the table, no
//! lock. All other packets take the slow path, which looks into the table that all workers share, and queues
//! the packet while it sends queries. A reply reaches one worker; the others see the table's new version at
//! their next tick and send their waiting packets.

use super::arp_message::{self, End, FRAME_BYTES, Message, REPLY};
use super::arp_resolved::{FIRST_BYTES, RECORD_BYTES, Resolved, UNTIL_NS};
use super::arp_table;
use super::arp_waiting::{
    NO_DESTINATION, NO_HEADROOM, NOT_CONFIGURED, NOT_REPLY, REASONS, REPLY_READ, STOPPED, Waiting,
};
use super::header::{BROADCAST, EtherHeader, HEADER_BYTES, TYPE_IP, push_header};
use super::neighbours::{Answer, Limits, Neighbours};
use click::config::{Ip4Prefix, parse};
use diag::Spanned;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, Scope, StateScope, Transparent, Work};
use ir::expr::{anno, now_ns, record};
use ir::{Builder, Table};
use packet::Access;
use packet::anno;
use shm::Packet;
use shm::burst::Batch;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The class.
pub const CLASS: Class = Class {
    name: "ARPQuerier",
    summary: "encapsulates IP packets in Ethernet headers found via ARP",
    page: "\
# ARPQuerier(IP, ETH [, keywords])

Adds an Ethernet header to IP packets, to the station with their destination annotation's address. If that
station is unknown, queues the packet and sends a query; reads replies that come in by input 1, and sends the
packets that wait for them. Queries an address at most ten times a second, and every two seconds after ten
queries without answer. Packets to 255.255.255.255 and BROADCAST are broadcast, those to multicast addresses are
sent to the group's Ethernet address (RFC 1112).

- **ports**: input 0: IP packets, input 1: ARP replies with Ethernet header; output 0: Ethernet frames;
  output 1: queries (output 0 where it is not wired); push
- **arguments**: `IP`: this router's address, or address with prefix; `ETH`: its Ethernet address (may be
  left off if IP is a name for both); `TABLE`: an ARPTable, or another ARPQuerier, whose
  table is used; without it `CAPACITY`,
  `ENTRY_CAPACITY`, `ENTRY_PACKET_CAPACITY`, `CAPACITY_SLIM_FACTOR`, `TIMEOUT` as for ARPTable;
  `POLL_TIMEOUT` (default 1 minute): age at which an entry in use is queried again, 0 for never;
  `BROADCAST`: the network's broadcast address (default: by IP's prefix); `BROADCAST_POLL` (default false):
  whether that query is broadcast
- **annotations**: reads `DST_IP`; sets the MAC header, and the network header behind it. Queries get
  timestamp and `VLAN_TCI` of the packet that caused them
- **handlers**: `table`, `stats`, `count`, `length`, `queries`, `responses`, `drops` (read); `ipaddr`,
  `broadcast` (read/write); `insert` (`IP ETH`), `delete` (`IP`), `clear` (write)
- **drop reasons**: `no-destination`: the annotation is 0.0.0.0; `not-configured`: this router's address is
  0.0.0.0; `no-headroom`: the packet fills its buffer; `arp-no-answer`: waited for longer than TIMEOUT;
  `arp-queue-full`: dropped to make room; `arp-cleared`: waited when the table was cleared;
  `arp-stopped`: waited when the run ended; `arp-reply-read`: a reply that was read; `not-arp-reply`
- **difference**: packets wait at the worker that they came by, and `CAPACITY` holds for each worker. When
  there are too many, the oldest are dropped (Click: those of the oldest entries). All frames that come in
  by input 1 are counted under one of the last two drop reasons
",
    codes: PortCodes { ports: "2/1-2", processing: "h/h", flow: "xy/x" },
    state: StateScope::Shared,
    make,
};

/// The slow paths. The first two are for IP packets: to neighbours that are not in the copy, and to those
/// that are. Lookups separate the two, so that one path for both would not keep the packets' order.
const PATHS: [&str; 3] = ["unknown", "refresh", "reply"];
const REPLY_PATH: usize = 2;

/// What the instances of all workers share beside the table.
#[derive(Debug, Default)]
struct Common {
    ip: AtomicU32,
    broadcast: AtomicU32,
    queries: AtomicU64,
    responses: AtomicU64,
    drops: AtomicU64,
}

struct ArpQuerier {
    mac: [u8; 6],
    poll_ns: u64,
    broadcast_poll: bool,
    limits: Limits,
    query_output: usize,
    common: Arc<Common>,
    neighbours: Arc<Neighbours>,
    resolved: Resolved,
    waiting: Waiting,
    now_ns: u64,
}

/// This router's address, and its Ethernet address if the text is a name for both.
fn own_address(
    text: &Spanned,
    names: &dyn click::config::Names,
) -> click::config::Parsed<(Ip4Prefix, Option<[u8; 6]>)> {
    Ok((parse::ip4_or_prefix(text, names)?, parse::ether(text, names).ok()))
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let query_output = cx.shape.outputs.saturating_sub(1);
    let mut args = cx.args();
    // Keywords may stand in front of the addresses.
    let limits = Limits::read(&mut args);
    let table_name = args.keyword("TABLE", parse::element);
    let poll_ns = args.keyword("POLL_TIMEOUT", parse::seconds_ns).unwrap_or(60_000_000_000);
    let broadcast = args.keyword("BROADCAST", parse::ip4);
    let broadcast_poll = args.keyword("BROADCAST_POLL", parse::bool).unwrap_or(false);
    args.set_keywords_aside();
    let own = args.mandatory_positional("IP", own_address);
    let mac = match own {
        Some((_, Some(mac))) => Some(args.positional("ETH", parse::ether).unwrap_or(mac)),
        _ => args.mandatory_positional("ETH", parse::ether),
    };
    let fine = args.finish();
    let ((prefix, _), mac) = (own?, mac?);
    let neighbours = match table_name {
        None => {
            let neighbours = arp_table::table(cx, cx.name)?;
            neighbours.set_limits(limits);
            neighbours
        }
        Some(name) => match cx.services.element(cx.name, name.as_str()) {
            Some((full, "ARPTable" | "ARPQuerier")) => arp_table::table(cx, &full)?,
            _ => {
                cx.error(name.span, format!("`{name}` is no ARPTable or ARPQuerier"));
                return None;
            }
        },
    };
    let common = cx.shared(Scope::AllWorkers, cx.name, Common::default)?;
    let ip = u32::from(prefix.address);
    let subnet_broadcast = match ip | !u32::from(prefix.mask) {
        itself if itself == ip => u32::MAX,
        subnet => subnet,
    };
    common.ip.store(ip, Relaxed);
    common.broadcast.store(broadcast.map_or(subnet_broadcast, u32::from), Relaxed);
    let resolved = cx.accept(cx.span, Resolved::new(mac, u64::from(ip)))?;
    let waiting = Waiting::new(limits);
    fine.then(|| {
        BoxElement::transparent(ArpQuerier {
            mac,
            poll_ns,
            broadcast_poll,
            limits,
            query_output,
            common,
            neighbours,
            resolved,
            waiting,
            now_ns: 0,
        })
    })
}

/// The Ethernet address of a multicast group (RFC 1112): 01-00-5E and the low 23 bits.
fn group_mac(ip: u32) -> [u8; 6] {
    let [_, high, middle, low] = ip.to_be_bytes();
    [0x01, 0x00, 0x5e, high & 0x7f, middle, low]
}

fn destination(packet: &Packet) -> u32 {
    anno::DST_IP.load(&packet.anno) as u32
}

impl ArpQuerier {
    fn header(&self, dst: [u8; 6]) -> EtherHeader {
        EtherHeader { dst, src: self.mac, ethertype: TYPE_IP }
    }

    /// Sends or drops a packet of the batch.
    fn send(&mut self, index: u16, dst: [u8; 6], batch: &mut Batch<'_>) {
        if self.header(dst).push_onto(batch.packet_mut(index)) {
            batch.emit(index, 0);
        } else {
            self.refuse(index, NO_HEADROOM, batch);
        }
    }

    fn refuse(&mut self, index: u16, reason: usize, batch: &mut Batch<'_>) {
        self.common.drops.fetch_add(1, Relaxed);
        batch.drop(index, reason);
    }

    /// Sends, queues or drops a packet that the program could not send.
    fn resolve(&mut self, index: u16, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let ip = destination(batch.packet(index));
        if self.common.ip.load(Relaxed) == 0 {
            return self.refuse(index, NOT_CONFIGURED, batch);
        }
        let is_group = ip >> 28 == 0xe;
        if ip == u32::MAX || ip == self.common.broadcast.load(Relaxed) || ip == 0 || is_group {
            // A handler may have put the address into the table.
            return match self.neighbours.known(ip, work.now_ns()) {
                Some(mac) => self.send(index, mac, batch),
                None if is_group => self.send(index, group_mac(ip), batch),
                None if ip == 0 => self.refuse(index, NO_DESTINATION, batch),
                None => self.send(index, BROADCAST, batch),
            };
        }
        match self.neighbours.ask(ip, work.now_ns(), self.poll_ns) {
            Answer::Known { known, query } => {
                self.resolved.set(ip, Some(known));
                if query {
                    let to = if self.broadcast_poll { BROADCAST } else { known.mac };
                    self.query(ip, to, &batch.packet(index).clone(), work);
                }
                self.send(index, known.mac, batch);
            }
            Answer::Unknown { query } => {
                let packet = *batch.packet(index);
                if query {
                    self.query(ip, BROADCAST, &packet, work);
                }
                self.waiting.keep(ip, index, self.limits, &self.neighbours, batch, work);
            }
        }
    }

    /// Asks who has an address.
    fn query(&mut self, wanted: u32, to: [u8; 6], because_of: &Packet, work: &mut Work<'_>) {
        let sender = End { mac: self.mac, ip: self.common.ip.load(Relaxed) };
        let frame = arp_message::request(sender, wanted).frame(to);
        let Some(mut query) = work.make(&frame) else { return };
        query.timestamp_ns = because_of.timestamp_ns;
        anno::VLAN_TCI.store(&mut query.anno, anno::VLAN_TCI.load(&because_of.anno));
        query.mac = query.data();
        query.net = query.data() + HEADER_BYTES as u16;
        self.common.queries.fetch_add(1, Relaxed);
        work.emit(self.query_output, &query);
    }

    /// Sends the waiting packets whose neighbours are known by now.
    fn settle(&mut self, work: &mut Work<'_>) {
        let header = self.header([0; 6]);
        let cramped = self.waiting.settle(&self.neighbours, header, work);
        self.common.drops.fetch_add(cramped, Relaxed);
        self.resolved.refresh(&self.neighbours, work.now_ns(), self.poll_ns);
    }

    /// Reads replies.
    fn replies(&mut self, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            let bytes = batch.bytes(index);
            if bytes.len() >= FRAME_BYTES {
                self.common.responses.fetch_add(1, Relaxed);
            }
            let reply = Message::read(&bytes)
                .filter(|message| message.operation == REPLY && arp_message::is_station(message.sender.mac));
            match reply {
                Some(Message { sender, .. }) => {
                    self.neighbours.insert(sender.ip, sender.mac, work.now_ns());
                    batch.drop(index, REPLY_READ);
                }
                None => batch.drop(index, NOT_REPLY),
            }
        }
    }
}

impl Transparent for ArpQuerier {
    fn build(&self, f: &mut Builder) {
        f.name("ARPQuerier");
        let header = self.header([0; 6]);
        let table = f.table("resolved", 1, RECORD_BYTES);
        let [unknown, refresh, reply] = PATHS.map(|path| f.slow_block(path));
        let dst = f.eval(anno(anno::DST_IP));
        let next_hop = f.lookup(table, &[dst], unknown);
        f.check(now_ns().less_than(record(next_hop, UNTIL_NS, 8)), refresh);
        f.room(HEADER_BYTES, refresh);
        push_header(f, record(next_hop, FIRST_BYTES, 8), header.back());
        f.emit(0);
        f.same_entry(reply);
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(&mut self.resolved as &mut dyn Table)
    }

    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.now_ns = work.now_ns();
        // A table that is named with TABLE may have got its limits after this element was made.
        self.limits = self.neighbours.limits();
        let (Some(&first), Some(&last)) = (batch.list().first(), batch.list().last()) else { return };
        // Packets whose neighbour is known by now, from another worker, go before these.
        work.place_before(first);
        self.settle(work);
        if path == REPLY_PATH {
            self.replies(batch, work);
        } else {
            for &index in batch.list() {
                work.place_behind(index);
                self.resolve(index, batch, work);
            }
        }
        work.place_behind(last);
        self.settle(work);
    }
}

impl Element for ArpQuerier {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn fire(&mut self, work: &mut Work<'_>) {
        self.settle(work);
    }

    fn tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.resolved.refresh(&self.neighbours, now_ns, self.poll_ns);
        self.neighbours.tick(now_ns);
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.waiting.drop_all(STOPPED, &self.neighbours, work);
    }
}

impl ArpQuerier {
    fn drops(&self) -> u64 {
        self.common.drops.load(Relaxed) + self.neighbours.drops.load(Relaxed)
    }

    /// Changes the table for a handler, and updates the copy.
    fn change(&mut self, how: impl FnOnce(&Neighbours, u64) -> Result<(), String>) -> Result<(), String> {
        how(&self.neighbours, self.now_ns)?;
        self.resolved.refresh(&self.neighbours, self.now_ns, self.poll_ns);
        Ok(())
    }

    fn clear(&mut self, _cells: &mut [u64]) {
        for counter in [&self.common.queries, &self.common.responses, &self.common.drops] {
            counter.store(0, Relaxed);
        }
        self.neighbours.clear();
        self.resolved.refresh(&self.neighbours, self.now_ns, self.poll_ns);
    }
}

fn address_text(address: &AtomicU32) -> Option<String> {
    Some(Ipv4Addr::from(address.load(Relaxed)).to_string())
}

fn set_address(address: &AtomicU32, value: &str) -> Result<(), String> {
    written(value, parse::ip4).map(|ip| address.store(ip.into(), Relaxed))
}

const HANDLERS: &[Row<ArpQuerier>] = &[
    Row::read("table", |querier, _| Some(querier.neighbours.text(querier.now_ns))),
    Row::read("stats", |querier, _| {
        let (drops, queries) = (querier.drops(), querier.common.queries.load(Relaxed));
        Some(format!("{drops} packets killed\n{queries} ARP queries sent"))
    }),
    Row::read("count", |querier, _| Some(querier.neighbours.count().to_string())),
    Row::read("length", |querier, _| Some(querier.neighbours.waiting.load(Relaxed).to_string())),
    Row::read("queries", |querier, _| Some(querier.common.queries.load(Relaxed).to_string())),
    Row::read("responses", |querier, _| Some(querier.common.responses.load(Relaxed).to_string())),
    Row::read("drops", |querier, _| Some(querier.drops().to_string())),
    Row::read_write(
        "ipaddr",
        |querier, _| address_text(&querier.common.ip),
        |querier, value, _| set_address(&querier.common.ip, value),
    ),
    Row::read_write(
        "broadcast",
        |querier, _| address_text(&querier.common.broadcast),
        |querier, value, _| set_address(&querier.common.broadcast, value),
    ),
    Row::write("insert", |querier, value, _| {
        querier.change(|neighbours, now_ns| neighbours.insert_written(value, now_ns))
    }),
    Row::write("delete", |querier, value, _| {
        querier.change(|neighbours, now_ns| neighbours.delete_written(value, now_ns))
    }),
    Row::button("clear", ArpQuerier::clear),
];
