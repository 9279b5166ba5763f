//! `millrace synth --prove`: what it says of chains, and when it says less.

use crate::both_ways;
use crate::program::Folder;
use serde_json::Value;

const CHAIN: &str = "nat-firewall-balancer/chain.toml";

/// The rows of `millrace bench` that the examples do not have: a class and how many of it stand in a row.
const ROWS: [(&str, u32); 4] = [("router", 1), ("router", 3), ("napt", 1), ("napt", 2)];

fn folder() -> Folder {
    Folder::with_examples(&["captures", "nat-firewall-balancer", "router", "bench"])
}

#[test]
fn examples_are_equal() {
    let folder = folder();
    let shown = folder.millrace(&["synth", "--prove", CHAIN]).sound().text();
    for part in [
        "nat-firewall-balancer/chain.toml: 1 fused region\n\nfused region 1: equal\n  classes   ",
        " pairs: ",
        " do the same by the same expressions, ",
        " and their borders, by elements, by program and by machine code\n",
        " s (limits: 120 s, 20000 classes)\n",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let json = folder.millrace(&["synth", "--prove", "--json", "router/chain.toml"]).sound().text();
    let json: Value = serde_json::from_str::<Value>(&json).expect("JSON")["regions"].take();
    let regions = json.as_array().expect("a list");
    // Packets pass the queues between the router and its cables.
    assert_eq!(regions.len(), 1);
    for region in regions {
        assert_eq!(region["verdict"], "equal", "{region:#}");
        assert_eq!(region["left_out"], serde_json::json!([0, 0]));
        let number = |name: &str| region[name].as_u64().expect("a number");
        let told = number("same_expressions") + number("never_met") + number("equal_by_solver");
        assert_eq!(number("pairs"), told, "{region:#}");
        assert!(number("packets") >= number("classes_with_packets") && number("packets") > 20);
    }
}

#[test]
fn rows_of_the_bench_are_equal() {
    let folder = folder();
    let mut texts: Vec<String> = vec![];
    for (class, count) in ROWS {
        let file = std::fs::read_to_string(folder.path(&format!("bench/{class}.click"))).expect("an example");
        let row: String = (1..=count).map(|number| format!("-> Stage({number}) ")).collect();
        texts.push(format!("{file}\nFromDevice(in) {row}-> ToDevice(out);\n"));
    }
    texts.push(std::fs::read_to_string(folder.path("bench/firewall-10.click")).expect("an example"));
    // Behind IPGWOptions a header has 20 bytes, which the elements read again and the fused program does not.
    texts.push(
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> IPGWOptions(192.0.2.1) -> CheckIPHeader \
         -> IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 0) -> Unstrip(14) -> ToDevice(out);"
            .into(),
    );
    for text in texts {
        let text = text.replace("FromDevice(in)", "FromDevice(captures/office.pcap)");
        folder.write("row.click", &text.replace("ToDevice(out)", "ToDevice(out.pcap)"));
        let shown = folder.millrace(&["synth", "--prove", "row.click"]).sound().text();
        assert!(shown.contains("\nfused region 1: equal\n"), "{text}\n{shown}");
    }
}

/// What is not covered is not called equal, and is named.
#[test]
fn less_than_everything_is_not_refuted() {
    let folder = folder();
    let shown = folder.millrace(&["synth", "--prove", CHAIN, "--max-classes", "9"]).sound().text();
    assert!(shown.contains("\nfused region 1: not refuted\n"), "{shown}");
    assert!(shown.contains("beyond the limit of 9 classes (--max-classes)\n"), "{shown}");
    let shown = folder.millrace(&["synth", "--prove", CHAIN, "--limit", "0"]).sound().text();
    assert!(shown.contains("\nfused region 1: not refuted\n"), "{shown}");
    assert!(shown.contains("  open      1 way through the elements beyond the limit of time"), "{shown}");
    assert!(shown.contains("(limits: 0 s, "), "{shown}");
}

