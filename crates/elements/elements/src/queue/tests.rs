use crate::testing::{Exit, Out, Rig, TestPacket, dropped};
use element::element::Progress;
use element::work::NodeCounter;

/// Packets numbered by their bytes.
fn packets(numbers: std::ops::Range<u8>) -> Vec<TestPacket> {
    numbers.map(|number| TestPacket::frame(&[number; 60])).collect()
}

fn numbers<'a>(packets: impl IntoIterator<Item = &'a TestPacket>) -> Vec<u8> {
    packets.into_iter().map(|packet| packet.bytes[0]).collect()
}

fn numbers_at(out: &[Out], exit: &Exit) -> Vec<u8> {
    numbers(out.iter().filter(|out| out.exit == *exit).map(|out| &out.packet))
}

#[test]
fn queues_keep_order_and_drop_what_does_not_fit() {
    for class in ["Queue", "SimpleQueue", "NotifierQueue", "FullNoteQueue", "ThreadSafeQueue"] {
        let mut rig = Rig::new(class, "5", 1, 1);
        let out = rig.push(0, &packets(0..7));
        assert_eq!(numbers_at(&out, &dropped("queue-full")), [5, 6], "{class}");
        assert_eq!((rig.read("length").as_str(), rig.read("drops").as_str()), ("5", "2"));
        assert_eq!(numbers(&rig.pull(0, 2)), [0, 1]);
        rig.push(0, &packets(7..9));
        assert_eq!(numbers(&rig.pull(0, 100)), [2, 3, 4, 7, 8]);
        assert_eq!((rig.read("length").as_str(), rig.read("highwater_length").as_str()), ("0", "5"));
        rig.write("reset_counts", "").unwrap();
        assert_eq!((rig.read("drops").as_str(), rig.read("highwater_length").as_str()), ("0", "0"));
        assert!(rig.pull(0, 1).is_empty());
        let counters = rig.host().node_counters;
        assert_eq!((counters[NodeCounter::Held as usize], counters[NodeCounter::Released as usize]), (7, 7));
    }
}

#[test]
fn a_queue_with_two_outputs_pushes_what_does_not_fit() {
    let mut rig = Rig::new("Queue", "2", 1, 2);
    assert_eq!(numbers_at(&rig.push(0, &packets(0..4)), &Exit::Port(1)), [2, 3]);
    let mut rig = Rig::new("FrontDropQueue", "2", 1, 2);
    assert_eq!(numbers_at(&rig.push(0, &packets(0..4)), &Exit::Port(1)), [0, 1]);
    assert_eq!(numbers(&rig.pull(0, 9)), [2, 3]);
}

#[test]
fn front_drop_queue_keeps_the_newest() {
    let mut rig = Rig::new("FrontDropQueue", "3", 1, 1);
    let out = rig.push(0, &packets(0..5));
    assert_eq!(numbers_at(&out, &dropped("queue-full")), [0, 1]);
    assert_eq!((numbers(&rig.pull(0, 9)), rig.read("drops").as_str()), (vec![2, 3, 4], "2"));
    let mut rig = Rig::new("FrontDropQueue", "0", 1, 1);
    assert_eq!(rig.push_one(0, &packets(0..1)[0]).exit, dropped("queue-full"));
}

#[test]
fn capacity_changes_while_packets_wait() {
    for (class, kept, lost) in [("Queue", [0, 1], vec![2, 3]), ("FrontDropQueue", [2, 3], vec![0, 1])] {
        let mut rig = Rig::new(class, "4", 1, 1);
        rig.push(0, &packets(0..4));
        rig.write("capacity", "2").unwrap();
        assert_eq!((rig.read("capacity").as_str(), rig.read("length").as_str()), ("2", "2"));
        assert_eq!(numbers(&rig.pull(0, 9)), kept, "{class}");
        let mut gone = numbers_at(&rig.advance(0), &dropped("queue-reset"));
        gone.sort_unstable();
        assert_eq!(gone, lost, "{class}");
        rig.write("capacity", "3").unwrap();
        assert_eq!(rig.push(0, &packets(0..4)).len(), 1);
        assert!(rig.write("capacity", "-1").is_err());
    }
}

