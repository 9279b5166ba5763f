//! Taps: the packets that they receive in place, the packets that are sent on, and the cases in which they
//! receive copies.

use crate::accounts::Accounts;
use crate::frames::udp;
use crate::run::{Frame, millrace, read, shipped, write};
use serde::Deserialize;
use std::process::{Command, Output};

/// The output of a run.
struct Told {
    accounts: Accounts,
    hints: Vec<String>,
}

#[derive(Deserialize)]
struct Hints {
    hints: Vec<String>,
}

impl Told {
    fn read(output: &Output) -> Told {
        let told = String::from_utf8_lossy(&output.stderr);
        let accounts = Accounts::read(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        accounts.assert_balanced();
        let Hints { hints } = serde_json::from_slice(&output.stdout).expect("hints");
        Told { accounts, hints }
    }

    fn handler(&self, nf: &str, handler: &str) -> &str {
        self.accounts.handlers[&format!("{nf}/process.{handler}")].as_str().expect("a text")
    }

    fn number(&self, nf: &str, handler: &str) -> u64 {
        self.handler(nf, handler).trim().parse().expect("a number")
    }

    /// The reasons why taps received copies.
    fn why_copies(&self) -> Vec<&String> {
        self.hints.iter().filter(|hint| hint.contains("is shown copies")).collect()
    }

    /// Packets that an NF received.
    fn seen(&self, nf: &str) -> u64 {
        let line = self.handler(nf, "counters").lines().find_map(|line| line.strip_prefix("packets "));
        line.map_or(0, |count| count.parse().expect("a number"))
    }
}

/// Fewer than a ring holds: no NF misses a packet.
fn frames() -> Vec<Frame> {
    (0..600u32)
        .map(|number| {
            udp("10.0.0.1:1", "10.0.0.2:2", &number.to_be_bytes().repeat(1 + number as usize % 300))
        })
        .collect()
}

/// Runs a chain whose port `in` receives these frames, and whose port `out` writes a capture.
fn run(chain: &str, taps: &[&str], more: &[&str]) -> (Vec<Frame>, Told) {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("in.pcap"), &frames());
    let program = shipped("monitor").display().to_string();
    let chain = chain.replace("MONITOR", &format!("program = \"{program}\""));
    let ports = "[ports]\nin = { capture = \"in.pcap\" }\nout = { write = \"out.pcap\" }\n";
    std::fs::write(folder.path().join("chain.toml"), chain.replace("PORTS", ports)).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json"]).args(more);
    for tap in taps {
        for handler in ["copied", "missed", "counters"] {
            run.args(["-H", &format!("{tap}/process.{handler}")]);
        }
    }
    let output = run.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{chain}");
    (read(&folder.path().join("out.pcap")), Told::read(&output))
}

#[test]
fn packets_go_on_while_taps_read_them() {
    let chain = "links = [\"in -> [0]one[1] -> [0]two[1] -> out\"]\nPORTS
        [nf.one]\nMONITOR\naccess = \"tap\"\n[nf.two]\nMONITOR\naccess = \"tap\"\n";
    for workers in ["1", "2"] {
        let (out, told) = run(chain, &["one", "two"], &["--workers", workers]);
        assert_eq!(out.len(), 600);
        assert!(out == frames(), "other frames, or in another order");
        for tap in ["one", "two"] {
            assert_eq!((told.number(tap, "copied"), told.number(tap, "missed")), (0, 0));
            assert_eq!(told.seen(tap), 600);
        }
        assert_eq!(told.why_copies(), [""; 0]);
    }
}

#[test]
fn what_is_written_behind_a_tap_is_copied_for_it() {
    let chain = "links = [\"in -> [0]tap[1] -> [a]router[b] -> [0]after[1] -> out\"]\nPORTS
        [nf.tap]\nMONITOR\naccess = \"tap\"\n[nf.after]\nMONITOR\naccess = \"tap\"
        [nf.router]\ninline = 'FromDevice(a) -> Strip(14) -> CheckIPHeader -> ttl :: DecIPTTL -> Unstrip(14) -> Queue -> ToDevice(b)'\n";
    let (out, told) = run(chain, &["tap", "after"], &[]);
    assert_eq!((told.seen("tap"), told.seen("after"), out.len()), (600, 600, 600));
    assert_eq!((told.number("tap", "copied"), told.number("after", "copied")), (600, 0));
    assert_eq!(told.why_copies(), ["NF `tap` is shown copies: `router/ttl`, behind it, may write them"]);
}

#[test]
fn a_tap_of_the_only_trust_group_is_shown_copies() {
    let chain = "links = [\"in -> [0]nf[1] -> [0]tap[1] -> out\"]\nPORTS
        [nf.tap]\nMONITOR\naccess = \"tap\"\ntrust = \"nf\"\n[nf.nf]\nMONITOR\n";
    let (out, told) = run(chain, &["tap", "nf"], &[]);
    assert_eq!((told.seen("tap"), told.number("tap", "copied"), out.len()), (600, 600, 600));
    assert_eq!(told.number("nf", "copied"), 0, "it works where the port receives");
    assert_eq!(told.why_copies(), ["NF `tap` is shown copies: its trust group works where ports receive"]);
}

