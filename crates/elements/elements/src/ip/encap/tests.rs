//! Packets without headroom: the harness has none, so the slow path is called here.

use super::*;
use element::testing::ip::{assert_checksums, assert_ip_checksum};
use shm::bytes::PacketBytes;
use shm::descriptor::BUF_BYTES;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{Pool, SharedPool};

fn encap(udp: Option<UdpPart>, dst: Destination) -> Encap {
    let protocol = if udp.is_some() { UDP_PROTOCOL } else { 4 };
    let flags = DONT_FRAGMENT;
    Encap { class: "IPEncap", protocol, tos: 7, ttl: 9, flags, src: 0x0100_0001, dst, udp, id: 41 }
}

#[test]
fn packets_without_headroom_are_moved() {
    let shared = SharedPool::new(PacketRegion::create(RegionOptions::slots(64)).unwrap());
    let mut pool = shm::pool::PacketPool::Native(shared.worker());
    let udp = |checksum| Some(UdpPart { ports: [1, 2], checksum });
    let to = Destination::Address(0x0200_0002);
    for (udp, dst, address) in [
        (None, to, [2, 0, 0, 2]),
        (None, Destination::Annotation, [9, 8, 7, 6]),
        (udp(true), to, [2, 0, 0, 2]),
        (udp(false), Destination::Annotation, [9, 8, 7, 6]),
    ] {
        let mut packet = shm::chain::write_frame(&mut pool, &[5; 100]).unwrap();
        assert!(packet.push(128), "all headroom is used");
        let at = usize::from(anno::DST_IP.offset);
        packet.anno[at..at + 4].copy_from_slice(&0x0908_0706u32.to_ne_bytes());
        let before = PacketBytes::new(&packet).to_vec();
        let mut encap = encap(udp, dst);
        assert_eq!(encap.encapsulate(&mut packet), Ok(()));
        let after = PacketBytes::new(&packet).to_vec();
        let headers = encap.header_bytes();
        assert_eq!(after[headers..], before);
        assert_eq!(
            (after[..2].to_vec(), after[4..10].to_vec()),
            (vec![0x45, 7], vec![0, 42, 0x40, 0, 9, encap.protocol])
        );
        assert_eq!((&after[12..16], &after[16..20]), (&[1, 0, 0, 1][..], &address[..]));
        assert_eq!((packet.net, packet.trans), (packet.data(), packet.data() + 20));
        if udp.is_some_and(|udp| udp.checksum) {
            assert_checksums(&after)
        } else {
            assert_ip_checksum(&after)
        }
        pool.free_all(&[packet]);
    }
    let mut full = shm::chain::write_frame(&mut pool, &[5; 100]).unwrap();
    assert!(full.push(128) && full.put(BUF_BYTES - 228), "the slot is full");
    assert_eq!(encap(None, to).encapsulate(&mut full), Err(NO_ROOM));
    pool.free_all(&[full]);
}
