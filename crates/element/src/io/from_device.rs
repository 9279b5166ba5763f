//! `FromDevice` and `FromDPDKDevice`: packets from a port.

use crate::class::{Class, StateScope};
use crate::configure::{Configure, Direction};
use crate::element::{Element, Progress};
use crate::handler::Handler;
use crate::vector::Vector;
use crate::work::Work;
use click::config::parse;
use port::{Port, PortStats};

/// The class.
pub const FROM_DEVICE: Class = Class {
    name: "FromDevice",
    summary: "reads packets from a port",
    page: "\
# FromDevice(DEVNAME [, keywords])

Receives packets from a port and pushes them out.

- **ports**: no input; 1 push output
- **arguments**: `DEVNAME`: a port of the chain file, a DPDK device (`net_pcap0,rx_pcap=in.pcap`), a PCI
  address, a network interface or a capture file; `BURST` (packets at a time, default: the run's);
  `ACTIVE` (bool, default true). `SNIFFER`, `PROMISC`, `SNAPLEN`, `FORCE_IP`, `METHOD`, `CAPTURE`,
  `BPF_FILTER`, `PROTOCOL`, `HEADROOM`, `OUTBOUND`, `TIMESTAMP` are taken and have no effect
- **annotations**: the MAC header, timestamp and packet type are set by the port
- **handlers**: `count`, `byte_count` (read), `active` (read/write), `reset_counts` (write)
- **difference**: receives by burst from a port of any kind, not only from libpcap or a packet socket
",
    ports: "0/1",
    processing: "h/h",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

/// The class.
pub const FROM_DPDK_DEVICE: Class = Class {
    name: "FromDPDKDevice",
    summary: "reads packets from a DPDK port",
    page: "\
# FromDPDKDevice(PORT [, keywords])

As FromDevice, with the name and arguments of FastClick's element. `PORT` is a port of the chain file, a
PCI address or a DPDK device string. `N_QUEUES`, `MAXTHREADS`, `NDESC`, `MODE`, `NUMA`, `PROMISC`,
`RSS_AGGREGATE`, `PAINT_QUEUE`, `VERBOSE`, `SCALE`, `THREADOFFSET` and the like are taken and have no effect:
each worker receives from its own queue.

- **handlers**: `count`, `byte_count` (read), `active` (read/write), `reset_counts` (write)
",
    make,
    ..FROM_DEVICE
};

struct FromDevice {
    port: Box<dyn Port>,
    burst: Option<usize>,
    active: bool,
    count: u64,
    byte_count: u64,
}

/// Keywords of Click's and FastClick's elements that choose how a driver works; the port knows that.
pub(super) const DRIVER_KEYWORDS: &[&str] = &[
    "SNIFFER",
    "PROMISC",
    "SNAPLEN",
    "FORCE_IP",
    "METHOD",
    "CAPTURE",
    "BPF_FILTER",
    "PROTOCOL",
    "HEADROOM",
    "OUTBOUND",
    "TIMESTAMP",
    "N_QUEUES",
    "MAXTHREADS",
    "NDESC",
    "MODE",
    "NUMA",
    "RSS_AGGREGATE",
    "PAINT_QUEUE",
    "VERBOSE",
    "SCALE",
    "THREADOFFSET",
    "MTU",
    "MAC",
    "ALLOW_NONEXISTENT",
    "UP_CALL",
    "IQUEUE",
    "BLOCKING",
    "TIMEOUT",
    "NO_PAD",
    "DEBUG",
    "QUEUE",
    "NUM_RX",
    "RSS",
    "TCO",
    "UCO",
    "IPCO",
];

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let name = args.mandatory_positional("DEVNAME", parse::string);
    let burst = args.keyword("BURST", parse::int_in(1..=256)).map(|burst| burst as usize);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    for keyword in DRIVER_KEYWORDS {
        let _ = args.keyword(keyword, parse::any);
    }
    let fine = args.finish();
    let port = cx.open_port(&name?, Direction::Receive)?;
    fine.then(|| Box::new(FromDevice { port, burst, active, count: 0, byte_count: 0 }) as Box<dyn Element>)
}

impl Element for FromDevice {
    fn has_task(&self) -> bool {
        true
    }

    fn task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let burst = self.burst.unwrap_or(work.burst());
        let received = vector.fill(burst, |free| self.port.receive(work.pool(), free));
        if received == 0 {
            return if self.port.is_finished() { Progress::Finished } else { Progress::Idle };
        }
        self.count += received as u64;
        self.byte_count += vector.iter().map(|packet| u64::from(packet.total)).sum::<u64>();
        work.count_received(received);
        Progress::Worked
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::sum("count"),
                Handler::sum("byte_count"),
                Handler::read_write("active"),
                Handler::write("reset_counts"),
            ]
        }
    }

    fn read(&self, handler: &str, _cells: &[u64]) -> Option<String> {
        match handler {
            "count" => Some(self.count.to_string()),
            "byte_count" => Some(self.byte_count.to_string()),
            "active" => Some(self.active.to_string()),
            _ => None,
        }
    }

    fn write(&mut self, handler: &str, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        match handler {
            "reset_counts" => (self.count, self.byte_count) = (0, 0),
            "active" => self.active = value.trim().parse().map_err(|_| "`true` or `false` is expected")?,
            _ => return Err(format!("there is no write handler `{handler}`")),
        }
        Ok(())
    }

    fn take_findings(&mut self) -> Vec<String> {
        self.port.take_findings().iter().map(ToString::to_string).collect()
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        Some((self.port.name().to_string(), self.port.stats()))
    }
}
