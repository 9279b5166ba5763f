//! Flows stay where they are, and both directions of one meet.

use super::buckets::{BUCKETS, Buckets};
use super::instances::Instances;
use crate::testing::{Exit, Rig, TestPacket};
use etherparse::PacketBuilder;
use packet::anno;
use proptest::prelude::*;
use std::sync::Arc;

fn places(buckets: &Buckets) -> Vec<usize> {
    (0..BUCKETS).map(|bucket| buckets.of_number(bucket)).collect()
}

/// Instances of a mask.
fn list(up: u64) -> Vec<usize> {
    (0..64).filter(|instance| up >> instance & 1 == 1).collect()
}

proptest! {
    #[test]
    fn only_what_has_to_move_moves(count in 2..=64usize, masks in prop::collection::vec(any::<u64>(), 1..6)) {
        let mut buckets = Buckets::new(count);
        let home = places(&buckets);
        let all = if count == 64 { !0 } else { (1 << count) - 1 };
        let mut before = all;
        for up in masks.into_iter().map(|mask| mask & all).filter(|up| *up != 0) {
            let old = places(&buckets);
            let moved = buckets.set_up(up);
            let new = places(&buckets);
            prop_assert_eq!(moved, old.iter().zip(&new).filter(|(old, new)| old != new).count());
            for ((old, new), home) in old.iter().zip(&new).zip(&home) {
                prop_assert!(up >> new & 1 == 1, "nothing goes to one that is down");
                prop_assert!(up >> home & 1 == 0 || new == home, "who is back has what was its own");
                // One that stays gives a bucket only to one that came.
                let stays = up >> old & 1 == 1;
                prop_assert!(!stays || old == new || before >> new & 1 == 0, "{} to {}", old, new);
            }
            // The same whatever was before: both directions, and all workers, come to one result.
            let mut other = Buckets::new(count);
            other.set_up(up);
            prop_assert_eq!(places(&other), new);
            before = up;
        }
        buckets.set_up(0);
        prop_assert_eq!(&places(&buckets), &home, "nobody is left to move to");
        buckets.set_up(all);
        prop_assert_eq!(places(&buckets), home);
    }
}

#[test]
fn buckets_are_spread_evenly_with_all_there_and_with_some_gone() {
    for count in [2, 3, 5, 16, 64] {
        let mut buckets = Buckets::new(count);
        let share = BUCKETS / count;
        assert!((0..count).all(|instance| buckets.count(instance).abs_diff(share) <= 1), "{count}");
        let gone = count / 2;
        let up = !(1u64 << gone);
        assert_eq!(buckets.set_up(up), (BUCKETS + count - 1 - gone) / count, "what {gone} of {count} had");
        // What it had is shared, too: nobody gets more than half as much again as its part of it.
        let each = share.div_ceil(count - 1);
        for instance in list(up).into_iter().filter(|instance| *instance < count) {
            let gained = buckets.count(instance).saturating_sub(share);
            assert!(gained <= each + each / 2 + 8, "{instance} of {count} gained {gained}, not {each}");
        }
    }
}

type End = ([u8; 4], u16);

fn udp(from: End, to: End) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut frame = vec![];
    builder.ipv4(from.0, to.0, 64).udp(from.1, to.1).write(&mut frame, b"payload").expect("a frame");
    frame
}

/// Flows from hosts inside to hosts outside.
fn flows() -> Vec<(End, End)> {
    (0..500u16)
        .map(|n| (([10, 0, (n % 7) as u8, n as u8], 1000 + n), ([192, 0, 2, (n / 3) as u8], 53)))
        .collect()
}

/// Port unreachable, about a packet.
fn unreachable(from: [u8; 4], about: &[u8]) -> Vec<u8> {
    let to = [about[26], about[27], about[28], about[29]];
    let kind =
        etherparse::Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port);
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    let mut frame = vec![];
    builder.ipv4(from, to, 64).icmpv4(kind).write(&mut frame, &about[14..14 + 28]).expect("a frame");
    frame
}

/// For three instances and two interfaces, with what instances tell.
fn rig(policies: &str) -> (Rig, Arc<Instances>) {
    let instances = Arc::new(Instances::default());
    let config = format!("fw, 3, {policies}");
    let made = Rig::with_state("Steer", &config, (4, 6), &Instances::key("fw"), &instances);
    (made.unwrap_or_else(|mistakes| panic!("{mistakes}")), instances)
}

/// The instance of each frame that comes in by an input; all leave by the interface that they came by.
fn instances_of(rig: &mut Rig, input: usize, frames: &[Vec<u8>]) -> Vec<usize> {
    let packets: Vec<TestPacket> = frames.iter().map(|frame| TestPacket::frame(frame)).collect();
    let out = rig.push(input, &packets);
    let instance = |exit: &Exit| match exit {
        Exit::Port(port) if port / 3 == input % 2 => port % 3,
        other => panic!("{other:?}"),
    };
    out.iter().map(|out| instance(&out.exit)).collect()
}

