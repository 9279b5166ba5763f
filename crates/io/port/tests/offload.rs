//! Tests of completing partial checksums.

use etherparse::PacketBuilder;
use packet::access::Access;
use port::offload::{Settled, settle, transport_checksum_holds};
use proptest::prelude::*;
use shm::descriptor::flag;
use shm::{
    HugePages, PacketBytes, PacketBytesMut, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool,
    write_frame,
};

fn pool() -> PacketPool {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(16) };
    PacketPool::Native(
        SharedPool::new(PacketRegion::create(options).expect("memory for a small region")).worker(),
    )
}

/// A correct frame, and the offset of its transport checksum.
fn frame(ipv6: bool, tcp: bool, tagged: bool, payload: &[u8]) -> (Vec<u8>, usize) {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let mut out = Vec::new();
    macro_rules! build {
        ($start:expr) => {{
            let ip = if ipv6 {
                $start.ipv6([1; 16], [2; 16], 64)
            } else {
                $start.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            };
            if tcp {
                ip.tcp(1000, 2000, 7, 8).write(&mut out, payload).expect("memory");
            } else {
                ip.udp(1000, 2000).write(&mut out, payload).expect("memory");
            }
        }};
    }
    if tagged {
        build!(ethernet.single_vlan(packet_vlan()))
    } else {
        build!(ethernet)
    };
    let trans = 14 + if tagged { 4 } else { 0 } + if ipv6 { 40 } else { 20 };
    (out, trans + if tcp { 16 } else { 6 })
}

fn packet_vlan() -> etherparse::VlanId {
    etherparse::VlanId::try_new(5).expect("a VLAN number")
}

/// The pseudo header's folded sum, which a sender writes into the field.
fn partial(frame: &[u8], field: usize, ipv6: bool, tcp: bool) -> u16 {
    let trans = field - if tcp { 16 } else { 6 };
    let addresses = if ipv6 { &frame[trans - 32..trans] } else { &frame[trans - 8..trans] };
    let words = addresses.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum::<u32>();
    let sum = words + (frame.len() - trans) as u32 + if tcp { 6 } else { 17 };
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn partial_checksums_are_finished(
        ipv6: bool, tcp: bool, tagged: bool, flagged: bool, padding in 0..8usize,
        payload in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let (whole, field) = frame(ipv6, tcp, tagged, &payload);
        let mut sent = whole.clone();
        sent[field..field + 2].copy_from_slice(&partial(&whole, field, ipv6, tcp).to_be_bytes());
        // The checksum does not cover bytes behind the IP packet.
        sent.extend(vec![0xee; padding]);
        let mut pool = pool();
        let mut packet = write_frame(&mut pool, &sent).expect("slots");
        packet.flags = if flagged { flag::PARTIAL_CHECKSUM } else { 0 };
        prop_assert_eq!(settle(&mut packet, !flagged), Settled::Finished);
        prop_assert_eq!(packet.flags, 0);
        let bytes = PacketBytes::new(&packet).to_vec();
        prop_assert_eq!(&bytes[..whole.len()], &whole[..]);
        prop_assert_eq!(transport_checksum_holds(&packet), Some(true));
        // A second call changes nothing.
        prop_assert_eq!(settle(&mut packet, true), Settled::Whole);
        pool.free_all(&[packet]);
    }

    #[test]
    fn wrong_and_right_checksums_stay_as_they_are(
        ipv6: bool, tcp: bool, check: u16, payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (mut sent, field) = frame(ipv6, tcp, false, &payload);
        prop_assume!(check != partial(&sent, field, ipv6, tcp));
        sent[field..field + 2].copy_from_slice(&check.to_be_bytes());
        let mut pool = pool();
        let mut packet = write_frame(&mut pool, &sent).expect("slots");
        prop_assert_eq!(settle(&mut packet, true), Settled::Whole);
        prop_assert_eq!(PacketBytes::new(&packet).to_vec(), sent);
    }

    #[test]
    fn any_bytes_settle(content in prop::collection::vec(any::<u8>(), 0..200), flags in 0..4u16) {
        let mut pool = pool();
        let mut packet = write_frame(&mut pool, &content).expect("slots");
        packet.flags = flags;
        let _ = settle(&mut packet, true);
    }
}

#[test]
fn frames_that_lost_their_end_are_refused() {
    let (whole, _) = frame(false, true, false, &[7; 1000]);
    let mut pool = pool();
    let mut packet = write_frame(&mut pool, &whole[..500]).expect("slots");
    assert_eq!(settle(&mut packet, true), Settled::CutOff);
    // A port without suspect packets passes on truncated frames of captures.
    assert_eq!(settle(&mut packet, false), Settled::Whole);
    let mut large = write_frame(&mut pool, &whole).expect("slots");
    large.flags = flag::GSO;
    assert_eq!(settle(&mut large, false), Settled::CutOff);
    assert!(PacketBytesMut::new(&mut large).put_u8(40, 1));
    assert_eq!(transport_checksum_holds(&large), Some(false));
}
