//! Chains that run fused: they do what they do element by element, in counters and handlers, too.

use crate::accounts::Accounts;
use crate::program::Folder;

const CHAIN: &str = "nat-firewall-balancer/chain.toml";
const HANDLERS: [&str; 10] = [
    "-H",
    "nat/check.drops",
    "-H",
    "nat/rewriter.nmappings",
    "-H",
    "nat/not_nat.count",
    "-H",
    "firewall/ttl.drops",
    "-H",
    "balancer/rewriter.table_size",
];

/// What a run wrote to captures, and its accounts.
fn run(folder: &Folder, words: &[&str], written: &[&str]) -> (Vec<Vec<u8>>, Accounts) {
    let words = [&["run", "--json"], words].concat();
    let accounts = folder.millrace(&words).sound().accounts();
    accounts.assert_balanced();
    (written.iter().map(|name| std::fs::read(folder.path(name)).expect("written")).collect(), accounts)
}

/// The counters of each element, as text.
fn counters(accounts: &Accounts) -> Vec<String> {
    let mut counters: Vec<String> = accounts.elements.iter().map(|element| format!("{element:?}")).collect();
    counters.sort();
    counters
}

#[test]
fn the_demo_does_the_same_fused() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let written = ["nat-firewall-balancer/internet.pcap", "nat-firewall-balancer/servers.pcap"];
    let words = |form| [&[CHAIN, "--as", form][..], &HANDLERS].concat();
    let (modular, accounts) = run(&folder, &words("modular"), &written);
    let (fused, of_fused) = run(&folder, &words("fused"), &written);
    assert!(modular == fused, "other frames");
    assert_eq!(counters(&accounts), counters(&of_fused));
    assert_eq!(accounts.handlers, of_fused.handlers);
    assert_ne!(accounts.handlers["nat/not_nat.count"], "0");
    assert!(accounts.sent > 2_000);
    let evaluator = [&words("fused")[..], &["--engine", "evaluator"]].concat();
    let (evaluated, accounts) = run(&folder, &evaluator, &written);
    assert!(evaluated == fused && counters(&accounts) == counters(&of_fused), "the evaluator does otherwise");
}

/// The same with an entry for every flow, made as soon as its records have come to rest.
#[test]
fn the_demo_does_the_same_with_a_flow_cache() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let written = ["nat-firewall-balancer/internet.pcap", "nat-firewall-balancer/servers.pcap"];
    let words = |form, cache| [&[CHAIN, "--as", form, "--cache", cache][..], &HANDLERS].concat();
    let (modular, accounts) = run(&folder, &words("modular", "auto"), &written);
    for burst in ["1", "64"] {
        let words = [&words("fused", "eager")[..], &["--burst", burst]].concat();
        let (cached, of_cached) = run(&folder, &words, &written);
        assert!(modular == cached, "other frames in bursts of {burst}");
        assert_eq!(counters(&accounts), counters(&of_cached));
        assert_eq!(accounts.handlers, of_cached.handlers);
        let counts = of_cached.flow_cache;
        assert!(counts.hits > 500 && counts.templates > 0, "{counts:?}");
    }
    // Two of its NFs have state: without a flow cache, their flows still have one record.
    let (records, of_records) = run(&folder, &words("fused", "off"), &written);
    assert!(modular == records, "other frames with records only");
    assert_eq!(counters(&accounts), counters(&of_records));
    assert!(of_records.flow_cache.whole > 0, "{:?}", of_records.flow_cache);
    let without = run(&folder, &words("fused", "never"), &written).1.flow_cache;
    assert_eq!((without.hits, without.whole), (0, 0));
}

/// Of the demo's generated flows half pass one NAT only: by itself that is not worth an entry, but their packets are looked
/// up beside those of the others.
#[test]
fn flows_beside_those_with_entries_get_one_too() {
    let folder = Folder::with_examples(&["nat-firewall-balancer"]);
    let speed = folder.path("nat-firewall-balancer/speed.toml");
    let text = std::fs::read_to_string(&speed).expect("read").replace("1_000_000", "4_000_000");
    std::fs::write(&speed, text).expect("written");
    let words = ["nat-firewall-balancer/speed.toml", "--as", "fused"];
    let counts = run(&folder, &words, &[]).1.flow_cache;
    assert!(counts.hits > counts.whole && counts.templates == 2, "{counts:?}");
}

