//! Virtual devices: which frame reaches whom, by which port it leaves, and what it looks like then.

use crate::accounts::Accounts;
use crate::captures::{self, frames};
use crate::packets::Ipv4;
use crate::program::Folder;
use etherparse::{PacketBuilder, VlanId};
use std::collections::BTreeMap;

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Frame number `n` of a flow over UDP: the number is its IP identification, too.
fn udp(src: [u8; 4], dst: [u8; 4], ports: (u16, u16), n: u16) -> Vec<u8> {
    let mut frame = vec![];
    let builder = PacketBuilder::ethernet2(A, B).ipv4(src, dst, 64).udp(ports.0, ports.1);
    builder.write(&mut frame, &n.to_be_bytes()).expect("a frame");
    frame
}

/// The same behind a VLAN tag.
fn tagged(id: u16, frame: &[u8]) -> Vec<u8> {
    let id = VlanId::try_new(id).expect("an identifier").value().to_be_bytes();
    [&frame[..12], &[0x81, 0], &id, &frame[12..]].concat()
}

/// A flow's frames, with numbers from `from` on.
fn flow(from: u16, count: u16) -> Vec<Vec<u8>> {
    (from..from + count).map(|n| udp([10, 0, 0, 1], [10, 0, 0, 2], (1000 + n, 53), n)).collect()
}

/// A folder with a chain file, and a capture for each port that has frames: port `p` reads `p.pcap`.
struct Chain {
    folder: Folder,
    captures: Vec<String>,
}

impl Chain {
    fn new(text: &str, ports: &[(&str, Vec<Vec<u8>>)]) -> Chain {
        let folder = Folder::new();
        folder.write("chain.toml", text);
        for (port, frames) in ports {
            captures::write(&folder.path(&format!("{port}.pcap")), frames.iter().map(Vec::as_slice));
        }
        let captures = text.split("write = \"").skip(1).filter_map(|rest| rest.split('"').next());
        let captures = captures.map(str::to_string).collect();
        Chain { folder, captures }
    }

    /// Runs it; the accounts, which balance, and the frames of each capture that it may write, by its name
    /// without extension. To a port that no device sends by nothing is written.
    fn run(&self, arguments: &[&str]) -> (Accounts, BTreeMap<String, Vec<Vec<u8>>>) {
        let run = self.folder.millrace(&[&["run", "chain.toml", "--json"], arguments].concat()).sound();
        let accounts = run.accounts();
        accounts.assert_balanced();
        let written = self.captures.iter().map(|name| {
            let file = self.folder.path(name);
            let frames = if file.exists() { frames(&file) } else { vec![] };
            (name.trim_end_matches(".pcap").to_string(), frames)
        });
        (accounts, written.collect())
    }
}

/// `name = { capture = ..., write = ... }` for ports that read `NAME.pcap` and write `NAME-out.pcap`.
fn both_ways(names: &[&str]) -> String {
    let line =
        |name: &&str| format!("{name} = {{ capture = \"{name}.pcap\", write = \"{name}-out.pcap\" }}\n");
    names.iter().map(line).collect()
}

/// Reasons that packets were dropped for at an element, with their numbers.
fn drops(accounts: &Accounts, element: &str) -> Vec<(String, u64)> {
    accounts.element(element).dropped.iter().filter(|(_, count)| *count > 0).cloned().collect()
}

fn one(reason: &str, count: u64) -> Vec<(String, u64)> {
    vec![(reason.to_string(), count)]
}

#[test]
fn a_bridge_sends_to_the_opposite_side() {
    let text = format!(
        "links = [\"pair <-> nf\"]\n[ports]\n{}[device.pair]\nbridged = [\"left\", \"right\"]\n\
         [nf.nf]\ninline = \"FromDevice(0) -> Paint(3) -> ToDevice(0);\"\n",
        both_ways(&["left", "right"])
    );
    let (left, right) = (flow(0, 40), flow(100, 30));
    let chain = Chain::new(&text, &[("left", left.clone()), ("right", right.clone())]);
    for arguments in [&[][..], &["--engine", "evaluator"], &["--burst", "3"]] {
        let (accounts, written) = chain.run(arguments);
        assert_eq!(accounts.element("pair/receive").input, 70);
        assert!(written["right-out"] == left && written["left-out"] == right, "{arguments:?}");
    }
}

