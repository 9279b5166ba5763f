//! The owner worker of each packet: both directions of a flow reach the same state.
//!
//! By default, the symmetric hash of receive-side scaling chooses it ([`FlowKey::steering_hash`]), as a NIC
//! with the same key does. An element that translates addresses prefers ports for which the hash of the
//! replies chooses its own worker. It records all other flows here: replies are looked up before they are
//! hashed.

pub mod keys;

use crate::configure::{Configure, Scope};
use keys::{flow_key, quoted_flow};
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

/// Entries of the indirection table, from hashes to workers: as many as most NICs have.
const PLACES: usize = 128;
/// The most flows whose replies do not hash to their owner worker.
const FLOWS: usize = 1 << 21;
/// The most entries for packets that are identified by less than a whole flow key.
const WIDE: usize = 1 << 17;

/// The owner workers of flows and addresses.
#[derive(Debug)]
pub struct FlowOwners {
    /// The indirection table.
    places: [u8; PLACES],
    /// The number of `flows` with each hash of 16 bits. It is small enough to stay in a cache, and spares
    /// most packets the lookup.
    noted: Box<[AtomicU32]>,
    flows: Directory,
    wide: Directory,
}

/// The fields that identify packets with a common owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Addresses, protocol and ports, in either direction.
    Flow(FlowKey),
    /// Destination address, port and protocol.
    Endpoint(Ipv4Addr, u16, u8),
    /// Both addresses, in either direction.
    Pair(Ipv4Addr, Ipv4Addr),
    /// The destination address.
    Address(Ipv4Addr),
    /// The source address.
    Source(Ipv4Addr),
}

/// Hash seeds that separate the variants in the directory.
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

impl FlowOwners {
    /// For this number of workers.
    pub fn new(workers: usize) -> FlowOwners {
        let places = std::array::from_fn(|place| (place % workers.clamp(1, MOST_WORKERS)) as u8);
        let noted = (0..=u16::MAX).map(|_| AtomicU32::default()).collect();
        FlowOwners { places, noted, flows: Directory::new(FLOWS), wide: Directory::new(WIDE) }
    }

    /// The owners in the chain of an element that is being made; `None` if one worker has all packets.
    pub fn of(cx: &mut Configure<'_>) -> Option<Arc<FlowOwners>> {
        let workers = cx.workers;
        let many = (2..=MOST_WORKERS).contains(&workers);
        many.then(|| cx.shared(Scope::AllWorkers, "owners of flows", || FlowOwners::new(workers))).flatten()
    }

    fn directory(&self, whose: Whose) -> &Directory {
        if matches!(whose, Whose::Flow(_)) { &self.flows } else { &self.wide }
    }

    /// The worker that a flow's hash chooses.
    #[inline]
    pub fn by_hash(&self, flow: &FlowKey) -> usize {
        self.at_place(flow.steering_hash())
    }

    #[inline]
    fn at_place(&self, hash: u32) -> usize {
        usize::from(self.places[hash as usize % PLACES])
    }

    /// Records that a worker owns these packets.
    pub fn set_owner(&self, whose: Whose, worker: usize) {
        if let Whose::Flow(flow) = whose {
            self.noted[usize::from(flow.steering_hash() as u16)].fetch_add(1, Ordering::Release);
        }
        // If the directory is full, the hash chooses their worker, where they are new.
        let _ = self.directory(whose).insert(whose.hash(), worker);
    }

    /// Removes the record.
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

/// The worker that an Ethernet frame's hash chooses.
pub fn worker_of(frame: &[u8], workers: usize) -> usize {
    let layers = parse::frame(frame, 0);
    flow_key(frame, &layers)
        .map_or(0, |flow| flow.steering_hash() as usize % PLACES % workers.clamp(1, MOST_WORKERS))
}

fn listed<'a>(packets: &'a [Packet], list: &'a [u16]) -> impl Iterator<Item = &'a Packet> {
    list.iter().filter_map(|index| packets.get(usize::from(*index)))
}

/// The flow steering of a port's packets.
#[derive(Clone, Debug)]
pub struct FlowSteering {
    flow_owners: Arc<FlowOwners>,
    link_type: u32,
    shared_out: bool,
}

impl FlowSteering {
    /// For packets from this port.
    pub fn new(flow_owners: Arc<FlowOwners>, port: &PortInfo) -> FlowSteering {
        FlowSteering { flow_owners, link_type: port.link_type, shared_out: port.shares_flows }
    }

    /// Whether the port's queues have the right flows already, and no element has an [`OwnerWorker`]: then no
    /// packet needs to be handed over for a record here.
    pub fn is_shared_out(&self) -> bool {
        self.shared_out && !self.flow_owners.flows.is_prepared()
    }

