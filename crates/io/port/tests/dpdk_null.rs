//! net_null: receives an unlimited number of frames of zeroes, and drops sent packets.
#![expect(unsafe_code, reason = "makes descriptors that no safe code can make, to see them refused")]

mod dpdk_setup;

use dpdk_setup::{assert_no_leak, open, start};
use port::{DpdkSpec, Port};
use shm::descriptor::{BUF_BYTES, HEADROOM, flag, offset};
use shm::{Packet, PacketBytes, PacketPool, Pool, SharedPool, clone_packet, write_frame};

/// A descriptor with one word of another; no safe code makes it.
fn forged(packet: &Packet, at: usize, word: u64) -> Packet {
    let mut words = packet.to_words();
    words[at] = word;
    // SAFETY: it is only passed to the pool and the port, which check it.
    unsafe { Packet::from_words(words) }
}

#[test]
fn null_receives_into_the_region_and_nothing_leaks() {
    let Some(dpdk) = start(2048) else { return };
    let mut pool = dpdk.pool();
    let mut port = open(&dpdk, "net_null0,size=64");
    port.set_origin(2);
    let region = dpdk.region().expect("a region").clone();
    assert_eq!(port.device().driver, "net_null");
    assert!(port.device().in_region && port.info().link_up);
    let mut vector = vec![Packet::EMPTY; 256];
    let list: Vec<u16> = (0..256).collect();
    let mut sent = 0;
    for _ in 0..200 {
        let got = port.receive(&mut pool, &mut vector[..64]).packets;
        assert_eq!(got, 64);
        for packet in &vector[..got] {
            assert_eq!((packet.len(), packet.total(), packet.segments(), packet.origin), (64, 64, 1, 2));
            assert_eq!((usize::from(packet.data()), packet.mac), (HEADROOM, packet.data()));
            assert_eq!(packet.region(), region.number());
            let first = region.address() as u64 + 128;
            assert_eq!(packet.buf(), first + u64::from(packet.slot()) * 2368);
            assert_eq!(PacketBytes::new(packet).to_vec(), [0; 64]);
        }
        // Half is sent, half is freed.
        assert_eq!(port.send(&mut pool, &mut vector, &list[..32]).packets, 32);
        pool.free(&vector, &list[32..64]);
        sent += 32;
    }
    assert_eq!((port.stats().rx_packets, port.stats().tx_packets), (200 * 64, sent));
    assert_eq!(port.stats().tx_bytes, 64 * sent);
    assert_no_leak(&pool, 0);

    // Packets made here: fresh packets, chains, copies. All of them can be freed and sent.
    assert_eq!(pool.alloc(&mut vector[..100]), 100);
    assert!(vector[..100].iter().all(|packet| packet.is_empty() && usize::from(packet.data()) == HEADROOM));
    pool.free_all(&vector[..100]);
    let chain = write_frame(&mut pool, &dpdk_setup::frame(9216, 1)).expect("slots");
    assert_eq!(chain.segments(), 5);
    let copy = clone_packet(&mut pool, &chain).expect("slots");
    assert_eq!(PacketBytes::new(&copy).to_vec(), dpdk_setup::frame(9216, 1));
    pool.free_all(&[chain]);
    assert_eq!(pool.in_use(), 5);
    assert_eq!(port.send(&mut pool, &mut [copy], &[0]).packets, 1);
    assert_no_leak(&pool, 0);

    // A packet with another reader is free when both the driver and the reader have released it, in either
    // order.
    let got = port.receive(&mut pool, &mut vector[..2]).packets;
    assert_eq!(got, 2);
    assert!(pool.share(&vector[..2]) && pool.share(&vector[..1]));
    vector[..2].iter_mut().for_each(|packet| packet.flags |= flag::SHARED);
    let shared = [vector[0], vector[1]];
    pool.free_all(&shared[..1]);
    assert_eq!(port.send(&mut pool, &mut vector, &[0, 1]).packets, 2);
    assert_eq!(pool.in_use(), 2);
    pool.free_all(&shared[1..]);
    assert_eq!(pool.in_use(), 1);
    pool.free_all(&shared[..1]);
    assert_no_leak(&pool, 0);

    // The whole pool can be allocated, and not more.
    let mut all = vec![Packet::EMPTY; 4096];
    let got = pool.alloc(&mut all);
    assert_eq!(got, pool.capacity());
    assert_eq!(pool.stats().refused as usize, all.len() - got);
    assert_eq!(port.receive(&mut pool, &mut vector).packets, 0);
    pool.free_all(&all[..got]);

    // Descriptors of no packet are counted and have no other effect.
    pool.free_all(&[Packet::EMPTY, forged(&vector[0], 1, 64)]);
    assert_eq!(pool.stats().bad_frees, 2);
    let got = port.receive(&mut pool, &mut vector[..4]).packets;
    assert_eq!(got, 4);
    let wild = forged(&vector[0], 1, vector[0].handle() + 128);
    let lengths = u64::from(vector[1].total()) << 32 | BUF_BYTES as u64;
    let long = forged(&vector[1], offset::LEN as usize / 8, lengths);
    assert_eq!((long.len(), long.total()), (BUF_BYTES as u32, vector[1].total()));
    assert_eq!(port.send(&mut pool, &mut [wild, long, vector[2]], &[0, 1, 2]).packets, 3);
    // The second one's slot was freed with it; the first one had no slot of its own.
    pool.free_all(&[vector[0], vector[3]]);
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.stats().bad_frees, 3);

    // A worker with another pool copies packets in both directions.
    let memory = shm::RegionOptions { huge_pages: shm::HugePages::Never, ..shm::RegionOptions::slots(64) };
    let other = SharedPool::new(shm::PacketRegion::create(memory).expect("memory"));
    let mut native = PacketPool::Native(other.worker());
    let before = port.stats().copies;
    assert_eq!(port.receive(&mut native, &mut vector[..8]).packets, 8);
    assert!(vector[..8].iter().all(|packet| packet.region() == other.region().number()));
    assert_eq!((native.in_use(), port.stats().copies - before), (8, 8));
    assert_eq!(port.send(&mut native, &mut vector, &list[..8]).packets, 8);
    assert_eq!((native.in_use(), port.stats().copies - before), (0, 16));

    // Another thread has its own cache, and slots that it frees are available to all threads.
    std::thread::scope(|scope| {
        let mut pool = dpdk.pool();
        scope.spawn(move || {
            let mut packets = vec![Packet::EMPTY; 500];
            assert_eq!(pool.alloc(&mut packets), 500);
            pool.free_all(&packets);
        });
    });

    for (wrong, what) in [
        ("net_nothing0", "net_nothing0"),
        ("net_null1,nonsense=1", "net_null1"),
        ("net_pcap0,rx_pcap=/none", "/none"),
    ] {
        let refused = dpdk.open(&DpdkSpec::parse(wrong).expect("a name"), 1).err().expect("no such device");
        assert!(refused.to_string().contains(what), "{refused}");
    }
    let refused = dpdk.open(&DpdkSpec::parse("net_null2").expect("a name"), 9999).err().expect("too many");
    assert!(refused.to_string().contains("net_null2"), "{refused}");
    // Two queue pairs, two workers, one device.
    let spec = DpdkSpec::parse("net_null3,size=64").expect("a name");
    let ports = dpdk.open(&spec, 2).expect("two queue pairs");
    assert_eq!((ports.len(), ports[0].device().queues), (2, 2));
    // The device distributes flows over several queues, but not with one queue.
    assert!(ports.iter().all(|port| port.info().shares_flows) && !port.info().shares_flows);
    std::thread::scope(|scope| {
        for mut port in ports {
            let mut pool = dpdk.pool();
            scope.spawn(move || {
                let mut vector = vec![Packet::EMPTY; 32];
                for _ in 0..500 {
                    let got = port.receive(&mut pool, &mut vector).packets;
                    pool.free_all(&vector[..got]);
                }
                assert_eq!(port.stats().rx_packets, 500 * 32);
            });
        }
    });
    assert_eq!(pool.in_use(), 0);
    // A closed device can be opened again.
    drop(port);
    let mut again = open(&dpdk, "net_null0,size=1500");
    assert_eq!(again.receive(&mut pool, &mut vector[..1]).packets, 1);
    assert_eq!(vector[0].len(), 1500);
    pool.free_all(&vector[..1]);
}
