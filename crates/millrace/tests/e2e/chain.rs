//! The demo: NAPT, layer-4 firewall and layer-3 load balancer over a real capture.
//!
//! What has to come out is worked out from the capture alone.

use crate::captures::{self, frames, tshark};
use crate::packets::{Flow, Ipv4};
use crate::program::Folder;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;

const TCP: u8 = 6;
const UDP: u8 = 17;
const EXTERNAL: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(192, 0, 2, 11)];
const CHAIN: &str = "nat-firewall-balancer/chain.toml";
const INTERNET: &str = "nat-firewall-balancer/internet.pcap";
const BALANCED: &str = "nat-firewall-balancer/servers.pcap";

fn demo() -> Folder {
    Folder::with_examples(&["captures", "nat-firewall-balancer"])
}

fn packets(folder: &Folder, capture: &str) -> Vec<Ipv4> {
    frames(&folder.path(capture)).iter().map(|frame| Ipv4::read(frame).expect("IPv4")).collect()
}

/// What the office sends to be translated, of one protocol.
fn from_office(folder: &Folder, protocol: u8) -> Vec<Ipv4> {
    let all = frames(&folder.path("captures/office.pcap"));
    let ipv4 = all.iter().filter(|frame| frame.get(12..14) == Some(&[8, 0]));
    let read = ipv4.map(|frame| Ipv4::read(frame).expect("the capture is whole"));
    read.filter(|packet| packet.protocol == protocol && packet.source.octets()[0] == 10).collect()
}

/// Pairs what went in with what came out, in order: everything but what a NAT changes stays, and flows
/// inside and flows outside are one to one.
fn assert_translated(inside: &[Ipv4], outside: &[Ipv4], hops: u8) -> BTreeMap<Flow, Flow> {
    assert_eq!(inside.len(), outside.len());
    let mut mapped: BTreeMap<Flow, Flow> = BTreeMap::new();
    for (before, after) in inside.iter().zip(outside) {
        assert_eq!(after.source, EXTERNAL);
        assert_eq!((&before.payload, before.id), (&after.payload, after.id));
        assert_eq!(before.ttl - hops, after.ttl);
        let (from, to) = (before.flow().expect("ports"), after.flow().expect("ports"));
        assert_eq!(from.4, to.4, "the destination's port");
        assert_eq!(*mapped.entry(from).or_insert(to), to, "a flow keeps its port");
    }
    // One external port may serve several remote ends, so it is whole flows that differ.
    let outsides: BTreeSet<&Flow> = mapped.values().collect();
    assert_eq!(outsides.len(), mapped.len(), "flows that became one: {mapped:?}");
    mapped
}

#[test]
fn each_packet_of_the_demo_is_where_it_belongs() {
    let folder = demo();
    let run = folder.millrace(&["run", CHAIN, "--json"]).sound();
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert!(accounts.warnings.is_empty(), "{:?}", accounts.warnings);

    let (tcp, udp) = (from_office(&folder, TCP), from_office(&folder, UDP));
    let (internet, servers) = (packets(&folder, INTERNET), packets(&folder, BALANCED));
    assert!(tcp.len() > 900 && udp.len() > 1_000, "the capture has both");
    let mapped = assert_translated(&tcp, &internet, 1);
    assert!(mapped.iter().all(|(from, to)| from.3 == to.3), "the Internet's addresses stay");

    let media: Vec<Ipv4> =
        udp.iter().filter(|packet| packet.ports.expect("UDP").1 == 1234).cloned().collect();
    let mapped = assert_translated(&media, &servers, 3);
    assert!(mapped.values().all(|flow| SERVERS.contains(&flow.3)), "{mapped:?}");
    let of_first = mapped.values().filter(|flow| flow.3 == SERVERS[0]).count();
    assert!(of_first.abs_diff(mapped.len() - of_first) <= 1, "round robin: {of_first} of {}", mapped.len());

    // What is not there was dropped where it belongs.
    let in_office = frames(&folder.path("captures/office.pcap"));
    let of_type = |kind: [u8; 2]| in_office.iter().filter(|frame| frame[12..14] == kind).count();
    let (ipv4, others) = (of_type([8, 0]), in_office.len() - of_type([8, 0]));
    assert_eq!(accounts.received, in_office.len() as u64);
    assert_eq!(accounts.sent, (internet.len() + servers.len()) as u64);
    let discarded = |name: &str| accounts.element(name).dropped.iter().map(|(_, n)| *n).sum::<u64>();
    assert_eq!(discarded("nat/not_ip"), others as u64);
    assert_eq!(discarded("nat/not_nat"), (ipv4 - tcp.len() - udp.len()) as u64);
    assert_eq!(discarded("firewall/filter"), (udp.len() - media.len()) as u64);
    assert_eq!(accounts.port("inside").received.0, in_office.len() as u64);
    assert_eq!(accounts.port("internet").sent.0, internet.len() as u64);
    assert_eq!(accounts.port("servers").sent.0, servers.len() as u64);
}

