//! `Resolver`: ARP and neighbour discovery of an L3 interface, for the packets that it receives.
//!
//! The program passes all other packets, and reads three fields at most.

use super::message::{self, Answered};
use crate::ether::arp_message;
use crate::ip6::ndadvertiser::advertise;
use click::config::{Names, Parsed, parse};
use crossbeam_queue::ArrayQueue;
use diag::{Diagnostic, Spanned};
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, PortCodes, Progress, Row, Scope, StateScope, Task, Transparent,
    Work,
};
use ir::Builder;
use ir::expr::load;
use packet::MacAddr;
use packet::field::{Base, Field};
use packet::view::icmp6::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
use packet::view::nd::{OVERRIDE, ROUTER};
use packet::view::{ethernet, protocol};
use port::interface::table::Ask;
use port::interface::{Address, Counters, Interface};
use shm::burst::{Batch, Vector};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The class.
pub const CLASS: Class = Class {
    name: "Resolver",
    summary: "answers and asks for Ethernet addresses, by ARP and neighbour discovery",
    page: "\
# Resolver(STATION, ADDR_1, ADDR_2, ... [, keywords MAC, PORT, ASKS])

Makes a port an L3 interface of its network, on the packets that the port receives: answers ARP requests and neighbour
solicitations for its addresses, and resolves the Ethernet addresses of neighbours that NFs ask the platform for. Chain
files add it for a port or device with `addresses`. All elements of one STATION share its table.

It consumes ARP replies and neighbour advertisements to its addresses, and turns requests and solicitations for them
into answers. Everything else leaves by output 0: other packets, frames in VLANs, ARP between others, and announcements
to all, which it reads in passing. Messages must be valid by RFC 826 and RFC 4861 (section 7.1): hop limit 255,
checksum, lengths of messages and options, addresses of single stations.

A neighbour gets an entry when an NF or a handler asks for it, and never because of a packet. It is queried 3 times, a
second apart. An answer is valid for 15 to 45 seconds; then the neighbour is probed at its address, as long as anybody
wants it.

- **ports**: 1 input; output 0: what it does not consume; output 1: answers and questions; push
- **arguments**: `STATION`: a name; `ADDR_i`: addresses with the length of their network's prefix; `MAC`: its Ethernet
  address, that of `PORT` by default; `ASKS` (default true): whether queries leave here, too
- **annotations**: answers keep the `VLAN_TCI` of their query and lose all others
- **handlers**: `table` (read): a line for each neighbour: address, state (`incomplete`, `reachable`, `stale`, `probe`,
  `unreachable`, `permanent`), Ethernet address, seconds since it was heard of, how many NFs want it; `count` (read):
  neighbours; `queries`, `answers`, `responses` (read): queries that were sent, requests that were answered, and messages
  about wanted neighbours; `stats` (read): these and `missed` (messages that came too fast), `conflicts` (from others
  with an address of the interface), `no-buffer`, `failures` (neighbours that were given up), `evicted` (that made
  room), a line each; `addresses` (read): its own addresses, each with the Ethernet address (`stations` is the same);
  `resolve` (`ADDR`, write): resolves a neighbour and keeps its entry; `insert` (`ADDR ETH`), `delete` (`ADDR`), `clear`
  (write)
- **drop reasons**: `neighbour-read`: a message about a neighbour; `neighbour-malformed`: an invalid message for this
  interface
",
    codes: PortCodes::new("1/2", "h/h"),
    state: StateScope::Shared,
    make,
};

element::reasons!(READ = "neighbour-read", MALFORMED = "neighbour-malformed");

const ARP_PATH: usize = 0;
const PATHS: [&str; 2] = ["arp", "neighbour-discovery"];

// In the frame.
const TYPE: Field = Field::bytes(Base::Data, 12, 2);
const NEXT_HEADER: Field = Field::bytes(Base::Data, 20, 1);
const ICMP6_TYPE: Field = Field::bytes(Base::Data, 54, 1);

struct Resolver {
    interface: Arc<Interface>,
    mac: MacAddr,
    /// Queries to send from here; only on one worker.
    asked: Option<Arc<ArrayQueue<Ask>>>,
    /// Whether its handlers change the table: they are written on all workers, and one applies the change.
    keeps_table: bool,
}

