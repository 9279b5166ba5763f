//! Which worker a packet belongs to, so that both directions of a flow meet the same state.
//!
//! By default the symmetric hash of receive-side scaling says so ([`FlowKey::steering_hash`]), as it does where a NIC
//! with that key shares out its packets. What translates addresses chooses ports for which the replies' hash leads to
//! its own worker, where there is a choice, and notes the others here: replies are looked up before they are hashed.

pub mod keys;

use crate::configure::{Configure, Scope};
use keys::told_of;
use packet::access::Access;
use packet::flow::symmetric;
use packet::view::protocol;
use packet::{FlowKey, parse};
use port::{LINK_ETHERNET, LINK_RAW_IP, PortInfo};
use shm::burst::LIST_CAPACITY;
use shm::{Packet, PacketBytes};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use table::directory::{Directory, MOST_WORKERS};

/// Hashes share out so many places to workers: as many as the tables of most NICs have.
const PLACES: usize = 128;
/// Flows whose replies do not hash to their worker, at most: some 2^21.
const FLOWS: usize = 1 << 21;
/// The same for what is known by fewer numbers than a flow has.
const WIDE: usize = 1 << 17;

/// Who keeps what, of all workers.
#[derive(Debug)]
pub struct Owners {
    /// The worker of each place.
    places: [u8; PLACES],
    /// For each hash of 16 bits, how many of `flows` have it. Small enough to stay near: most packets need not be
    /// looked up for it.
    noted: Box<[AtomicU32]>,
    flows: Directory,
    wide: Directory,
}

/// What packets are known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Addresses, protocol and ports, in either direction.
    Flow(FlowKey),
    /// Where they go to: address, port, protocol.
    Endpoint(Ipv4Addr, u16, u8),
    /// Both addresses, in either direction.
    Pair(Ipv4Addr, Ipv4Addr),
    /// The address that they go to.
    Address(Ipv4Addr),
    /// The address that they come from.
    Source(Ipv4Addr),
}

/// What keeps them apart in the directory.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

impl Whose {
    fn hash(self) -> u64 {
        let zero = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let key = |src, dst, protocol, dst_port| FlowKey { src, dst, protocol, src_port: 0, dst_port };
        match self {
            Whose::Flow(flow) => flow.table_hash(SEEDS[0]),
            Whose::Endpoint(to, port, protocol) => key(zero, to.into(), protocol, port).table_hash(SEEDS[1]),
            Whose::Pair(one, other) => key(one.into(), other.into(), 0, 0).table_hash(SEEDS[2]),
            Whose::Address(to) => key(zero, to.into(), 0, 0).table_hash(SEEDS[3]),
            Whose::Source(from) => key(from.into(), zero, 0, 0).table_hash(SEEDS[4]),
        }
    }
}

impl Owners {
    /// For so many workers.
    pub fn new(workers: usize) -> Owners {
        let places = std::array::from_fn(|place| (place % workers.clamp(1, MOST_WORKERS)) as u8);
        let noted = (0..=u16::MAX).map(|_| AtomicU32::default()).collect();
        Owners { places, noted, flows: Directory::new(FLOWS), wide: Directory::new(WIDE) }
    }

    /// Those of the chain that an element is made for; `None` where one worker has all.
    pub fn of(cx: &mut Configure<'_>) -> Option<Arc<Owners>> {
        let workers = cx.workers;
        let many = (2..=MOST_WORKERS).contains(&workers);
        many.then(|| cx.shared(Scope::AllWorkers, "owners of flows", || Owners::new(workers))).flatten()
    }

    fn directory(&self, whose: Whose) -> &Directory {
        if matches!(whose, Whose::Flow(_)) { &self.flows } else { &self.wide }
    }

    /// The worker that a flow's hash leads to.
    #[inline]
    pub fn by_hash(&self, flow: &FlowKey) -> usize {
        self.at_place(flow.steering_hash())
    }