/// Flows of one NAT behind an access list have a record without a flow cache, too; those that the list refuses have none.
#[test]
fn flows_of_one_nat_behind_a_list_have_records() {
    let folder = Folder::with_examples(&[]);
    let chain = "links = [\"in -> list[1] -> nat[1] -> out\"]
        [ports]
        in = { traffic = { flows = 64, dst = \"198.18.0.0/15\", dst-port = \"80,443\", protocols = \"udp:1\" }, count = 2000000 }
        out = { discard = true }
        [nf.list]
        click = \"list.click\"
        [nf.nat]
        click = \"nat.click\"";
    folder.write("chain.toml", chain);
    let rules: String = (0..40).map(|n| format!("deny src host 10.1.{n}.1 && dst port {n},\n")).collect();
    let list = format!(
        "FromDevice(0) -> MarkIPHeader(14) -> IPFilter({rules} allow dst port 443, deny all) -> ToDevice(1);"
    );
    folder.write("list.click", &list);
    folder.write(
        "nat.click",
        "FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 0)
             -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(1);",
    );
    let of = |words: &[&str]| run(&folder, &[&["chain.toml"], words].concat(), &[]).1;
    let (modular, fused) = (of(&["--as", "modular"]), of(&["--as", "fused", "--cache", "off"]));
    assert_eq!(counters(&modular), counters(&fused));
    let counts = fused.flow_cache;
    assert!(counts.hits > 100_000, "{counts:?}");
    assert!(counts.whole > 900_000, "refused flows run through the whole program: {counts:?}");
}

/// Packet by packet: what an ARP reply says is known in a fused region to the packets of the next burst.
#[test]
fn the_router_does_the_same_fused() {
    let folder = Folder::with_examples(&["captures", "router"]);
    let written = ["router/internet.pcap", "router/back.pcap"];
    let of = |form| run(&folder, &["router/chain.toml", "--burst", "1", "--as", form], &written);
    let ((modular, accounts), (fused, of_fused)) = (of("modular"), of("fused"));
    assert!(modular == fused, "other frames");
    assert_eq!(counters(&accounts), counters(&of_fused));
}

/// The chain file says which NFs are fused; one in a process is a stop between them.
#[test]
fn a_chain_file_mixes_forms() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let text = std::fs::read_to_string(folder.path(CHAIN)).expect("an example");
    let written = ["nat-firewall-balancer/internet.pcap", "nat-firewall-balancer/servers.pcap"];
    let (expected, _) = run(&folder, &[CHAIN], &written);
    for forms in [["fused", "fused", "modular"], ["fused", "process", "fused"], ["modular", "fused", "fused"]]
    {
        let mut text = text.clone();
        for (nf, form) in ["nat", "firewall", "balancer"].iter().zip(forms) {
            text = text.replace(&format!("[nf.{nf}]"), &format!("[nf.{nf}]\nruns = \"{form}\""));
        }
        folder.write("nat-firewall-balancer/mixed.toml", &text);
        let (mixed, _) = run(&folder, &["nat-firewall-balancer/mixed.toml"], &written);
        assert!(mixed == expected, "other frames as {forms:?}");
    }
}

#[test]
fn two_workers_lose_nothing_fused() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let written = ["nat-firewall-balancer/internet.pcap"];
    let of = |form| run(&folder, &[CHAIN, "--workers", "2", "--as", form], &written).1;
    let (modular, fused) = (of("modular"), of("fused"));
    assert_eq!((modular.received, modular.sent), (fused.received, fused.sent));
    assert_eq!(modular.dropped, fused.dropped);
}

#[test]
fn synth_says_what_becomes_of_a_chain() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router"]);
    let shown = folder.millrace(&["synth", CHAIN]).sound().text();
    for part in [
        "elements run in 1 fused region\n",
        "enters   [0]nat/arp\n",
        "balancer/EtherEncap@10[0] -> balancer/ToDevice@11\n",
        "tables   nat/rewriter.mappings: keys of 16 bytes",
        "nat/FromDevice@3: FromDevice has no program\n",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    // The table that both ways share says where packets turn back.
    let shown = folder.millrace(&["synth", "router/chain.toml"]).sound().text();
    let turned =
        "router/rt[1] -> router/DropBroadcasts@25, seldom from input 0: element by element from there";
    assert!(shown.contains(turned), "{shown}");
    let json = folder.millrace(&["synth", CHAIN, "--json"]).sound().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let leaves = json["regions"][0]["leaves"].as_array().expect("a list");
    assert!(leaves.iter().any(|way| way == "nat/EtherEncap@14[0] -> nat/ToDevice@15"), "{leaves:?}");
    assert!(folder.millrace(&["synth", CHAIN, "--emit", "ir"]).sound().text().starts_with("program region"));
    for (what, part) in [("clif", "function "), ("asm", "staged_0")] {
        let shown = folder.millrace(&["synth", CHAIN, "--emit", what]).sound().text();
        assert!(shown.contains(part), "{part} is missing as {what}");
    }
}

