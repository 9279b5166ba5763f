//! `FromDevice` and `FromDPDKDevice`: packets from a port.

use super::files;
use super::link_type;
use click::config::parse;
use element::steering::{FlowOwners, FlowSteering};
use element::value::true_or_false;
use element::{
    BoxElement, Class, Configure, Direction, Element, Opaque, PortCodes, Progress, Row, StateScope, Task,
    Work,
};
use port::{Port, PortStats};
use shm::burst::LIST_CAPACITY;
use shm::burst::Vector;
use std::sync::Arc;

/// The class.
pub const FROM_DEVICE: Class = Class {
    name: "FromDevice",
    summary: "reads packets from a port",
    page: "\
# FromDevice(DEVNAME [, PROMISC, SNAPLEN, keywords])

Receives packets from a port and pushes them out.

- **ports**: no input; 1 or 2 push outputs. Packets that are not IP leave by the second when FORCE_IP is set
- **arguments**: `DEVNAME`: a port of the chain file, a DPDK device (`net_pcap0,rx_pcap=in.pcap`), a PCI
  address, a network interface (also as `netmap:eth1`) or a capture file; `BURST` (packets at a time,
  default: the run's); `ACTIVE` (bool, default true); `FORCE_IP` (bool, default false): emit only IP
  packets, with header and destination annotations set. `SNIFFER`, `PROMISC`, `SNAPLEN`, `METHOD`,
  `CAPTURE`, `PROTOCOL`, `HEADROOM`, `OUTBOUND`, `TIMESTAMP` are accepted and have no effect
- **annotations**: the MAC header, timestamp and packet type are set by the port
- **workers**: each receives from a queue of its own. It hands packets to the worker with their flow's state if the
  chain has any, or to distribute the work if the port does not
- **handlers**: `count`, `byte_count`, `encap` (read), `active` (read/write), `reset_counts` (write)
- **drop reasons**: `not-ip`: FORCE_IP is set and the second output is not wired
- **difference**: receives by burst from a port of any kind, not only from libpcap or a packet socket.
  `BPF_FILTER` is refused: put an IPClassifier behind, which is compiled with the rest
",
    codes: PortCodes::new("0/1-2", "h/h"),
    state: StateScope::PerWorker,
    make,
};

/// The class.
pub const POLL_DEVICE: Class = Class {
    name: "PollDevice",
    page: "\
# PollDevice(DEVNAME [, PROMISC, BURST, keywords])

As FromDevice, with the name and arguments of the element of Click's kernel module.

- **ports**, **annotations**, **workers**, **handlers**: as for FromDevice, without the second output
- **arguments**: `DEVNAME`, `BURST` and `ACTIVE` as for FromDevice. `PROMISC`, `TIMESTAMP`, `QUIET`, `LENGTH`, `HEADROOM`
  and `ALLOW_NONEXISTENT` are accepted and have no effect
- **difference**: all devices are polled here
",
    codes: PortCodes::new("0/1", "h/h"),
    make: |cx| make_with(cx, &["PROMISC", "BURST"]),
    ..FROM_DEVICE
};

/// The class.
pub const FROM_DPDK_DEVICE: Class = Class {
    name: "FromDPDKDevice",
    summary: "reads packets from a DPDK port",
    page: "\
# FromDPDKDevice(PORT [, keywords])

As FromDevice, with the name and arguments of FastClick's element. `PORT` is a port of the chain file, a
PCI address or a DPDK device string. `N_QUEUES`, `MAXTHREADS`, `NDESC`, `MODE`, `NUMA`, `PROMISC`,
`RSS_AGGREGATE`, `PAINT_QUEUE`, `PAUSE`, `MINTHREADS`, `VERBOSE`, `SCALE`, `THREADOFFSET` and the like are accepted and have no effect:
each worker receives from its own queue.
`FLOW_RULES_FILE` is refused: flow rules are not set in the card here.

- **handlers**: `count`, `byte_count` (read), `active` (read/write), `reset_counts` (write)
",
    codes: PortCodes::new("0/1", "h/h"),
    make: |cx| make_with(cx, &["QUEUE", "N_QUEUES"]),
    ..FROM_DEVICE
};

const NOT_IP: usize = 0;

struct FromDevice {
    port: Box<dyn Port>,
    burst: Option<usize>,
    active: bool,
    /// The link type, if only IP packets are kept.
    force_ip: Option<u32>,
    second_output: bool,
    /// The owners of flows, if there are several workers.
    flow_owners: Option<Arc<FlowOwners>>,
    count: u64,
    byte_count: u64,
}

/// Keywords of Click's and FastClick's elements that configure drivers; ports configure themselves.
pub(super) const DRIVER_KEYWORDS: &str = "\
    SNIFFER PROMISC SNAPLEN METHOD CAPTURE PROTOCOL HEADROOM OUTBOUND TIMESTAMP N_QUEUES MAXTHREADS \
    NDESC MODE NUMA RSS_AGGREGATE PAINT_QUEUE VERBOSE SCALE THREADOFFSET MTU MAC ALLOW_NONEXISTENT \
    UP_CALL IQUEUE BLOCKING TIMEOUT NO_PAD DEBUG QUEUE NUM_RX RSS TCO UCO IPCO PAUSE MINTHREADS ALLOC QUIET LENGTH";

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    make_with(cx, &["PROMISC", "SNAPLEN"])
}

