//! Packets to an NF and back.

use crate::host::{CLAIMS, Given, Host, QUOTA};
use nf::{Access, Options};
use shm::channel::Completion;

fn options() -> Options {
    Options::new("test").reasons(&["one", "two"]).counters(&["a", "b"]).makes_packets()
}

fn completions(given: &[Given]) -> Vec<(u32, Completion)> {
    given.iter().map(|given| (given.number, given.completion)).collect()
}

#[test]
fn each_packet_goes_back_once_with_what_was_said_of_it() {
    let (mut host, mut link) = Host::start(options(), &["lan", "wan"]);
    assert_eq!(host.enqueue(0..6, 1), 6);
    let mut packets = vec![];
    assert_eq!(link.receive(&mut packets), 6);
    assert!(packets.iter().enumerate().all(|(at, packet)| {
        (packet.u32(0), packet.len(), packet.interface()) == (Some(at as u32), 64, 1)
    }));
    assert_eq!(host.take_back(), [], "nothing was given");
    let mut rest = packets.into_iter();
    let mut next = || rest.next().expect("six");
    link.send(next(), 1);
    link.pass(next());
    link.drop_for(next(), 2);
    link.drop_for(next(), 99); // A reason that it did not name.
    link.send(next(), 7);
    drop(next());
    drop(rest);
    link.flush();
    let expected = [
        (0, Completion::Output(1)),
        (1, Completion::Output(0)),
        (2, Completion::Dropped(2)),
        (3, Completion::Dropped(0)),
        (4, Completion::Output(7)),
        (5, Completion::Dropped(0)),
    ];
    assert_eq!(completions(&host.take_back()), expected);
    host.assert_settled();
}

#[test]
fn across_is_the_other_interface_where_there_is_one() {
    for (interfaces, from, expected) in [
        (&["a"][..], 0, (0, Completion::Output(0))),
        (&["a", "b"], 0, (0, Completion::Output(1))),
        (&["a", "b", "c"], 0, (0, Completion::Dropped(0))),
    ] {
        let (mut host, mut link) = Host::start(options(), interfaces);
        host.enqueue([0], from);
        let mut packets = vec![];
        link.receive(&mut packets);
        packets.drain(..).for_each(|packet| link.pass(packet));
        link.flush();
        assert_eq!(completions(&host.take_back()), [expected], "{interfaces:?}");
    }
}

#[test]
fn packets_grow_and_shrink_within_their_slot() {
    let (mut host, mut link) = Host::start(options(), &["0"]);
    host.enqueue([7], 0);
    let mut packets = vec![];
    link.receive(&mut packets);
    let mut packet = packets.pop().expect("one");
    let (headroom, tailroom) = (packet.headroom(), packet.tailroom());
    assert!(headroom >= 128 && tailroom > 1000, "{headroom} {tailroom}");
    assert!(packet.push(&[1, 2, 3]) && packet.append(&[4; 10]));
    assert_eq!((packet.len(), packet.headroom(), packet.tailroom()), (77, headroom - 3, tailroom - 10));
    assert!(!packet.push(&[0; 4096]) && !packet.append(&[0; 4096]) && !packet.pull(78) && packet.len() == 77);
    assert!(packet.pull(3) && packet.u32(0) == Some(7));
    packet.truncate(100);
    packet.truncate(8);
    let mut bytes = vec![9];
    packet.copy_to(&mut bytes);
    assert_eq!(bytes, [9, 0, 0, 0, 7, 0xaa, 0xaa, 0xaa, 0xaa]);
    assert!(!packet.put_u32(5, 1) && packet.fill(&[0, 0, 0, 8]) && !packet.fill(&[0; 4096]));
    link.send(packet, 0);
    link.flush();
    let given = host.take_back();
    assert_eq!((given[0].number, given[0].len), (8, 4));
    host.assert_settled();
}

#[test]
fn what_is_held_is_kept_beside_what_is_in_work() {
    let (mut host, mut link) = Host::start(options(), &["0"]);
    let mut held = vec![];
    let mut packets = vec![];
    // Twice the quota of packets, because held packets do not count as packets in work.
    for number in 0..2 * QUOTA as u32 {
        let received = host.enqueue([number], 0);
        link.receive(&mut packets);
        held.extend(packets.drain(..).map(|packet| link.hold(packet)));
        link.flush();
        assert_eq!(host.take_back(), []);
        assert_eq!(link.can_hold(), u64::from(number) + 1 < QUOTA);
        if received == 0 {
            break;
        }
    }
    assert_eq!(held.len() as u64, 2 * QUOTA);
    assert_eq!((host.enqueue([0], 0), host.stats().holding), (0, QUOTA));
    // A packet that is released and held again counts as held once.
    let again = link.release(held.remove(0));
    held.insert(0, link.hold(again));
    for held in held.drain(..150) {
        let packet = link.release(held);
        link.send(packet, 0);
        link.flush();
        host.take_back();
    }
    drop(held);
    link.close();
    host.take_back();
    host.assert_settled();
}