/// What a router makes by itself came in by no port: the chain file says where it goes.
#[test]
fn a_bridge_has_a_rule_for_packets_that_nfs_made() {
    let text = |otherwise: &str| {
        format!(
            "links = [\"pair <-> nf\"]\n[ports]\n{}[device.pair]\nbridged = [\"left\", \"right\"]\n{otherwise}\n\
             [nf.nf]\ninline = '''FromDevice(0) -> Strip(14) -> CheckIPHeader -> ttl :: DecIPTTL \
             -> e :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0); \
             ttl[1] -> ICMPError(192.0.2.1, timeexceeded) -> e;'''\n",
            both_ways(&["left", "right"])
        )
    };
    let mut expired = flow(0, 5);
    expired.iter_mut().for_each(|frame| {
        frame[22] = 1;
        let header = etherparse::Ipv4HeaderSlice::from_slice(&frame[14..]).expect("a header").to_header();
        frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    });
    let captures = [("left", [flow(20, 3), expired].concat()), ("right", flow(40, 2))];
    for (otherwise, left, right, dropped) in [
        ("", 2, 3, 5),
        ("otherwise = \"drop\"", 2, 3, 5),
        ("otherwise = \"left\"", 7, 3, 0),
        ("otherwise = \"all\"", 7, 8, 0),
    ] {
        let (accounts, written) = Chain::new(&text(otherwise), &captures).run(&[]);
        assert_eq!((written["left-out"].len(), written["right-out"].len()), (left, right), "{otherwise}");
        let expected = if dropped > 0 { one("other-origin", dropped) } else { vec![] };
        assert_eq!(drops(&accounts, "pair/send"), expected);
    }
}

#[test]
fn a_bridge_of_three_goes_across_as_it_is_told() {
    let text = format!(
        "links = [\"hub <-> nf\"]\n[ports]\n{}[device.hub]\nbridged = [\"a\", \"b\", \"c\"]\n\
         across = {{ a = \"c\", b = \"c\", c = \"a\" }}\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(0);\"\n",
        both_ways(&["a", "b", "c"])
    );
    let [a, b, c] = [0, 100, 200].map(|from| flow(from, 10));
    let (_, written) = Chain::new(&text, &[("a", a.clone()), ("b", b.clone()), ("c", c.clone())]).run(&[]);
    assert!(written["a-out"] == c && written["b-out"].is_empty());
    let mut at_c = written["c-out"].clone();
    at_c.sort();
    assert!(at_c == sorted([a, b].concat()));
}

fn sorted(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.sort();
    frames
}

/// A bond over three ports that an NF sends one port's traffic to.
fn bond(sends: &str) -> String {
    format!(
        "links = [\"in -> [0]nf\", \"nf[1] -> bond\"]\n[ports]\nin = {{ capture = \"in.pcap\" }}\n\
         a = {{ write = \"a.pcap\" }}\nb = {{ write = \"b.pcap\" }}\nc = {{ write = \"c.pcap\" }}\n\
         [device.bond]\nbonded = [\"a\", \"b\", \"c\"]\n{sends}\n\
         [nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n"
    )
}

#[test]
fn a_bond_sends_round_robin_or_by_one_port() {
    let all = flow(0, 30);
    let (_, written) = Chain::new(&bond(""), &[("in", all.clone())]).run(&[]);
    for (at, port) in ["a", "b", "c"].into_iter().enumerate() {
        let wanted: Vec<Vec<u8>> = all.iter().skip(at).step_by(3).cloned().collect();
        assert!(written[port] == wanted, "{port}");
    }
    let (_, written) = Chain::new(&bond("sends = \"b\""), &[("in", all.clone())]).run(&[]);
    assert!(written["a"].is_empty() && written["b"] == all && written["c"].is_empty());
}

