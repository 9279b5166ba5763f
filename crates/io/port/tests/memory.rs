//! The in-memory port: every emitted packet equals its template, and no slot leaks.

use packet::access::Access;
use port::memory::{SentFrames, restore_cost};
use port::{FrameSet, MemoryPort, Port, PortError};
use shm::descriptor::PacketType;
use shm::{
    HugePages, Packet, PacketBytes, PacketBytesMut, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool,
};
use std::sync::Arc;

fn pool(slots: u32) -> PacketPool {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(slots) };
    PacketPool::Native(
        SharedPool::new(PacketRegion::create(options).expect("memory for a small region")).worker(),
    )
}

fn frame(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed) as u8 & 0xfe).collect()
}

#[test]
fn a_rewritten_frame_never_comes_back() {
    let lengths = [60, 0, 64, 1, 65, 1500, 2112, 2113, 9216, 63];
    let templates: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(i, &len)| frame(len, i)).collect();
    let mut pool = pool(128);
    let kept = SentFrames::default();
    let mut source =
        MemoryPort::generator("source", Arc::new(FrameSet::new(&templates).expect("frames"))).limit(95);
    let mut sink = MemoryPort::sink("sink").keep_sent(Arc::clone(&kept));
    source.set_origin(3);
    let mut vector = vec![Packet::EMPTY; 7];
    let mut seen = 0;
    while !source.is_finished() {
        let got = source.receive(&mut pool, &mut vector).packets;
        assert!(got > 0);
        for packet in &mut vector[..got] {
            assert_eq!(PacketBytes::new(packet).to_vec(), templates[seen % templates.len()]);
            assert_eq!((packet.mac, packet.origin), (packet.data(), 3));
            let mut bytes = PacketBytesMut::new(packet);
            for at in 0..bytes.len() {
                assert!(bytes.put_u8(at, 0xff));
            }
            seen += 1;
        }
        let list: Vec<u16> = (0..got as u16).collect();
        assert_eq!(sink.send(&mut pool, &mut vector, &list).packets, got);
    }
    assert_eq!(seen, 95);
    assert_eq!(pool.in_use(), 0);
    let kept = kept.lock().expect("nobody panicked");
    assert!(kept.len() == 95 && kept.iter().flatten().all(|&byte| byte == 0xff));
    let sent: usize = kept.iter().map(Vec::len).sum();
    assert_eq!(source.stats().rx_bytes, sent as u64);
    assert_eq!(sink.stats().tx_bytes, sent as u64);
    assert_eq!(source.stats().rx_packets, 95);
}

#[test]
fn a_short_pool_delays_frames_and_loses_none() {
    let templates = [frame(9216, 0), frame(64, 1), frame(5000, 2)];
    let mut pool = pool(6);
    let mut source = MemoryPort::generator("source", Arc::new(FrameSet::new(&templates).expect("frames")));
    let mut vector = vec![Packet::EMPTY; 2];
    let mut seen = 0;
    for _ in 0..100 {
        let got = source.receive(&mut pool, &mut vector).packets;
        for packet in &vector[..got] {
            assert_eq!(PacketBytes::new(packet).to_vec(), templates[seen % 3]);
            seen += 1;
        }
        pool.free_all(&vector[..got]);
        assert_eq!(pool.in_use(), 0);
    }
    assert!(seen >= 100, "{seen}");
    assert_eq!(source.stats().rx_packets, seen as u64);
}

#[test]
fn packet_types_come_from_the_destination() {
    let frames = [[0xff; 64], [0x01; 64], [0x02; 64]];
    let mut source = MemoryPort::generator("source", Arc::new(FrameSet::new(frames).expect("frames")));
    let mut vector = vec![Packet::EMPTY; 3];
    assert_eq!(source.receive(&mut pool(8), &mut vector).packets, 3);
    let types: Vec<u8> = vector.iter().map(|packet| packet.packet_type).collect();
    assert_eq!(types, [PacketType::Broadcast, PacketType::Multicast, PacketType::Host].map(|t| t as u8));
}

#[test]
fn impossible_sets_are_refused() {
    assert!(matches!(FrameSet::new([vec![0; 70_000]]), Err(PortError::FrameTooLong { index: 0, .. })));
    assert!(matches!(FrameSet::new::<Vec<u8>>([]), Err(PortError::NoFrames)));
    let frames = FrameSet::new([[0; 64]]).expect("a frame");
    let mut pool = pool(8);
    assert!(matches!(restore_cost(&frames, &mut pool, 9, 1), Err(PortError::NoSlots { wanted: 9 })));
    assert!(restore_cost(&frames, &mut pool, 8, 10).is_ok());
    assert_eq!(pool.in_use(), 0);
}