    #[inline]
    fn at_place(&self, hash: u32) -> usize {
        usize::from(self.places[hash as usize % PLACES])
    }

    /// Says that a worker has the state for such packets.
    pub fn set_owner(&self, whose: Whose, worker: usize) {
        if let Whose::Flow(flow) = whose {
            self.noted[usize::from(flow.steering_hash() as u16)].fetch_add(1, Ordering::Release);
        }
        // Without room they go by their hash, and are new there.
        let _ = self.directory(whose).insert(whose.hash(), worker);
    }

    /// Takes that back.
    pub fn forget(&self, whose: Whose, worker: usize) {
        self.directory(whose).remove(whose.hash(), worker);
        if let Whose::Flow(flow) = whose {
            self.noted[usize::from(flow.steering_hash() as u16)].fetch_sub(1, Ordering::Release);
        }
    }

    /// The worker of a flow.
    #[inline]
    pub fn of_flow(&self, flow: &FlowKey) -> usize {
        let hash = flow.steering_hash();
        let noted = self.may_be_noted(hash).then(|| self.flows.find(flow.table_hash(SEEDS[0]))).flatten();
        noted.or_else(|| self.of_wide(flow)).unwrap_or_else(|| self.at_place(hash))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.wide.is_empty()
    }

    #[inline]
    fn may_be_noted(&self, steering_hash: u32) -> bool {
        self.noted[usize::from(steering_hash as u16)].load(Ordering::Acquire) > 0
    }

    fn of_wide(&self, flow: &FlowKey) -> Option<usize> {
        if self.wide.is_empty() {
            return None;
        }
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (flow.src, flow.dst) else { return None };
        let known = [
            Whose::Endpoint(dst, flow.dst_port, flow.protocol),
            Whose::Pair(src, dst),
            Whose::Address(dst),
            Whose::Source(src),
        ];
        known.into_iter().find_map(|whose| self.wide.find(whose.hash()))
    }
}

/// The worker that an Ethernet frame's hash leads to.
pub fn worker_of(frame: &[u8], workers: usize) -> usize {
    let layers = parse::frame(frame, 0);
    let told = told_of(frame, &layers).or_else(|| FlowKey::of(frame, &layers));
    told.map_or(0, |flow| flow.steering_hash() as usize % PLACES % workers.clamp(1, MOST_WORKERS))
}

fn listed<'a>(packets: &'a [Packet], list: &'a [u16]) -> impl Iterator<Item = &'a Packet> {
    list.iter().filter_map(|index| packets.get(usize::from(*index)))
}

/// How a port's packets are shared out.
#[derive(Clone, Debug)]
pub struct FlowSteering {
    owners: Arc<Owners>,
    link_type: u32,
    shared_out: bool,
}

impl FlowSteering {
    /// For what comes from such a port.
    pub fn new(owners: Arc<Owners>, port: &PortInfo) -> FlowSteering {
        FlowSteering { owners, link_type: port.link_type, shared_out: port.shares_flows }
    }

    /// Whether every worker's queue has its share of the flows already, and no element has a [`OwnerWorker`]: then
    /// packets need to go elsewhere only for state that is not noted here.
    pub fn is_shared_out(&self) -> bool {
        self.shared_out && !self.owners.flows.is_prepared()
    }

    /// The workers that packets belong to: in `owners`, by their place in the list.
    pub fn owners(&self, packets: &[Packet], list: &[u16], owners: &mut [u8; LIST_CAPACITY]) {
        let directory = &self.owners.flows;
        if directory.is_empty() || !self.owners.wide.is_empty() || self.link_type != LINK_ETHERNET {
            for (owner, packet) in owners.iter_mut().zip(listed(packets, list)) {
                *owner = self.owner_worker(packet) as u8;
            }
            return;
        }
        // Memory that they will be looked up in is asked for for all before it is for the first.
        let mut hashes = [0; LIST_CAPACITY];
        for ((owner, hash), packet) in owners.iter_mut().zip(&mut hashes).zip(listed(packets, list)) {
            match Plain::of(&PacketBytes::new(packet)) {
                Some(plain) => {
                    let steering = plain.hash();
                    *owner = self.owners.at_place(steering) as u8;
                    if self.owners.may_be_noted(steering) {
                        *hash = plain.flow().table_hash(SEEDS[0]);
                        directory.fetch(*hash);
                    }
                }
                None => *owner = self.owner_worker(packet) as u8,
            }
        }
        for (owner, hash) in owners.iter_mut().zip(&hashes).take(list.len()).filter(|(_, hash)| **hash != 0) {
            if let Some(worker) = directory.find(*hash) {
                *owner = worker as u8;
            }
        }
    }

