//! Chains in which every flow has both ways: hosts answer what leaves, and the answers come back through the
//! same NFs. Modular, fused, and with a flow cache they give the same packets and the same counters of every
//! element.

use crate::accounts::Accounts;
use crate::acl;
use crate::captures::{self, frames};
use crate::packets::Ipv4;
use crate::program::Folder;
use etherparse::PacketBuilder;
use std::net::Ipv4Addr;

/// The execution modes, modular first, as options of `run`.
const MODES: [&[&str]; 4] = [
    &["--as", "modular"],
    &["--as", "fused", "--cache", "never"],
    &["--as", "fused", "--cache", "off"],
    &["--as", "fused", "--cache", "eager"],
];

/// A port that sends what comes into it, and takes what leaves.
const PORT: &str = "{ traffic = { flows = 9 }, discard = true }";

/// Beginnings of the names of elements that questions for addresses pass in `examples/field`. On a busy machine an
/// answer takes so long that a question is put again.
const ASKED: [&str; 14] = [
    "c0",
    "c1",
    "c2",
    "out",
    "arpq",
    "queue",
    "ARP",
    "From",
    "To",
    "Host",
    "RED",
    "Bandwidth",
    "cable",
    "asked",
];

/// The counters of each element, as text, except for those that depend on the time that ARP takes.
fn counters(accounts: &Accounts) -> Vec<String> {
    let depends = |name: &str| {
        let own = name.rsplit('/').next().unwrap_or_default();
        name.split('/').next().is_some_and(|nf| nf.starts_with("nf") || nf.starts_with("servers"))
            && ASKED.iter().any(|begin| own.starts_with(begin))
            || ["clients/", "internet/c"].iter().any(|nf| name.starts_with(nf))
    };
    let counted = accounts.elements.iter().filter(|element| !depends(&element.name));
    counted.map(|element| format!("{element:?}")).collect()
}

/// Runs a chain in all execution modes. Returns the accounts of the last one, with a flow cache, and the
/// frames of the captures that it wrote, in an order that does not depend on the mode.
///
/// # Panics
/// If the counters of an element or a frame differ.
fn same_in_all_modes(folder: &Folder, chain: &str, written: &[&str]) -> (Accounts, Vec<Vec<Vec<u8>>>) {
    let mut results = MODES.iter().map(|mode| {
        let accounts = folder.millrace(&[&["run", chain, "--json"], *mode].concat()).sound().accounts();
        accounts.assert_balanced();
        let captures = written.iter().map(|name| {
            // Packets of different flows may be in any order.
            let mut frames = frames(&folder.path(name));
            frames.sort_unstable();
            frames
        });
        (accounts, captures.collect::<Vec<_>>())
    });
    let (modular, expected) = results.next().expect("the first mode");
    let mut last = None;
    for (mode, (accounts, captures)) in MODES[1..].iter().zip(results) {
        for (one, other) in counters(&modular).iter().zip(&counters(&accounts)) {
            assert_eq!(one, other, "{chain} {mode:?}");
        }
        for ((one, other), name) in expected.iter().zip(&captures).zip(written) {
            let differs = one.iter().zip(other).find(|(one, other)| one != other);
            assert_eq!((one.len(), differs), (other.len(), None), "{chain} {mode:?}: {name}");
        }
        last = Some((accounts, captures));
    }
    last.expect("several modes")
}

/// SNF's figure 3: hosts of two zones have the same addresses, and each zone gets the answers to what it asked.
#[test]
fn zones_with_one_prefix_get_their_own_answers() {
    let folder = Folder::with_examples(&["snf"]);
    let written = ["snf/zone1.pcap", "snf/zone2.pcap"];
    let (accounts, captures) = same_in_all_modes(&folder, "snf/zones-hosts.toml", &written);
    assert_eq!((accounts.received, accounts.sent, accounts.dropped), (10_000, 10_000, 0));
    for (zone, asked) in captures.iter().zip([443, 53]) {
        assert_eq!(zone.len(), 5_000);
        for frame in zone {
            let packet = Ipv4::read(frame).expect("IPv4 with right checksums");
            let port = packet.flow().map(|flow| flow.2);
            assert_eq!(
                (&packet.destination.octets()[..3], port),
                (&[10, 0, 0][..], Some(asked)),
                "{packet:?}"
            );
        }
    }
    let counts = &accounts.flow_cache;
    assert!(counts.hits > 1_000, "{counts:?}");
}