#[test]
fn granted_slots_are_for_packets_that_are_made() {
    let (mut host, mut link) = Host::start(options(), &["0"]);
    assert!(link.make().is_none());
    assert_eq!(host.grant(3), 3);
    let made = link.make_from(&[0, 0, 0, 1]).expect("a slot");
    assert!(link.make_from(&[0; 4096]).is_none(), "it does not fit");
    drop(link.make().expect("a slot that was not used comes again"));
    let held = link.make_from(&[0, 0, 0, 2]).expect("a slot");
    let held = link.hold(held);
    link.send(made, 0);
    link.flush();
    let given = host.take_back();
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].completion, Completion::Made(0));
    let released = link.release(held);
    link.send(released, 0);
    // An unused granted slot and an unused packet of the host are returned at the end.
    host.enqueue([5], 0);
    drop(link);
    let given = host.take_back();
    assert_eq!(
        completions(&given),
        [(2, Completion::Made(0)), (5, Completion::Dropped(0)), (given[2].number, Completion::Unused)]
    );
    host.assert_settled();
}

#[test]
fn a_full_ring_is_waited_for() {
    let (mut host, mut link) = Host::start(options(), &["0"]);
    let mut sent = 0;
    for granted in [CLAIMS, 20] {
        assert_eq!(host.grant(granted as usize), granted as usize);
        while let Some(packet) = link.make_from(&u32::to_be_bytes(sent)) {
            link.send(packet, 0);
            sent += 1;
        }
    }
    assert_eq!(sent, CLAIMS + 20, "more than the ring holds");
    host.enqueue([1000], 0);
    let mut packets = vec![];
    assert_eq!(link.receive(&mut packets), 0, "what does not go out must not come in");
    let mut numbers = vec![];
    for _ in 0..3 {
        numbers.extend(host.take_back().iter().map(|given| given.number));
        link.flush();
    }
    assert_eq!(numbers, (0..sent).collect::<Vec<_>>());
    assert_eq!(link.receive(&mut packets), 1);
    drop((packets, link));
    host.take_back();
    host.assert_settled();
}

#[test]
fn counters_are_read_by_the_host() {
    let (host, mut link) = Host::start(options(), &["0"]);
    link.count(0, 3);
    link.count(0, 4);
    link.set(1, 9);
    link.count(2, 5);
    link.set(usize::MAX, 5);
    let first = nf::ends::FIRST_COUNTER;
    assert_eq!([0, 1, 2].map(|number| host.page.load(first + number)), [7, 9, 0]);
}

#[test]
fn metadata_travels_with_packets_of_nfs_that_ask() {
    for asks in [true, false] {
        let options = if asks { options().metadata() } else { options() };
        let (mut host, mut link) = Host::start(options, &["0"]);
        host.enqueue([1, 2], 0);
        let mut packets = vec![];
        link.receive(&mut packets);
        let mut packet = packets.remove(0);
        assert_eq!(packet.metadata().network, None);
        let mut annotations = [0; 48];
        annotations[16] = 7;
        let metadata = nf::Metadata {
            network: Some(14),
            transport: Some(34),
            annotations,
            timestamp_ns: 5,
            flow_hash: 6,
        };
        packet.set_metadata(&metadata);
        if !asks {
            assert_eq!(packet.metadata(), nf::Metadata::default());
            link.send(packet, 0);
            link.flush();
            assert_eq!(host.take_back()[0].annotations[16], 0);
            continue;
        }
        assert_eq!(packet.metadata(), metadata);
        assert!(packet.push(&[0; 4]));
        assert_eq!((packet.metadata().network, packet.metadata().transport), (Some(18), Some(38)));
        assert!(packet.pull(20));
        assert_eq!((packet.metadata().network, packet.metadata().transport), (None, Some(18)));
        link.send(packet, 0);
        link.flush();
        assert_eq!(host.take_back()[0].annotations[16], 7);
    }
}

#[test]
fn an_observer_cannot_write() {
    let (mut host, mut link) = Host::observed(options().metadata(), &["0"]);
    assert!(!link.is_writable());
    host.enqueue([7], 0);
    let mut packets = vec![];
    link.receive(&mut packets);
    let mut packet = packets.pop().expect("one");
    assert_eq!((packet.u32(0), packet.len()), (Some(7), 64));
    assert!(!packet.put_u8(0, 1) && !packet.push(&[1]) && !packet.append(&[1]) && !packet.fill(&[1]));
    packet.set_metadata(&nf::Metadata::default());
    assert!(packet.pull(1) && packet.len() == 63);
    link.pass(packet);
    link.close();
    assert_eq!(host.take_back().len(), 1);
}