#[test]
fn both_directions_of_a_flow_and_errors_about_it_meet() {
    let (mut rig, _) = rig("flow, flow");
    let forth: Vec<Vec<u8>> = flows().iter().map(|(from, to)| udp(*from, *to)).collect();
    let back: Vec<Vec<u8>> = flows().iter().map(|(from, to)| udp(*to, *from)).collect();
    let chosen = instances_of(&mut rig, 0, &forth);
    assert_eq!(instances_of(&mut rig, 1, &back), chosen);
    let errors: Vec<Vec<u8>> = forth.iter().map(|frame| unreachable([192, 0, 2, 250], frame)).collect();
    assert_eq!(instances_of(&mut rig, 1, &errors), chosen, "who has the flow hears of it");
    for instance in 0..3 {
        let share = chosen.iter().filter(|other| **other == instance).count();
        assert!((110..230).contains(&share), "{instance} has {share} of 500");
    }
    let total: u64 =
        rig.read("packets").lines().map(|line| line.split_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(total, 1500);
}

#[test]
fn flows_of_one_that_is_gone_move_and_come_back() {
    let (mut rig, instances) = rig("flow, flow");
    let frames: Vec<Vec<u8>> = flows().iter().map(|(from, to)| udp(*from, *to)).collect();
    let before = instances_of(&mut rig, 0, &frames);
    instances.set_up(1, false);
    // Also of packets that it gave back.
    let without = instances_of(&mut rig, 2, &frames);
    for (old, new) in before.iter().zip(&without) {
        assert!(if *old == 1 { *new != 1 } else { old == new }, "{old} to {new}");
    }
    assert!(before.contains(&1) && rig.read("buckets").contains("fw.2 0\n"));
    assert_eq!(rig.read("moves"), "1365");
    instances.set_up(1, true);
    assert_eq!(instances_of(&mut rig, 0, &frames), before);
    assert_eq!(rig.read("moves"), "2730");
    // Nobody is there: each goes where it belongs, and what becomes of it there is said there.
    (0..3).for_each(|instance| instances.set_up(instance, false));
    assert_eq!(instances_of(&mut rig, 0, &frames), before);
}

#[test]
fn what_stays_does_not_move() {
    let (mut rig, instances) = rig("flow, flow, STAY true");
    let frames: Vec<Vec<u8>> = flows().iter().map(|(from, to)| udp(*from, *to)).collect();
    let before = instances_of(&mut rig, 0, &frames);
    instances.set_up(1, false);
    assert_eq!(instances_of(&mut rig, 0, &frames), before);
}

#[test]
fn a_host_has_one_instance_by_its_address_on_either_side() {
    let (mut rig, _) = rig("source, destination");
    let forth: Vec<Vec<u8>> = flows().iter().map(|(from, to)| udp(*from, *to)).collect();
    let others: Vec<Vec<u8>> =
        flows().iter().map(|(from, _)| udp(([198, 51, 100, 9], 80), (from.0, 4000))).collect();
    let chosen = instances_of(&mut rig, 0, &forth);
    assert_eq!(instances_of(&mut rig, 1, &others), chosen, "whatever it talks to");
    assert!((0..3).all(|instance| chosen.contains(&instance)));
}

#[test]
fn interfaces_and_paint_name_instances() {
    let (mut rig, instances) = rig("interface, interface");
    let frames: Vec<Vec<u8>> = flows().iter().take(10).map(|(from, to)| udp(*from, *to)).collect();
    assert_eq!(instances_of(&mut rig, 0, &frames), [0; 10]);
    assert_eq!(instances_of(&mut rig, 1, &frames), [1; 10]);
    instances.set_up(1, false);
    assert!(instances_of(&mut rig, 1, &frames).iter().all(|instance| *instance != 1));
    let (mut rig, _) = self::rig("paint, flow");
    let painted: Vec<TestPacket> =
        (0..6).map(|paint| TestPacket::frame(&frames[0]).with_anno(anno::PAINT, paint)).collect();
    let out: Vec<Exit> = rig.push(0, &painted).into_iter().map(|out| out.exit).collect();
    assert_eq!(out, [0, 1, 2, 0, 1, 2].map(Exit::Port));
}

#[test]
fn a_burst_goes_to_who_has_the_fewest() {
    let (mut rig, instances) = rig("least-filled, least-filled");
    let frames: Vec<Vec<u8>> = flows().iter().take(10).map(|(from, to)| udp(*from, *to)).collect();
    // All alike: in turn.
    for instance in [0, 1, 2, 0] {
        assert_eq!(instances_of(&mut rig, 0, &frames), [instance; 10]);
    }
    for (instance, fill) in [(0, 70), (1, 300), (2, 71)] {
        instances.set_fill(instance, fill);
    }
    assert_eq!(instances_of(&mut rig, 1, &frames), [0; 10]);
    instances.set_up(0, false);
    assert_eq!(instances_of(&mut rig, 1, &frames), [2; 10]);
}

#[test]
fn frames_of_any_kind_go_somewhere() {
    for policy in ["flow", "source", "destination", "paint", "interface", "least-filled"] {
        let (mut rig, _) = rig(&format!("{policy}, {policy}"));
        let mut frames = crate::testing::random_frames(7, 300);
        frames.extend((0..60).map(|len| vec![0x45; len]));
        for frames in frames.chunks(100) {
            let chosen = instances_of(&mut rig, 0, frames);
            assert!(
                policy == "least-filled" || instances_of(&mut rig, 0, frames) == chosen,
                "{policy}: always the same"
            );
        }
    }
}

#[test]
fn wrong_configurations() {
    let mistakes = |config: &str| Rig::try_new("Steer", config, 1, 2).map(|_| ()).expect_err(config);
    assert!(mistakes("fw, 2, flwo").contains("did you mean `flow`"));
    assert!(mistakes("fw, 1, flow").contains("2 to 64 instances"));
    assert!(mistakes("fw, 2, flow, flow, flow").contains("do not fit"));
}
