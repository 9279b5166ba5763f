//! Elements that choose an output or an input.

use super::{dropped, mistakes, packet};
use crate::testing::{Exit, Rig, TestPacket, differential, random_packets};

#[test]
fn switch_sends_where_it_is_told() {
    let mut rig = Rig::new("Switch", "", 1, 3);
    let frame = packet(0, 60);
    assert_eq!(rig.push_one(0, &frame).exit, Exit::Port(0));
    rig.write("switch", "2").unwrap();
    assert_eq!((rig.push_one(0, &frame).exit, rig.read("switch").as_str()), (Exit::Port(2), "2"));
    rig.write("switch", "-7").unwrap();
    assert_eq!((rig.push_one(0, &frame).exit, rig.read("switch").as_str()), (dropped("switched-off"), "-7"));
    rig.write("switch", "3").unwrap();
    assert_eq!(rig.read("switch"), "-1");
    assert!(rig.write("switch", "left").is_err());
    assert!(mistakes("Switch", "3", 1, 3)[0].contains("smaller than 3"));
    for config in ["", "1", "-1"] {
        differential("Switch", config, 1, 2);
    }
}

#[test]
fn static_switch_never_changes() {
    for (config, exit) in
        [("1", Exit::Port(1)), ("2", dropped("switched-off")), ("-1", dropped("switched-off"))]
    {
        let mut rig = Rig::new("StaticSwitch", config, 1, 2);
        assert_eq!(rig.push_one(0, &packet(0, 60)).exit, exit);
        assert!(rig.write("switch", "0").is_err());
        differential("StaticSwitch", config, 1, 2);
    }
    assert!(mistakes("StaticSwitch", "", 1, 2)[0].contains("OUTPUT"));
}

fn ports(rig: &mut Rig, packets: &[TestPacket]) -> Vec<usize> {
    let exits = rig.push(0, packets).into_iter().map(|out| match out.exit {
        Exit::Port(port) => port,
        other => panic!("{other:?}"),
    });
    exits.collect()
}

