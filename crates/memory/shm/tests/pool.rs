//! The native pool: no slot leaks, no slot is allocated twice, and stale packets are detected.

use proptest::prelude::*;
use shm::bytes::PacketBytes;
use shm::descriptor::{HEADROOM, NO_HEADER, flag};
use shm::pool::CACHE_SLOTS;
use shm::{HugePages, NativePool, Packet, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool};
use std::collections::HashSet;

fn shared(slots: u32) -> std::sync::Arc<SharedPool> {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(slots) };
    SharedPool::new(PacketRegion::create(options).expect("memory for a small region"))
}

#[derive(Clone, Debug)]
enum Step {
    Alloc { worker: usize, count: usize },
    Free { worker: usize, picks: Vec<usize> },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3usize, 0..700usize).prop_map(|(worker, count)| Step::Alloc { worker, count }),
        (0..3usize, prop::collection::vec(any::<usize>(), 0..300))
            .prop_map(|(worker, picks)| Step::Free { worker, picks }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_slot_is_in_one_place(steps in prop::collection::vec(step(), 1..40)) {
        let slots = 1500;
        let shared = shared(slots);
        let mut workers: Vec<NativePool> = (0..3).map(|_| shared.worker()).collect();
        let mut out: Vec<Packet> = Vec::new();
        let mut held: HashSet<u32> = HashSet::new();
        for step in steps {
            match step {
                Step::Alloc { worker, count } => {
                    let mut fresh = vec![Packet::EMPTY; count];
                    let got = workers[worker].alloc(&mut fresh);
                    // Fewer only if the other caches hold the remaining slots.
                    prop_assert!(got == count || held.len() + got + 2 * CACHE_SLOTS >= slots as usize);
                    for packet in &fresh[..got] {
                        prop_assert!(held.insert(packet.slot()), "slot {} was handed out twice", packet.slot());
                        prop_assert_eq!(shared.ledger().generation(packet.slot()), packet.generation());
                    }
                    out.extend_from_slice(&fresh[..got]);
                }
                Step::Free { worker, picks } => {
                    let mut list: Vec<u16> = Vec::new();
                    if !out.is_empty() {
                        list = picks.iter().map(|pick| (pick % out.len()) as u16).collect();
                        list.sort_unstable();
                        list.dedup();
                    }
                    workers[worker].free(&out, &list);
                    for &index in list.iter().rev() {
                        let packet = out.swap_remove(usize::from(index));
                        held.remove(&packet.slot());
                        prop_assert_ne!(shared.ledger().generation(packet.slot()), packet.generation());
                    }
                }
            }
            prop_assert_eq!(workers[0].in_use(), out.len());
        }
        workers[0].free_all(&out);
        prop_assert_eq!(workers[0].available(), slots as usize);
        prop_assert!(workers.iter().all(|worker| worker.stats().bad_frees == 0));
    }
}