/// SNF's figure 5: the clients get an answer from the address that they asked, whichever server gave it.
#[test]
fn a_service_answers_through_balancer_firewall_and_napt() {
    let folder = Folder::with_examples(&["snf", "bench"]);
    let (accounts, captures) = same_in_all_modes(&folder, "snf/service.toml", &["snf/clients.pcap"]);
    assert_eq!((accounts.received, accounts.sent, accounts.dropped), (5_000, 5_000, 0));
    let mut udp = 0;
    for frame in &captures[0] {
        let packet = Ipv4::read(frame).expect("IPv4 with right checksums");
        assert_eq!(packet.destination.octets()[..2], [10, 1], "{packet:?}");
        assert_eq!(packet.source.octets()[..3], [203, 0, 113], "{packet:?}");
        assert_eq!(packet.flow().map(|flow| flow.2), Some(1234), "{packet:?}");
        udp += usize::from(packet.protocol == 17);
    }
    assert!((3_300..3_700).contains(&udp), "{udp}");
    let counts = &accounts.flow_cache;
    assert!(counts.hits > 1_000, "{counts:?}");
}

/// SNF's figure 4: what each zone, the clients and the servers sent is answered, to them and nobody else.
#[test]
fn a_dmz_and_two_providers_answer_each_zone() {
    let folder = Folder::with_examples(&["snf"]);
    let written = ["snf/zone1.pcap", "snf/zone2.pcap", "snf/clients.pcap", "snf/updates.pcap"];
    let (accounts, captures) = same_in_all_modes(&folder, "snf/dmz-hosts.toml", &written);
    assert_eq!((accounts.received, accounts.sent, accounts.dropped), (14_000, 14_000, 0));
    let web = Ipv4Addr::new(203, 0, 113, 1);
    let mut by_egress = [0; 3];
    for (at, zone) in captures[..2].iter().enumerate() {
        assert_eq!(zone.len(), 5_000);
        for packet in zone.iter().map(|frame| Ipv4::read(frame).expect("IPv4 with right checksums")) {
            assert_eq!(packet.destination.octets()[..2], [10, at as u8 + 1], "{packet:?}");
            let egress = match packet.source.octets() {
                [198, 51, 100, _] => 2,
                [198, 51, 96..=103, _] => 0,
                _ => 1,
            };
            by_egress[egress] += 1;
        }
    }
    assert!(by_egress.iter().all(|packets| *packets > 500), "{by_egress:?}");
    for frame in &captures[2] {
        let packet = Ipv4::read(frame).expect("IPv4 with right checksums");
        assert_eq!((packet.source, packet.flow().map(|flow| flow.2)), (web, Some(80)), "{packet:?}");
    }
    for frame in &captures[3] {
        let packet = Ipv4::read(frame).expect("IPv4 with right checksums");
        assert_eq!(packet.destination, Ipv4Addr::new(198, 51, 100, 80), "{packet:?}");
    }
    let counts = &accounts.flow_cache;
    assert!(counts.hits > 1_000, "{counts:?}");
}