fn address(text: &Spanned, _names: &dyn Names) -> Parsed<Address> {
    Address::read(text.as_str()).map_err(|sentence| Diagnostic::error(text.span, sentence))
}

/// An address, if it is that of a single station.
fn of_station(mac: MacAddr) -> Result<MacAddr, String> {
    let is_station = mac.is_station().then_some(mac);
    is_station.ok_or_else(|| format!("{mac} is the Ethernet address of no single station"))
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("STATION", parse::string);
    let mac = args.keyword("MAC", parse::ether);
    let port = args.keyword("PORT", parse::string);
    let asks = args.keyword("ASKS", parse::bool).unwrap_or(true);
    let mut addresses = vec![];
    for text in args.rest() {
        addresses.extend(args.read(&text, address));
    }
    let fine = args.finish();
    let name = name?;
    if fine && addresses.is_empty() {
        cx.error(cx.span, "an interface has an address, such as 10.0.0.1/24");
        return None;
    }
    let mac = match (mac, port) {
        (Some(mac), _) => Ok(MacAddr(mac)),
        (None, Some(port)) => cx.services.port_mac(port.as_str()).map_err(|why| (port.span, why)),
        (None, None) => Err((name.span, format!("interface `{name}` has no Ethernet address"))),
    };
    let help = "say it: MAC 02:00:00:00:00:01, in a chain file `mac = \"02:00:00:00:00:01\"`";
    let mac = mac.map_err(|(span, why)| _ = cx.error(span, why).help(help)).ok()?;
    let mac = cx.accept(cx.span, of_station(mac))?;
    if !fine {
        return None;
    }
    let interface = match cx.services.l3_interface(name.as_str()) {
        Some(interface) => interface,
        None => cx.shared(Scope::AllWorkers, name.as_str(), || Interface::new(name.as_str(), addresses))?,
    };
    interface.set_mac(mac);
    // All ports of a device share one interface.
    let mac = interface.mac().unwrap_or(mac);
    let asked = (asks && cx.worker == 0).then(|| interface.add_request_queue());
    Some(BoxElement::transparent(Resolver { interface, mac, asked, keeps_table: cx.worker == 0 }))
}

impl Resolver {
    /// Passes a message on, drops it, or emits the answer that `write` turns it into; `write` returns false
    /// if there is no room.
    fn settle<T>(
        &self,
        answered: Answered<T>,
        index: u16,
        batch: &mut Batch<'_>,
        write: impl FnOnce(&T, &mut Batch<'_>) -> bool,
    ) {
        match answered {
            Answered::Others => batch.emit(index, 0),
            Answered::Read => batch.drop(index, READ),
            Answered::Answer(answer) if write(&answer, batch) => {
                self.interface.count(|counters| &counters.answers, 1);
                batch.emit(index, 1);
            }
            Answered::Malformed | Answered::Answer(_) => batch.drop(index, MALFORMED),
        }
    }
}

impl Transparent for Resolver {
    fn build(&self, f: &mut Builder) {
        f.name("Resolver");
        let others = f.aside(|f| f.emit(0));
        let [arp, discovery] = PATHS.map(|path| f.slow_block(path));
        f.need(Base::Data, 14, others);
        let kind = f.eval(load(TYPE));
        f.leave_if(kind.equals(u64::from(ethernet::ARP)), arp);
        f.check(kind.equals(u64::from(ethernet::IPV6)), others);
        f.need(Base::Data, 55, others);
        f.check(load(NEXT_HEADER).equals(u64::from(protocol::ICMP6)), others);
        let [solicitation, advertisement] = [NEIGHBOR_SOLICITATION, NEIGHBOR_ADVERTISEMENT].map(u64::from);
        f.branch_to(load(ICMP6_TYPE).within(solicitation, advertisement), discovery, others);
    }

    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            if path == ARP_PATH {
                let answered = message::arp(&self.interface, self.mac, &batch.bytes(index));
                self.settle(answered, index, batch, |reply, batch| {
                    arp_message::answer(batch, index, reply);
                    true
                });
            } else {
                let answered = message::nd(&self.interface, self.mac, batch.packet(index));
                self.settle(answered, index, batch, |received, batch| {
                    let packet = batch.packet_mut(index);
                    let fits = advertise(packet, received, self.mac, ROUTER | OVERRIDE);
                    if fits {
                        arp_message::forget_annotations(packet);
                    }
                    fits
                });
            }
        }
    }
}

