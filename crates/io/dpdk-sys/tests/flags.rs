//! Packets with the flags that NICs set: which of them take the slow path, and the resulting descriptors.
//!
//! The device is net_null; the test driver sets flags in its packets. Every test checks that all packets
//! return to the pool. Each test uses a device name of its own, so that all may run in one process.

use dpdk_sys::{Bus, Device, DpdkPool, Eal, EalOptions, Mempool, Queue, Received};
use dpdk_test_driver::{FlaggedQueue, hash, strips};
use shm::descriptor::flag;
use shm::{HugePages, Packet, PacketBytes, PacketRegion, Pool, RegionOptions};
use std::sync::Arc;

/// The size of a burst.
const BURST: usize = 64;
/// The size of the device's frames.
const FRAME_BYTES: usize = 64;

/// A device with two queues, and the pool that it receives into.
struct Bench {
    device: Arc<Device>,
    pool: DpdkPool,
    name: &'static str,
}

impl Bench {
    /// `None` when DPDK was not built in.
    fn new(name: &'static str) -> Option<Bench> {
        if !dpdk_sys::BUILT_WITH_DPDK {
            eprintln!("SKIP: built without DPDK (install libdpdk-dev and build again)");
            return None;
        }
        let options = EalOptions { huge_pages: Some(false), memory_mib: 256, ..EalOptions::default() };
        let eal = Eal::start(&options).expect("DPDK starts without huge pages");
        let memory = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(2048) };
        let region = PacketRegion::create(memory).expect("memory");
        let mempool = Mempool::in_region(eal, &region).expect("a pool");
        let size = format!("size={FRAME_BYTES}");
        let device = Device::start(eal, Bus::Vdev, name, &size, 2, &mempool).expect("the device starts");
        Some(Bench { device: Arc::new(device), pool: mempool.worker(), name })
    }

    fn queue(&self, arguments: &str) -> FlaggedQueue {
        let queue: Queue = self.device.queues().remove(0);
        FlaggedQueue::new(self.name, queue, arguments).expect("known arguments")
    }

    /// Receives bursts with these flags, calls `check` for each packet with its number, and frees all.
    /// Returns the sums.
    fn receive(&mut self, arguments: &str, bursts: u64, mut check: impl FnMut(u64, &Packet)) -> Received {
        let mut flagged = self.queue(&format!("frames=1,{arguments}"));
        let mut vector = vec![Packet::EMPTY; BURST];
        let mut sum = Received::default();
        for _ in 0..bursts {
            let got = flagged.queue.receive(&mut vector);
            assert_eq!(got.packets as u64 + got.foreign, BURST as u64);
            let received = &vector[..got.packets];
            for packet in received {
                check(number(&bytes(packet)), packet);
            }
            assert_eq!(got.bytes, received.iter().map(|packet| u64::from(packet.total())).sum::<u64>());
            self.pool.free_all(received);
            sum.packets += got.packets;
            sum.bytes += got.bytes;
            sum.flagged += got.flagged;
            sum.foreign += got.foreign;
            sum.odd += got.odd;
        }
        drop(flagged);
        assert_eq!(self.pool.in_use(), 0, "packets that did not return to the pool");
        assert_eq!(self.pool.stats().bad_frees, 0);
        sum
    }
}

fn bytes(packet: &Packet) -> Vec<u8> {
    PacketBytes::new(packet).to_vec()
}

/// The tag of the packet of that number.
fn tci(number: u64) -> u16 {
    0xa000 | (number as u16 & 0xfff)
}

/// The frame of that number as sent on the wire, with these tags.
fn frame(number: u64, tags: &[(u16, u16)], ethertype: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9];
    for (tag, tci) in tags {
        frame.extend([tag.to_be_bytes(), tci.to_be_bytes()].concat());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(FRAME_BYTES + 4 * tags.len(), 0);
    frame
}

