//! Counts packets and bytes, by protocol and by size, and lists the flows with the most bytes; passes all
//! packets on.

use millrace_nfs::{Clock, Flows, SECOND_NS};
use nf::{Batch, Handler, Link, Nf, Options};
use packet::view::{ethernet, protocol};
use packet::{Access, FlowKey, parse};

millrace_nfs::numbered! { COUNTERS from 0:
    _ "packets", _ "bytes", IPV4 "ipv4", _ "ipv6", _ "arp", _ "other", TCP "tcp", _ "udp", _ "icmp",
    FRAGMENTS "fragments", MALFORMED "malformed", FLOWS "flows", LEFT_OUT "flows-left-out", SIZES "up-to-64",
    _ "up-to-128", _ "up-to-512", _ "up-to-1024", _ "larger",
}

/// The upper limits of the size classes, in bytes with FCS; the last class has all longer frames.
const SIZE_CLASSES: [usize; 4] = [64, 128, 512, 1024];
const FCS_BYTES: usize = 4;
/// The most flows that are counted at a time.
const MOST_FLOWS: u32 = 65_536;

struct Monitor {
    /// The number of flows that are printed at the end; 0 counts none.
    top: usize,
    flows: Option<Flows<Volume>>,
    idle_ns: u64,
    clock: Clock,
}

/// The volume of a flow, in one direction.
struct Volume {
    key: FlowKey,
    packets: u64,
    bytes: u64,
}

impl Monitor {
    fn start(link: &mut Link) -> Result<Monitor, String> {
        let (top, idle_ns) = millrace_nfs::read(link.config(), |keys| {
            millrace_nfs::check_across(keys, link.interfaces());
            let top = keys.integer("top", 0..=1000, 0) as usize;
            (top, keys.integer("forget-after-s", 1..=86_400, 300) * SECOND_NS)
        })?;
        let flows = (top > 0).then(|| Flows::new(MOST_FLOWS)).transpose()?;
        Ok(Monitor { top, flows, idle_ns, clock: Clock::default() })
    }

    /// The flows with the most bytes, a line each.
    fn largest(&self) -> impl Iterator<Item = String> {
        let mut volumes: Vec<&Volume> = self.flows.iter().flat_map(Flows::iter).collect();
        volumes.sort_by_key(|volume| std::cmp::Reverse((volume.bytes, volume.packets)));
        volumes.into_iter().take(self.top).map(|Volume { key, packets, bytes }| {
            let FlowKey { src, dst, protocol, src_port, dst_port } = key;
            format!(
                "{src} {src_port} > {dst} {dst_port} protocol {protocol}: {packets} packets, {bytes} bytes"
            )
        })
    }

    fn count_flow(&mut self, key: FlowKey, bytes: u64, now_ns: u64, counts: &mut [u64]) {
        let Some(flows) = &mut self.flows else { return };
        let due_ns = now_ns + self.idle_ns;
        let flow = flows.find(&key).or_else(|| {
            let new = flows.insert(&key, Volume { key, packets: 0, bytes: 0 }, due_ns);
            counts[if new.is_some() { FLOWS } else { LEFT_OUT }] += 1;
            new
        });
        if let Some(flow) = flow
            && let Some(volume) = flows.get(flow)
        {
            volume.packets += 1;
            volume.bytes += bytes;
            flows.keep_until(flow, due_ns);
        }
    }
}

impl Nf for Monitor {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        let mut counts = [0; COUNTERS.len()];
        for packet in batch.iter() {
            let bytes = packet.len();
            counts[0] += 1;
            counts[1] += bytes as u64;
            let size = SIZE_CLASSES.iter().position(|most| bytes + FCS_BYTES <= *most);
            counts[SIZES + size.unwrap_or(SIZE_CLASSES.len())] += 1;
            let layers = parse::frame(packet, 0);
            counts[match layers.ethertype {
                ethernet::IPV4 => IPV4,
                ethernet::IPV6 => IPV4 + 1,
                ethernet::ARP => IPV4 + 2,
                _ => IPV4 + 3,
            }] += 1;
            match layers.ip_proto {
                Some(protocol::TCP) => counts[TCP] += 1,
                Some(protocol::UDP) => counts[TCP + 1] += 1,
                Some(protocol::ICMP | protocol::ICMP6) => counts[TCP + 2] += 1,
                _ => {}
            }
            counts[FRAGMENTS] += u64::from(layers.is_fragment);
            counts[MALFORMED] += u64::from(layers.error.is_some());
            if self.top > 0
                && let Some(key) = FlowKey::of(packet, &layers)
            {
                self.count_flow(key, bytes as u64, now_ns, &mut counts);
            }
        }
        if let Some(flows) = &mut self.flows {
            flows.expire(now_ns, 16, drop);
        }
        counts.iter().enumerate().for_each(|(counter, by)| batch.link().count(counter, *by));
        batch.pass();
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        Ok(self.largest().map(|line| line + "\n").collect())
    }

    fn stop(&mut self, link: &mut Link) {
        let name = link.name();
        self.largest().for_each(|line| println!("{name}: {line}"));
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("monitor").counters(&COUNTERS).handler(Handler::concat("top"));
    nf::run_with(&options, Monitor::start)
}
