//! Chains in which every flow has both ways: hosts answer what leaves, and the answers come back through the same NFs.
//! Modular, fused, and with a flow cache they give the same packets and the same counters of every element.

use crate::accounts::Accounts;
use crate::captures::frames;
use crate::packets::Ipv4;
use crate::program::Folder;
use std::net::Ipv4Addr;

/// The execution modes, modular first, as options of `run`.
const MODES: [&[&str]; 4] = [
    &["--as", "modular"],
    &["--as", "fused", "--cache", "never"],
    &["--as", "fused", "--cache", "off"],
    &["--as", "fused", "--cache", "eager"],
];

/// The counters of each element, as text.
fn counters(accounts: &Accounts) -> Vec<String> {
    accounts.elements.iter().map(|element| format!("{element:?}")).collect()
}

/// Runs a chain in all execution modes. Returns the accounts of the last one, with a flow cache, and the frames of the
/// captures that it wrote, in an order that does not depend on the mode.
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