/// The number in a frame.
fn number(frame: &[u8]) -> u64 {
    let mut at = 12;
    while matches!(frame[at..at + 2], [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    u64::from_be_bytes(frame[at + 2..at + 10].try_into().expect("eight bytes"))
}

/// The EtherType of frames that never had a tag.
const PLAIN: u16 = 0x88b5;
/// The EtherType of frames from which a tag was removed.
const TAGGED: u16 = 0x0800;

/// Flags that most NICs set on most packets do not cause the slow path.
#[test]
fn hashes_types_and_good_checksums_take_the_fast_path() {
    let Some(mut bench) = Bench::new("net_null0") else { return };
    assert_eq!(strips("net_null0"), Some(false), "VLAN tags stay in frames");
    for (arguments, hashed) in [
        ("rss=1", true),
        ("rss=1,ptypes=1,good-checksum=1", true),
        ("rss=1,vlan=1,timestamp=1", true),
        ("ptypes=1,good-checksum=2,timestamp=3", false),
        ("ptypes=1", false),
    ] {
        let sum = bench.receive(arguments, 100, |number, packet| {
            let want = if hashed { hash(number) } else { 0 };
            assert_eq!((packet.flow_hash, packet.flags, packet.timestamp_ns), (want, 0, 0), "{arguments}");
            assert_eq!(bytes(packet), frame(number, &[], PLAIN));
        });
        let want = Received { packets: 6400, bytes: 6400 * 64, ..Received::default() };
        assert_eq!(sum, want, "{arguments}");
    }
    // No packet has another one's values: every third has a hash.
    let sum = bench.receive("rss=3,ptypes=2", 100, |number, packet| {
        assert_eq!(packet.flow_hash, if number.is_multiple_of(3) { hash(number) } else { 0 });
    });
    assert_eq!((sum.odd, sum.flagged), (0, 0));
    // No flag remains in an mbuf that is used again.
    let sum =
        bench.receive("ptypes=1", 100, |_, packet| assert_eq!((packet.flow_hash, packet.flags), (0, 0)));
    assert_eq!((sum.odd, sum.flagged), (0, 0));
}

#[test]
fn flags_that_need_work_take_the_slow_path_and_reach_the_descriptor() {
    let Some(mut bench) = Bench::new("net_null1") else { return };
    // 6,400 packets, numbers 0 to 6,399.
    let every = |period: u64| 6400u64.div_ceil(period);
    let sum = bench.receive("rss=1,no-checksum=5", 100, |number, packet| {
        let want = if number.is_multiple_of(5) { flag::PARTIAL_CHECKSUM } else { 0 };
        assert_eq!((packet.flags, packet.flow_hash), (want, hash(number)));
    });
    assert_eq!((sum.odd, sum.flagged), (every(5), every(5)));

    // Elements check checksums, not the driver.
    let sum = bench.receive("rss=1,good-checksum=1,bad-checksum=4", 100, |number, packet| {
        assert_eq!((packet.flags, packet.flow_hash), (0, hash(number)));
    });
    assert_eq!((sum.odd, sum.flagged), (every(4), 0));

    let sum = bench.receive("rss=1,lro=10", 100, |number, packet| {
        assert_eq!(packet.flags, if number.is_multiple_of(10) { flag::GSO } else { 0 });
    });
    assert_eq!((sum.odd, sum.flagged), (every(10), every(10)));

    let sum = bench.receive("rss=1,segments=7", 100, |number, packet| {
        let long = number.is_multiple_of(7);
        assert_eq!((packet.segments(), packet.total()), if long { (2, 80) } else { (1, 64) });
        assert_eq!(packet.flow_hash, hash(number));
        assert_eq!(bytes(packet).ends_with(&[0x5a; 16]), long);
    });
    assert_eq!((sum.odd, sum.flagged, sum.foreign), (every(7), 0, 0));

    let sum =
        bench.receive("ptypes=1", 100, |_, packet| assert_eq!((packet.flow_hash, packet.flags), (0, 0)));
    assert_eq!((sum.odd, sum.flagged), (0, 0), "no flag stays in an mbuf that is used again");
}

#[test]
fn a_tag_that_the_device_removed_is_put_back() {
    let Some(mut bench) = Bench::new("net_null2") else { return };
    let every = |period: u64| 6400u64.div_ceil(period);
    let sum = bench.receive("rss=1,vlan-stripped=3", 100, |number, packet| {
        let want = match number.is_multiple_of(3) {
            true => frame(number, &[(0x8100, tci(number))], TAGGED),
            false => frame(number, &[], PLAIN),
        };
        assert_eq!(bytes(packet), want, "{number}");
        assert_eq!((packet.mac, packet.flow_hash), (packet.data(), hash(number)));
        assert_eq!(packet.total() as usize, want.len());
    });
    assert_eq!((sum.odd, sum.bytes), (every(3), 6400 * 64 + 4 * every(3)));

    let sum = bench.receive("qinq-stripped=3,segments=2", 100, |number, packet| {
        let mut want = match number.is_multiple_of(3) {
            true => frame(number, &[(0x88a8, 77), (0x8100, tci(number))], TAGGED),
            false => frame(number, &[], PLAIN),
        };
        if number.is_multiple_of(2) {
            want.resize(want.len() + 16, 0x5a);
        }
        assert_eq!(bytes(packet), want, "{number}");
    });
    assert_eq!((sum.odd, sum.foreign), (every(3) + every(2) - every(6), 0));

    // Without room for the tag the packet is dropped: without its tag it would appear to belong to another
    // network.
    let mut lost = 0;
    let sum = bench.receive("vlan-stripped=3,no-headroom=2", 100, |number, _| {
        lost += u64::from(number.is_multiple_of(6));
    });
    assert_eq!((lost, sum.foreign, sum.packets as u64), (0, every(6), 6400 - every(6)));
}

#[test]
fn an_argument_that_is_not_known_is_refused() {
    let Some(bench) = Bench::new("net_null3") else { return };
    for arguments in ["hash=1", "rss=0", "rss=x", "rss"] {
        assert!(
            FlaggedQueue::new(bench.name, bench.device.queues().remove(0), arguments).is_none(),
            "{arguments}"
        );
    }
    assert!(FlaggedQueue::new("net_null9", bench.device.queues().remove(0), "rss=1").is_none());
    assert_eq!(strips("net_null9"), None);
}