#[test]
fn a_bond_keeps_flows_together() {
    let mut all = vec![];
    for n in 0..90u16 {
        let (client, server) = ([10, 0, 1, n as u8], [192, 168, 0, 1]);
        all.push(udp(client, server, (5000 + n, 80), 2 * n));
        all.push(tagged(7, &udp(server, client, (80, 5000 + n), 2 * n + 1)));
        all.push(udp(client, server, (5000 + n, 80), 1000 + n));
    }
    for (way, symmetric) in [("flow-hash", false), ("symmetric-flow-hash", true)] {
        let chain = Chain::new(&bond(&format!("sends = \"{way}\"")), &[("in", all.clone())]);
        for arguments in [&[][..], &["--engine", "evaluator"]] {
            let (_, written) = chain.run(arguments);
            let port_of = |frame: &Vec<u8>| {
                ["a", "b", "c"].into_iter().find(|port| written[*port].contains(frame)).expect("sent")
            };
            let (mut forth, mut back) = (BTreeMap::<&str, usize>::new(), 0);
            for flow in all.chunks(3) {
                assert_eq!(port_of(&flow[0]), port_of(&flow[2]), "one flow by two ports");
                *forth.entry(port_of(&flow[0])).or_default() += 1;
                back += usize::from(port_of(&flow[0]) == port_of(&flow[1]));
            }
            assert!(forth.len() == 3 && forth.values().all(|flows| *flows >= 12), "{way}: {forth:?}");
            assert!(if symmetric { back == 90 } else { back < 60 }, "{way}: {back} of 90 come back there");
        }
    }
}

#[test]
fn every_nf_that_opens_a_device_gets_every_packet_and_an_nf_opens_several() {
    let text = format!(
        "links = [\"pair <-> [0]inline\", \"pair -> [0]one\", \"pair -> [0]two\", \"solo -> [1]two\",\n\
         \"one[1] -> first\", \"two[2] -> second\"]\n[ports]\n{}\
         first = {{ write = \"first.pcap\" }}\nsecond = {{ write = \"second.pcap\" }}\n\
         [device.pair]\nbridged = [\"a\", \"b\"]\n[device.solo]\ndirect = \"c\"\n\
         [nf.inline]\ninline = \"FromDevice(0) -> f :: StoreEtherAddress(9:9:9:9:9:9, dst) -> ToDevice(0);\"\n\
         [nf.one]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n\
         [nf.two]\ninline = \"FromDevice(0) -> out :: ToDevice(2); FromDevice(1) -> out;\"\n",
        both_ways(&["a", "b", "c"])
    );
    let [a, b, c] = [0, 100, 200].map(|from| flow(from, 20));
    let captures = [("a", a.clone()), ("b", b.clone()), ("c", c.clone())];
    let (accounts, written) = Chain::new(&text, &captures).run(&[]);
    let changed = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
        frames.iter().map(|frame| [&[9; 6], &frame[6..]].concat()).collect()
    };
    assert!(written["b-out"] == changed(&a) && written["a-out"] == changed(&b));
    // The others' copies are as the frames came in, whatever the inline NF did.
    assert!(sorted(written["first"].clone()) == sorted([a.clone(), b.clone()].concat()));
    assert!(sorted(written["second"].clone()) == sorted([a, b, c].concat()));
    assert_eq!(accounts.element("pair/openers").made, 80);
}

