//! Ways to send.

use super::*;
use crate::testing::{Out, differential};
use packet::anno;
use shm::descriptor::NO_PORT;
use std::collections::BTreeMap;

#[test]
fn the_port_that_a_packet_came_in_by_says_where_it_goes() {
    let frame = udp([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[]);
    let out = |config: &str, outputs: usize| {
        let mut rig = Rig::new("OriginSwitch", config, 1, outputs);
        // Paint is the NFs' own, and says nothing.
        let came = [7, 4, NO_PORT, 5].map(|origin| from(origin, &frame).with_anno(anno::PAINT, 4));
        rig.push(0, &came).into_iter().map(|out| out.exit).collect::<Vec<Exit>>()
    };
    let other = || dropped("other-origin");
    assert_eq!(out("4, 7", 2), [Exit::Port(1), Exit::Port(0), other(), other()]);
    assert_eq!(out("7, 4, OTHERWISE 2", 3), [Exit::Port(0), Exit::Port(1), Exit::Port(2), Exit::Port(2)]);
    assert_eq!(out("5, OTHERWISE 0", 1), [0; 4].map(Exit::Port));
    assert_eq!(out("", 0), [other(), other(), other(), other()]);
    differential("OriginSwitch", "0, 7, OTHERWISE 1", 1, 2);
}

#[test]
fn wrong_configurations_of_an_origin_switch() {
    assert!(mistakes("OriginSwitch", "1, 1", 2).contains("port 1 is there twice"));
    assert!(mistakes("OriginSwitch", "1, 2", 1).contains("2 ports for 1 outputs"));
    assert!(mistakes("OriginSwitch", "65535", 1).contains("65534"));
    assert!(!mistakes("OriginSwitch", "1, OTHERWISE 1", 1).is_empty());
}

/// The output of each frame.
fn outputs(rig: &mut Rig, frames: &[Vec<u8>]) -> Vec<usize> {
    let packets: Vec<TestPacket> = frames.iter().map(|frame| TestPacket::frame(frame)).collect();
    let port = |out: Out| if let Exit::Port(port) = out.exit { port } else { panic!("{out:?}") };
    rig.push(0, &packets).into_iter().map(port).collect()
}

/// Addresses and ports.
type Flow = ([u8; 4], [u8; 4], (u16, u16));

#[test]
fn a_flow_keeps_its_output_and_both_directions_share_one_where_that_is_asked_for() {
    let flows: Vec<Flow> =
        (0..200u16).map(|n| ([10, 0, 0, n as u8], [192, 168, n as u8, 7], (1000 + n, 80))).collect();
    let forth: Vec<Vec<u8>> = flows.iter().map(|(src, dst, ports)| udp(*src, *dst, *ports, &[])).collect();
    let again: Vec<Vec<u8>> =
        flows.iter().map(|(src, dst, ports)| udp(*src, *dst, *ports, &[9; 30])).collect();
    let back: Vec<Vec<u8>> =
        flows.iter().map(|(src, dst, ports)| udp(*dst, *src, (ports.1, ports.0), &[])).collect();
    for (config, symmetric) in [("", false), ("SYMMETRIC true", true)] {
        let mut rig = Rig::new("FlowSwitch", config, 1, 3);
        let chosen = outputs(&mut rig, &forth);
        assert_eq!(outputs(&mut rig, &again), chosen, "what a packet carries is not its flow");
        let same = outputs(&mut rig, &back).iter().zip(&chosen).filter(|(back, forth)| back == forth).count();
        assert!(if symmetric { same == flows.len() } else { (20..120).contains(&same) }, "{same} alike");
        let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
        chosen.iter().for_each(|output| *uses.entry(*output).or_default() += 1);
        assert!(uses.len() == 3 && uses.values().all(|count| *count > 35), "{uses:?}");
    }
}

/// The 4-tuple of an IPv6 flow behind a VLAN tag, fragments, and frames that are not IP at all.
#[test]
fn what_is_not_plain_ipv4_has_flows_too() {
    let mut rig = Rig::new("FlowSwitch", "SYMMETRIC true", 1, 64);
    let six = |src: u8, dst: u8, ports: (u16, u16)| {
        let mut bytes = vec![];
        let builder =
            PacketBuilder::ethernet2(A, B).single_vlan(etherparse::VlanId::try_new(5).expect("an id"));
        let builder = builder.ipv6([src; 16], [dst; 16], 64).udp(ports.0, ports.1);
        builder.write(&mut bytes, &[]).expect("a frame");
        bytes
    };
    let chosen = outputs(&mut rig, &[six(1, 2, (10, 20)), six(2, 1, (20, 10)), six(1, 2, (10, 21))]);
    assert!(chosen[0] == chosen[1] && chosen[0] != chosen[2], "{chosen:?}");
    // A later fragment has no ports, and goes where the first one goes.
    let whole = udp([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[0; 16]);
    let fragment = |offset: [u8; 2], noise: u8| {
        let mut frame = whole.clone();
        frame[20..22].copy_from_slice(&offset);
        frame[34..38].fill(noise);
        frame
    };
    let chosen = outputs(&mut rig, &[fragment([0x20, 0], 1), fragment([0, 2], 9)]);
    assert_eq!(chosen[0], chosen[1]);
    let arp = |to: u8, from: u8| [&[to; 6][..], &[from; 6], &[8, 6], &[0; 28]].concat();
    let chosen = outputs(&mut rig, &[arp(1, 2), arp(2, 1), arp(1, 3), vec![], vec![1; 7]]);
    assert!(chosen[0] == chosen[1] && chosen[0] != chosen[2], "{chosen:?}");
    let mut one_way = Rig::new("FlowSwitch", "", 1, 64);
    let chosen = outputs(&mut one_way, &[arp(1, 2), arp(2, 1)]);
    assert_ne!(chosen[0], chosen[1]);
}
