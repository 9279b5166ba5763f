//! An NF that writes any value into any word that it shares with its host, between any two reads of the host:
//! its three rings (to the NF, from the NF, of empty slots) and the slots. A second NF in the same memory
//! follows the protocol.
//!
//! The test asserts that the host keeps running and that each slot is with the holder that the in-flight
//! table has, is returned once, and none is missing. The bytes of an input choose the steps, so that a fuzzer
//! can search for others (`fuzz/targets/hostile_peer.rs`).

use shm::channel::{Completion, GRANT, HostEnd, InFlightTable, Reclaimed};
use shm::descriptor::{BUF_BYTES, NO_HEADER, offset};
use shm::ring::{Cells, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{HugePages, NativePool, Packet, PacketRegion, Pool, RegionOptions, SharedPool};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

const SLOTS: u32 = 32;
const CLAIMS: u32 = 8;
const HOSTILE: u16 = 3;
const INNOCENT: u16 = 4;
/// The most packets enqueued or taken at a time.
const MOST: usize = 12;
/// The most steps: further ones find no further faults.
const STEPS: usize = 400;

/// The bytes of an input in order; zeros after its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let (mine, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        mine.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.number(1) as usize % bound
    }
}

/// An NF and the host's end of its channel.
struct Peer {
    holder: u16,
    rings: RingFile<3>,
    host_end: HostEnd<Mapped>,
    takes: [Consumer<Mapped>; 2],
    gives: Producer<Mapped>,
    /// The packets that it holds, as they were enqueued, with whether the slot was empty.
    out: BTreeMap<u32, (Packet, bool)>,
    /// The descriptors that it returned last.
    last: Vec<Descriptor>,
}

impl Peer {
    fn new(holder: u16, region: u16, metadata: bool, limits: [u64; 2]) -> Peer {
        let rings = RingFile::<3>::create(CLAIMS).expect("rings");
        let [to, from, grants] = rings.rings();
        let host_end = HostEnd::new(to.clone(), from.clone(), holder, region).with_grants(grants.clone());
        let host_end = host_end.with_metadata(metadata).limited_to(limits[0]).holding_at_most(limits[1]);
        let takes = [Consumer::new(to), Consumer::new(grants)];
        Peer {
            holder,
            rings,
            host_end,
            takes,
            gives: Producer::new(from),
            out: BTreeMap::new(),
            last: vec![],
        }
    }

    fn enqueue(&mut self, in_flight: &InFlightTable, pool: &mut NativePool, count: usize, destination: u16) {
        let mut packets = [Packet::EMPTY; MOST];
        let made = pool.alloc(&mut packets[..count]);
        for packet in &mut packets[..made] {
            assert!(packet.put(60));
            packet.net = 142;
            (packet.anno, packet.timestamp_ns, packet.origin) = ([packet.slot() as u8; 48], 5, 2);
        }
        let list: Vec<u16> = (0..made as u16).collect();
        let enqueued = self
            .host_end
            .enqueue(in_flight, &packets[..made], &list, destination)
            .map_or(0, |(enqueued, _)| enqueued);
        for packet in &packets[..enqueued] {
            let before = self.out.insert(packet.slot(), (*packet, destination == GRANT));
            assert!(before.is_none(), "slot {} was enqueued twice", packet.slot());
        }
        pool.free_all(&packets[enqueued..made]);
    }

    fn take_back(&mut self, in_flight: &InFlightTable, pool: &mut NativePool, count: usize) -> usize {
        let (mut packets, mut completions) = ([Packet::EMPTY; MOST], [Completion::default(); MOST]);
        // A real host evicts an NF with impossible indices; this one continues, to test more.
        let (back, _) = self.host_end.take_back(in_flight, &mut packets[..count], &mut completions[..count]);
        for (packet, completion) in packets[..back].iter().zip(completions) {
            self.settle(pool, packet, completion.is_granted());
        }
        back
    }

    /// A slot is returned: the fields that only the host may set are unchanged.
    fn settle(&mut self, pool: &mut NativePool, packet: &Packet, granted: bool) {
        let (enqueued, was_granted) =
            self.out.remove(&packet.slot()).expect("it was enqueued, and comes back once");
        let known = |packet: &Packet| {
            let host_only = (packet.buf(), packet.handle(), packet.next(), packet.segments());
            (host_only, packet.slot(), packet.generation(), packet.version(), packet.region())
        };
        assert_eq!((known(&enqueued), was_granted), (known(packet), granted));
        assert!(
            u32::from(packet.data()) + packet.len() <= BUF_BYTES as u32 && packet.total() == packet.len()
        );
        for offset in [packet.mac, packet.net, packet.trans] {
            assert!(offset == NO_HEADER || usize::from(offset) <= BUF_BYTES, "{packet:?}");
        }
        pool.free_all(&[*packet]);
    }

    /// Takes packets and returns them, as an NF does.
    fn forward(&mut self, count: usize, action: u8, from: usize) {
        let mut descriptors = [Descriptor::default(); MOST];
        let taken = self.takes[from].take(&mut descriptors[..count]).unwrap_or(0);
        self.last = descriptors[..taken].to_vec();
        self.last.iter_mut().for_each(|descriptor| descriptor.action = action);
        let _ = self.gives.push(&self.last);
        self.takes[from].release(taken);
    }

