//! An NF that writes any value into all memory that it can write: the host keeps running, frees each slot
//! once and loses none.

use proptest::prelude::*;
use shm::channel::{Completion, HostEnd, InFlightTable};
use shm::descriptor::{NO_HEADER, offset};
use shm::ring::{Cells, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{HugePages, Packet, PacketBytes, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

const SLOTS: u32 = 64;
const CLAIMS: u32 = 16;
const NF: u16 = 3;
const HOLDING_MOST: u64 = 5;

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    /// The host enqueues up to this many packets.
    Enqueue(usize),
    /// The host takes back at most this many.
    TakeBack(usize),
    /// The NF passes on up to this many, as the protocol requires, with an action.
    Forward(usize, u8),
    /// The NF returns the same packets again.
    Again(usize),
    /// The NF writes an index: ring, word, value; a small value when true.
    Index(bool, u8, u32, bool),
    /// The NF writes a ring entry: ring, index, descriptor; of an existing slot when true.
    Entry(bool, u32, [u64; 2], bool),
    /// The NF writes a descriptor into a slot's metadata block.
    Metadata(u32, [u16; 4], u32, u64, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..20usize).prop_map(Step::Enqueue),
        (0..20usize).prop_map(Step::TakeBack),
        (0..20usize, 0..4u8).prop_map(|(count, action)| Step::Forward(count, action)),
        (0..20usize).prop_map(Step::Again),
        any::<(bool, u8, u32, bool)>()
            .prop_map(|(ring, word, value, small)| { Step::Index(ring, word, value, small) }),
        any::<(bool, u32, [u64; 2], bool)>()
            .prop_map(|(ring, at, words, near)| { Step::Entry(ring, at, words, near) }),
        any::<(u32, [u16; 4], u32, u64, u16)>().prop_map(|(slot, offsets, len, next, segments)| {
            Step::Metadata(slot, offsets, len, next, segments)
        }),
    ];
    prop::collection::vec(step, 0..80)
}

fn index(ring: &Mapped, word: u8) -> &shm::ring::Word {
    [ring.tail(), ring.head(), ring.taken(), ring.asleep()][usize::from(word) % 4]
}

