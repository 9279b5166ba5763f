//! Elements that move the ends of packets and look at their length; and timestamps.

use super::{dropped, mistakes};
use crate::testing::{Rig, TestPacket, differential};
use packet::anno;

fn counting(len: usize) -> TestPacket {
    TestPacket::frame(&(0..len).map(|at| at as u8).collect::<Vec<u8>>())
}

#[test]
fn strip_takes_bytes_off_the_front() {
    let mut rig = Rig::new("Strip", "14", 1, 1);
    let out = rig.push_one(0, &counting(20)).packet;
    assert_eq!((out.bytes, out.mac), ((14..20).collect(), Some(-14)));
    assert!(rig.push_one(0, &counting(14)).packet.bytes.is_empty());
    assert!(rig.push_one(0, &counting(9)).packet.bytes.is_empty());
    assert_eq!(rig.push_one(0, &counting(3000)).packet.bytes.len(), 2986);
    assert_eq!(mistakes("Strip", "", 1, 1).len(), 1);
    assert_eq!(mistakes("Strip", "65536, 3", 1, 1).len(), 2);
    for config in ["0", "14", "2000"] {
        differential("Strip", config, 1, 1);
    }
}

#[test]
fn unstrip_puts_bytes_before_the_front() {
    for (config, len) in [("14", 14), ("128", 128), ("129", 129), ("1000", 1000)] {
        let mut rig = Rig::new("Unstrip", config, 1, 1);
        let out = rig.push_one(0, &counting(60)).packet;
        assert_eq!(&out.bytes[len..], counting(60).bytes);
        assert_eq!(out.mac, Some(len as i32));
    }
    let mut rig = Rig::new("Unstrip", "2000", 1, 1);
    assert_eq!(rig.push_one(0, &counting(300)).exit, dropped("no-headroom"));
    assert_eq!(mistakes("Unstrip", "2241", 1, 1).len(), 1);
    differential("Unstrip", "0", 1, 1);
}

#[test]
fn strip_to_network_header_moves_the_front_there() {
    let mut rig = Rig::new("StripToNetworkHeader", "", 1, 1);
    let placed = |net| TestPacket { net, ..counting(60) };
    assert_eq!(rig.push_one(0, &placed(Some(14))).packet.bytes, (14..60).collect::<Vec<u8>>());
    assert_eq!(rig.push_one(0, &placed(Some(0))).packet.bytes.len(), 60);
    let back = rig.push_one(0, &placed(Some(-4))).packet;
    assert_eq!((back.bytes.len(), back.net), (64, Some(0)));
    assert_eq!(rig.push_one(0, &placed(None)).exit, dropped("no-network-header"));
    differential("StripToNetworkHeader", "", 1, 1);
}

#[test]
fn truncate_cuts_long_packets() {
    let mut rig = Rig::new("Truncate", "50", 1, 1);
    for len in [0, 49, 50, 51, 2200, 5000] {
        let out = rig.push_one(0, &counting(len).with_anno(anno::EXTRA_LENGTH, 1)).packet;
        assert_eq!(out.bytes, counting(len.min(50)).bytes, "{len}");
        assert_eq!(out.anno(anno::EXTRA_LENGTH), 1 + len.saturating_sub(50) as u64);
    }
    let mut rig = Rig::new("Truncate", "2500, EXTRA_LENGTH false", 1, 1);
    let out = rig.push_one(0, &counting(5000)).packet;
    assert_eq!((&out.bytes, out.anno(anno::EXTRA_LENGTH)), (&counting(2500).bytes, 0));
    assert_eq!(mistakes("Truncate", "65536", 1, 1).len(), 1);
    for config in ["60", "0", "30, EXTRA_LENGTH false"] {
        differential("Truncate", config, 1, 1);
    }
}