#[test]
fn round_robin_goes_round() {
    let mut rig = Rig::new("RoundRobinSwitch", "", 1, 3);
    let frames: Vec<TestPacket> = (0..7).map(|byte| packet(byte, 60)).collect();
    assert_eq!(ports(&mut rig, &frames), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(ports(&mut rig, &frames[..2]), [1, 2]);
    differential("RoundRobinSwitch", "", 1, 5);
    let mut rig = Rig::new("RoundRobinSwitch", "MAX 2, SPLITBATCH true", 1, 3);
    assert_eq!(ports(&mut rig, &frames[..3]), [0, 1, 0]);
    let mut rig = Rig::new("RoundRobinSwitch", "SPLITBATCH false", 1, 3);
    for port in [0, 1, 2, 0] {
        assert_eq!(ports(&mut rig, &frames[..3]), [port; 3]);
    }
    assert_eq!(mistakes("RoundRobinSwitch", "MAX 4, SPLITBATCH x", 1, 3).len(), 2);
}

/// The hash, byte by byte.
fn hash(bytes: &[u8], outputs: usize) -> usize {
    let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
    if [2, 4, 8].contains(&outputs) { (sum ^ sum >> 4) & (outputs - 1) } else { sum % outputs }
}

#[test]
fn hash_switch_adds_up_bytes() {
    for (offset, length) in [(0, 1), (2, 3), (26, 8), (0, 60), (5, 33)] {
        for outputs in [1, 2, 3, 4, 8, 9] {
            let config = format!("{offset}, {length}");
            let mut rig = Rig::new("HashSwitch", &config, 1, outputs);
            let packets = random_packets(outputs as u64, 40);
            let wanted = packets.iter().map(|packet| match packet.bytes.get(offset..offset + length) {
                Some(bytes) => hash(bytes, outputs),
                None => 0,
            });
            let wanted: Vec<usize> = wanted.collect();
            assert_eq!(ports(&mut rig, &packets), wanted, "{config}");
        }
    }
    // Lanes that are as full as they get.
    let full = packet(0xff, 2112);
    let mut rig = Rig::new("HashSwitch", "0, 2112", 1, 7);
    assert_eq!(ports(&mut rig, &[full]), [2112 * 255 % 7]);
    differential("HashSwitch", "26, 8", 1, 3);
    assert_eq!(mistakes("HashSwitch", "2000, 200", 1, 2).len(), 1);
    assert_eq!(mistakes("HashSwitch", "0, 0", 1, 2).len(), 1);
    assert_eq!(mistakes("HashSwitch", "", 1, 2).len(), 2);
}

#[test]
fn random_switch_uses_all_outputs_alike() {
    let mut rig = Rig::new("RandomSwitch", "", 1, 3);
    let frames: Vec<TestPacket> = (0..100).map(|byte| packet(byte, 20)).collect();
    let mut counts = [0; 3];
    for _ in 0..30 {
        ports(&mut rig, &frames).into_iter().for_each(|port| counts[port] += 1);
    }
    // 3,000 trials with probability 1/3: 1,000, and a standard deviation of 26.
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    differential("RandomSwitch", "", 1, 2);
}

#[test]
fn pull_switch_pulls_from_where_it_is_told() {
    Rig::new("SimplePullSwitch", "-1", 2, 1);
    let mut rig = Rig::new("PullSwitch", "1", 2, 1);
    rig.feed(0, &[packet(0, 60)]);
    rig.feed(1, &[packet(1, 60), packet(2, 60)]);
    assert_eq!(rig.pull(0, 8).iter().map(|packet| packet.bytes[0]).collect::<Vec<_>>(), [1, 2]);
    rig.write("switch", "-1").unwrap();
    assert!(rig.pull(0, 8).is_empty());
    rig.write("switch", "0").unwrap();
    assert_eq!((rig.pull(0, 8).len(), rig.read("switch").as_str()), (1, "0"));
    rig.write("switch", "2").unwrap();
    assert_eq!(rig.read("switch"), "-1");
    assert!(mistakes("PullSwitch", "2", 2, 1)[0].contains("smaller than 2"));

    let mut rig = Rig::new("StaticPullSwitch", "1", 2, 1);
    rig.feed(1, &[packet(1, 60)]);
    assert!(rig.write("switch", "0").is_err());
    assert_eq!(rig.pull(0, 8).len(), 1);
    let mut rig = Rig::new("StaticPullSwitch", "9", 2, 1);
    assert!(rig.pull(0, 8).is_empty());
}

#[test]
fn a_worker_has_an_output_of_its_own() {
    use element::configure::Shape;
    use element::testing::{TestServices, configure};
    for class in ["CPUSwitch", "ExactCPUSwitch"] {
        let class = element::find(crate::CLASSES, class).unwrap();
        for worker in 0..4 {
            let shape = Shape { inputs: 1, outputs: 3 };
            let element =
                configure(class, "e", "", shape, (worker, 4), &mut TestServices::default()).unwrap();
            let program = element.lower(shape).unwrap().unwrap();
            let text = ir::text::print(&program);
            assert!(text.contains(&format!("emit {}", worker % 3)), "{text}");
        }
    }
}

#[test]
fn bypass_leads_through_its_second_ports_while_it_is_active() {
    let frame = packet(1, 60);
    let mut rig = Rig::new("Bypass", "", 2, 2);
    for (active, ports) in [("false", [0, 0]), ("true", [1, 0])] {
        rig.write("active", active).unwrap();
        assert_eq!(rig.read("active"), active);
        let left = [0, 1].map(|input| rig.push_one(input, &frame).exit);
        assert_eq!(left, ports.map(Exit::Port));
        // Pulled: what feeds each output.
        for (output, input) in [(0, usize::from(active == "true")), (1, 0)] {
            rig.feed(input, std::slice::from_ref(&frame));
            assert_eq!(rig.pull(output, 8).len(), 1, "{active} {output}");
        }
    }
    let mut rig = Rig::new("Bypass", "true, INLINE true", 1, 1);
    assert_eq!(rig.push_one(0, &frame).exit, Exit::Port(0));
    rig.feed(0, &[frame]);
    assert_eq!(rig.pull(0, 8).len(), 1);
    assert!(rig.write("active", "often").is_err());
    assert_eq!(mistakes("Bypass", "often, INLINE 3", 1, 2).len(), 2);
}

#[test]
fn input_switch_passes_one_input() {
    let mut rig = Rig::new("InputSwitch", "", 2, 1);
    let frame = packet(1, 60);
    for (value, passed) in [("0", Some(0)), ("1", Some(1)), ("2", None), ("-1", None)] {
        rig.write("switch", value).unwrap();
        for input in 0..2 {
            let exit = if passed == Some(input) { Exit::Port(0) } else { dropped("other-input") };
            assert_eq!(rig.push_one(input, &frame).exit, exit, "{value}");
        }
        rig.feed(1, std::slice::from_ref(&frame));
        let pulled = rig.pull(0, 8).len();
        assert_eq!(pulled > 0, passed == Some(1), "{value}");
    }
    assert_eq!(rig.read("switch"), "-1");
    assert_eq!(mistakes("InputSwitch", "2", 2, 1).len(), 1);
}