#[test]
fn reset_drops_what_waits_and_the_end_drops_the_rest() {
    let mut rig = Rig::new("Queue", "", 1, 1);
    rig.push(0, &packets(0..3));
    rig.write("reset", "").unwrap();
    assert_eq!(rig.read("length"), "0");
    let out = rig.push(0, &packets(3..4));
    assert_eq!(numbers_at(&out, &dropped("queue-reset")), [0, 1, 2]);
    assert_eq!(rig.read("capacity"), "1000");
    assert_eq!(rig.read("length"), "1");
    // Dropping the rig checks that the packet that is left returns to the pool.
}

#[test]
fn queues_refuse_bad_capacities() {
    let mistakes = Rig::try_new("Queue", "-1, 2", 1, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 2, "{mistakes}");
}

#[test]
fn unqueue_moves_bursts_up_to_its_limit() {
    let mut rig = Rig::new("Unqueue", "2, LIMIT 5", 1, 1);
    rig.feed(0, &packets(0..9));
    let mut moved = vec![];
    for wanted in [Progress::Worked, Progress::Worked, Progress::Worked, Progress::Idle] {
        let (progress, out) = rig.task();
        assert_eq!(progress, wanted);
        moved.extend(numbers_at(&out, &Exit::Port(0)));
    }
    assert_eq!((moved, rig.read("count").as_str()), (vec![0, 1, 2, 3, 4], "5"));
    rig.write("active", "false").unwrap();
    rig.write("limit", "-1").unwrap();
    rig.write("burst", "-1").unwrap();
    assert_eq!(rig.task().0, Progress::Idle);
    rig.write("active", "true").unwrap();
    assert_eq!(numbers_at(&rig.task().1, &Exit::Port(0)), [5, 6, 7, 8]);
    rig.write("reset", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    assert_eq!([rig.read("active"), rig.read("burst"), rig.read("limit")], ["true", "-1", "-1"]);
    assert!(rig.write("burst", "many").is_err());
    let mut rig = Rig::new("Unqueue", "", 1, 1);
    rig.feed(0, &packets(0..40));
    assert_eq!(rig.task().1.len(), 32);
    let mut rig = Rig::new("Unqueue", "0", 1, 1);
    rig.feed(0, &packets(0..1));
    assert_eq!(rig.task().0, Progress::Idle);
}

#[test]
fn a_mixed_queue_puts_packets_of_its_second_input_in_front() {
    let numbers =
        |packets: Vec<TestPacket>| packets.iter().map(|packet| packet.bytes[0]).collect::<Vec<u8>>();
    let packet = |number: u8| TestPacket::frame(&[number; 60]);
    let mut rig = Rig::new("MixedQueue", "3", 2, 2);
    assert!(rig.push(0, &[packet(0), packet(1)]).is_empty());
    assert!(rig.push(1, &[packet(10)]).is_empty());
    // Full: input 0 drops what comes, input 1 what would come out last.
    let out = rig.push(0, &[packet(2)]);
    assert_eq!((out[0].exit.clone(), out[0].packet.bytes[0]), (Exit::Port(1), 2));
    let out = rig.push(1, &[packet(11)]);
    assert_eq!((out[0].exit.clone(), out[0].packet.bytes[0]), (Exit::Port(1), 1));
    assert_eq!((rig.read("drops"), rig.read("length")), ("2".into(), "3".into()));
    assert_eq!(numbers(rig.pull(0, 8)), [11, 10, 0]);
    let mut rig = Rig::new("MixedQueue", "0", 2, 1);
    for input in 0..2 {
        assert_eq!(rig.push_one(input, &packet(0)).exit, dropped("queue-full"));
    }
    rig.write("capacity", "2").unwrap();
    rig.push(0, &[packet(0), packet(1)]);
    rig.write("capacity", "1").unwrap();
    assert_eq!(numbers(rig.pull(0, 8)), [0]);
    // A run in which some wait at its end.
    rig.push(1, &[packet(5)]);
}
