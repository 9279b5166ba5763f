//! L3 interfaces of ports that read and write captures: no device is needed.

use crate::frames::{arp, ping, see, stations, udp};
use crate::run::{Setup, millrace, read, shipped, write};
use std::process::Command;

const ROUTER: [u8; 6] = [2, 0, 0, 0, 9, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

const CONFIG: &str = "
[[route]]
to = \"0.0.0.0/0\"
gateway = \"192.0.2.9\"
";

/// The router, between ports with addresses; the arguments are their keys.
fn router(lan: &str, wan: &str, config: &str) -> Setup {
    let mut setup = Setup::of(&shipped("l3fwd"), &["lan", "wan"], config);
    for (port, keys) in [("lan", lan), ("wan", wan)] {
        setup = setup.port_keys(port, keys);
    }
    setup
}

const LAN: &str = "addresses = [\"10.0.0.254/24\"], mac = \"02:00:00:00:09:01\"";
const WAN: &str = "addresses = [\"192.0.2.1/24\"], mac = \"02:00:00:00:09:02\"";

/// Extends the run after all captures are read.
const LONGER: &str = "[nf.longer]\ninline = \"TimedSource(0.05) -> Discard; Script(wait 2s, stop);\"\n";

#[test]
fn the_station_answers_and_the_nf_gets_the_rest() {
    let mut own = arp("10.0.0.1", "10.0.0.254");
    own[6..12].copy_from_slice(&HOST);
    own[22..28].copy_from_slice(&HOST);
    let other = arp("10.0.0.1", "10.0.0.2");
    let to_all = stations(udp("10.0.0.1:1", "10.0.0.255:2", b""), HOST, ROUTER);
    let to_router = stations(ping("10.0.0.1", "10.0.0.254", 1), HOST, ROUTER);
    let elsewhere = stations(udp("10.0.0.1:1", "203.0.113.1:2", b""), HOST, ROUTER);
    let mut frames = vec![own, other, to_all, to_router];
    frames.extend(std::iter::repeat_n(elsewhere, 6));
    let outcome = router(LAN, WAN, CONFIG).more(LONGER).input("lan", &frames).run().sound();
    // The answer to the host. No host answers the router, which repeats its requests until the run ends.
    let reply = &outcome.out("lan")[0];
    assert_eq!((&reply[..6], &reply[6..12], reply[21]), (&HOST[..], &ROUTER[..], 2));
    assert!((1..=4).contains(&outcome.out("wan").len()), "{outcome:?}");
    for question in outcome.out("wan") {
        let wan = [2, 0, 0, 0, 9, 2];
        assert_eq!(
            (&question[..6], &question[6..12], &question[12..14]),
            (&[0xff; 6][..], &wan[..], &[8, 6][..])
        );
        assert_eq!((&question[28..32], &question[38..42]), (&[192, 0, 2, 1][..], &[192, 0, 2, 9][..]));
    }
    // Four of the six packets wait until the run ends.
    assert_eq!(outcome.counter("waited"), 4);
    let drops = outcome.drops();
    assert!(drops.contains(&("not-for-us", 3)) && drops.contains(&("no-neighbour", 2)), "{drops:?}");
}

#[test]
fn neighbours_that_an_operator_notes_are_used() {
    let script =
        "[nf.operator]\ninline = \"Script(write port-wan/resolver.insert 192.0.2.9 02:00:00:00:0a:09);\"\n";
    let frame = |at: u16| stations(udp(&format!("10.0.0.1:{}", 1 + at), "203.0.113.1:2", b"x"), HOST, ROUTER);
    let frames: Vec<_> = (0..4).map(frame).collect();
    let outcome = router(LAN, WAN, CONFIG).more(script).input("lan", &frames).run().sound();
    let sent: Vec<_> = outcome.out("wan").iter().map(|frame| see(frame)).collect();
    assert_eq!(sent.len(), 4, "{outcome:?}");
    let expected: Vec<String> = (1..5).map(|port| format!("10.0.0.1:{port} > 203.0.113.1:2")).collect();
    assert_eq!(sent.iter().map(|seen| seen.ends()).collect::<Vec<_>>(), expected, "in order");
    for seen in &sent {
        assert_eq!((seen.to_mac, seen.from_mac), ([2, 0, 0, 0, 0xa, 9], [2, 0, 0, 0, 9, 2]));
        assert_eq!(seen.ttl, 63);
    }
}

#[test]
fn what_cannot_be_a_next_hop_is_told() {
    let config = "
[interface.lan]
mac = \"02:00:00:00:09:03\"
[[route]]
to = \"0.0.0.0/0\"
gateway = \"198.51.100.1\"
[[route]]
to = \"10.9.0.0/16\"
gateway = \"10.0.0.9\"
mac = \"02:00:00:00:0a:01\"
[[route]]
to = \"fd00::/16\"
gateway = \"10.0.0.9\"
[[route]]
to = \"10.8.0.0/16\"
interface = \"wan\"
gateway = \"10.0.0.9\"
[[route]]
to = \"10.7.0.0/16\"
interface = \"wan\"
";
    router(LAN, "", config).refused(&[
        "config:1: interface `wan` has no MAC address",
        "config:2: 02:00:00:00:09:03 is not 02:00:00:00:09:01, which the port answers for",
        "config:4: gateway 198.51.100.1 is a neighbour on no interface",
        "config:7: [[route]] has a `mac` and a `gateway`",
        "config:11: `to` and `gateway` of [[route]] are of two families",
        "config:14: gateway 10.0.0.9 is no neighbour on `wan`",
        "config:18: [[route]] needs `mac`, or `gateway`",
    ]);
}

/// A port without a hardware address cannot answer: the binary reports this with the location in the file.
#[test]
fn a_station_without_a_hardware_address_is_refused() {
    let setup = router("addresses = [\"10.0.0.254/24\"]", "", CONFIG);
    let told = setup.check();
    assert!(told.contains("port `port-lan` has no hardware address to answer with"), "{told}");
}

/// A bond is one L3 interface: each of its ports answers requests that it receives, before the bond's
/// elements, and the bond sends requests by its first port. An observer of the bond's output receives these
/// frames, too.
#[test]
fn a_bond_is_one_station() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut question = arp("10.0.0.7", "10.0.0.254");
    question[6..12].copy_from_slice(&HOST);
    question[22..28].copy_from_slice(&HOST);
    write(&path("a.pcap"), &[udp("10.0.0.7:1", "10.0.0.8:2", b"x")]);
    write(&path("b.pcap"), &[question, arp("10.0.0.7", "10.0.0.8")]);
    let chain = "
links = [\"bond <-> [0]nf\", \"eye -> [0]look\"]
[ports]
a = { capture = \"a.pcap\", write = \"a-out.pcap\" }
b = { capture = \"b.pcap\", write = \"b-out.pcap\" }
[device.bond]
bonded = [\"a\", \"b\"]
receives = \"udp\"
addresses = [\"10.0.0.254/24\"]
mac = \"02:00:00:00:09:01\"
[device.eye]
bonded = [\"a\", \"b\"]
sees = \"outbound\"
[nf.nf]
inline = \"FromDevice(0) -> Discard; Idle -> ToDevice(0);\"
[nf.look]
inline = \"FromDevice(0) -> seen :: Counter -> Discard; Script(write bond/resolver-b.resolve 10.0.0.9);\"
[nf.longer]
inline = \"TimedSource(0.05) -> Discard; Script(wait 1500ms, stop);\"
";
    std::fs::write(path("chain.toml"), chain).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json", "-H", "look/seen.count"]);
    let output = run.args(["-H", "bond/resolver-b.stats"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let accounts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("accounts");
    let dropped = |element: &str| {
        let elements = accounts["elements"].as_array().expect("elements").iter();
        let mut found = elements.filter(|known| known["name"] == element);
        found.next().expect("it is there")["dropped"].to_string()
    };
    // The packet for our address was answered; the other one is no UDP.
    assert!(dropped("b/dispatch").contains("[\"unwanted\",1]"), "{}", dropped("b/dispatch"));
    let (a, b) = (read(&path("a-out.pcap")), read(&path("b-out.pcap")));
    assert_eq!((b.len(), &b[0][..6], b[0][21]), (1, &HOST[..], 2));
    assert!(
        (1..=2).contains(&a.len()) && a.iter().all(|frame| frame[21] == 1 && frame[38..42] == [10, 0, 0, 9])
    );
    let handler = |name: &str| accounts["handlers"][name].as_str().unwrap_or_default().trim().to_string();
    assert_eq!(handler("look/seen.count"), (a.len() + b.len()).to_string());
    assert!(handler("bond/resolver-b.stats").contains("answers 1"), "{}", handler("bond/resolver-b.stats"));
}
