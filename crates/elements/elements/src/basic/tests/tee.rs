//! Elements that copy packets.

use super::{mistakes, packet};
use crate::testing::{Exit, Rig, TestPacket};
use element::work::NodeCounter;
use packet::anno;

fn at(out: &[crate::testing::Out], port: usize) -> Vec<TestPacket> {
    out.iter().filter(|out| out.exit == Exit::Port(port)).map(|out| out.packet.clone()).collect()
}

#[test]
fn tee_sends_the_same_to_every_output() {
    let mut rig = Rig::new("Tee", "3", 1, 3);
    let packets = [packet(1, 60).with_anno(anno::PAINT, 4), packet(2, 3000)];
    let out = rig.push(0, &packets);
    for port in 0..3 {
        assert_eq!(at(&out, port), packets);
    }
    assert_eq!(rig.host().node_counters[NodeCounter::Made as usize], 4);
    assert_eq!(rig.read("copy_failures"), "0");
    assert!(mistakes("Tee", "2", 1, 3)[0].contains("3 outputs"));
    let mut rig = Rig::new("Tee", "", 1, 1);
    assert_eq!(rig.push_one(0, &packets[0]).packet, packets[0]);
}

#[test]
fn tee_counts_copies_that_cannot_be_made() {
    let mut rig = Rig::new("Tee", "", 1, 40);
    let packets: Vec<TestPacket> = (0..64).map(|byte| packet(byte, 60)).collect();
    let out = rig.push(0, &packets);
    // 2,048 slots hold the 64 packets and 1,984 of their 2,496 copies.
    assert_eq!(at(&out, 39).len(), 64);
    assert_eq!(out.len(), 2048);
    assert_eq!(rig.read("copy_failures"), "512");
}

#[test]
fn pull_tee_pushes_copies_of_what_is_pulled() {
    let mut rig = Rig::new("PullTee", "", 1, 3);
    let packets = [packet(1, 60), packet(2, 60), packet(3, 60)];
    rig.feed(0, &packets);
    assert_eq!(rig.pull(0, 2), &packets[..2]);
    let beside = rig.advance(0);
    assert_eq!((at(&beside, 1), at(&beside, 2)), (packets[..2].to_vec(), packets[..2].to_vec()));
    assert_eq!(rig.pull(0, 2), &packets[2..]);
}