/// Table 1 of the MVMP paper: ports in rows, devices in columns.
#[test]
fn each_device_gets_what_it_wants_of_each_port() {
    let text = format!(
        "links = [\"bridge0 -> [0]a\", \"bond0 -> [0]b\", \"direct0 -> [0]c\",\n\
         \"a[1] -> x\", \"b[1] -> y\", \"c[1] -> z\"]\n[ports]\n{}\
         x = {{ write = \"x.pcap\" }}\ny = {{ write = \"y.pcap\" }}\nz = {{ write = \"z.pcap\" }}\n\
         [device.bridge0]\nbridged = [\"n1\", \"n2\"]\nreceives = {{ n1 = \"vxlan\", n2 = \"net 192.168.0.0/16\" }}\n\
         [device.bond0]\nbonded = [\"n2\", \"n3\"]\nreceives = {{ n2 = \"net 192.0.0.0/8\", n3 = \"all\" }}\n\
         [device.direct0]\ndirect = \"n5\"\nreceives = \"vlan 1 or 2\"\n\
         [nf.a]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n[nf.b]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n\
         [nf.c]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n",
        both_ways(&["n1", "n2", "n3", "n5"])
    );
    let to = |dst: [u8; 4], port: u16, n: u16| udp([10, 0, 0, 1], dst, (1, port), n);
    let tunnel = to([1, 1, 1, 1], 4789, 1);
    let (inner, outer) = (to([192, 168, 3, 4], 80, 2), to([192, 9, 3, 4], 80, 3));
    let other = to([172, 16, 0, 1], 80, 4);
    let arp = [&A[..], &B, &[8, 6], &[0; 28]].concat();
    let vlans: Vec<Vec<u8>> = (1..=4).map(|id| tagged(id, &inner)).collect();
    let captures = [
        ("n1", vec![tunnel.clone(), other.clone(), arp.clone()]),
        ("n2", vec![inner.clone(), outer.clone(), other.clone(), tunnel.clone(), arp.clone()]),
        ("n3", vec![other.clone(), arp.clone()]),
        ("n5", [vlans.clone(), vec![inner.clone()]].concat()),
    ];
    let chain = Chain::new(&text, &captures);
    for arguments in [&[][..], &["--engine", "evaluator"]] {
        let (accounts, written) = chain.run(arguments);
        assert!(sorted(written["x"].clone()) == sorted(vec![tunnel.clone(), inner.clone()]));
        let of_bond = vec![inner.clone(), outer.clone(), other.clone(), arp.clone()];
        assert!(sorted(written["y"].clone()) == sorted(of_bond));
        assert!(written["z"] == vlans[..2]);
        // What no device of a port wants is dropped at that port.
        for (port, count) in [("n1", 2), ("n2", 3), ("n5", 3)] {
            assert_eq!(drops(&accounts, &format!("{port}/dispatch")), one("unwanted", count), "{port}");
        }
    }
}

#[test]
fn a_device_sees_what_comes_in_what_goes_out_or_both() {
    let text = |sees: &str| {
        format!(
            "links = [\"pair <-> [0]nf\", \"tap -> [0]watch\", \"watch[1] -> seen\"]\n[ports]\n{}\
             seen = {{ write = \"seen.pcap\" }}\n[device.pair]\nbridged = [\"a\", \"b\"]\n\
             [device.tap]\ndirect = \"a\"\nsees = \"{sees}\"\nreceives = \"udp src port 1000-1019 or 1100-1119\"\n\
             [nf.nf]\ninline = \"FromDevice(0) -> StoreEtherAddress(9:9:9:9:9:9, dst) -> ToDevice(0);\"\n\
             [nf.watch]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n",
            both_ways(&["a", "b"])
        )
    };
    let (a, b) = (flow(0, 30), flow(100, 30));
    let sent: Vec<Vec<u8>> = b.iter().map(|frame| [&[9; 6], &frame[6..]].concat()).collect();
    for (sees, wanted) in [
        ("inbound", a[..20].to_vec()),
        ("outbound", sent[..20].to_vec()),
        ("both", [&a[..20], &sent[..20]].concat()),
    ] {
        let (_, written) = Chain::new(&text(sees), &[("a", a.clone()), ("b", b.clone())]).run(&[]);
        assert!(sorted(written["seen"].clone()) == sorted(wanted), "{sees}");
        // Whoever looks on changes nothing.
        assert!(written["a-out"] == sent && written["b-out"].len() == 30, "{sees}");
    }
}