#[test]
fn tshark_finds_nothing_wrong_with_what_the_demo_wrote() {
    let folder = demo();
    folder.millrace(&["run", CHAIN, "--quiet"]).sound();
    for (capture, protocol) in [(INTERNET, "6"), (BALANCED, "17")] {
        let fields = [
            "ip.proto",
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
            "ip.src",
            "_ws.malformed",
        ];
        let Some(rows) = tshark(&folder.path(capture), &fields) else { return };
        assert!(rows.len() > 900, "{} packets", rows.len());
        for row in rows {
            let status = if protocol == "6" { &row[2] } else { &row[3] };
            let expected = (protocol, "1", "1", "198.51.100.1", "");
            assert_eq!(
                (row[0].as_str(), row[1].as_str(), status.as_str(), row[4].as_str(), row[5].as_str()),
                expected
            );
        }
    }
}

#[test]
fn the_account_in_words_says_what_the_demo_did() {
    let folder = demo();
    let run = folder.millrace(&["run", CHAIN, "--all", "-H", "nat/rewriter.table_size"]).sound();
    let text = run.text();
    for part in [
        "inside",
        "internet",
        "servers",
        "firewall/filter",
        "nat/not_nat",
        "in 3,443 + made 0 = out",
        "nat/rewriter.table_size: ",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(text.contains("packets in") && text.contains("pps on 1 worker"), "{text}");
    assert!(!text.contains("NOT BALANCED"), "{text}");
}

#[test]
fn the_evaluator_writes_the_same_bytes_as_machine_code() {
    let mut written = vec![];
    for engine in ["native", "evaluator"] {
        let folder = demo();
        folder.millrace(&["run", CHAIN, "--quiet", "--engine", engine]).sound();
        written.push([INTERNET, BALANCED].map(|name| std::fs::read(folder.path(name)).expect("written")));
    }
    assert_eq!(written[0], written[1]);
    assert!(written[0].iter().all(|bytes| bytes.len() > 10_000));
}

/// Same packets with one or two workers, in some order, but for the ports that the NAT picks.
#[test]
fn two_workers_do_the_same_up_to_the_names_of_ports() {
    let mut seen = vec![];
    for workers in ["1", "2"] {
        let folder = demo();
        let run = folder.millrace(&["run", CHAIN, "--json", "--workers", workers]).sound();
        let accounts = run.accounts();
        accounts.assert_balanced();
        assert_eq!(accounts.workers.to_string(), workers);
        let mut contents: Vec<(u8, u16, u8, Vec<u8>)> = vec![];
        let mut flows: HashMap<Flow, u64> = HashMap::new();
        for packet in packets(&folder, INTERNET).into_iter().chain(packets(&folder, BALANCED)) {
            *flows.entry(packet.flow().expect("ports")).or_default() += 1;
            contents.push((packet.protocol, packet.id, packet.ttl, packet.payload));
        }
        contents.sort();
        let mut sizes: Vec<u64> = flows.into_values().collect();
        sizes.sort();
        seen.push((contents, sizes));
    }
    assert!(seen[0] == seen[1], "packets or flows differ");
}

/// Two workers that both make flows: no two flows become one.
#[test]
fn workers_never_make_one_flow_of_two() {
    let folder = demo();
    folder.write(
        "nat-firewall-balancer/two.toml",
        r#"
links = ["inside -> [0]nat", "nat[2] -> tcp", "nat[1] -> udp"]
[ports]
tcp = { write = "tcp.pcap" }
udp = { write = "udp.pcap" }
[ports.inside]
# Few addresses and ports, so that flows would meet.
traffic = { flows = 1000, src = "10.0.0.0/26", dst = "203.0.113.1", src-port = "5000-5019", dst-port = "80", protocols = "tcp:50,udp:50" }
count = 1000
[nf.nat]
click = "nat.click"
"#,
    );
    let run = folder.millrace(&["run", "nat-firewall-balancer/two.toml", "--json", "--workers", "2"]).sound();
    run.accounts().assert_balanced();
    let both = ["nat-firewall-balancer/tcp.pcap", "nat-firewall-balancer/udp.pcap"];
    let seen: Vec<Ipv4> = both.iter().flat_map(|capture| packets(&folder, capture)).collect();
    let flows: BTreeSet<Flow> = seen.iter().map(|packet| packet.flow().expect("ports")).collect();
    assert_eq!((seen.len(), flows.len()), (1000, 1000));
    assert!(flows.iter().all(|flow| flow.1 == EXTERNAL && flow.2 >= 1024));
}

/// The times of a capture are those of its packets, in what comes out, too.
#[test]
fn times_are_kept() {
    let folder = demo();
    folder.millrace(&["run", CHAIN, "--quiet"]).sound();
    let office = captures::read(&folder.path("captures/office.pcap"));
    let tcp = office
        .iter()
        .filter(|frame| frame.bytes[12..14] == [8, 0] && frame.bytes[23] == TCP && frame.bytes[26] == 10);
    let times: Vec<_> = tcp.map(|frame| frame.time).collect();
    let written: Vec<_> = captures::read(&folder.path(INTERNET)).iter().map(|frame| frame.time).collect();
    assert_eq!(times, written);
}