/// Also together with one trust group, to which the tap does not belong: that group does not change the tap's
/// packets.
#[test]
fn a_tap_beside_a_trust_group_reads_in_place() {
    let chain = "links = [\"in -> [0]nf[1] -> [0]tap[1] -> out\"]\nPORTS
        [nf.tap]\nMONITOR\naccess = \"tap\"\n[nf.nf]\nMONITOR\n";
    let (out, told) = run(chain, &["tap", "nf"], &[]);
    assert!(out == frames());
    assert_eq!((told.seen("tap"), told.number("tap", "copied")), (600, 0));
    assert_eq!(told.number("nf", "copied"), 1200, "in and out");
}

/// `Unstrip` moves bytes if the headroom is too small, but not those that a tap still reads.
#[test]
fn bytes_do_not_move_while_a_tap_reads_them() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("in.pcap"), &frames()[..100]);
    let chain = "links = [\"in -> [0]tap[1] -> [a]nf[b] -> out\", \"endless -> [a]sink\"]
        [ports]\nendless = { traffic = { flows = 1 } }\nin = { capture = \"in.pcap\" }\nout = { write = \"out.pcap\" }
        [nf.tap]\ninline = 'FromDevice(0) -> Queue -> DelayUnqueue(0.05) -> ToDump(seen.pcap); Idle -> ToDevice(1)'
        runs = \"process\"\naccess = \"tap\"\nconfine = false
        [nf.sink]\ninline = 'FromDevice(a) -> Discard'
        [nf.nf]\ninline = 'FromDevice(a) -> Unstrip(200) -> Strip(200) -> Queue -> ToDevice(b)'\n";
    let seen = folder.path().join("seen.pcap");
    let chain = chain.replace("seen.pcap", &seen.display().to_string());
    std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args([
        "run",
        "chain.toml",
        "--json",
        "-H",
        "tap/process.copied",
        "--for",
        "1",
    ]);
    let output = run.output().expect("it runs");
    assert_eq!(Told::read(&output).number("tap", "copied"), 0);
    assert!(read(&folder.path().join("out.pcap")) == frames()[..100]);
    let seen = read(&seen);
    assert!(seen.len() > 5 && seen == frames()[..seen.len()], "{} frames, or other ones", seen.len());
}

/// Packets that taps have released return to the common pool.
#[test]
fn taps_leave_ports_their_slots() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = shipped("monitor").display().to_string();
    let mut chain = "links = [\"in -> [0]a[1] -> [0]b[1] -> [0]c[1] -> out\"]\n[ports]
        in = { traffic = { flows = 10, size = \"64\" }, count = 500000 }\nout = { discard = true }\n"
        .to_string();
    for nf in ["a", "b", "c"] {
        chain += &format!("[nf.{nf}]\nprogram = \"{program}\"\naccess = \"tap\"\n");
    }
    std::fs::write(folder.path().join("chain.toml"), &chain).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json", "--slots", "512", "--for", "60"]);
    let output = run.output().expect("it runs");
    assert_eq!(Told::read(&output).accounts.sent, 500_000);
}

#[test]
fn a_tap_beside_two_trust_groups_sees_what_they_send() {
    let chain = "links = [\"in -> [0]a[1] -> [0]b[1] -> [0]tap[1] -> out\"]\nPORTS
        [nf.a]\nMONITOR\n[nf.b]\nMONITOR\n[nf.tap]\nMONITOR\naccess = \"tap\"\n";
    let (out, told) = run(chain, &["tap", "a"], &[]);
    assert!(out == frames());
    assert_eq!((told.seen("tap"), told.number("tap", "copied")), (600, 0));
    assert_eq!(told.number("a", "copied"), 1200, "in and out");
    assert_eq!(told.why_copies(), [""; 0], "that is what trust groups are for");
}

#[test]
fn nobody_is_copied_for_who_only_looks_at_a_device() {
    let chain = "links = [\"wan -> [0]one\", \"wan -> [0]two\", \"wan -> [a]three\", \"wan -> [0]nf[1] -> out\"]\nPORTS
        [device.wan]\ndirect = \"in\"
        [nf.one]\nMONITOR\ninterfaces = [\"0\"]\naccess = \"tap\"
        [nf.two]\nMONITOR\ninterfaces = [\"0\"]\naccess = \"observe\"
        [nf.three]\ninline = 'FromDevice(a) -> counter :: Counter -> Discard'\nruns = \"process\"\naccess = \"tap\"
        [nf.nf]\ninline = 'FromDevice(0) -> Queue -> ToDevice(1)'\n";
    let (out, told) = run(chain, &["one", "two", "three"], &[]);
    assert!(out == frames());
    assert_eq!((told.seen("one"), told.number("one", "copied")), (600, 0));
    assert_eq!((told.seen("two"), told.number("two", "copied")), (600, 600));
    assert_eq!((told.number("three", "missed"), told.number("three", "copied")), (0, 0));
    assert_eq!(
        told.accounts.elements.iter().map(|element| element.made).sum::<u64>(),
        0,
        "no copy is a packet"
    );
    assert_eq!(told.accounts.element("three/process").input, 600);
}
