//! `gen`: the same options give the same bytes, and others read them.

use crate::captures::{self, tshark};
use crate::packets::Ipv4;
use crate::program::Folder;
use std::collections::BTreeSet;

fn made(folder: &Folder, name: &str, options: &[&str]) -> Vec<u8> {
    folder.millrace(&[&["gen", name], options].concat()).sound();
    std::fs::read(folder.path(name)).expect("written")
}

#[test]
fn the_same_options_give_the_same_bytes() {
    let folder = Folder::new();
    let options = ["-n", "2000", "--size", "imix", "--flows", "50", "--protocols", "tcp:50,udp:40,icmp:10"];
    let first = made(&folder, "a.pcap", &options);
    assert_eq!(first, made(&folder, "b.pcap", &options));
    assert_ne!(first, made(&folder, "c.pcap", &[&options[..], &["--seed", "2"]].concat()));
    let piped = folder.millrace(&[&["gen", "-"], &options[..], &["--quiet"]].concat()).sound();
    assert_eq!(first, piped.stdout);
}

#[test]
fn frames_are_whole_and_as_many_as_asked_for() {
    let folder = Folder::new();
    made(&folder, "a.pcap", &["-n", "3000", "--flows", "300", "--protocols", "tcp:60,udp:40"]);
    let frames = captures::frames(&folder.path("a.pcap"));
    assert_eq!(frames.len(), 3000);
    let flows: BTreeSet<_> =
        frames.iter().map(|frame| Ipv4::read(frame).expect("IPv4").flow().expect("ports")).collect();
    assert_eq!(flows.len(), 300);
    if let Some(rows) = tshark(&folder.path("a.pcap"), &["ip.checksum.status", "_ws.malformed"]) {
        assert_eq!(rows.len(), 3000);
        assert!(rows.iter().all(|row| row[0] == "1" && row[1].is_empty()));
    }
}

#[test]
fn sizes_are_mixed_as_asked_for() {
    let folder = Folder::new();
    let lengths = |name: &str, options: &[&str]| {
        made(&folder, name, options);
        let mut lengths: Vec<usize> =
            captures::frames(&folder.path(name)).iter().map(|frame| frame.len() + 4).collect();
        lengths.sort();
        lengths
    };
    // Seven, four and one of twelve, by chance.
    let imix = lengths("imix.pcap", &["-n", "12000", "--size", "imix"]);
    let of = |size| imix.iter().filter(|length| **length == size).count();
    let (short, middle, long) = (of(64), of(594), of(1518));
    assert_eq!(short + middle + long, 12000);
    assert!(short.abs_diff(7000) < 300 && middle.abs_diff(4000) < 300, "{short}, {middle}, {long}");
    let data_centre = lengths("dc.pcap", &["-n", "5000", "--size", "data-centre"]);
    let median = data_centre[data_centre.len() / 2];
    assert!((100..=140).contains(&median), "median {median}");
    let uniform = lengths("uniform.pcap", &["-n", "5000", "--size", "64-1518"]);
    assert!(uniform[0] < 80 && uniform[4999] > 1500 && (700..900).contains(&uniform[2500]));
    assert_eq!(lengths("long.pcap", &["-n", "10", "--size", "9216"]), [9216; 10]);
}

#[test]
fn rules_are_hit() {
    let folder = Folder::new();
    folder.write(
        "acl.rules",
        "@10.1.0.0/16\t192.0.2.0/24\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\n\
         @10.2.0.0/16\t198.51.100.7/32\t0 : 65535\t53 : 53\t0x11/0xFF\t0x0000/0x0000\n",
    );
    made(&folder, "acl.pcap", &["-n", "400", "--acl", "acl.rules", "--flows", "100"]);
    let packets = captures::frames(&folder.path("acl.pcap"));
    let mut hits = [0, 0];
    for packet in packets.iter().map(|frame| Ipv4::read(frame).expect("IPv4")) {
        match (packet.source.octets()[1], packet.destination.octets(), packet.protocol, packet.ports) {
            (1, [192, 0, 2, _], 6, Some((_, 80))) => hits[0] += 1,
            (2, [198, 51, 100, 7], 17, Some((_, 53))) => hits[1] += 1,
            _ => panic!("{packet:?} hits no rule"),
        }
    }
    assert_eq!(hits, [200, 200]);
}

#[test]
fn what_was_made_up_runs_through_a_chain() {
    let folder = Folder::new();
    made(&folder, "in.pcap", &["-n", "5000", "--size", "data-centre", "--flows", "100"]);
    folder.write("all.click", "FromDevice(in.pcap) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(out.pcap);");
    let accounts = folder.millrace(&["run", "all.click", "--json"]).sound().accounts();
    accounts.assert_balanced();
    assert_eq!((accounts.sent, accounts.dropped), (5000, 0));
    let ttls =
        captures::frames(&folder.path("out.pcap")).into_iter().map(|f| Ipv4::read(&f).expect("IPv4").ttl);
    assert!(ttls.into_iter().all(|ttl| ttl == 63));
}

#[test]
fn wrong_options_are_refused_with_their_remedy() {
    let folder = Folder::new();
    let refused = folder.millrace(&["gen", "a.pcap", "--size", "0"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--size"), "{}", refused.stderr);
    let refused = folder.millrace(&["gen", "no/folder/a.pcap", "-n", "1"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no/folder"), "{}", refused.stderr);
}