#[test]
fn rootless_devices_join_nfs() {
    // Two: a link. Three: each gets what the others send.
    let two = "links = [\"in -> [0]a\", \"a[1] <-> virt\", \"virt <-> [0]b\", \"a[2] -> out\"]\n\
               [ports]\nin = { capture = \"in.pcap\" }\nout = { write = \"out.pcap\" }\n[device.virt]\nrootless = true\n\
               [nf.a]\ninline = \"FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(2);\"\n\
               [nf.b]\ninline = \"FromDevice(0) -> EtherMirror -> ToDevice(0);\"\n";
    let all = flow(0, 20);
    let (accounts, written) = Chain::new(two, &[("in", all.clone())]).run(&[]);
    let mirrored: Vec<Vec<u8>> =
        all.iter().map(|frame| [&frame[6..12], &frame[..6], &frame[12..]].concat()).collect();
    assert!(written["out"] == mirrored);
    assert!(accounts.elements.iter().all(|element| !element.name.starts_with("virt/")), "nothing but a link");

    let three = "links = [\"in -> [0]a\", \"a[1] -> hub\", \"b[0] -> hub\", \"hub -> [0]b\", \"hub -> [0]c\", \"hub -> [1]a\",\n\
                 \"c[1] -> atc\", \"a[2] -> ata\"]\n\
                 [ports]\nin = { capture = \"in.pcap\" }\natc = { write = \"atc.pcap\" }\nata = { write = \"ata.pcap\" }\n\
                 [device.hub]\nrootless = true\nreceives = \"vlan\"\npeels = [\"vlan\"]\n\
                 [nf.a]\ninline = \"FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(2);\"\n\
                 [nf.b]\ninline = \"FromDevice(0) -> EtherMirror -> VLANEncap(VLAN_ID 5) -> ToDevice(0);\"\n\
                 [nf.c]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n";
    let came = [vec![all[0].clone()], all.iter().map(|frame| tagged(9, frame)).collect()].concat();
    let (accounts, written) = Chain::new(three, &[("in", came)]).run(&[]);
    assert!(written["ata"] == mirrored, "what the others sent, and nothing of its own");
    assert!(sorted(written["atc"].clone()) == sorted([all, mirrored].concat()));
    assert_eq!(drops(&accounts, "hub/dispatch-a"), one("unwanted", 1));
}

#[test]
fn layers_are_peeled_before_an_nf_sees_a_frame() {
    let text = |unpeeled: &str| {
        format!(
            "links = [\"d -> [0]nf\", \"nf[1] -> out\"]\n[ports]\nin = {{ capture = \"in.pcap\" }}\n\
             out = {{ write = \"out.pcap\" }}\n[device.d]\ndirect = \"in\"\npeels = [\"vlan\", \"vxlan\"]\n{unpeeled}\n\
             [nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n"
        )
    };
    let inner = udp([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), 7);
    let mut tunnel = vec![];
    let builder = PacketBuilder::ethernet2(B, A).ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(9, 4789);
    let inside = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &inner].concat();
    builder.write(&mut tunnel, &inside).expect("a frame");
    let cut = tunnel[..60].to_vec();
    let mut strange = tunnel.clone();
    strange[42] = 0;
    let came =
        vec![tagged(5, &tunnel), tunnel.clone(), tagged(6, &inner), inner.clone(), cut, strange, vec![1; 9]];
    let (accounts, written) = Chain::new(&text(""), &[("in", came.clone())]).run(&[]);
    assert!(written["out"] == [inner.clone(), inner.clone(), inner.clone(), inner.clone(), vec![1; 9]]);
    let mut dropped = drops(&accounts, "d/receive");
    dropped.sort();
    assert_eq!(dropped, [one("malformed", 1), one("truncated", 1)].concat());
    let (accounts, written) = Chain::new(&text("unpeeled = \"drop\""), &[("in", came)]).run(&[]);
    assert!(written["out"] == [inner]);
    assert_eq!(drops(&accounts, "d/receive"), one("no-layer", 6));
}

/// The example of the repository: figure 3 of the paper.
fn example(name: &str) -> (Accounts, Written) {
    in_folder(&Folder::with_examples(&["virtual-devices", "captures"]), name)
}

/// Frames by port.
type Written = BTreeMap<&'static str, Vec<Vec<u8>>>;

fn in_folder(folder: &Folder, name: &str) -> (Accounts, Written) {
    let chain = format!("virtual-devices/{name}");
    let accounts = folder.millrace(&["run", &chain, "--json"]).sound().accounts();
    accounts.assert_balanced();
    let written = ["nic1", "nic2", "nic5", "report"];
    let written = written.map(|name| (name, frames(&folder.path(&format!("virtual-devices/{name}.pcap")))));
    (accounts, written.into_iter().collect())
}