/// What comes from a port has no annotations, so that nothing asks for them; where an element feeds the same input, it may
/// have set some.
#[test]
fn annotations_are_not_asked_for_behind_a_port() {
    let router = |feeds: &str| {
        format!(
            "FromDevice(0) -> start :: Strip(14) -> check :: CheckIPHeader; check[1] -> Discard;
             check -> FixIPSrc(192.0.2.1) -> ttl :: DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:2:1)
                 -> ToDevice(1); {feeds}"
        )
    };
    let folder = Folder::with_examples(&["captures"]);
    let chain = "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = { capture = \"captures/office.pcap\" }\n\
                 out = { write = \"out.pcap\" }\n[nf.nf]\nclick = \"nf.click\"";
    folder.write("chain.toml", chain);
    let asks = |feeds: &str| {
        folder.write("nf.click", &router(feeds));
        folder
            .millrace(&["synth", "chain.toml", "--emit", "ir"])
            .sound()
            .text()
            .contains("load_anno FIX_IP_SRC")
    };
    assert!(!asks("ttl[1] -> Discard;"));
    assert!(asks("ttl[1] -> ICMPError(192.0.2.1, timeexceeded) -> start;"));
}

#[test]
fn mistakes_of_a_chain_are_told_by_synth_too() {
    let folder = Folder::new();
    folder.write("wrong.click", "FromDevice(in) -> Pain(3) -> Discard;\nIdle -> Paint(300) -> Discard;");
    let run = folder.millrace(&["synth", "wrong.click"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("Pain") && run.stderr.contains("300"), "{}", run.stderr);
}

/// A firewall of many tests that all packets of the office pass.
fn firewall_of_many_tests() -> String {
    let rule = |at: usize| {
        format!("deny src net 198.51.{at}.0/24 && dst port {} && ip ttl {}", 2000 + 7 * at, at + 3)
    };
    let rules: Vec<String> = (0..150).map(rule).collect();
    format!(
        "FromDevice(0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
         c[0] -> Strip(14) -> check :: CheckIPHeader -> filter :: IPFilter({}, allow all)
             -> ttl :: DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:2:1) -> ToDevice(1);
         check[1] -> Discard; ttl[1] -> Discard;",
        rules.join(", ")
    )
}

/// Too many firewalls for one function: what runs is the elements, one by one, and it is said why.
#[test]
fn a_region_that_is_too_large_runs_element_by_element() {
    const COUNT: usize = 30;
    let folder = Folder::with_examples(&["captures"]);
    folder.write("firewall.click", &firewall_of_many_tests());
    let chain = |count: usize| {
        let between = |at: usize| format!("\"f{at}[1] -> [0]f{}\"", at + 1);
        let mut links = vec!["\"inside -> [0]f0\"".to_string()];
        links.extend((0..count - 1).map(between));
        links.push(format!("\"f{}[1] -> outside\"", count - 1));
        let mut text = format!(
            "links = [{}]\n[ports]\ninside = {{ capture = \"captures/office.pcap\" }}\n\
             outside = {{ write = \"out.pcap\" }}\n",
            links.join(", ")
        );
        (0..count).for_each(|at| {
            text += &format!("[nf.f{at}]\nclick = \"firewall.click\"\nruns = \"fused\"\n");
        });
        text
    };
    folder.write("many.toml", &chain(COUNT));
    folder.write("few.toml", &chain(3));
    let (modular, accounts) = run(&folder, &["many.toml", "--as", "modular"], &["out.pcap"]);
    let (fused, of_fused) = run(&folder, &["many.toml"], &["out.pcap"]);
    assert!(modular == fused, "other frames");
    assert_eq!(counters(&accounts), counters(&of_fused));
    assert!(accounts.received > 1_000 && of_fused.flow_cache.whole == 0, "{:?}", of_fused.flow_cache);
    // Every command that would fuse it says so, at the element that has most.
    for command in ["run", "check", "synth"] {
        let said = folder.millrace(&[command, "many.toml"]).sound().stderr;
        let parts =
            ["instructions, more than 60000", "f0/filter has most (", "run one by one", "firewall.click:2:"];
        for part in parts {
            assert!(said.contains(part), "{command}: {part} is missing in\n{said}");
        }
    }
    let shown = folder.millrace(&["synth", "many.toml"]).sound().text();
    assert!(shown.contains("\nnot fused, they run one by one: a fused region of"), "{shown}");
    let said = folder.millrace(&["synth", "few.toml"]).sound();
    assert!(said.stderr.is_empty() && said.text().contains("run in 1 fused region\n"), "{}", said.stderr);
}
