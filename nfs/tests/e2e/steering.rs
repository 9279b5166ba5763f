//! Several instances of an NF behave like one.

use crate::run::{millrace, shipped};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::Command;

#[derive(Deserialize)]
struct Accounts {
    sent: u64,
    dropped: u64,
    imbalance: i64,
    slots_lost: u64,
    handlers: BTreeMap<String, String>,
}

/// Inside hosts send packets, outside hosts answer, and the firewall passes the answers. Returns the answers,
/// sorted by their bytes, and the accounts with the counters of each instance.
fn run(keys: &str, instances: &[&str]) -> (Vec<Vec<u8>>, Accounts) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = shipped("firewall").display().to_string();
    let chain = format!(
        "links = [\"lan <-> [lan]wall[wan] <-> [0]outside\"]
         [ports]
         lan = {{ traffic = {{ flows = 300, size = \"imix\", seed = 3 }}, count = 6000, write = \"back.pcap\" }}
         [nf.wall]
         program = \"{program}\"
         interfaces = [\"lan\", \"wan\"]
         config = '''\nstateful = true\n[[rule]]\naction = \"allow\"\ninterface = \"lan\"\n'''
         {keys}
         [nf.outside]
         inline = \"FromDevice(0) -> MarkIPHeader(14) -> IPMirror -> EtherMirror -> ToDevice(0);\"\n"
    );
    std::fs::write(folder.path().join("chain.toml"), &chain).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json"]);
    for instance in instances {
        run.args(["-H".into(), format!("{instance}/process.counters")]);
    }
    let output = run.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{chain}");
    let mut capture = std::fs::read(folder.path().join("back.pcap")).expect("a capture").split_off(24);
    let mut frames = vec![];
    while !capture.is_empty() {
        let length = capture.get(8..12).expect("a record").try_into().expect("four bytes");
        let rest = capture.split_off(16 + u32::from_le_bytes(length) as usize);
        frames.push(capture.split_off(16));
        capture = rest;
    }
    frames.sort();
    (frames, serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}")))
}

#[test]
fn instances_of_a_stateful_firewall_let_all_answers_through() {
    let (expected, alone) = run("", &["wall"]);
    assert_eq!((expected.len(), alone.sent, alone.dropped), (6000, 6000, 0));
    let names = ["wall.1", "wall.2", "wall.3"];
    let by_state = |accounts: &Accounts| -> Vec<u64> {
        let counter = |text: &String| {
            let line = text.lines().find_map(|line| line.strip_prefix("allowed-by-state "));
            line.map_or(0, |count| count.parse().expect("a number"))
        };
        accounts.handlers.values().map(counter).collect()
    };
    for trust in ["", "trust = \"ours\""] {
        let (frames, accounts) = run(&format!("instances = 3\n{trust}"), &names);
        assert_eq!((accounts.sent, accounts.dropped), (6000, 0));
        assert_eq!((accounts.imbalance, accounts.slots_lost), (0, 0));
        assert!(frames == expected, "other frames");
        let states = by_state(&accounts);
        assert!(states.len() == 3 && states.iter().all(|count| *count > 1000), "{states:?}");
    }
    // If the two directions of a flow have different instances, the answers are dropped.
    let (_, apart) = run("instances = 3\nsteer = \"source\"", &names);
    assert!(apart.dropped > 1000, "{}", apart.dropped);
    let (frames, _) = run("instances = 3\nsteer = { lan = \"source\", wan = \"destination\" }", &names);
    assert!(frames == expected, "other frames");
}