#[test]
fn mistakes_are_told_before_anything_is_proven() {
    let folder = Folder::new();
    folder.write("wrong.click", "FromDevice(in) -> Pain(3) -> Discard;");
    let run = folder.millrace(&["synth", "--prove", "wrong.click"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("Pain") && run.stdout.is_empty(), "{}", run.stderr);
    let run = folder.millrace(&["synth", "wrong.click", "--limit", "3"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--prove"), "{}", run.stderr);
}

/// A port that sends what comes into it, and takes what leaves.
const PORT: &str = "{ traffic = { flows = 9 }, discard = true }";

/// The example's NAPT several times in a row.
fn napts(count: usize) -> String {
    let names: String = (0..count).map(|at| format!(" <-> [0]n{at}[1]")).collect();
    let nf =
        |at| format!("[nf.n{at}]\nclick = \"snf/napt.click\"\ndefines = {{ IP = \"203.0.113.{at}\" }}\n");
    let nfs: String = (0..count).map(nf).collect();
    format!("links = [\"in{names} <-> wan\"]\n[ports]\nin = {PORT}\nwan = {PORT}\n{nfs}")
}

/// Rewriters that are not told where headers are: each write may hit each read.
fn without_headers(folder: &Folder) {
    let nf: String = (0..5)
        .map(|at| format!("r{at} :: IPRewriter(pattern 203.0.113.{at} 1024-65535# - - 0 0); "))
        .chain(["FromDevice(0, FORCE_IP true) -> r0 -> r1 -> r2 -> r3 -> r4 -> ToDevice(1);".into()])
        .collect();
    let text = format!("links = [\"in -> [0]a[1] -> out\"]\n[ports]\nin = {PORT}\nout = {PORT}\n");
    folder.write("without-headers.toml", &format!("{text}[nf.a]\ninline = \"{nf}\"\n"));
}

/// The way back through a rewriter is proven as the way out is.
#[test]
fn chains_with_traffic_both_ways_are_equal() {
    let folder = Folder::with_examples(&["bench", "captures", "snf"]);
    folder.write("two.toml", &napts(2));
    folder.write("ten.toml", &napts(10));
    let chains = [
        ("two.toml", "10"),
        ("ten.toml", "10"),
        ("snf/zones.toml", "10"),
        ("snf/dmz.toml", "60"),
        ("snf/service.toml", "10"),
    ];
    for (chain, limit) in chains {
        let proof = ["synth", "--prove", "--json", "--limit", limit, chain];
        let json = folder.millrace(&proof).sound().text();
        let json: Value = serde_json::from_str::<Value>(&json).expect("JSON")["regions"].take();
        assert_eq!(json.as_array().map(Vec::len), Some(1), "{json:#}");
        assert_eq!(json[0]["verdict"], "equal", "{chain}: {json:#}");
    }
}

/// Three NFs as people write them, each with ARP. With `MILLRACE_PROVE_FIELD`, as `scripts/prove` sets it, further
/// chains of three, too.
#[test]
fn chains_of_the_field_are_equal() {
    let folder = Folder::with_examples(&["field"]);
    let mut chains = vec!["field/chain.toml".to_string()];
    if std::env::var_os("MILLRACE_PROVE_FIELD").is_some() {
        for order in &both_ways::ORDERS {
            let name = format!("{}-{}-{}.toml", order[0], order[1], order[2]);
            let chain = both_ways::field_chain(order);
            folder.write(&name, &chain.replace("{ capture = \"sent.pcap\" }", "{ traffic = { flows = 9 } }"));
            chains.push(name);
        }
    }
    for chain in chains {
        let proof = ["synth", "--prove", "--json", "--limit", "120", &chain];
        let json = folder.millrace(&proof).sound().text();
        let json: Value = serde_json::from_str::<Value>(&json).expect("JSON")["regions"].take();
        let regions = json.as_array().expect("regions");
        assert!(!regions.is_empty(), "{chain}");
        for region in regions {
            assert_eq!(region["verdict"], "equal", "{chain}: {region:#}");
        }
    }
}

/// The limit is for the whole answer: classes, gates, questions and packets.
#[test]
fn an_answer_comes_within_its_limit() {
    let folder = Folder::new();
    without_headers(&folder);
    let proof = ["synth", "--prove", "--json", "--limit", "2", "without-headers.toml"];
    let json = folder.millrace(&proof).sound().text();
    let json: Value = serde_json::from_str::<Value>(&json).expect("JSON")["regions"].take();
    let region = &json[0];
    assert_eq!(region["verdict"], "not-refuted", "{region:#}");
    assert!(region["not_decided"].as_array().is_some_and(|open| !open.is_empty()), "{region:#}");
    // Far more than a busy machine needs for the steps between two looks at the clock.
    assert!(region["seconds"].as_f64().is_some_and(|seconds| seconds < 20.0), "{region:#}");
}

#[test]
fn a_signal_ends_a_proof_with_what_is_known() {
    let folder = Folder::new();
    without_headers(&folder);
    let run = folder.start(&["synth", "--prove", "--limit", "600", "without-headers.toml"]);
    // The classes and the gates of its first entry take longer than this.
    std::thread::sleep(std::time::Duration::from_secs(2));
    run.interrupt();
    let shown = run.wait();
    assert!(shown.text().contains("\nfused region 1: not refuted\n"), "{}{}", shown.text(), shown.stderr);
    assert_eq!(shown.code, Some(0));
}
