//! `millrace explain`: what it says becomes of a packet is what becomes of it.

use crate::captures;
use crate::program::{Folder, examples};
use crate::synthesis::golden;
use serde_json::Value;

/// A chain, the capture that it reads as its file names it, and where its ports write.
struct Chain {
    file: &'static str,
    reads: &'static str,
    /// What it is to read in place of that.
    one: &'static str,
    writes: &'static [(&'static str, &'static str)],
}

const DEMO: Chain = Chain {
    file: "nat-firewall-balancer/chain.toml",
    reads: "../captures/office.pcap",
    one: "../one.pcap",
    writes: &[
        ("by internet", "nat-firewall-balancer/internet.pcap"),
        ("by servers", "nat-firewall-balancer/servers.pcap"),
    ],
};
const ROUTER: Chain =
    Chain { file: "router/chain.toml", reads: "../captures/office.pcap", one: "../one.pcap", writes: &[] };
const FILTER: Chain = Chain {
    file: "first.click",
    reads: "captures/office.pcap",
    one: "one.pcap",
    writes: &[("by tcp.pcap", "tcp.pcap")],
};

/// Explains packets of the office's capture one by one, and runs each alone. Gives how many were sent,
/// dropped, and not followed to their end.
fn compare(chain: &Chain, every: usize) -> [usize; 3] {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router"]);
    std::fs::copy(examples().join("first.click"), folder.path("first.click")).expect("copied");
    let text = std::fs::read_to_string(folder.path(chain.file)).expect("an example");
    folder.write(chain.file, &text.replace(chain.reads, chain.one));
    let frames = captures::frames(&folder.path("captures/office.pcap"));
    let mut seen = [0; 3];
    for number in (1..=frames.len()).step_by(every) {
        captures::write(&folder.path("one.pcap"), [frames[number - 1].as_slice()]);
        let packet = format!("captures/office.pcap:{number}");
        let said = folder.millrace(&["explain", chain.file, "--packet", &packet, "--json"]).sound().text();
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["agree"], true);
        assert_eq!(said["modular"]["outcomes"], said["fused"]["outcomes"]);
        for form in ["modular", "fused"] {
            let accounts = folder.millrace(&["run", chain.file, "--as", form, "--json"]).sound().accounts();
            for outcome in said[form]["outcomes"].as_array().expect("a list") {
                let word = |what: &str| outcome[what].as_str().expect("a word");
                let element = || accounts.element(word("at"));
                match word("ends") {
                    "sent" => {
                        assert_eq!(element().sent, 1, "packet {number}: {outcome}");
                        let (_, file) =
                            chain.writes.iter().find(|(by, _)| *by == word("why")).expect("a port");
                        let written = captures::frames(&folder.path(file));
                        let hex: String = written[0].iter().map(|byte| format!("{byte:02x}")).collect();
                        assert_eq!((written.len(), hex.as_str()), (1, word("bytes")), "packet {number}");
                        seen[0] += 1;
                    }
                    "dropped" => {
                        let dropped = &element().dropped;
                        let reason = (word("why").to_string(), 1);
                        assert!(dropped.contains(&reason), "packet {number}: {outcome}, {dropped:?}");
                        seen[1] += 1;
                    }
                    _ => seen[2] += 1,
                }
            }
        }
        let hops = said["fused"]["hops"].as_array().expect("a list");
        let in_classes = hops.iter().filter(|hop| hop["of"].as_u64() > Some(0));
        assert!(in_classes.clone().count() > 0 && in_classes.clone().all(|hop| hop["class"].is_u64()));
    }
    seen
}

#[test]
fn packets_of_the_demo_do_what_is_said() {
    let [sent, dropped, unknown] = compare(&DEMO, 79);
    assert!(sent > 20 && dropped > 20 && unknown == 0, "{sent} sent, {dropped} dropped, {unknown} not known");
}

#[test]
fn packets_of_a_filter_do_what_is_said() {
    let [sent, dropped, unknown] = compare(&FILTER, 113);
    assert!(sent > 10 && dropped > 10 && unknown == 0, "{sent} sent, {dropped} dropped, {unknown} not known");
}

/// What the router does first is its own code's: it asks for the next hop.
#[test]
fn packets_of_the_router_do_what_is_said() {
    let [_, dropped, unknown] = compare(&ROUTER, 199);
    assert!(dropped > 0 && unknown > 20, "{dropped} dropped, {unknown} not known");
}

#[test]
fn the_words_are_these() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router"]);
    for (name, chain, packet) in [
        ("demo", DEMO.file, "captures/office.pcap:20"),
        ("denied", DEMO.file, "captures/office.pcap:1"),
        ("router", ROUTER.file, "captures/office.pcap:20"),
    ] {
        let said = folder.millrace(&["explain", chain, "--packet", packet]).sound().text();
        golden(&format!("explain-{name}.txt"), &said);
    }
}

#[test]
fn mistakes_say_what_to_do() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router"]);
    folder.write(
        "two.click",
        "FromDevice(captures/office.pcap) -> Discard;\nFromDevice(captures/trunk.pcap) -> Discard;\n",
    );
    let whole = "captures/office.pcap";
    for (arguments, expected) in [
        (
            ["explain", DEMO.file, "--packet", "captures/office.pcap:0"].as_slice(),
            "is no packet's number: they count from 1",
        ),
        (
            &["explain", DEMO.file, "--packet", "captures/office.pcap:99999"],
            "has 3,443 packets, and no packet 99999",
        ),
        (&["explain", DEMO.file, "--packet", "missing.pcap"], "missing.pcap"),
        (
            &["explain", "two.click", "--packet", whole],
            "by several ports: captures/office.pcap, captures/trunk.pcap; choose one by --port",
        ),
        (
            &["explain", DEMO.file, "--packet", whole, "--port", "insid"],
            "nothing receives from a port `insid`; did you mean `inside`?",
        ),
    ] {
        let run = folder.millrace(arguments);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{expected} is not in\n{}", run.stderr);
    }
    let said = folder
        .millrace(&["explain", "two.click", "--packet", whole, "--port", "captures/trunk.pcap"])
        .sound();
    assert!(said.text().contains("dropped by Discard@4: discarded"), "{}", said.text());
}