    /// Writes the owner workers of the listed packets to `owners`, in the order of the list.
    pub fn owner_workers(&self, packets: &[Packet], list: &[u16], owners: &mut [u8; LIST_CAPACITY]) {
        let directory = &self.flow_owners.flows;
        if directory.is_empty() || !self.flow_owners.wide.is_empty() || self.link_type != LINK_ETHERNET {
            for (owner, packet) in owners.iter_mut().zip(listed(packets, list)) {
                *owner = self.owner_worker(packet) as u8;
            }
            return;
        }
        // The directory entries of all packets are prefetched before the first lookup.
        let mut hashes = [0; LIST_CAPACITY];
        for ((owner, hash), packet) in owners.iter_mut().zip(&mut hashes).zip(listed(packets, list)) {
            match Plain::of(&PacketBytes::new(packet)) {
                Some(plain) => {
                    let steering = plain.hash();
                    *owner = self.flow_owners.at_place(steering) as u8;
                    if self.flow_owners.may_be_noted(steering) {
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

    /// The owner worker of a packet. Packets without IP belong to the first worker.
    #[inline]
    fn owner_worker(&self, packet: &Packet) -> usize {
        let bytes = PacketBytes::new(packet);
        if self.link_type == LINK_ETHERNET
            && let Some(plain) = Plain::of(&bytes)
        {
            // Nearly all packets: a few loads instead of a parse.
            return match self.flow_owners.is_empty() {
                true => self.flow_owners.at_place(plain.hash()),
                false => self.flow_owners.of_flow(&plain.flow()),
            };
        }
        let layers = match self.link_type {
            LINK_ETHERNET => parse::frame(&bytes, 0),
            LINK_RAW_IP => parse::raw_ip(&bytes),
            _ => return 0,
        };
        // The owner of a flow must get its ICMP errors, as if they were replies.
        let about = quoted_flow(&bytes, &layers).map(FlowKey::reversed);
        about.or_else(|| FlowKey::of(&bytes, &layers)).map_or(0, |flow| self.flow_owners.of_flow(&flow))
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
        // EtherType, version and header length; no fragment offset and no more fragments.
        let is_plain = start >> 8 == 0x08_0045 && fragment_and_protocol & 0x3fff_0000 == 0;
        if !is_plain || (protocol != protocol::TCP && protocol != protocol::UDP) {
            return None;
        }
        // The packet must reach behind its ports.
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

/// A worker as the owner of state.
#[derive(Clone, Debug)]
pub struct OwnerWorker {
    /// The owner workers.
    pub flow_owners: Arc<FlowOwners>,
    /// The worker.
    pub worker: usize,
}

impl OwnerWorker {
    /// The worker of an element that is being made; `None` if one worker has all packets.
    pub fn of(cx: &mut Configure<'_>) -> Option<OwnerWorker> {
        let worker = cx.worker;
        let flow_owners = FlowOwners::of(cx)?;
        flow_owners.flows.prepare();
        flow_owners.wide.prepare();
        Some(OwnerWorker { flow_owners, worker })
    }

    /// Whether a flow's hash chooses this worker.
    pub fn has(&self, flow: &FlowKey) -> bool {
        self.flow_owners.by_hash(flow) == self.worker
    }

    /// Records that this worker owns these packets.
    pub fn claim_owner(&self, whose: Whose) {
        match whose {
            Whose::Flow(flow) if self.has(&flow) => {}
            _ => self.flow_owners.set_owner(whose, self.worker),
        }
    }

    /// Removes the record.
    pub fn forget(&self, whose: Whose) {
        match whose {
            Whose::Flow(flow) if self.has(&flow) => {}
            _ => self.flow_owners.forget(whose, self.worker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The flow key that a parse finds, for comparison with the one that few loads find.
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
        let owners = Arc::new(FlowOwners::new(4));
        let ip = |last: u8| Ipv4Addr::new(10, 0, 0, last);
        let flow = |src: u8, dst: u8, src_port, dst_port| FlowKey {
            src: ip(src).into(),
            dst: ip(dst).into(),
            protocol: 17,
            src_port,
            dst_port,
        };
        let hashed = owners.of_flow(&flow(1, 2, 3, 4));
        let home = OwnerWorker { flow_owners: Arc::clone(&owners), worker: (hashed + 1) % 4 };
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
            let other =
                OwnerWorker { flow_owners: Arc::clone(&owners), worker: (owners.by_hash(&hit) + 2) % 4 };
            other.claim_owner(whose);
            assert_eq!(owners.of_flow(&hit), other.worker, "{whose:?}");
            assert_eq!(owners.of_flow(&miss), owners.by_hash(&miss), "{whose:?}");
            other.forget(whose);
            assert!(owners.is_empty(), "nothing is left of {whose:?}");
        }
        // What hashes there anyway is not noted.
        let own = OwnerWorker { flow_owners: Arc::clone(&owners), worker: hashed };
        own.claim_owner(Whose::Flow(flow(1, 2, 3, 4)));
        assert!(owners.is_empty());
        assert!(owners.noted.iter().all(|count| count.load(Ordering::Relaxed) == 0));
    }
}
