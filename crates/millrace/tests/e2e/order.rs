//! What chains do, and what they remember, is as if packets came one by one: at every burst size and in every
//! execution mode, packets leave in the order in which they came.

use crate::accounts::Accounts;
use crate::program::Folder;
use std::path::PathBuf;

/// How a chain runs, the first as the others are to do.
const RUNS: [&[&str]; 7] = [
    &["--burst", "1"],
    &[],
    &["--burst", "5"],
    &["--burst", "200"],
    &["--as", "fused"],
    &["--as", "fused", "--cache", "eager"],
    &["--as", "fused", "--burst", "200", "--engine", "evaluator"],
];

/// Chains over a capture `IN`, that write `1` and `2`.
const CHAINS: [(&str, &str); 6] = [
    (
        "branches meet",
        "FromDump(IN, STOP true) -> Strip(14) -> MarkIPHeader -> c :: IPClassifier(ip len > 100, tcp, -)
         -> Paint(1) -> d :: ToDump(1); c[1] -> d; c[2] -> SetIPDSCP(3) -> d;",
    ),
    (
        "a switch that learns behind two branches",
        "FromDump(IN, STOP true) -> c :: Classifier(5/00%01, -); c[0] -> [0] s :: EtherSwitch; c[1] -> [1] s;
         s[0] -> ToDump(1); s[1] -> ToDump(2); Idle -> [2] s; s[2] -> Discard;",
    ),
    (
        "packets are cut between NAPT and port",
        "FromDump(IN, STOP true) -> Strip(14) -> CheckIPHeader(CHECKSUM false) -> IPGWOptions(10.0.0.1)
         -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, drop)
         -> f :: IPFragmenter(200, HONOR_DF false) -> c :: IPClassifier(ip frag, -)
         -> d :: ToDump(1); c[1] -> SetIPDSCP(1) -> d; nat[1] -> Discard;",
    ),
    (
        "packets are distributed in turn",
        "FromDump(IN, STOP true) -> Strip(14) -> CheckIPHeader(CHECKSUM false) -> IPGWOptions(10.0.0.1)
         -> r :: RoundRobinSwitch -> Paint(1)
         -> u :: EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDump(1); r[1] -> u;
         r[2] -> IPFragmenter(300, HONOR_DF false) -> u; r[3] -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> u;",
    ),
    (
        "copies meet",
        "FromDump(IN, STOP true) -> t :: Tee(3); t[0] -> Truncate(40) -> d :: ToDump(1); t[1] -> Truncate(60) -> d;
         t[2] -> d;",
    ),
    (
        "a count changes where packets go",
        "FromDump(IN, STOP true) -> s :: Switch(0) -> Counter(COUNT_CALL 20 s.switch 1) -> d :: ToDump(1);
         s[1] -> Counter(COUNT_CALL 7 s.switch 0, BYTE_COUNT_CALL 9000 s.switch 2) -> ToDump(2); s[2] -> d;",
    ),
];

fn captures() -> [PathBuf; 4] {
    ["ftp", "ip_fragmented_garbage", "sip", "tcpreplay_test"]
        .map(|name| testkit::data::path(&format!("pcap/{name}.pcap")))
}

/// The frames that a chain writes, and its accounts.
fn run(folder: &Folder, words: &[&str]) -> (Vec<Vec<u8>>, Accounts) {
    for name in ["1", "2"] {
        // A chain may write only one.
        let _ = std::fs::remove_file(folder.path(name));
    }
    let done = folder.millrace(&[&["run", "--json", "chain.click"], words].concat());
    assert!(matches!(done.code, Some(0 | 1)), "{words:?}: {}", done.stderr);
    let written = ["1", "2"].map(|name| std::fs::read(folder.path(name)).unwrap_or_default());
    (written.into(), done.accounts())
}

#[test]
fn packets_leave_in_the_order_in_which_they_came() {
    let folder = Folder::new();
    for capture in captures() {
        for (what, text) in CHAINS {
            folder.write("chain.click", &text.replace("IN", &capture.display().to_string()));
            let [first, others @ ..] = RUNS;
            let (written, accounts) = run(&folder, first);
            accounts.assert_balanced();
            let bytes: usize = written.iter().map(Vec::len).sum();
            assert!(bytes > 100, "{what}: {} writes nothing", capture.display());
            for words in others {
                let told = format!("{what}, {words:?}: {}", capture.display());
                let (same, others) = run(&folder, words);
                assert!(written == same, "{told}");
                assert_eq!(accounts.elements, others.elements, "{told}");
            }
        }
    }
}