/// An NF of the same region writes into the slots of a chain that was never enqueued to it.
#[test]
fn nothing_that_an_nf_writes_says_what_a_chain_is_made_of() {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
    let mut pool = PacketPool::Native(shared.worker());
    let frame: Vec<u8> = (0..5000u32).map(|at| at as u8).collect();
    let chain = shm::write_frame(&mut pool, &frame).expect("three slots");
    let mut other = [Packet::EMPTY];
    assert_eq!((chain.segments(), pool.alloc(&mut other)), (3, 1));
    let [other] = other;
    for slot in 0..SLOTS {
        // Every slot names the other packet's slot as its next segment, with its present generation.
        let next = u64::from(other.slot()) + 1;
        let descriptor = Descriptor { slot, generation: other.generation(), ..Descriptor::default() };
        let of_slot = shm::claimed(chain.region(), &descriptor).expect("a slot");
        assert!(shm::park(&of_slot));
        assert!(shm::scribble(&of_slot, offset::NEXT as usize, &next.to_ne_bytes()));
        assert!(shm::scribble(&of_slot, offset::LEN as usize, &9u32.to_ne_bytes()));
    }
    assert!(PacketBytes::new(&chain).to_vec() == frame, "other bytes");
    pool.free_all(&[chain]);
    assert_eq!((pool.in_use(), pool.stats().bad_frees), (1, 0));
    assert_eq!(shared.ledger().generation(other.slot()), other.generation(), "the other one was freed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn no_slot_is_lost_or_freed_twice(steps in steps(), metadata: bool) {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
        let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
        let (mut pool, in_flight, region) = (shared.worker(), InFlightTable::new(SLOTS), shared.region().number());
        let rings = RingFile::<2>::create(CLAIMS).expect("rings");
        let sides = rings.rings();
        let host_end = HostEnd::new(sides[0].clone(), sides[1].clone(), NF, region);
        let mut host_end = host_end.with_metadata(metadata).holding_at_most(HOLDING_MOST);
        let mut nf_from = Consumer::new(sides[0].clone());
        let mut nf_to = Producer::new(sides[1].clone());
        // The packets that the NF holds according to the host, as they were enqueued.
        let mut out: BTreeMap<u32, Packet> = BTreeMap::new();
        let mut last = vec![];
        // Only the host may set these fields; without metadata, nearly all fields.
        let check = |enqueued: &Packet, back: &Packet, is_enqueued: bool| {
            let known = |packet: &Packet| {
                let host_only = (packet.buf(), packet.handle(), packet.next(), packet.segments());
                (host_only, packet.slot(), packet.generation(), packet.version(), packet.region())
            };
            assert_eq!(known(enqueued), known(back));
            assert!(u32::from(back.data()) + back.len() <= shm::descriptor::BUF_BYTES as u32);
            assert_eq!(back.total(), back.len());
            if !metadata {
                let mut changed = *enqueued;
                assert!(changed.set_ends(back.data(), back.len()));
                (changed.mac, changed.net, changed.trans) = (NO_HEADER, NO_HEADER, NO_HEADER);
                changed.flow_hash = 0;
                let back = format!("{back:?}");
                assert!(back == format!("{enqueued:?}") || (!is_enqueued && back == format!("{changed:?}")), "{back}");
            }
        };
        let settle = |out: &mut BTreeMap<u32, Packet>, pool: &mut shm::NativePool, back: &[Packet]| {
            for packet in back {
                let enqueued = out.remove(&packet.slot()).expect("it was enqueued, and comes back once");
                check(&enqueued, packet, false);
                pool.free_all(&[*packet]);
            }
        };
        for step in steps {
            match step {
                Step::Enqueue(count) => {
                    let mut packets = vec![Packet::EMPTY; count];
                    let made = pool.alloc(&mut packets);
                    for packet in &mut packets[..made] {
                        assert!(packet.put(60));
                        packet.net = 142;
                        (packet.anno, packet.timestamp_ns) = ([packet.slot() as u8; 48], 5);
                        (packet.origin, packet.flow_hash) = (2, 6);
                    }
                    let list: Vec<u16> = (0..made as u16).collect();
                    let enqueued = host_end.enqueue(&in_flight, &packets, &list, 0).map_or(0, |(enqueued, _)| enqueued);
                    out.extend(packets[..enqueued].iter().map(|packet| (packet.slot(), *packet)));
                    pool.free_all(&packets[enqueued..made]);
                }
                Step::TakeBack(count) => {
                    let (mut packets, mut completions) = ([Packet::EMPTY; 20], [Completion::default(); 20]);
                    // A real host evicts an NF with impossible indices; this one continues, to test more.
                    let (back, _) = host_end.take_back(&in_flight, &mut packets[..count], &mut completions);
                    settle(&mut out, &mut pool, &packets[..back]);
                }
                Step::Forward(count, action) => {
                    let mut descriptors = vec![Descriptor::default(); count];
                    let taken = nf_from.take(&mut descriptors).unwrap_or(0);
                    last = descriptors[..taken].to_vec();
                    last.iter_mut().for_each(|descriptor| descriptor.action = action);
                    let _ = nf_to.push(&last);
                    nf_from.release(taken);
                }
                Step::Again(count) => {
                    let _ = nf_to.push(&last[..count.min(last.len())]);
                }
                Step::Index(ring, word, value, small) => {
                    index(&sides[usize::from(ring)], word).store(if small { value % 40 } else { value }, Relaxed);
                }
                Step::Entry(ring, at, mut words, near) => {
                    if near {
                        // A slot that exists, with a generation that it may have.
                        let slot = words[0] as u32 % SLOTS;
                        let life = u64::from(in_flight.generation(slot)) - (words[0] >> 60 == 0) as u64;
                        words[0] = u64::from(slot) | life << 32;
                        words[1] &= 0x0000_0003_03ff_03ff;
                    }
                    let entry = sides[usize::from(ring)].entry(at);
                    entry.into_iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
                }
                Step::Metadata(slot, [data, mac, net, trans], len, next, segments) => {
                    let descriptor = Descriptor { slot: slot % SLOTS, ..Descriptor::default() };
                    let of_slot = shm::claimed(region, &descriptor).expect("a slot");
                    let write = |at: i32, bytes: &[u8]| assert!(shm::scribble(&of_slot, at as usize, bytes));
                    let places = [offset::DATA, offset::MAC, offset::NET, offset::TRANS];
                    let numbers = [data, mac, net, trans].into_iter().zip(places);
                    numbers.for_each(|(number, at)| write(at, &number.to_ne_bytes()));
                    write(offset::LEN, &len.to_ne_bytes());
                    write(offset::TOTAL, &len.rotate_left(9).to_ne_bytes());
                    write(offset::NEXT, &next.to_ne_bytes());
                    write(offset::SEGMENTS, &segments.to_ne_bytes());
                }
            }
            prop_assert!(in_flight.held_by(NF).eq(out.keys().copied()));
            let holding = host_end.stats().holding;
            prop_assert_eq!(host_end.held() + holding, out.len() as u64);
            prop_assert!(holding <= HOLDING_MOST);
        }
        let reclaimed = host_end.reclaim(&in_flight);
        let returned: Vec<Packet> = reclaimed.returned.iter().map(|(packet, _)| *packet).collect();
        settle(&mut out, &mut pool, &returned);
        let held: Vec<Packet> = reclaimed.held.iter().map(|enqueued| enqueued.packet).collect();
        settle(&mut out, &mut pool, &held);
        for enqueued in reclaimed.untouched.iter().chain(&reclaimed.lost) {
            let was = out.remove(&enqueued.packet.slot()).expect("it was enqueued, and is found once");
            check(&was, &enqueued.packet, true);
            pool.free_all(&[enqueued.packet]);
        }
        prop_assert!(out.is_empty(), "slots {:?} are with nobody", out);
        prop_assert_eq!((pool.available(), pool.stats().bad_frees), (SLOTS as usize, 0));
        let stats = host_end.stats();
        prop_assert_eq!((host_end.held(), stats.holding), (0, 0));
        let back = stats.returned + stats.malformed + stats.held_too_many + stats.lost + stats.untouched + stats.inherited;
        prop_assert_eq!(stats.enqueued, back);
    }
}