#[test]
fn a_second_free_is_counted_and_changes_nothing() {
    let shared = shared(64);
    let mut pool = shared.worker();
    let mut packets = [Packet::EMPTY; 2];
    assert_eq!(pool.alloc(&mut packets), 2);
    pool.free(&packets, &[0]);
    pool.free(&packets, &[0, 9]);
    assert_eq!(pool.stats().bad_frees, 1);
    assert_eq!(pool.in_use(), 1);
    let other = self::shared(64);
    let mut foreign = [Packet::EMPTY; 2];
    assert_eq!(other.worker().alloc(&mut foreign), 2);
    assert_eq!(foreign[1].slot(), packets[1].slot());
    pool.free_all(&[foreign[1], Packet::EMPTY]);
    assert_eq!(pool.stats().bad_frees, 3);
    assert_eq!(pool.in_use(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_shared_slot_is_free_when_its_last_holder_let_go(
        more in prop::collection::vec(0..4usize, 1..40),
        order in any::<u64>(),
    ) {
        let shared = shared(64);
        let mut workers = [shared.worker(), shared.worker()];
        let mut packets = vec![Packet::EMPTY; more.len()];
        prop_assert_eq!(workers[0].alloc(&mut packets), more.len());
        // Each packet gets some more holders, by one worker or the other.
        let mut holders: Vec<Packet> = vec![];
        for (packet, more) in packets.iter_mut().zip(&more) {
            for turn in 0..*more {
                prop_assert!(workers[turn % 2].share(std::slice::from_ref(packet)));
                packet.flags |= flag::SHARED;
                holders.push(*packet);
            }
            holders.push(*packet);
        }
        // The holders free in any order.
        let mut left: Vec<usize> = more.iter().map(|more| more + 1).collect();
        let mut seed = order | 1;
        while !holders.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let packet = holders.swap_remove((seed >> 33) as usize % holders.len());
            let at = packets.iter().position(|of| of.slot() == packet.slot()).expect("one of them");
            workers[(seed >> 20) as usize % 2].free_all(&[packet]);
            left[at] -= 1;
            let is_over = shared.ledger().generation(packet.slot()) != packet.generation();
            prop_assert_eq!(is_over, left[at] == 0);
            prop_assert_eq!(workers[0].in_use(), left.iter().filter(|left| **left > 0).count());
        }
        // Another free is detected.
        workers[0].free_all(&packets);
        prop_assert_eq!(workers[0].stats().bad_frees, packets.len() as u64);
        prop_assert_eq!(workers[0].in_use(), 0);
    }
}

#[test]
fn a_copy_of_what_is_shared_is_nobody_elses_and_may_be_changed() {
    let shared = shared(8);
    let mut pool = PacketPool::Native(shared.worker());
    let mut packet = shm::chain::write_frame(&mut pool, &[7; 60]).expect("a slot");
    assert!(pool.share(&[packet]));
    packet.flags |= flag::SHARED | flag::PARTIAL_CHECKSUM;
    let mut copy = shm::chain::clone_packet(&mut pool, &packet).expect("a slot");
    assert_eq!(copy.flags, flag::PARTIAL_CHECKSUM);
    assert!(!shm::chain::copy_into(&copy, &mut packet), "somebody reads it");
    assert!(shm::chain::copy_into(&packet, &mut copy));
    pool.free_all(&[copy, packet]);
    assert_eq!(pool.in_use(), 1);
    pool.free_all(&[packet]);
    assert_eq!((pool.in_use(), pool.stats().bad_frees), (0, 0));
}

#[test]
fn the_slot_freed_last_is_handed_out_first() {
    let shared = shared(1024);
    let mut pool = shared.worker();
    let mut packets = [Packet::EMPTY; 32];
    assert_eq!(pool.alloc(&mut packets), 32);
    let slots: Vec<u32> = packets.iter().map(|packet| packet.slot()).collect();
    pool.free_all(&packets);
    assert_eq!(pool.alloc(&mut packets), 32);
    assert_eq!(slots, packets.iter().map(|packet| packet.slot()).collect::<Vec<_>>());
    assert!(packets.iter().all(|packet| packet.generation() == 2));
}

#[test]
fn a_fresh_packet_is_empty_whatever_its_slot_was_before() {
    let shared = shared(4);
    let mut pool = shared.worker();
    let mut packets = [Packet::EMPTY; 4];
    for _ in 0..2 {
        assert_eq!(pool.alloc(&mut packets), 4);
        for packet in &mut packets {
            assert_eq!((usize::from(packet.data()), packet.len(), packet.total()), (HEADROOM, 0, 0));
            assert_eq!((packet.mac, packet.flags, packet.segments()), (NO_HEADER, 0, 1));
            assert_eq!(packet.anno, [0; 48]);
            assert!(packet.put(60));
            (packet.anno, packet.mac, packet.flags) = ([7; 48], 128, 3);
        }
        pool.free_all(&packets);
    }
}

#[test]
fn an_empty_pool_says_so() {
    let shared = shared(10);
    let (mut one, mut two) = (shared.worker(), shared.worker());
    let mut packets = [Packet::EMPTY; 16];
    assert_eq!(one.alloc(&mut packets), 10);
    assert_eq!(one.stats().refused, 6);
    assert_eq!(two.alloc(&mut [Packet::EMPTY; 1]), 0);
    assert_eq!(two.available(), 0);
    one.free_all(&packets[..10]);
    drop(one);
    // The slots of the first worker's cache are available to the second.
    assert_eq!(two.alloc(&mut packets), 10);
}

#[test]
fn threads_share_a_pool_without_loss() {
    let shared = shared(4096);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut pool = shared.worker();
            scope.spawn(move || {
                let mut packets = [Packet::EMPTY; 300];
                for round in 0..2000usize {
                    let want = 1 + round * 37 % 300;
                    let got = pool.alloc(&mut packets[..want]);
                    pool.free_all(&packets[..got]);
                }
                assert_eq!(pool.stats().bad_frees, 0);
            });
        }
    });
    assert_eq!(shared.worker().available(), 4096);
}

#[test]
fn a_packet_grows_in_its_slot_or_in_others() {
    let shared = shared(64);
    let mut pool = PacketPool::Native(shared.worker());
    for (length, more) in [(60, 0), (60, 100), (60, 4000), (5000, 1), (5000, 4000), (0, 65_535)] {
        let mut packet = shm::chain::write_frame(&mut pool, &vec![7; length]).expect("slots");
        (packet.mac, packet.net) = (packet.data(), packet.data() + 14);
        packet.timestamp_ns = 5;
        assert!(shm::chain::grow(&mut pool, &mut packet, more), "{length} {more}");
        let bytes = PacketBytes::new(&packet).to_vec();
        assert!(
            bytes[..length].iter().all(|byte| *byte == 7) && bytes[length..].iter().all(|byte| *byte == 0)
        );
        assert_eq!((bytes.len(), packet.timestamp_ns), (length + more, 5));
        assert_eq!((packet.mac, packet.net), (packet.data(), packet.data() + 14));
        pool.free_all(&[packet]);
    }
    // Bytes that somebody else reads stay as they are.
    let mut packet = shm::chain::write_frame(&mut pool, &[7; 60]).expect("a slot");
    let other = packet;
    assert!(pool.share(&[packet]));
    packet.flags |= flag::SHARED;
    assert!(shm::chain::grow(&mut pool, &mut packet, 4));
    assert_ne!(other.slot(), packet.slot());
    assert_eq!(PacketBytes::new(&other).to_vec(), [7; 60]);
    pool.free_all(&[packet, other]);
    let mut long = shm::chain::write_frame(&mut pool, &[7; 60]).expect("a slot");
    let as_it_was = long;
    assert!(!shm::chain::grow(&mut pool, &mut long, 65_476), "longer than a packet can be");
    let mut rest = vec![Packet::EMPTY; 64];
    let taken = pool.alloc(&mut rest);
    assert!(!shm::chain::grow(&mut pool, &mut long, 4000), "no slot is free");
    assert_eq!((long.total(), long.slot()), (as_it_was.total(), as_it_was.slot()));
    pool.free_all(&rest[..taken]);
    pool.free_all(&[long]);
    assert_eq!(pool.in_use(), 0);
}
