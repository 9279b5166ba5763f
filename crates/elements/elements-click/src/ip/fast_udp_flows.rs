//! `FastUDPFlows`: makes UDP packets of several flows.

use crate::queue::token_bucket::TokenBucket;
use click::config::{Args, parse};
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work, random,
};
use packet::Access;
use packet::anno;
use packet::checksum::{self, UDP_CHECK};
use packet::view::protocol::UDP;
use shm::Packet;
use shm::burst::Vector;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "FastUDPFlows",
    summary: "creates UDP packets of several flows",
    page: "\
# FastUDPFlows(RATE, LIMIT, LENGTH, SRCETH, SRCIP, DSTETH, DSTIP, FLOWS, FLOWSIZE [, CHECKSUM, ACTIVE])

Makes Ethernet frames with UDP packets. Each packet is of one of FLOWS flows, chosen at random; a flow gets new ports
after FLOWSIZE packets.

- **ports**: no input, 1 output, push or pull
- **arguments**: `RATE`: packets a second, 0 for no limit; `LIMIT`: how many it makes, negative for no limit; `LENGTH`
  (60 to 65535, smaller numbers count as 60): bytes of a frame; `SRCETH`, `SRCIP`, `DSTETH`, `DSTIP`: addresses;
  `FLOWS` (1 to 1048576); `FLOWSIZE` (at least 1); `CHECKSUM` (default true): whether there is a UDP checksum;
  `ACTIVE` (default true)
- **annotations**: sets `DST_IP`, the network and the transport header
- **handlers**: `count` (read); `rate` (read): packets a second from the first to the last, 0 before the last is
  made, (write): RATE; `limit`, `reset` (write); `active` (read/write): writing true starts over
- **difference**: the output may push, where Click's is pulled. The flows are the same in every run. With several
  workers each makes its own packets
",
    codes: PortCodes::new("0/1", "a/a"),
    state: StateScope::PerWorker,
    make,
};

/// Offsets in a frame.
const IP: usize = 14;
const UDP_AT: usize = IP + 20;
/// The shortest frame.
const LEAST_BYTES: u16 = 60;
/// The time to live of its packets.
const TTL: u8 = 250;

/// A flow.
#[derive(Clone, Copy, Default)]
struct Flow {
    ports: [u16; 2],
    checksum: u16,
    /// Packets that it still gets with these ports.
    left: u32,
}

struct FastUdpFlows {
    /// `None` for no limit.
    bucket: Option<TokenBucket>,
    /// `None` for no limit.
    limit: Option<u64>,
    active: bool,
    /// The frame, but for the ports and the UDP checksum, which are those of the last packet.
    frame: Vec<u8>,
    dst: u32,
    checksum: bool,
    flows: Vec<Flow>,
    flow_size: u32,
    random: u64,
    count: u64,
    /// The times of the first and of the last packet.
    first_ns: u64,
    last_ns: Option<u64>,
    pushes: bool,
}

fn at_rate(rate: u64) -> Option<TokenBucket> {
    let mut bucket = TokenBucket::new(rate, (rate / 100).max(2));
    bucket.set_level(1);
    (rate > 0).then_some(bucket)
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let random = random::seed(cx);
    let pushes = cx.services.queues_near(cx.name).1;
    cx.opaque(|args| Some(FastUdpFlows { random, pushes, ..read(args)? }))
}

fn read(args: &mut Args<'_>) -> Option<FastUdpFlows> {
    let rate = args.mandatory_positional("RATE", parse::u32);
    let limit = args.mandatory_positional("LIMIT", parse::i64);
    let length = args.mandatory_positional("LENGTH", parse::u16);
    let src_eth = args.mandatory_positional("SRCETH", parse::ether);
    let src = args.mandatory_positional("SRCIP", parse::ip4);
    let dst_eth = args.mandatory_positional("DSTETH", parse::ether);
    let dst = args.mandatory_positional("DSTIP", parse::ip4);
    let flows = args.mandatory_positional("FLOWS", parse::int_in(1..=1 << 20));
    let flow_size = args.mandatory_positional("FLOWSIZE", parse::int_in(1..=u32::MAX.into()));
    let checksum = args.positional("CHECKSUM", parse::bool).unwrap_or(true);
    let active = args.positional("ACTIVE", parse::bool).unwrap_or(true);
    let dst = dst?;
    Some(FastUdpFlows {
        bucket: at_rate(rate?.into()),
        limit: u64::try_from(limit?).ok(),
        active,
        frame: frame(length?.max(LEAST_BYTES), (src_eth?, src?), (dst_eth?, dst)),
        dst: dst.into(),
        checksum,
        flows: vec![Flow::default(); flows? as usize],
        flow_size: flow_size? as u32,
        random: 0,
        count: 0,
        first_ns: 0,
        last_ns: None,
        pushes: true,
    })
}