impl Task for Resolver {
    fn works_alone(&self) -> bool {
        true
    }

    fn run_task(&mut self, _vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let Some(asked) = self.asked.as_ref().filter(|asked| !asked.is_empty()) else {
            return Progress::Idle;
        };
        for ask in std::iter::from_fn(|| asked.pop()).take(work.burst()) {
            match message::question(&self.interface, self.mac, ask, work) {
                Some(question) => {
                    self.interface.count(|counters| &counters.queries, 1);
                    work.emit(1, &question);
                }
                // The table will ask again.
                None => self.interface.count(|counters| &counters.no_buffer, 1),
            }
        }
        Progress::Worked
    }
}

impl Element for Resolver {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        self.asked.is_some().then_some(self)
    }

    fn tick(&mut self, now_ns: u64) {
        if self.asked.is_some() {
            self.interface.turn(now_ns);
        }
    }
}

impl Resolver {
    fn counter(&self, of: fn(&Counters) -> &AtomicU64) -> Option<String> {
        Some(of(&self.interface.counters).load(Relaxed).to_string())
    }

    /// Its own addresses, a line each.
    fn addresses(&self) -> String {
        let own = self.interface.addresses().iter().map(|own| format!("{own} {}", self.mac));
        own.collect::<Vec<_>>().join("\n")
    }

    fn stats(&self) -> String {
        let counters = &self.interface.counters;
        let (failures, evicted) = self.interface.with_table(|table| table.failures());
        let lines = [
            ("queries", counters.queries.load(Relaxed)),
            ("answers", counters.answers.load(Relaxed)),
            ("responses", counters.heard.load(Relaxed)),
            ("missed", counters.missed.load(Relaxed)),
            ("conflicts", counters.conflicts.load(Relaxed)),
            ("no-buffer", counters.no_buffer.load(Relaxed)),
            ("failures", failures),
            ("evicted", evicted),
        ];
        lines.map(|(name, count)| format!("{name} {count}")).join("\n")
    }

    /// Changes the table, once for all workers.
    fn change(&self, by: impl FnOnce(&Interface) -> Result<(), String>) -> Result<(), String> {
        if self.keeps_table { by(&self.interface) } else { Ok(()) }
    }
}

fn ip(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| format!("`{}` is no IP address", text.trim()))
}

fn insert(interface: &Interface, value: &str) -> Result<(), String> {
    let (neighbour, mac) = value
        .trim()
        .split_once(char::is_whitespace)
        .ok_or("expected an IP address and an Ethernet address")?;
    let mac = of_station(MacAddr(written(mac, parse::ether)?))?;
    interface.insert(ip(neighbour)?, mac).map_err(|refusal| refusal.to_string())
}

const HANDLERS: &[Row<Resolver>] = &[
    Row::read("table", |resolver, _| Some(resolver.interface.with_table(|table| table.text()))),
    Row::read("count", |resolver, _| Some(resolver.interface.with_table(|table| table.count()).to_string())),
    Row::read("queries", |resolver, _| resolver.counter(|counters| &counters.queries)),
    Row::read("answers", |resolver, _| resolver.counter(|counters| &counters.answers)),
    Row::read("responses", |resolver, _| resolver.counter(|counters| &counters.heard)),
    Row::read("stats", |resolver, _| Some(resolver.stats())),
    Row::read("addresses", |resolver, _| Some(resolver.addresses())),
    // Its old name.
    Row::read("stations", |resolver, _| Some(resolver.addresses())),
    Row::write("resolve", |resolver, value, _| {
        resolver.change(|interface| interface.pin(ip(value)?).map_err(|refusal| refusal.to_string()))
    }),
    Row::write("insert", |resolver, value, _| resolver.change(|interface| insert(interface, value))),
    Row::write("delete", |resolver, value, _| {
        resolver.change(|interface| {
            let ip = ip(value)?;
            if interface.delete(ip) { Ok(()) } else { Err(format!("{ip} is not in the table")) }
        })
    }),
    Row::button("clear", |resolver, _| {
        if resolver.keeps_table {
            resolver.interface.with_table(|table| table.clear());
        }
    }),
];