/// SNF's figure 9 with its own rules, in files as people generate them: one function from the first input to
/// the last output, and the scripts of all three NFs end the run.
#[test]
fn an_isps_chain_one_way_is_one_function() {
    let folder = Folder::with_examples(&["isp"]);
    folder.write("acl.rules", &testkit::data::text("acl/acl1_713.rules"));
    let firewall = std::fs::read_to_string(folder.path("isp/firewall.click")).expect("an example");
    let (before, rest) = firewall.split_once("// rules\n").expect("where rules begin");
    let (_, after) = rest.split_once("// end of rules").expect("where rules end");
    folder.write("isp/firewall.click", &format!("{before}{}{after}", acl::allowing("acl1_713")));
    let chain = std::fs::read_to_string(folder.path("isp/chain.toml")).expect("an example");
    let (start, rest) = chain.split_once("customers = {").expect("a port");
    let (_, rest) = rest.split_once('\n').expect("its line");
    let traffic =
        "customers = { traffic = { acl = { rules = \"../acl.rules\" }, flows = 2000 }, count = 6000 }";
    folder.write("isp/chain.toml", &format!("{start}{traffic}\n{rest}"));

    let checked = folder.millrace(&["check", "isp/chain.toml"]).sound();
    assert!(checked.stdout.ends_with(b"2 ports\n") && checked.stderr.is_empty(), "{checked:?}");
    let shown = folder.millrace(&["synth", "isp/chain.toml"]).sound().text();
    for part in [
        "42 of 48 elements run in 1 fused region\n",
        "  enters   [0]firewall/firewall/rx\n  leaves   nat/napt/tx[0] -> nat/napt/queue\n",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    // The example may have been run where it is.
    let _ = std::fs::remove_file(folder.path("isp/rates.txt"));
    let results = ["modular", "fused"].map(|mode| {
        let run = folder.millrace(&["run", "isp/chain.toml", "--json", "--as", mode]).sound();
        let accounts = run.accounts();
        accounts.assert_balanced();
        assert!(accounts.warnings.is_empty(), "{:?}", accounts.warnings);
        let rates = std::fs::read_to_string(folder.path("isp/rates.txt")).expect("scripts wrote it");
        std::fs::remove_file(folder.path("isp/rates.txt")).expect("it is there");
        assert_eq!(rates.lines().count(), 6, "{rates}");
        let counted = rates.lines().filter(|line| line.contains(" in: ")).map(str::to_string);
        let mut packets: Vec<Ipv4> =
            frames(&folder.path("isp/internet.pcap")).iter().filter_map(|frame| Ipv4::read(frame)).collect();
        for packet in &mut packets {
            // The NAPT chooses it at random.
            packet.ports = packet.ports.map(|(_, destination)| (0, destination));
        }
        packets.sort_by_key(|packet| format!("{packet:?}"));
        (counters(&accounts), counted.collect::<Vec<_>>(), packets)
    });
    let [modular, fused] = results;
    assert!(modular.2.len() > 2_000, "{}", modular.2.len());
    assert!(modular == fused, "{:?}\n{:?}", modular.1, fused.1);
}

/// The same chain with its way back, as the benchmark has it: what the Internet and the ISP's own servers
/// answer.
#[test]
fn an_isps_chain_answers_its_customers() {
    let folder = Folder::with_examples(&["bench"]);
    let nfs = [
        ("firewall", "isp-firewall-replies"),
        ("router", "isp-router-replies"),
        ("nat", "isp-nat-replies"),
        ("internet", "isp-mirror"),
        ("servers", "isp-mirror"),
    ];
    for set in ["acl1_251", "acl1_713"] {
        folder.write("acl.rules", &testkit::data::text(&format!("acl/{set}.rules")));
        let mut tables = String::new();
        for (nf, file) in nfs {
            let text =
                std::fs::read_to_string(folder.path(&format!("bench/{file}.click"))).expect("an example");
            folder.write(
                &format!("{nf}.click"),
                &text.replace("$RULES", &acl::allowing(set)).replace("$ROOM", ""),
            );
            tables += &format!("[nf.{nf}]\nclick = \"{nf}.click\"\n");
        }
        folder.write(
            "isp.toml",
            &format!(
                "links = [\"in -> [0]firewall[1] <-> [0]router[1] <-> [0]nat[1] <-> [0]internet\", \
                 \"router[2] <-> [0]servers\", \"firewall[0] -> out\"]\n[ports]\n\
                 in = {{ traffic = {{ acl = {{ rules = \"acl.rules\" }}, flows = 1000 }}, count = 6000 }}\n\
                 out = {{ write = \"out.pcap\" }}\n{tables}"
            ),
        );
        let shown = folder.millrace(&["synth", "isp.toml"]).sound().text();
        assert!(shown.contains(" run in 1 fused region\n"), "{shown}");
        // The same between ports, whose packets are any: what the mirrors answer is a small part of them.
        folder.write(
            "ports.toml",
            &format!(
                "links = [\"in <-> [0]firewall[1] <-> [0]router[1] <-> [0]nat[1] <-> wan\", \
                 \"router[2] <-> own\"]\n[ports]\nin = {PORT}\nwan = {PORT}\nown = {PORT}\n{}",
                tables.split("[nf.internet]").next().unwrap_or_default()
            ),
        );
        let proof = folder.millrace(&["synth", "--prove", "ports.toml", "--limit", "60"]).sound().text();
        assert!(proof.contains("\nfused region 1: equal\n"), "{set}: {proof}");
        let (accounts, captures) = same_in_all_modes(&folder, "isp.toml", &["out.pcap"]);
        assert!(captures[0].len() > 5_000, "{set}: {}", captures[0].len());
        for element in ["router/ToDevice", "servers/IPMirror", "internet/IPMirror"] {
            let of = accounts.elements.iter().filter(|one| one.name.starts_with(element));
            assert!(of.map(|one| one.input).sum::<u64>() > 100, "{set}: nothing passes {element}");
        }
        assert!(accounts.flow_cache.hits > 2_000, "{set}: {:?}", accounts.flow_cache);
    }
}

/// The NFs of `examples/field`, and whether they have a third interface.
const FIELD: [(&str, bool); 8] = [
    ("router", true),
    ("firewall", false),
    ("stateful-firewall", false),
    ("nat", false),
    ("gateway", false),
    ("balancer", true),
    ("rate-limiter", false),
    ("dmz", true),
];

/// Twenty orders of three of them, by their numbers.
pub const ORDERS: [[usize; 3]; 20] = [
    [3, 2, 0],
    [6, 3, 1],
    [1, 0, 6],
    [6, 4, 2],
    [0, 1, 4],
    [5, 2, 1],
    [1, 2, 7],
    [0, 6, 5],
    [4, 6, 2],
    [3, 1, 2],
    [4, 5, 6],
    [5, 0, 4],
    [5, 7, 3],
    [3, 1, 6],
    [7, 2, 0],
    [4, 0, 2],
    [4, 6, 7],
    [3, 7, 6],
    [4, 3, 6],
    [2, 1, 7],
];

/// NFs in a row between clients and the Internet, with hosts at each third interface. NF `at` has the network
/// 10.254.`at`.0/24 towards the next one.
pub fn field_chain(order: &[usize]) -> String {
    let (mut row, mut links, mut nfs) = (String::new(), vec![], String::new());
    for (at, (name, has_third)) in (1..).zip(order.iter().map(|number| FIELD[*number])) {
        row += &format!("[0]nf{at}[1] <-> ");
        let (ip, net, back) = match at {
            1 => ("10.0.0.1".into(), "10.0.0.0/24".into(), "10.0.0.2".into()),
            _ => {
                let before = at - 1;
                (format!("10.254.{before}.2"), format!("10.254.{before}.0/24"), format!("10.254.{before}.1"))
            }
        };
        let mut defines = format!(
            "IP0 = \"{ip}\", NET0 = \"{net}\", BACK = \"{back}\", INSIDE = \"10.0.0.0/8\", \
             MAC0 = \"02:00:00:0{at}:00:00\", IP1 = \"10.254.{at}.1\", NET1 = \"10.254.{at}.0/24\", \
             MAC1 = \"02:00:00:0{at}:00:01\", GATEWAY = \"10.254.{at}.2\""
        );
        if has_third {
            defines += &format!(
                ", IP2 = \"172.16.{at}.1\", NET2 = \"172.16.{at}.0/24\", MAC2 = \"02:00:00:0{at}:00:02\""
            );
            links.push(format!("nf{at}[2] <-> [cable]servers{at}"));
            nfs += &format!(
                "[nf.servers{at}]\nclick = \"field/hosts.click\"\n\
                 defines = {{ MAC = \"02:00:00:0{at}:09:00\" }}\n"
            );
        }
        if name == "balancer" {
            defines += &format!(", SERVICE = \"172.16.{at}.100\"");
            let server = |number: u32| format!(", SERVER{number} = \"172.16.{at}.{}\"", number + 10);
            defines.extend((1..=4).map(server));
        }
        nfs += &format!("[nf.nf{at}]\nclick = \"field/{name}.click\"\ndefines = {{ {defines} }}\n");
    }
    links.push(format!("sent -> [sent]clients[cable] <-> {row}[cable]internet"));
    links.push("clients[arrived] -> arrived".into());
    format!(
        "links = {links:?}\n[ports]\nsent = {{ capture = \"sent.pcap\" }}\n\
         arrived = {{ write = \"arrived.pcap\" }}\n{nfs}\
         [nf.clients]\nclick = \"field/clients.click\"\n[nf.internet]\nclick = \"field/hosts.click\"\n"
    )
}

/// What follows the IP header of a frame.
#[derive(Clone, Copy)]
enum Transport {
    Tcp,
    Udp,
    Ping(u16),
}

/// A frame of a client for the first NF.
fn frame(ends: [[u8; 4]; 2], port: u16, ttl: u8, transport: Transport, payload: &[u8]) -> Vec<u8> {
    let [source, target] = ends;
    let ip = PacketBuilder::ethernet2([2, 0, 0, 0, 8, 0], [2, 0, 0, 1, 0, 0]).ipv4(source, target, ttl);
    let mut frame = vec![];
    let written = match transport {
        Transport::Tcp => ip.tcp(port, 80, 1, 1_000).ack(1).write(&mut frame, payload),
        Transport::Udp => ip.udp(port, 5_000).write(&mut frame, payload),
        Transport::Ping(number) => ip.icmpv4_echo_request(port, number).write(&mut frame, payload),
    };
    written.expect("written");
    frame
}

/// What clients send to the first NF: flows of TCP, UDP and pings to the Internet and to what third
/// interfaces offer, so many packets of each; and a few packets that are somebody's exception.
fn sent(order: &[usize], rounds: u16) -> Vec<Vec<u8>> {
    let service = |(at, number): (u8, &usize)| match FIELD[*number] {
        ("balancer", _) => Some([172, 16, at, 100]),
        (_, true) => Some([172, 16, at, 7]),
        _ => None,
    };
    let services: Vec<[u8; 4]> = (1..).zip(order).filter_map(service).collect();
    let mut frames = vec![];
    for round in 0..rounds {
        for flow in 0..30u8 {
            let (transport, target) = match (flow % 5, services.is_empty()) {
                (4, false) => (Transport::Tcp, services[usize::from(flow / 5) % services.len()]),
                (3, _) => (Transport::Ping(round), [198, 18, 0, flow]),
                (1, _) => (Transport::Udp, [198, 18, 0, flow]),
                _ => (Transport::Tcp, [198, 18, 0, flow]),
            };
            let ends = [[10, 0, 0, 10 + flow % 20], target];
            frames.push(frame(ends, 2_000 + u16::from(flow), 64, transport, &[flow; 20]));
        }
    }
    // The time ends at each NF in turn, and one packet is too long for the networks.
    let ends = [[10, 0, 0, 11], [198, 18, 0, 1]];
    frames.extend((1..=4).map(|ttl| frame(ends, 2_001, ttl, Transport::Udp, &[7; 20])));
    frames.push(frame(ends, 2_001, 64, Transport::Udp, &[7; 1_600]));
    frames
}

/// Chains of three in these orders do the same in all execution modes. Packets of flows that are established
/// stay in the fused program: of twice as many, no more leave it for an element's own code.
fn field_in_threes(orders: &[[usize; 3]]) {
    let folder = Folder::with_examples(&["field"]);
    for order in orders {
        folder.write("chain.toml", &field_chain(order));
        let mut aside = vec![];
        for rounds in [20, 40] {
            let frames = sent(order, rounds);
            captures::write(&folder.path("sent.pcap"), frames.iter().map(Vec::as_slice));
            if rounds == 20 {
                let run = ["run", "chain.toml", "--json", "--as", "fused", "--cache", "never"];
                aside.push(folder.millrace(&run).sound().accounts().flow_cache.aside);
                continue;
            }
            let (accounts, captures) = same_in_all_modes(&folder, "chain.toml", &["arrived.pcap"]);
            let names = order.map(|number| FIELD[number].0);
            // Everybody is answered; the exceptions end in an error or with an answer.
            assert!(captures[0].len() >= usize::from(rounds) * 30, "{names:?}: {}", captures[0].len());
            let counts = &accounts.flow_cache;
            assert!(counts.hits > 800, "{names:?}: {counts:?}");
            let run = ["run", "chain.toml", "--json", "--as", "fused", "--cache", "never"];
            let without = folder.millrace(&run).sound().accounts().flow_cache;
            aside.push(without.aside);
            assert!(without.aside > 0, "{names:?}: somebody waits for an answer to ARP");
        }
        // 600 packets more, and at most some questions that were put again.
        assert!(aside[1] < aside[0] + 60, "{order:?}: {aside:?}: established flows left the program");
    }
}

#[test]
fn nfs_of_the_field_in_ten_orders() {
    field_in_threes(&ORDERS[10..]);
}

#[test]
#[ignore = "a minute: make test-all"]
fn nfs_of_the_field_in_ten_other_orders() {
    field_in_threes(&ORDERS[..10]);
}