/// A frame without ports and UDP checksum.
fn frame(length: u16, src: ([u8; 6], Ipv4Addr), dst: ([u8; 6], Ipv4Addr)) -> Vec<u8> {
    let ip_length = length - IP as u16;
    let udp_length = length - UDP_AT as u16;
    let mut frame = [&dst.0[..], &src.0, &[8, 0, 0x45, 0]].concat();
    frame.extend(ip_length.to_be_bytes());
    frame.extend([0, 0, 0, 0, TTL, UDP, 0, 0]);
    frame.extend(src.1.octets());
    frame.extend(dst.1.octets());
    frame.extend([0; 4]);
    frame.extend(udp_length.to_be_bytes());
    frame.resize(length.into(), 0);
    let set = checksum::set_ipv4_header(frame.as_mut_slice(), IP, UDP_AT - IP);
    debug_assert!(set, "the frame holds the header");
    frame
}

impl FastUdpFlows {
    /// Writes a flow's ports and checksum into the frame.
    fn write(&mut self, Flow { ports, checksum, .. }: Flow) {
        let words = [ports[0], ports[1], checksum].map(u16::to_be_bytes);
        for (at, word) in [UDP_AT, UDP_AT + 2, UDP_AT + UDP_CHECK].into_iter().zip(words) {
            self.frame[at..at + 2].copy_from_slice(&word);
        }
    }

    /// The checksum of the frame with the ports that it has now, and no checksum.
    fn computed(&self) -> Option<u16> {
        let bytes = self.frame.as_slice();
        let length = Access::u16(bytes, UDP_AT + 4)?;
        let src = Ipv4Addr::from(Access::u32(bytes, IP + 12)?);
        let pseudo = checksum::pseudo_ipv4(src, self.dst.into(), UDP, length);
        checksum::udp(bytes, UDP_AT, length.into(), pseudo)
    }

    /// Makes the next packet; `None` if the pool is empty.
    fn next(&mut self, now_ns: u64, work: &mut Work<'_>) -> Option<Packet> {
        let at = random::next_below(&mut self.random, self.flows.len() as u64) as usize;
        let mut flow = *self.flows.get(at)?;
        if flow.left == 0 {
            flow.ports = [0, 1].map(|_| random::next_below(&mut self.random, 0xffff) as u16);
            (flow.checksum, flow.left) = (0, self.flow_size);
            self.write(flow);
            flow.checksum = if self.checksum { self.computed()? } else { 0 };
        }
        self.write(flow);
        let mut packet = work.make(&self.frame)?;
        flow.left -= 1;
        *self.flows.get_mut(at)? = flow;
        (packet.net, packet.trans) = (packet.data() + IP as u16, packet.data() + UDP_AT as u16);
        anno::DST_IP.store(&mut packet.anno, self.dst.into());
        if self.count == 0 {
            self.first_ns = now_ns;
        }
        self.count += 1;
        if self.limit.is_some_and(|limit| self.count >= limit) {
            self.last_ns = Some(now_ns);
        }
        Some(packet)
    }

    /// Puts up to `most` packets that are due into a vector; their number.
    fn make(&mut self, most: usize, vector: &mut Vector, work: &mut Work<'_>) -> usize {
        if !self.active {
            return 0;
        }
        let now_ns = work.now_ns();
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.count));
        let due = self.bucket.as_mut().map_or(u64::MAX, |bucket| {
            bucket.fill(now_ns);
            bucket.tokens()
        });
        let most = most.min(usize::try_from(left.min(due)).unwrap_or(usize::MAX));
        let count = vector.push_from(most, || self.next(now_ns, work));
        self.bucket.iter_mut().for_each(|bucket| bucket.take(count as u64));
        count
    }

    fn reset(&mut self) {
        (self.count, self.first_ns, self.last_ns) = (0, 0, None);
    }
}

impl Opaque for FastUdpFlows {
    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        self.make(most, into, work)
    }
}

impl Task for FastUdpFlows {
    /// Of a source whose packets are pulled, it only keeps the run going.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.pushes && self.make(work.burst(), vector, work) > 0 {
            Progress::Worked
        } else {
            Progress::Idle
        }
    }
}

impl Element for FastUdpFlows {
    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    element::facts!(handlers: HANDLERS);
}

const HANDLERS: &[Row<FastUdpFlows>] = &[
    Row::sum("count", |flows, _| Some(flows.count.to_string())),
    Row::sum("rate", |flows: &FastUdpFlows, _| {
        let Some(last_ns) = flows.last_ns else { return Some("0".into()) };
        let time_ns = last_ns.saturating_sub(flows.first_ns).max(1_000_000);
        Some((u128::from(flows.count) * 1_000_000_000 / u128::from(time_ns)).to_string())
    })
    .or_write(|flows: &mut FastUdpFlows, value, _| {
        flows.bucket = at_rate(written(value, parse::u32)?.into());
        Ok(())
    }),
    Row::write("limit", |flows, value, _| {
        flows.limit = u64::try_from(written(value, parse::i64)?).ok();
        Ok(())
    }),
    Row::button("reset", |flows, _| flows.reset()),
    Row::read_write(
        "active",
        |flows, _| Some(flows.active.to_string()),
        |flows, value, _| {
            flows.active = written(value, parse::bool)?;
            if flows.active {
                flows.reset();
            }
            Ok(())
        },
    ),
];