    /// The worker that a packet belongs to. What is not IP is the first one's.
    #[inline]
    fn owner_worker(&self, packet: &Packet) -> usize {
        let bytes = PacketBytes::new(packet);
        if self.link_type == LINK_ETHERNET
            && let Some(plain) = Plain::of(&bytes)
        {
            // Nearly all: a few loads in the place of a parse.
            return match self.owners.is_empty() {
                true => self.owners.at_place(plain.hash()),
                false => self.owners.of_flow(&plain.flow()),
            };
        }
        let layers = match self.link_type {
            LINK_ETHERNET => parse::frame(&bytes, 0),
            LINK_RAW_IP => parse::raw_ip(&bytes),
            _ => return 0,
        };
        // Who has a flow has to hear of its errors, as if they were replies.
        let told = || told_of(&bytes, &layers).map(FlowKey::reversed);
        told().or_else(|| FlowKey::of(&bytes, &layers)).map_or(0, |flow| self.owners.of_flow(&flow))
    }
}

/// A TCP or UDP packet in IPv4 without tags, options and fragments.
struct Plain {
    addresses: u64,
    ports: u32,
    protocol: u8,
}

impl Plain {
    #[inline]
    fn of<A: Access + ?Sized>(frame: &A) -> Option<Plain> {
        let start = frame.u32(12)?;
        let fragment_and_protocol = frame.u32(20)?;
        let protocol = fragment_and_protocol as u8;
        // EtherType, version and header length; neither offset nor more to come.
        let is_plain = start >> 8 == 0x08_0045 && fragment_and_protocol & 0x3fff_0000 == 0;
        if !is_plain || (protocol != protocol::TCP && protocol != protocol::UDP) {
            return None;
        }
        // A packet that ends before its ports do has none.
        let has_ports = frame.u16(16)? >= 24;
        let (addresses, ports) = (frame.u64(26)?, frame.u32(34)?);
        has_ports.then_some(Plain { addresses, ports, protocol })
    }

    #[inline]
    fn hash(&self) -> u32 {
        let words = (self.addresses >> 32) as u32 ^ self.addresses as u32 ^ self.ports;
        symmetric((words >> 16) as u16 ^ words as u16)
    }

    #[inline]
    fn flow(&self) -> FlowKey {
        let Plain { addresses, ports, protocol } = *self;
        let address = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits));
        FlowKey {
            src: address((addresses >> 32) as u32),
            dst: address(addresses as u32),
            protocol,
            src_port: (ports >> 16) as u16,
            dst_port: ports as u16,
        }
    }
}

/// Where the state of one worker is kept.
#[derive(Clone, Debug)]
pub struct OwnerWorker {
    /// Who keeps what.
    pub owners: Arc<Owners>,
    /// The worker.
    pub worker: usize,
}

impl OwnerWorker {
    /// That of an element that is being made; `None` where one worker has all.
    pub fn of(cx: &mut Configure<'_>) -> Option<OwnerWorker> {
        let worker = cx.worker;
        let owners = Owners::of(cx)?;
        owners.flows.prepare();
        owners.wide.prepare();
        Some(OwnerWorker { owners, worker })
    }

    /// Whether a flow's hash leads here.
    pub fn has(&self, flow: &FlowKey) -> bool {
        self.owners.by_hash(flow) == self.worker
    }

