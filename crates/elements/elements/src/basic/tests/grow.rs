//! Elements that write bytes into packets and lengthen them.

use super::{dropped, mistakes, packet};
use crate::testing::{Rig, differential};
use packet::anno;

#[test]
fn pad_lengthens_packets_up_to_a_length() {
    let mut rig = Rig::new("Pad", "60", 1, 1);
    for len in [0, 14, 59, 60, 61, 3000] {
        let out = rig.push_one(0, &packet(7, len).with_anno(anno::EXTRA_LENGTH, 9)).packet;
        let mut wanted = vec![7; len];
        wanted.resize(len.max(60), 0);
        assert_eq!((out.bytes, out.mac, out.anno[28]), (wanted, Some(0), 0), "{len}");
    }
    differential("Pad", "64", 1, 1);
}

#[test]
fn pad_restores_the_extra_length() {
    let mut rig = Rig::new("Pad", "", 1, 1);
    // In the slot, in a chain, and from one slot to a chain.
    for (len, more) in [(60, 0), (60, 100), (60, 2300), (5000, 1), (5000, 4000), (60, 65_475)] {
        let out = rig.push_one(0, &packet(7, len).with_anno(anno::EXTRA_LENGTH, more)).packet;
        assert_eq!((out.bytes.len(), out.mac), (len + more as usize, Some(0)));
        assert!(out.bytes[..len].iter().all(|byte| *byte == 7), "{len} {more}");
        assert!(out.bytes[len..].iter().all(|byte| *byte == 0), "{len} {more}");
    }
    for more in [65_476, u64::from(u32::MAX)] {
        let long = packet(7, 60).with_anno(anno::EXTRA_LENGTH, more);
        assert_eq!(rig.push_one(0, &long).exit, dropped("no-room"));
    }
    let mut rig = Rig::new("Pad", "200, MAXLENGTH 100, RANDOM true, VERBOSE true", 1, 1);
    let out = rig.push(0, &[packet(7, 10), packet(7, 10), packet(7, 150)]);
    let lens: Vec<usize> = out.iter().map(|out| out.packet.bytes.len()).collect();
    assert_eq!(lens, [100, 100, 150]);
    assert_ne!(out[0].packet.bytes[10..], out[1].packet.bytes[10..]);
    assert_eq!(mistakes("Pad", "70000, ZERO perhaps, COLOR 1", 1, 1).len(), 3);
    differential("Pad", "", 1, 1);
}

#[test]
fn pad_needs_slots_for_a_chain() {
    let mut rig = Rig::new("Pad", "3000", 1, 1);
    rig.starve(true);
    assert_eq!(rig.push_one(0, &packet(7, 60)).exit, dropped("no-room"));
}

#[test]
fn store_data_writes_what_fits() {
    let written = |config: &str, bytes: &[u8]| {
        let mut rig = Rig::new("StoreData", config, 1, 1);
        rig.push_one(0, &crate::testing::TestPacket::frame(bytes)).packet.bytes
    };
    for (config, before, after) in [
        ("0, B", "AAAA", "BAAA"),
        ("1, CC", "BAAA", "BCCA"),
        ("3, DD", "BCCA", "BCCD"),
        ("3, EE, GROW true", "BCCD", "BCCEE"),
        ("3, F, GROW false", "BCCEE", "BCCFE"),
        ("20, G, GROW true", "BCCFE", "BCCFE"),
        ("4, G, GROW true", "BCCF", "BCCF"),
    ] {
        assert_eq!(written(config, before.as_bytes()), after.as_bytes(), "{config}");
    }
    assert_eq!(written("1, \\<FF>, MASK \\<02>", &[0, 0xf1, 0]), [0, 0xf3, 0]);
    assert_eq!(written("0, \\<FF FF FF>, \\<01 01>", &[0, 0xf3, 0]), [1, 0xf3, 0xff]);
    assert_eq!(written("2, \\<18 18>, MASK \\<12ff>, GROW true", &[1, 2, 0xff]), [1, 2, 0xfd, 0x18]);
    assert!(mistakes("StoreData", "0, A, MASK BB", 1, 1)[0].contains("MASK has 2 bytes"));
    assert_eq!(mistakes("StoreData", "", 1, 1).len(), 2);
}