#[test]
fn fragments_follow_each_other() {
    let folder = Folder::new();
    let lines: String =
        (1..=4).map(|id| format!("{id} {}\n", if id % 2 == 1 { 1000 } else { 100 })).collect();
    folder.write("packets", &format!("!data ip_id ip_len\n{lines}"));
    folder.write(
        "chain.click",
        "FromIPSummaryDump(packets, STOP true, CHECKSUM true, PROTO 17) -> IPFragmenter(576)
         -> ToIPSummaryDump(-, FIELDS ip_id ip_fragoff, HEADER false);",
    );
    for words in RUNS {
        let shown = folder.millrace(&[&["run", "chain.click"], words].concat()).sound().text();
        let ids: Vec<&str> = shown.lines().take(6).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(ids, ["1", "1", "2", "3", "3", "4"], "{words:?}: {shown}");
    }
}

#[test]
fn a_tee_sends_by_its_outputs_in_their_order() {
    let folder = Folder::new();
    folder.write(
        "chain.click",
        "InfiniteSource(LIMIT 2, STOP true) -> t :: Tee(3);
         t[0] -> Print(A) -> d :: Discard; t[1] -> Print(B) -> d; t[2] -> Print(C) -> d;",
    );
    for words in RUNS {
        let done = folder.millrace(&[&["run", "chain.click"], words].concat()).sound();
        let printed = done.stderr.clone() + &done.text();
        let names = printed.lines().filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name);
        let names: String = names.filter(|name| name.len() == 1).collect();
        assert_eq!(names, "ABCABC", "{words:?}: {printed}");
    }
}

/// Chains over a capture `IN` whose elements print.
const PRINTING: [&str; 4] = [
    "FromDump(IN, STOP true) -> Print(A, 8) -> c :: Classifier(5/00%01, -) -> Print(B, 8) -> Discard;
     c[1] -> Print(C, 8) -> Discard;",
    "FromDump(IN, STOP true) -> Print(A, 0) -> Strip(14) -> CheckIPHeader(VERBOSE true, CHECKSUM false)
     -> c :: IPClassifier(ip len > 300, tcp, -); c[0] -> IPFragmenter(200, HONOR_DF false) -> IPPrint(B) -> Discard;
     c[1] -> SetIPDSCP(3) -> IPPrint(C) -> Discard; c[2] -> IPPrint(D) -> Discard;",
    "FromDump(IN, STOP true) -> Strip(14) -> CheckIPHeader(CHECKSUM false)
     -> IPFragmenter(200, HONOR_DF false) -> IPPrint(A) -> t :: Tee(2) -> IPPrint(B) -> Discard;
     t[1] -> Truncate(20) -> IPPrint(C) -> Discard;",
    "FromDump(IN, STOP true) -> Print(A, 0) -> t :: Tee(3) -> Discard; t[1] -> Print(B, 0) -> Discard;
     t[2] -> s :: RoundRobinSwitch -> Print(C, 0) -> Discard; s[1] -> Print(D, 0) -> Discard;",
];

#[test]
fn lines_are_printed_as_if_packets_came_one_by_one() {
    let (folder, mut all) = (Folder::new(), String::new());
    for capture in captures() {
        for text in PRINTING {
            folder.write("chain.click", &text.replace("IN", &capture.display().to_string()));
            let printed = |words: &[&str]| {
                folder.millrace(&[&["run", "-q", "chain.click"], words].concat()).sound().stderr.clone()
            };
            let [first, others @ ..] = RUNS;
            let one_by_one = printed(first);
            all += &one_by_one;
            for words in others {
                let same = printed(words);
                assert!(same == one_by_one, "{words:?}, {}: {text}\n{same}", capture.display());
            }
        }
    }
    for label in ["A:", "B:", "C:", "D:", "CheckIPHeader"] {
        assert!(all.contains(label), "{label}");
    }
}