#[test]
fn figure_3_does_what_its_devices_say() {
    let captures = Folder::with_examples(&["captures"]);
    let came = |name: &str| frames(&captures.path(&format!("captures/{name}.pcap")));
    let (accounts, written) = example("chain.toml");
    // Into the tunnel by nic1: what came by nic2 for the branch. Out of it by nic2: what came by nic1.
    let is_inside =
        |frame: &Vec<u8>| Ipv4::read(frame).is_some_and(|packet| packet.source.octets()[0] == 192);
    let branch: Vec<Vec<u8>> = came("branch").into_iter().filter(is_inside).collect();
    assert_eq!(branch.len(), 120);
    let tunnelled: Vec<Vec<u8>> = written["nic1"].iter().map(|frame| frame[50..].to_vec()).collect();
    assert!(tunnelled == branch);
    for frame in &written["nic1"] {
        let outer = Ipv4::read(frame).expect("IPv4");
        assert_eq!((outer.ports, &outer.payload[..8]), (Some((49152, 4789)), &[8, 0, 0, 0, 0, 0, 42, 0][..]));
    }
    let whole = |frame: &Vec<u8>| frame[23] == 17 && frame.len() > 70;
    let overlay: Vec<Vec<u8>> =
        came("overlay").into_iter().filter(whole).map(|frame| frame[50..].to_vec()).collect();
    assert_eq!(overlay.len(), 120);
    assert!(written["nic2"] == overlay);
    // The IDS saw both directions of nic2, and the DPI found requests in clear text among them.
    let seen = [&branch[..], &overlay].concat();
    let is_request = |frame: &&Vec<u8>| frame.get(54..57) == Some(b"GET");
    let requests: Vec<Vec<u8>> = seen.iter().filter(is_request).cloned().collect();
    assert!(requests.len() > 10 && sorted(written["report"].clone()) == sorted(requests));
    assert_eq!(accounts.element("bond0/receive").input, 240 + 1000);
    // The firewall turns VLANs around; the IPS drops what begins a session with SSH.
    let turned = |frame: &Vec<u8>| (frame[15], &frame[18..]) == (1, &frame[18..]) || frame[15] == 2;
    assert!(!written["nic5"].is_empty() && written["nic5"].iter().all(turned));
    let port = |frame: &Vec<u8>| u16::from_be_bytes([frame[40], frame[41]]);
    let is_syn = |frame: &Vec<u8>| frame[27] == 6 && frame[51] & 2 != 0;
    assert!(written["nic5"].iter().all(|frame| port(frame) != 23 && !(port(frame) == 22 && is_syn(frame))));
    assert_eq!(drops(&accounts, "nic5/dispatch"), one("unwanted", 24));
    assert_eq!(drops(&accounts, "nic1/dispatch"), one("unwanted", 6));
    assert_eq!(drops(&accounts, "bridge0/receive"), one("truncated", 1));
    assert!(!drops(&accounts, "ips/scan").is_empty() && !drops(&accounts, "firewall/rules").is_empty());
}

#[test]
fn devices_are_the_same_for_nfs_in_processes() {
    let folder = Folder::with_examples(&["virtual-devices", "captures"]);
    let chain = std::fs::read_to_string(folder.path("virtual-devices/chain.toml")).expect("an example");
    let (expected, frames) = example("chain.toml");
    let all = ["gateway", "ids", "dpi", "firewall", "ips"];
    let runs = all.map(|nf| chain.replace(&format!("[nf.{nf}]"), &format!("[nf.{nf}]\nruns = \"process\"")));
    for (nf, text) in all.iter().zip(runs) {
        folder.write("virtual-devices/chain.toml", &text);
        assert_same(nf, &expected, &frames, in_folder(&folder, "chain.toml"));
    }
    assert_same("all", &expected, &frames, example("processes.toml"));
    // NFs of one trust group hand packets through rootless devices by themselves.
    let text = std::fs::read_to_string(folder.path("virtual-devices/processes.toml")).expect("an example");
    let ours = text.replace("runs = \"process\"", "runs = \"process\"\ntrust = \"ours\"");
    folder.write("virtual-devices/chain.toml", &ours);
    let run = [
        "run",
        "virtual-devices/chain.toml",
        "--json",
        "-H",
        "ids/process.passed",
        "-H",
        "firewall/process.passed",
    ];
    let passed = folder.millrace(&run).sound().accounts().handlers;
    let count = |handler: &str| passed[handler].as_str().and_then(|count| count.parse::<u64>().ok());
    assert_eq!((count("ids/process.passed"), count("firewall/process.passed")), (Some(80), Some(41)));
    assert_same("one group", &expected, &frames, in_folder(&folder, "chain.toml"));
}