/// Makes an element whose arguments `places` may be given by position, behind the device.
fn make_with(cx: &mut Configure<'_>, places: &[&'static str]) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("DEVNAME", parse::string);
    let mut burst = None;
    for place in places {
        match *place {
            "BURST" => burst = args.positional("BURST", parse::int_in(1..=256)),
            "PROMISC" => _ = args.positional("PROMISC", parse::bool),
            // Numbers and words that configure drivers.
            other => _ = args.positional(other, parse::u32),
        }
    }
    let burst = burst.or(args.keyword("BURST", parse::int_in(1..=256))).map(|burst| burst as usize);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let force_ip = args.keyword("FORCE_IP", parse::bool).unwrap_or(false);
    if let Some(filter) = args.keyword("BPF_FILTER", parse::any).filter(|filter| !filter.is_empty()) {
        let help = "put an IPClassifier behind the element";
        args.error(filter.span, "filters of libpcap are not run here").help(help);
    }
    if let Some(rules) = args.keyword("FLOW_RULES_FILE", parse::any) {
        let help = "put an IPFilter behind the element, which is compiled with the rest";
        args.error(rules.span, "flow rules are not set in the card here").help(help);
    }
    for keyword in DRIVER_KEYWORDS.split(' ') {
        let _ = args.keyword(keyword, parse::any);
    }
    let fine = args.finish();
    let name = name?;
    let port = cx.open_port(&name, Direction::Receive)?;
    if !files::record_port(cx, &name, Direction::Receive) {
        return None;
    }
    let link_type = port.info().link_type;
    if force_ip && !link_type::has_known_ip(link_type) {
        let link = link_type::name(link_type);
        cx.error(cx.config.span, format!("FORCE_IP knows nothing of packets of link type {link}"));
        return None;
    }
    let (force_ip, second_output) = (force_ip.then_some(link_type), cx.shape.outputs > 1);
    if !fine {
        return None;
    }
    let flow_owners = FlowOwners::of(cx);
    let device =
        FromDevice { port, burst, active, force_ip, second_output, flow_owners, count: 0, byte_count: 0 };
    Some(BoxElement::opaque(device))
}

impl FromDevice {
    /// Keeps the IP packets of a vector, and sets their annotations.
    fn keep_ip(&self, link_type: u32, vector: &mut Vector, work: &mut Work<'_>) {
        let (mut kept, mut count) = ([0; LIST_CAPACITY], 0);
        let (packets, list) = vector.parts();
        for &index in list {
            let Some(packet) = packets.get_mut(usize::from(index)) else { continue };
            if link_type::mark_ip(packet, link_type) {
                kept[count] = index;
                count += 1;
            } else if self.second_output {
                work.emit(1, packet);
            } else {
                work.drop(NOT_IP, std::slice::from_ref(packet));
            }
        }
        vector.relist(&kept[..count]);
    }
}

impl Opaque for FromDevice {}

impl Task for FromDevice {
    fn is_from_port(&self) -> bool {
        self.port.info().is_outer && self.force_ip.is_none()
    }

    fn steering(&self) -> Option<FlowSteering> {
        Some(FlowSteering::new(Arc::clone(self.flow_owners.as_ref()?), &self.port.info()))
    }

    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let burst = work.burst_or(self.burst);
        let mut bytes = 0;
        let received = vector.fill(burst, |free| {
            let moved = self.port.receive(work.pool(), free);
            bytes = moved.bytes;
            moved.packets
        });
        if received == 0 {
            return if self.port.is_finished() { Progress::Finished } else { Progress::Idle };
        }
        self.count += received as u64;
        self.byte_count += bytes;
        work.count_received(received, bytes);
        if let Some(link_type) = self.force_ip {
            self.keep_ip(link_type, vector, work);
        }
        Progress::Worked
    }
}

impl Element for FromDevice {
    element::facts!(reasons: &["not-ip"], handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.port.take_warnings()
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        Some((self.port.name().to_string(), self.port.stats()))
    }
}

const HANDLERS: &[Row<FromDevice>] = &[
    Row::sum("count", |device, _| Some(device.count.to_string())),
    Row::sum("byte_count", |device, _| Some(device.byte_count.to_string())),
    Row::read("encap", |device, _| Some(link_type::name(device.port.info().link_type))),
    element::field!(active, true_or_false),
    Row::button("reset_counts", |device, _| (device.count, device.byte_count) = (0, 0)),
];