    fn assert_as_the_books_say(&self, in_flight: &InFlightTable) {
        assert!(in_flight.held_by(self.holder).eq(self.out.keys().copied()));
        assert_eq!(self.host_end.held() + self.host_end.stats().holding, self.out.len() as u64);
    }

    /// The end of the NF: each of its slots is reclaimed once.
    fn reclaim(&mut self, in_flight: &InFlightTable, pool: &mut NativePool) -> u64 {
        let Reclaimed { returned, untouched, held, lost } = self.host_end.reclaim(in_flight);
        for (packet, completion) in &returned {
            self.settle(pool, packet, completion.is_granted());
        }
        for enqueued in untouched.iter().chain(&held).chain(&lost) {
            self.settle(pool, &enqueued.packet, enqueued.granted);
        }
        assert!(self.out.is_empty(), "slots {:?} are with nobody", self.out.keys());
        let stats = self.host_end.stats();
        let back = stats.returned
            + stats.malformed
            + stats.held_too_many
            + stats.lost
            + stats.untouched
            + stats.inherited;
        assert_eq!((stats.enqueued, self.host_end.held(), stats.holding), (back, 0, 0));
        stats.lost
    }
}

/// Runs the steps of an input.
pub fn hostile_peer(input: &[u8]) {
    let mut input = Input(input);
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
    let (mut pool, in_flight, region) =
        (shared.worker(), InFlightTable::new(SLOTS), shared.region().number());
    let metadata = input.number(1) & 1 == 1;
    let limits = [4 + input.number(1) % 29, input.number(1) % 7];
    let mut hostile = Peer::new(HOSTILE, region, metadata, limits);
    let mut innocent = Peer::new(INNOCENT, region, metadata, [u64::MAX, 0]);
    let mut carried = 0;
    for _ in 0..STEPS {
        if input.0.is_empty() {
            break;
        }
        match input.below(11) {
            0 => {
                let (count, destination) = (input.below(MOST + 1), input.below(3) as u16);
                hostile.enqueue(&in_flight, &mut pool, count, destination);
            }
            1 => hostile.enqueue(&in_flight, &mut pool, input.below(5), GRANT),
            2 => drop(hostile.take_back(&in_flight, &mut pool, input.below(MOST + 1))),
            3 => hostile.forward(input.below(MOST + 1), input.number(1) as u8 % 5, input.below(2)),
            4 => {
                let again = input.below(MOST + 1).min(hostile.last.len());
                let _ = hostile.gives.push(&hostile.last[..again]);
            }
            5 => {
                let ring = &hostile.rings.rings()[input.below(3)];
                let word = [ring.tail(), ring.head(), ring.taken(), ring.asleep()][input.below(4)];
                // Close to the other values, or any value.
                let value = if input.below(2) == 0 { input.number(1) } else { input.number(4) };
                word.store(value as u32, Relaxed);
            }
            6 => {
                let ring = &hostile.rings.rings()[input.below(3)];
                let entry = ring.entry(input.number(1) as u32);
                entry.iter().for_each(|cell| cell.store(input.number(8), Relaxed));
            }
            7 => {
                // A slot that exists, its own or the other NF's, with a generation that it may have.
                let ring = &hostile.rings.rings()[input.below(3)];
                let (at, slot) = (input.number(1) as u32, input.number(1) as u32 % SLOTS);
                let life = u64::from(in_flight.generation(slot)).wrapping_sub(input.below(2) as u64);
                let rest = input.number(8) & 0x0000_0003_0fff_0fff;
                let words = [u64::from(slot) | life << 32, rest];
                ring.entry(at).iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
            }
            8 => {
                let slot = input.number(1) as u32 % SLOTS;
                let descriptor = Descriptor { slot, ..Descriptor::default() };
                if let Some(of_slot) = shm::claimed(region, &descriptor) {
                    let mut write = |at: i32, count: usize| {
                        let bytes = input.number(count).to_ne_bytes();
                        assert!(shm::scribble(&of_slot, at as usize, &bytes[..count]));
                    };
                    for at in [offset::DATA, offset::MAC, offset::NET, offset::TRANS] {
                        write(at, 2);
                    }
                    write(offset::LEN, 4);
                    write(offset::TOTAL, 4);
                    write(offset::NEXT, 8);
                    write(offset::SEGMENTS, 2);
                    write(offset::GENERATION, 4);
                }
            }
            9 => {
                let count = input.below(MOST + 1);
                innocent.enqueue(&in_flight, &mut pool, count, 0);
                innocent.forward(count, 1, 0);
                while innocent.take_back(&in_flight, &mut pool, MOST) > 0 {
                    carried += 1;
                }
                assert_eq!(
                    (innocent.host_end.bad_claims(), innocent.out.len()),
                    (0, 0),
                    "the innocent one was harmed"
                );
            }
            _ => {
                hostile.reclaim(&in_flight, &mut pool);
                hostile = Peer::new(HOSTILE, region, metadata, limits);
            }
        }
        hostile.assert_as_the_books_say(&in_flight);
        innocent.assert_as_the_books_say(&in_flight);
        assert!(hostile.host_end.stats().holding <= limits[1]);
    }
    hostile.reclaim(&in_flight, &mut pool);
    assert_eq!(innocent.reclaim(&in_flight, &mut pool), 0, "after {carried} bursts");
    assert_eq!((pool.available(), pool.stats().bad_frees), (SLOTS as usize, 0), "slots are missing");
}
