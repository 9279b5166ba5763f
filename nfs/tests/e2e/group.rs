//! NFs of one trust group that pass packets on directly: a chain has the same result as with the host in
//! between.

use crate::run::{millrace, shipped};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::Command;

#[derive(Deserialize)]
struct Accounts {
    imbalance: i64,
    slots_lost: u64,
    handlers: BTreeMap<String, String>,
    elements: Vec<Node>,
}

/// An element's accounts.
#[derive(PartialEq, Eq, Debug, Deserialize)]
struct Node {
    name: String,
    input: u64,
    outputs: Vec<u64>,
    made: u64,
    sent: u64,
    held: i64,
    dropped: Vec<(String, u64)>,
}

const NFS: [&str; 3] = ["first", "filter", "last"];

/// The results of a chain of three NFs with packets in both directions, each NF in a trust group: both
/// captures, and accounts.
fn run(trust: [&str; 3], more: &str) -> ([Vec<u8>; 2], Accounts) {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = "[[rule]]\naction = \"deny\"\nprotocol = \"udp\"\nto-port = \"0-20000\"\n[[rule]]\naction = \"allow\"\n";
    let mut chain = "
        links = [
            \"a -> [0]first[1] -> [0]filter[1] -> [0]last[1] -> b\",
            \"b -> [1]last[0] -> [1]filter[0] -> [1]first[0] -> a\",
        ]
        [ports]
        a = { traffic = { flows = 300, size = \"imix\", seed = 1 }, count = 6000, write = \"a.pcap\" }
        b = { traffic = { flows = 300, size = \"imix\", seed = 2 }, count = 5000, write = \"b.pcap\" }\n"
        .to_string();
    for ((nf, kind), trust) in NFS.into_iter().zip(["monitor", "firewall", "monitor"]).zip(trust) {
        let program = shipped(kind).display().to_string();
        let config = if kind == "firewall" { rules } else { "" };
        chain += &format!(
            "[nf.{nf}]\nprogram = \"{program}\"\nconfig = '''{config}'''\ntrust = \"{trust}\"\n{more}\n"
        );
    }
    std::fs::write(folder.path().join("chain.toml"), &chain).expect("written");
    let handlers = NFS.map(|nf| format!("{nf}/process.passed"));
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json"]);
    for handler in &handlers {
        run.args(["-H", handler]);
    }
    let output = run.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{chain}");
    let captures =
        ["a.pcap", "b.pcap"].map(|name| std::fs::read(folder.path().join(name)).expect("a capture"));
    (captures, serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}")))
}

fn passed(accounts: &Accounts) -> Vec<u64> {
    accounts.handlers.values().map(|count| count.parse().expect("a number")).collect()
}

#[test]
fn a_chain_means_the_same_with_the_host_in_between() {
    let (captures, accounts) = run(["a", "b", "c"], "");
    assert_eq!(passed(&accounts), [0, 0, 0], "each has its own memory");
    for trust in [["all", "all", "all"], ["two", "two", "other"], ["other", "two", "two"]] {
        let (others, other) = run(trust, "");
        assert_eq!((other.imbalance, other.slots_lost), (0, 0), "{trust:?}");
        // The NFs start one after the other, and packets that arrive meanwhile pass through the host.
        assert!(passed(&other).iter().sum::<u64>() > 3000, "{trust:?}: {:?}", other.handlers);
        assert_eq!(other.elements, accounts.elements, "{trust:?}");
        for (mine, theirs) in captures.iter().zip(&others) {
            assert!(mine == theirs, "{trust:?}: other frames, or in another order");
        }
    }
}

/// Slots that were granted to NFs for new packets do not count as packets between NFs.
#[test]
fn many_that_make_packets_leave_room_for_those_that_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut chain = "links = [\"in -> [0]a[1] -> [0]b[1] -> [0]c[1] -> out\"]
        [ports]
        in = { traffic = { flows = 10, size = \"64\" }, count = 20000 }
        out = { discard = true }\n"
        .to_string();
    for nf in ["a", "b", "c"] {
        let click = "FromDevice(0) -> Queue -> ToDevice(1);";
        chain += &format!("[nf.{nf}]\ninline = '{click}'\nruns = \"process\"\ntrust = \"all\"\n");
    }
    std::fs::write(folder.path().join("chain.toml"), &chain).expect("written");
    let output =
        Command::new(millrace()).current_dir(folder.path()).args(["run", "chain.toml", "--json"]).output();
    let output = output.expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((json["sent"].as_u64(), json["dropped"].as_u64()), (Some(20000), Some(0)), "{json}");
}