    /// Says that the state for such packets is here.
    pub fn claim_owner(&self, whose: Whose) {
        match whose {
            Whose::Flow(flow) if self.has(&flow) => {}
            _ => self.owners.set_owner(whose, self.worker),
        }
    }

    /// Takes that back.
    pub fn forget(&self, whose: Whose) {
        match whose {
            Whose::Flow(flow) if self.has(&flow) => {}
            _ => self.owners.forget(whose, self.worker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is told with few loads, as a parse tells it.
    fn by_parse(frame: &[u8]) -> Option<FlowKey> {
        FlowKey::of(frame, &parse::frame(frame, 0))
    }

    proptest! {
        #[test]
        fn plain_packets_are_what_a_parse_says(
            mut frame in prop::collection::vec(any::<u8>(), 0..80),
            odd in (0..12usize, any::<u8>()),
        ) {
            let start = [8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17];
            for (at, byte) in start.into_iter().enumerate() {
                if let Some(place) = frame.get_mut(12 + at) {
                    *place = if at == odd.0 { odd.1 } else { byte };
                }
            }
            if let Some(plain) = Plain::of(frame.as_slice()) {
                prop_assert_eq!(by_parse(&frame), Some(plain.flow()));
                prop_assert_eq!(plain.hash(), plain.flow().steering_hash());
            } else if odd.1 == 17 && frame.len() > 60 {
                prop_assert!(odd.0 < 11, "an ordinary packet");
            }
        }
    }

    #[test]
    fn what_is_noted_goes_before_hashes() {
        let owners = Arc::new(Owners::new(4));
        let ip = |last: u8| Ipv4Addr::new(10, 0, 0, last);
        let flow = |src: u8, dst: u8, src_port, dst_port| FlowKey {
            src: ip(src).into(),
            dst: ip(dst).into(),
            protocol: 17,
            src_port,
            dst_port,
        };
        let hashed = owners.of_flow(&flow(1, 2, 3, 4));
        let home = OwnerWorker { owners: Arc::clone(&owners), worker: (hashed + 1) % 4 };
        home.claim_owner(Whose::Flow(flow(1, 2, 3, 4)));
        assert_eq!(owners.of_flow(&flow(1, 2, 3, 4)), home.worker);
        assert_eq!(owners.of_flow(&flow(2, 1, 4, 3)), home.worker, "the other direction");
        home.forget(Whose::Flow(flow(1, 2, 3, 4)));
        assert_eq!(owners.of_flow(&flow(1, 2, 3, 4)), hashed);
        for (whose, hit, miss) in [
            (Whose::Endpoint(ip(9), 80, 17), flow(1, 9, 5, 80), flow(1, 9, 5, 81)),
            (Whose::Pair(ip(8), ip(9)), flow(9, 8, 1, 2), flow(7, 8, 1, 2)),
            (Whose::Address(ip(9)), flow(1, 9, 5, 80), flow(9, 1, 5, 80)),
            (Whose::Source(ip(9)), flow(9, 1, 5, 80), flow(1, 9, 5, 80)),
        ] {
            let other = OwnerWorker { owners: Arc::clone(&owners), worker: (owners.by_hash(&hit) + 2) % 4 };
            other.claim_owner(whose);
            assert_eq!(owners.of_flow(&hit), other.worker, "{whose:?}");
            assert_eq!(owners.of_flow(&miss), owners.by_hash(&miss), "{whose:?}");
            other.forget(whose);
            assert!(owners.is_empty(), "nothing is left of {whose:?}");
        }
        // What hashes there anyway is not noted.
        let own = OwnerWorker { owners: Arc::clone(&owners), worker: hashed };
        own.claim_owner(Whose::Flow(flow(1, 2, 3, 4)));
        assert!(owners.is_empty());
        assert!(owners.noted.iter().all(|count| count.load(Ordering::Relaxed) == 0));
    }
}
