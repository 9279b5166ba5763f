//! The load balancer.

use crate::frames::{ends, later_fragment, ping, see, tcp};
use crate::run::{Frame, Setup};
use std::collections::BTreeMap;

const CONFIG: &str = "
address = \"192.0.2.10\"
port = 80
[[backend]]
address = \"10.0.0.1\"
port = 8080
mac = \"02:00:00:00:00:11\"
[[backend]]
address = \"10.0.0.2\"
";

#[test]
fn each_flow_has_one_backend_and_sees_only_the_service() {
    let mut frames = vec![];
    for round in 0..3 {
        for port in 1000..1050 {
            let flags = if round == 0 { "S" } else { "." };
            frames.push(tcp(&format!("203.0.113.1:{port}"), "192.0.2.10:80", flags, b""));
        }
    }
    let setup = Setup::new("load-balancer", &["clients", "servers"], CONFIG).input("clients", &frames);
    let outcome = setup.mirror("servers").reading(&["backends"]).run().sound();
    let mut chosen: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for seen in outcome.out("servers").iter().map(|frame| see(frame)) {
        let (from, to) = seen.ports.expect("TCP");
        assert_eq!(seen.to_mac[5] == 0x11, to == 8080, "{seen:?}");
        chosen.entry(from).or_default().push(format!("{}:{to}", seen.dst));
    }
    assert!(
        chosen.len() == 50
            && chosen.values().all(|all| all.len() == 3 && all.windows(2).all(|w| w[0] == w[1]))
    );
    let first = chosen.values().filter(|all| all[0] == "10.0.0.1:8080").count();
    let second = chosen.values().filter(|all| all[0] == "10.0.0.2:80").count();
    assert!(first + second == 50 && first.abs_diff(second) < 30, "{first} and {second}");
    assert_eq!(outcome.handler("backends"), format!("10.0.0.1:8080 {first}\n10.0.0.2:80 {second}\n"));
    let back = ends(outcome.out("clients"));
    assert_eq!((back.len(), back[0].as_str()), (150, "192.0.2.10:80 > 203.0.113.1:1000"));
    assert!(back.iter().all(|ends| ends.starts_with("192.0.2.10:80 > ")));
    assert_eq!((outcome.counter("flows-made"), outcome.counter("to-clients")), (50, 150));
}

#[test]
fn what_is_not_for_the_service_passes() {
    let others: Vec<Frame> = vec![
        tcp("203.0.113.1:1", "192.0.2.10:81", "S", b""),
        tcp("203.0.113.1:1", "192.0.2.11:80", "S", b""),
        ping("203.0.113.1", "192.0.2.10", 1),
    ];
    let mut frames = others.clone();
    let mut wrong = tcp("203.0.113.1:1", "192.0.2.10:80", "S", b"");
    wrong[46] = 0;
    frames.push(wrong);
    let mut fragment = later_fragment("203.0.113.1", "192.0.2.10");
    fragment[23] = 6;
    let sum = etherparse::Ipv4Header::from_slice(&fragment[14..]).expect("a header").0.calc_header_checksum();
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    frames.push(fragment);
    let outcome = Setup::new("load-balancer", &["0", "1"], CONFIG).input("0", &frames).run().sound();
    assert_eq!(outcome.out("1"), others);
    assert_eq!(outcome.drops(), [("fragment", 1), ("malformed", 1)]);
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("load-balancer", &["0", "1"], "port = 0x50\n[[backend]]\nweight = 0\n").refused(&[
        "config:1: the configuration needs `address`",
        "config:2: [[backend]] needs `address`",
        "config:3: `weight`: 0 is not a whole number from 1 to 100",
    ]);
}