/// The same packets at each port, in some order, and the same counters of what devices did.
fn assert_same(what: &str, expected: &Accounts, frames: &Written, (accounts, same): (Accounts, Written)) {
    assert_eq!((accounts.received, accounts.sent), (expected.received, expected.sent), "{what}");
    for (port, frames) in frames {
        assert!(sorted(same[port].clone()) == sorted(frames.clone()), "{what}: other frames at {port}");
    }
    let of_device = |name: &str| ["nic", "bridge0", "bond0", "direct0"].iter().any(|of| name.starts_with(of));
    for element in expected.elements.iter().filter(|element| of_device(&element.name)) {
        let other = accounts.element(&element.name);
        assert_eq!(
            (other.input, other.made, &other.outputs, &other.dropped),
            (element.input, element.made, &element.outputs, &element.dropped),
            "{what}: {}",
            element.name
        );
    }
}

#[test]
fn an_observer_opens_a_device_that_others_work_on() {
    let text = format!(
        "links = [\"pair <-> [0]nf\", \"pair -> [0]watch\", \"busy -> [0]sink\"]\n[ports]\n{}\
         busy = {{ traffic = {{}} }}\n[device.pair]\nbridged = [\"a\", \"b\"]\n\
         [nf.nf]\ninline = \"FromDevice(0) -> StoreEtherAddress(9:9:9:9:9:9, dst) -> ToDevice(0);\"\n\
         [nf.sink]\ninline = \"FromDevice(0) -> Discard;\"\n\
         [nf.watch]\nruns = \"process\"\naccess = \"observe\"\nconfine = false\n\
         inline = \"FromDevice(0) -> ToDump(seen.pcap);\"\n",
        both_ways(&["a", "b"])
    );
    // The end of a run waits for no observer: other traffic gives it time.
    let (a, b) = (flow(0, 40), flow(100, 40));
    let chain = Chain::new(&text, &[("a", a.clone()), ("b", b.clone())]);
    let (accounts, written) = chain.run(&["-H", "watch/process.missed", "--for", "1"]);
    assert_eq!(accounts.handlers["watch/process.missed"].as_str(), Some("0"));
    // It stands in front of who works on them, and nobody made a copy for it.
    assert_eq!(accounts.element("watch/process").outputs, [80]);
    assert_eq!(accounts.element("watch/process").dropped.iter().map(|(_, count)| count).sum::<u64>(), 0);
    assert_eq!(accounts.elements.iter().map(|element| element.made).sum::<u64>(), 0);
    let seen = frames(&chain.folder.path("seen.pcap"));
    assert!(sorted(seen) == sorted([a.clone(), b.clone()].concat()));
    assert_eq!((written["a-out"].len(), written["b-out"].len()), (40, 40));
    assert!(written["a-out"].iter().chain(&written["b-out"]).all(|frame| frame[..6] == [9; 6]));
}

/// Whoever looks on keeps packets until there is no memory left: it is copies that are missing then.
#[test]
fn who_looks_on_takes_no_packet_from_others() {
    let text = |kind: &str| {
        format!(
            "links = [\"pair <-> [0]nf\", \"{kind} -> [0]keep\"]\n[ports]\n{}[device.pair]\nbridged = [\"a\", \"b\"]\n\
             {}[nf.keep]\ninline = \"FromDevice(0) -> Queue(100000) -> Idle;\"\n\
             [nf.nf]\ninline = \"FromDevice(0) -> ToDevice(0);\"\n",
            both_ways(&["a", "b"]),
            match kind {
                "out" => "[device.out]\nbonded = [\"a\", \"b\"]\nsees = \"outbound\"\n",
                "in" => "[device.in]\nbonded = [\"a\", \"b\"]\n",
                _ => "",
            }
        )
    };
    let (a, b) = (flow(0, 3000), flow(5000, 3000));
    for (kind, copies) in [("pair", "pair/openers"), ("in", "a/dispatch"), ("out", "b/sent")] {
        let chain = Chain::new(&text(kind), &[("a", a.clone()), ("b", b.clone())]);
        let handler = format!("{copies}.copy_failures");
        let (accounts, written) = chain.run(&["--slots", "1024", "-H", &handler]);
        assert!(written["b-out"] == a && written["a-out"] == b, "{kind}");
        let failures = accounts.handlers[&handler].as_str().and_then(|count| count.parse::<u64>().ok());
        assert!(failures.is_some_and(|failures| failures > 1000), "{kind}: {failures:?}");
    }
}

