//! The translator.

use crate::frames::{arp, ends, icmp_error, later_fragment, ping, see, tcp, udp};
use crate::run::Setup;
use etherparse::Icmpv4Type;

const CONFIG: &str = "external = \"198.51.100.7\"\nports = \"2000-2999\"\ninside = [\"10.0.0.0/8\"]\n";

#[test]
fn flows_leave_by_one_address_and_their_answers_come_back() {
    let frames = [
        udp("10.0.0.1:1000", "192.0.2.1:53", b"one"),
        udp("10.0.0.2:1000", "192.0.2.1:53", b"two"),
        udp("10.0.0.1:1000", "192.0.2.2:53", b"three"),
        tcp("10.0.0.1:1001", "192.0.2.1:80", "S", b""),
        ping("10.0.0.1", "192.0.2.1", 77),
    ];
    let outcome =
        Setup::new("napt", &["lan", "wan"], CONFIG).input("lan", &frames).mirror("wan").run().sound();
    let out: Vec<_> = outcome.out("wan").iter().map(|frame| see(frame)).collect();
    assert!(out.iter().all(|seen| seen.src.to_string() == "198.51.100.7"), "{out:?}");
    let ports: Vec<u16> = out.iter().filter_map(|seen| Some(seen.ports?.0)).collect();
    assert!(ports.iter().all(|port| (2000..3000).contains(port)), "{ports:?}");
    assert!(ports[0] == ports[2] && ports[0] != ports[1], "one inside end has one outside port: {ports:?}");
    assert!(ports[0].is_multiple_of(2) && !ports[3].is_multiple_of(2), "even ports for even ones: {ports:?}");
    // Pings may be answered before other packets.
    let mut back = outcome.out("lan").to_vec();
    back.sort_by_key(|frame| see(frame).ends());
    assert_eq!(
        ends(&back),
        [
            "192.0.2.1 > 10.0.0.1",
            "192.0.2.1:53 > 10.0.0.1:1000",
            "192.0.2.1:53 > 10.0.0.2:1000",
            "192.0.2.1:80 > 10.0.0.1:1001",
            "192.0.2.2:53 > 10.0.0.1:1000",
        ]
    );
    let Some(Icmpv4Type::EchoReply(echo)) = see(&back[0]).icmp else { panic!("no reply") };
    assert_eq!((echo.id, see(&back[2]).payload), (77, b"two".to_vec()));
    assert_eq!((outcome.counter("mappings-made"), outcome.counter("out"), outcome.counter("in")), (4, 5, 5));
}

#[test]
fn what_has_no_mapping_or_cannot_have_one_is_dropped() {
    let mut wrong = udp("10.0.0.1:1", "192.0.2.1:2", b"");
    wrong[24] ^= 1;
    let inside = [
        arp("10.0.0.1", "10.0.0.2"),
        udp("[fd00::1]:1", "[fd00::2]:2", b""),
        later_fragment("10.0.0.1", "192.0.2.1"),
        udp("11.0.0.1:1", "192.0.2.1:2", b""),
        wrong,
    ];
    let outcome = Setup::new("napt", &["lan", "wan"], CONFIG).input("lan", &inside).run().sound();
    assert_eq!(outcome.drops(), [("fragment", 1), ("malformed", 1), ("not-inside", 1), ("not-ipv4", 2)]);
    let outside =
        [udp("192.0.2.1:53", "198.51.100.7:2000", b""), udp("192.0.2.1:53", "198.51.100.8:2000", b"")];
    let outcome = Setup::new("napt", &["lan", "wan"], CONFIG).input("wan", &outside).run().sound();
    assert_eq!((outcome.drops(), outcome.out("lan").len()), (vec![("no-mapping", 1), ("not-for-us", 1)], 0));
}

#[test]
fn ports_run_out_and_hosts_inside_reach_each_other() {
    let config = CONFIG.replace("2000-2999", "2000-2001");
    let frames = [
        udp("10.0.0.1:1", "192.0.2.1:2", b""),
        udp("10.0.0.2:1", "198.51.100.7:2001", b"hairpin"),
        udp("10.0.0.3:1", "192.0.2.1:2", b""),
    ];
    let outcome = Setup::new("napt", &["lan", "wan"], &config).input("lan", &frames).run().sound();
    assert_eq!(ends(outcome.out("wan")), ["198.51.100.7:2001 > 192.0.2.1:2"]);
    assert_eq!(ends(outcome.out("lan")), ["198.51.100.7:2000 > 10.0.0.1:1"]);
    assert_eq!((outcome.drops(), outcome.counter("hairpins")), (vec![("no-port", 1)], 1));
}

#[test]
fn errors_are_about_packets_that_their_receiver_knows() {
    // One outside port for each protocol, so that the contents of a router's error are known beforehand.
    let config = CONFIG.replace("2000-2999", "2000-2000");
    for (inside, outside) in [
        (udp("10.0.0.1:1", "192.0.2.1:2", b"payload"), udp("198.51.100.7:2000", "192.0.2.1:2", b"payload")),
        (tcp("10.0.0.1:1", "192.0.2.1:2", "S", b""), tcp("198.51.100.7:2000", "192.0.2.1:2", "S", b"")),
        (ping("10.0.0.1", "192.0.2.1", 1), ping("198.51.100.7", "192.0.2.1", 2000)),
    ] {
        // A second NF sends the error, after the packet has passed the first.
        let error = icmp_error("203.0.113.1", "198.51.100.7", &outside);
        let setup = Setup::new("napt", &["lan", "wan"], &config).input("lan", std::slice::from_ref(&inside));
        let outcome = setup.input_later("wan", &[error]).run().sound();
        let told = &outcome.out("lan")[0];
        assert_eq!(see(told).ends(), "203.0.113.1 > 10.0.0.1");
        assert_eq!(see(told).payload[..20], inside[14..34], "the IP header of the packet that was sent");
        let ports = if inside[23] == 1 { 4..8 } else { 0..8 };
        let within = |frame: &[u8]| frame[34..42][ports.clone()].to_vec();
        assert_eq!(see(told).payload[20..28][ports.clone()], within(&inside));
        assert_eq!(outcome.counter("errors-translated"), 1);
    }
    // From the inside, about a packet that was received. The error must not contain the inside address.
    let came = udp("192.0.2.1:2", "10.0.0.1:1", b"x");
    let frames = [udp("10.0.0.1:1", "192.0.2.1:2", b""), icmp_error("10.0.0.1", "192.0.2.1", &came)];
    let outcome = Setup::new("napt", &["lan", "wan"], &config).input("lan", &frames).run().sound();
    let told = see(&outcome.out("wan")[1]);
    assert_eq!(told.ends(), "198.51.100.7 > 192.0.2.1");
    let about = udp("192.0.2.1:2", "198.51.100.7:2000", b"x");
    assert_eq!(told.payload, about[14..42]);
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("napt", &["lan", "wan", "dmz"], "external = \"x\"\nports = \"9-1\"\ninside = [\"1\"]\n")
        .refused(&[
            "config:1: a translator has two interfaces",
            "config:1: `external`: `x` is not an IPv4 address",
            "config:2: `ports`: `9-1` is no port or range of ports",
            "config:3: `inside`: `1` is no prefix",
        ]);
}
