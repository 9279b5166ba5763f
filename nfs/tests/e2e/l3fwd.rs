//! The router.

use crate::frames::{arp, ends, icmp_error, ping, see, stations, udp, with_ttl};
use crate::run::{Frame, Setup};
use etherparse::Icmpv4Type;
use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};

const ROUTER: [u8; 6] = [2, 0, 0, 0, 9, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

const CONFIG: &str = "
[interface.lan]
mac = \"02:00:00:00:09:01\"
address = \"10.0.0.254\"
address6 = \"fd00::fe\"
[interface.wan]
mac = \"02:00:00:00:09:02\"
[[route]]
to = \"0.0.0.0/0\"
interface = \"wan\"
mac = \"02:00:00:00:0a:01\"
[[route]]
to = \"192.0.2.0/24\"
interface = \"wan\"
mac = \"02:00:00:00:0a:02\"
[[route]]
to = \"10.0.0.0/8\"
interface = \"lan\"
mac = \"02:00:00:00:0a:03\"
[[route]]
to = \"fd01::/16\"
interface = \"wan\"
mac = \"02:00:00:00:0a:04\"
";

/// The frame as a host of the lan sends it to its router.
fn sent(frame: Frame) -> Frame {
    stations(frame, HOST, ROUTER)
}

#[test]
fn packets_take_the_longest_prefix() {
    let frames = [
        sent(udp("10.0.0.1:1", "203.0.113.1:2", b"x")),
        sent(udp("10.0.0.1:1", "192.0.2.9:2", b"x")),
        sent(udp("10.0.0.1:1", "10.9.9.9:2", b"x")),
        sent(udp("[fd00::1]:1", "[fd01::9]:2", b"x")),
    ];
    let outcome = Setup::new("l3fwd", &["lan", "wan"], CONFIG).input("lan", &frames).run().sound();
    let seen: Vec<_> = outcome.out("wan").iter().map(|frame| see(frame)).collect();
    let next: Vec<u8> = seen.iter().map(|seen| seen.to_mac[5]).collect();
    assert_eq!(next, [1, 2, 4]);
    assert!(seen.iter().all(|seen| seen.from_mac == [2, 0, 0, 0, 9, 2] && seen.ttl == 63), "{seen:?}");
    let back = see(&outcome.out("lan")[0]);
    assert_eq!((back.to_mac[5], back.from_mac, back.ends().as_str()), (3, ROUTER, "10.0.0.1:1 > 10.9.9.9:2"));
    assert_eq!((outcome.counter("forwarded4"), outcome.counter("forwarded6")), (3, 1));
}

#[test]
fn senders_are_told_what_cannot_be_delivered() {
    let no_default = CONFIG.replace("0.0.0.0/0", "198.51.100.0/24");
    let expired = sent(with_ttl(udp("10.0.0.1:1", "192.0.2.9:2", &[7; 1000]), 1));
    let mut bad_sum = sent(udp("10.0.0.1:1", "192.0.2.9:2", b""));
    bad_sum[24] ^= 1;
    let frames = [
        expired.clone(),
        sent(udp("10.0.0.1:1", "203.0.113.1:2", b"x")),
        sent(with_ttl(udp("[fd00::1]:1", "[fd01::1]:2", b"x"), 1)),
        sent(with_ttl(icmp_error("10.0.0.1", "192.0.2.9", &ping("192.0.2.9", "10.0.0.1", 1)), 1)),
        bad_sum,
        sent(udp("10.0.0.1:1", "224.0.0.5:2", b"")),
        arp("10.0.0.1", "10.0.0.254"),
        stations(udp("10.0.0.1:1", "192.0.2.9:2", b""), HOST, [2; 6]),
        sent(arp("10.0.0.1", "10.0.0.254")),
    ];
    let outcome = Setup::new("l3fwd", &["lan", "wan"], &no_default).input("lan", &frames).run().sound();
    assert_eq!(outcome.out("wan").len(), 0);
    let told: Vec<_> = outcome.out("lan").iter().map(|frame| see(frame)).collect();
    assert_eq!(
        ends(outcome.out("lan")),
        ["10.0.0.254 > 10.0.0.1", "10.0.0.254 > 10.0.0.1", "fd00::fe > fd00::1"]
    );
    assert!(told.iter().all(|seen| (seen.to_mac, seen.from_mac) == (HOST, ROUTER)));
    assert_eq!(told[0].icmp, Some(Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit)));
    assert_eq!(told[0].payload, expired[14..14 + 548], "as much as fits into 576 bytes");
    assert_eq!(told[1].icmp, Some(Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Network)));
    assert_eq!((told[2].payload[..2].to_vec(), &told[2].payload[8..]), (vec![3, 0], &frames[2][14..]));
    assert_eq!(
        outcome.drops(),
        [
            ("bad-checksum", 1),
            ("link-scope", 1),
            ("no-route", 1),
            ("not-for-us", 2),
            ("not-ip", 1),
            ("ttl-expired", 3)
        ]
    );
    assert_eq!((outcome.counter("icmp-errors"), outcome.counter("icmp-errors-suppressed")), (3, 1));
}

#[test]
fn its_mistakes_are_told() {
    let config = "[interface.lan]\nmac = \"x\"\n[interface.dmz]\nmac = \"02:00:00:00:00:01\"\n[[route]]\nto = \"10.0.0.0/33\"\n";
    Setup::new("l3fwd", &["lan", "wan"], config).refused(&[
        "config:1: interface `wan` has no MAC address: add [interface.wan]",
        "config:2: `mac`: `x` is not an Ethernet address",
        "config:3: there is no interface `dmz`, only lan, wan",
        "config:5: [[route]] needs `interface`",
        "config:6: `to`: the length of `10.0.0.0/33` is not 0 to 32",
    ]);
}
