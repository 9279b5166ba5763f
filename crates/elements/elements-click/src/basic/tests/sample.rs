use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

#[test]
fn average_counter_measures_from_the_first_packet_to_the_last() {
    let mut rig = Rig::new("AverageCounter", "", 1, 1);
    for _ in 0..11 {
        rig.push(0, &[packet(0, 100)]);
        rig.advance(100 * MS);
    }
    assert_eq!([rig.read("count"), rig.read("byte_count"), rig.read("time")], ["11", "1100", "1"]);
    assert_eq!([rig.read("rate"), rig.read("byte_rate"), rig.read("bit_rate")], ["11", "1100", "8800"]);
    rig.write("reset", "").unwrap();
    assert_eq!([rig.read("count"), rig.read("time")], ["0", "0.001"]);
    assert!(rig.write("count", "1").is_err());

    let mut rig = Rig::new("AverageCounter", "1", 1, 1);
    for _ in 0..4 {
        rig.push(0, &[packet(0, 100)]);
        rig.advance(SECOND);
    }
    assert_eq!([rig.read("count"), rig.read("time"), rig.read("rate")], ["3", "2", "1.5"]);
    assert_eq!(mistakes("AverageCounter", "soon", 1, 1).len(), 1);
    for config in ["", "0.5"] {
        differential("AverageCounter", config, 1, 1);
    }
}

#[test]
fn random_sample_lets_its_share_pass() {
    let packets: Vec<TestPacket> = (0..100).map(|byte| packet(byte, 20)).collect();
    for (config, share) in [("0.25", 0.25), ("SAMPLE 1", 1.0), ("DROP 0.9", 0.1), ("0", 0.0)] {
        let mut rig = Rig::new("RandomSample", config, 1, 1);
        let passed: usize = (0..30)
            .map(|_| rig.push(0, &packets).iter().filter(|out| out.exit == Exit::Port(0)).count())
            .sum();
        // Five standard deviations of 3,000 trials are 137 at most.
        assert!((passed as f64 - 3_000.0 * share).abs() <= 137.0, "{config}: {passed}");
        assert_eq!(rig.read("drops"), (3_000 - passed).to_string());
    }
    let mut rig = Rig::new("RandomSample", "0", 1, 1);
    assert_eq!(rig.push_one(0, &packets[0]).exit, dropped("not-sampled"));
    rig.write("active", "false").unwrap();
    assert_eq!((rig.push_one(0, &packets[0]).exit, rig.read("active").as_str()), (Exit::Port(0), "false"));
    rig.write("drop_prob", "0.75").unwrap();
    assert_eq!([rig.read("sampling_prob"), rig.read("drop_prob")], ["0.25", "0.75"]);
    rig.write("sampling_prob", "1").unwrap();
    assert_eq!([rig.read("sampling_prob"), rig.read("drop_prob")], ["1", "0"]);
    assert!(rig.write("sampling_prob", "1.5").is_err() && rig.write("seed", "1").is_err());
    let mut rig = Rig::new("RandomSample", "0", 1, 2);
    assert_eq!(rig.push_one(0, &packets[0]).exit, Exit::Port(1));
    differential("RandomSample", "0.5", 1, 2);
    for config in ["", "1.5", "SAMPLE 0.5, DROP 0.5", "DROP 2"] {
        assert_eq!(mistakes("RandomSample", config, 1, 1).len(), 1, "{config}");
    }
}