/// As ports of DPDK's drivers have them, packets know where they came in, too.
#[test]
fn devices_of_dpdk_are_bridged() {
    let text = "links = [\"pair <-> nf\"]\n[ports]\n\
                a = { device = \"net_pcap0,rx_pcap=a.pcap,tx_pcap=a-out.pcap\" }\n\
                b = { device = \"net_pcap1,rx_pcap=b.pcap,tx_pcap=b-out.pcap\" }\n\
                [device.pair]\nbridged = [\"a\", \"b\"]\npeels = [\"vlan\"]\n\
                [nf.nf]\ninline = \"FromDevice(0) -> ToDevice(0);\"\n";
    let (a, b) = (flow(0, 50), flow(100, 40));
    let came: Vec<Vec<u8>> = a.iter().map(|frame| tagged(3, frame)).collect();
    let chain = Chain::new(text, &[("a", came), ("b", b.clone())]);
    let (accounts, _) = chain.run(&["--for", "1"]);
    assert_eq!((accounts.received, accounts.sent), (90, 90));
    let written = |name: &str| frames(&chain.folder.path(name));
    assert!(written("b-out.pcap") == a && written("a-out.pcap") == b);
}

#[test]
fn two_workers_do_the_same() {
    let text = format!(
        "links = [\"pair <-> [0]nf\", \"tap -> [0]watch\", \"watch[1] -> seen\"]\n[ports]\n{}\
         seen = {{ write = \"seen.pcap\" }}\n[device.pair]\nbridged = [\"a\", \"b\"]\n\
         [device.tap]\nbonded = [\"a\", \"b\"]\nsees = \"both\"\n\
         [nf.nf]\ninline = \"FromDevice(0) -> ToDevice(0);\"\n[nf.watch]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n",
        "a = { traffic = { flows = 50, size = \"imix\" }, count = 1000, write = \"a.pcap\" }\n\
         b = { traffic = { flows = 50, size = \"64\" }, count = 1000, write = \"b.pcap\" }\n"
    );
    let chain = Chain::new(&text, &[]);
    for workers in ["1", "2"] {
        let (accounts, written) = chain.run(&["--workers", workers]);
        assert_eq!((accounts.received, accounts.sent), (2000, 6000));
        // Each packet was seen where it came in and where it left.
        let left = [&written["a"][..], &written["b"]].concat();
        assert!(sorted(written["seen"].clone()) == sorted([&left[..], &left].concat()), "{workers} workers");
    }
}

#[test]
fn mistakes_of_devices_are_told_at_their_text() {
    let text = "links = [\"d -> [0]nf\"]\n[ports]\np = { discard = true }\n[device.d]\n\
                bonded = [\"p\", \"q\"]\nreceives = \"tcp prot 80\"\npeels = [\"vlam\"]\n\
                [device.e]\ndirect = \"p\"\n[nf.nf]\ninline = \"FromDevice(0) -> Conter -> Discard;\"\n";
    let folder = Folder::new();
    folder.write("chain.toml", text);
    let check = folder.millrace(&["check", "chain.toml", "--short"]);
    assert_eq!(check.code, Some(2));
    for part in [
        "chain.toml:5:17: error: there is no port `q`",
        "chain.toml:6:17: error: `prot` is no address",
        "chain.toml:7:11: error: nothing here can peel `vlam`; did you mean `vlan`?",
        "chain.toml:8:9: error: nobody opens device `e`",
        "chain.toml:11:28: error: unknown element class `Conter`",
    ] {
        assert!(check.stderr.contains(part), "{part} is missing in\n{}", check.stderr);
    }
}
