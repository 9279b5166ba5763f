//! What `millrace synth` shows of chains: golden texts, JSON, pictures, and Click configurations that do the
//! same.

use crate::accounts::Accounts;
use crate::captures;
use crate::program::Folder;
use std::path::Path;

/// A filter that can be said in Click as a whole.
const FILTER: &str = "FromDevice(inside)
    -> ip :: Classifier(12/0800, -)
    -> check :: CheckIPHeader(14)
    -> filter :: IPFilter(deny src net 10.0.1.0/24 && udp, allow tcp dst port 80 or 443, allow udp dst port 53, deny all)
    -> ttl :: DecIPTTL
    -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03)
    -> ToDevice(outside);
ip[1] -> other :: Discard;
check[1] -> bad :: Discard;
ttl[1] -> expired :: Discard;
";

const FILTER_CHAIN: &str = "links = [\"inside -> [inside]nf[outside] -> outside\"]
[ports]
inside = { capture = \"captures/office.pcap\" }
outside = { write = \"out.pcap\" }
[nf.nf]
click = \"filter.click\"
";

fn filter() -> Folder {
    let folder = Folder::with_examples(&["captures"]);
    folder.write("filter.click", FILTER);
    folder.write("filter.toml", FILTER_CHAIN);
    folder
}

/// Holds a text to a file, but for what differs from run to run; `BLESS=1` writes the file.
pub fn golden(name: &str, text: &str) {
    let text: String =
        text.lines().filter(|line| !line.starts_with("  built ")).flat_map(|line| [line, "\n"]).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/golden").join(name);
    testkit::golden::hold(&path, &text).unwrap();
}

#[test]
fn what_becomes_of_chains_is_told() {
    let folder = filter();
    golden("synth-filter.txt", &folder.millrace(&["synth", "filter.toml", "--classes"]).sound().text());
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router"]);
    for (name, chain) in [("nfb", "nat-firewall-balancer/chain.toml"), ("router", "router/chain.toml")] {
        golden(&format!("synth-{name}.txt"), &folder.millrace(&["synth", chain]).sound().text());
    }
}

#[test]
fn the_same_is_said_as_json() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let shown = folder.millrace(&["synth", "nat-firewall-balancer/chain.toml", "--json"]).sound().text();
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let region = &shown["regions"][0];
    let classes = region["classes"].as_array().expect("a list");
    assert_eq!(classes.iter().filter(|class| class["ends"] == "out").count(), 4);
    let to_servers = classes
        .iter()
        .find(|class| class["exit"].as_str().is_some_and(|exit| exit.starts_with("balancer/Ether")));
    let to_servers = to_servers.expect("a class");
    let writes = to_servers["writes"].as_array().expect("a list");
    assert!(writes.iter().any(|write| write[0] == "ip.ttl" && write[1] == "ip.ttl - 3"), "{writes:?}");
    let asked = to_servers["conditions"].as_array().expect("a list");
    assert!(
        asked.iter().any(|asked| asked["of"] == "eth.type" && asked["intervals"][0][0] == 0x800),
        "{asked:?}"
    );
    let number = |of: &serde_json::Value, what: &str| of[what].as_u64().expect("a number");
    for what in ["reads", "writes", "checks", "tests"] {
        let (before, after) = (&region["packet"]["before"], &region["packet"]["after"]);
        assert!(number(after, what) < number(before, what), "{what} are as many as before");
    }
    // At most 1.3 times what a class needs. That may be more reads than there are: of a class, fields next to each other
    // are one read, and one read of the program may have bytes between them, too.
    let is_near = |met: &serde_json::Value, least: &serde_json::Value, what| {
        number(met, what) * 10 <= number(least, what) * 13
    };
    for what in ["reads", "writes"] {
        assert!(number(&region["least"], what) < number(&region["packet"]["before"], what));
        assert!(is_near(&region["packet"]["after"], &region["least"], what), "{what}");
        assert!(
            is_near(&region["flow_entry"]["packet"], &region["flow_entry"]["least"], what),
            "{what} by the entry"
        );
    }
    assert!(number(&region["packet"]["after"], "writes") >= number(&region["least"], "writes"));
    // A flow's entry is one lookup in place of two, with hardly more reads and writes than its class needs.
    let (entry, least) = (&region["flow_entry"]["packet"], &region["flow_entry"]["least"]);
    assert_eq!((number(entry, "lookups"), number(&region["packet"]["after"], "lookups")), (1, 2));
    assert!(number(entry, "reads").abs_diff(number(least, "reads")) <= 1);
    assert_eq!(number(entry, "writes"), number(least, "writes"));
    let mappings = &region["tables"][0];
    assert_eq!(
        (mappings["name"].as_str(), number(mappings, "key_bytes")),
        (Some("nat/rewriter.mappings"), 16)
    );
    assert!(number(&region["build"], "code_bytes") > 1_000);
}

/// Fewer classes than there are: what was left out is told.
#[test]
fn the_number_of_classes_has_a_limit() {
    let folder = Folder::with_examples(&["captures", "router"]);
    let shown = folder.millrace(&["synth", "router/chain.toml", "--max-classes", "4"]).sound().text();
    assert!(shown.contains("not covered: ") && shown.contains("raise --max-classes"), "{shown}");
    let run = folder.millrace(&["synth", "router/chain.toml", "--max-classes", "0"]);
    assert!(run.code == Some(2) && run.stderr.contains("a number from 1 on is expected"), "{}", run.stderr);
}

/// The names of the elements of an XML text, after a look at whether each is closed in its turn.
fn elements_of(xml: &str) -> Vec<String> {
    let (mut open, mut all, mut rest) = (vec![], vec![], xml);
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "a stray `>` in {text}");
        let entities = text.split('&').skip(1);
        assert!(
            entities
                .clone()
                .all(|of| ["amp;", "lt;", "gt;", "quot;"].iter().any(|known| of.starts_with(known)))
        );
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default().to_string();
        match tag.strip_prefix('/') {
            Some(_) => assert_eq!(open.pop(), Some(name)),
            None => {
                all.push(name.clone());
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    all
}

#[test]
fn a_picture_shows_elements_and_classes() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer", "router", "virtual-devices"]);
    for chain in ["nat-firewall-balancer/chain.toml", "router/chain.toml", "virtual-devices/chain.toml"] {
        folder.millrace(&["synth", chain, "--svg", "chain.svg"]).sound();
        let svg = std::fs::read_to_string(folder.path("chain.svg")).expect("written");
        let elements = elements_of(&svg);
        assert_eq!(elements.first().map(String::as_str), Some("svg"));
        assert!(elements.iter().filter(|name| *name == "path").count() > 20, "wires");
    }
    folder.millrace(&["synth", "nat-firewall-balancer/chain.toml", "--svg", "chain.svg"]).sound();
    let svg = std::fs::read_to_string(folder.path("chain.svg")).expect("written");
    for part in
        ["nat/rewriter :: IPRewriter(", "leaves by nat/EtherEncap@14[0] -&gt; nat/ToDevice@15", "eth.type ip"]
    {
        assert!(svg.contains(part), "{part} is not in the picture");
    }
    // Wires to the next row turn behind its last element, and inside the picture.
    let number =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse::<u32>().ok());
    let width = svg.split("width=\"").nth(1).and_then(number).expect("a width");
    let turns: Vec<u32> = svg.split(" H").skip(1).filter_map(number).collect();
    assert!(turns.len() > 4 && turns.iter().all(|x| *x < width), "{turns:?} of {width}");
    let run = folder.millrace(&["synth", "router/chain.toml", "--svg", "nowhere/chain.svg"]);
    assert!(
        run.code == Some(2) && run.stderr.contains("nowhere/chain.svg cannot be written"),
        "{}",
        run.stderr
    );
}

/// Runs a chain, and gives its accounts and what it wrote.
fn run(folder: &Folder, chain: &str, written: &[&str]) -> (Accounts, Vec<Vec<Vec<u8>>>) {
    let accounts = folder.millrace(&["run", "--json", chain]).sound().accounts();
    accounts.assert_balanced();
    (accounts, written.iter().map(|name| captures::frames(&folder.path(name))).collect())
}

#[test]
fn a_filter_is_said_in_click_and_does_the_same() {
    let folder = filter();
    let (accounts, expected) = run(&folder, "filter.toml", &["out.pcap"]);
    let said = folder.millrace(&["synth", "filter.toml", "--click"]).sound().text();
    assert!(!said.contains("is not:"), "classes are left to the elements:\n{said}");
    golden("synth-filter.click", &said);
    folder.write("said.click", &said);
    let chain = FILTER_CHAIN.replace("filter.click", "said.click");
    folder.write("said.toml", &chain);
    let check = folder.millrace(&["check", "said.toml"]).sound();
    assert_eq!(check.stderr, "", "warnings");
    let (of_said, frames) = run(&folder, "said.toml", &["out.pcap"]);
    assert!(expected == frames && frames[0].len() > 100, "other frames");
    assert_eq!((accounts.received, accounts.sent), (of_said.received, of_said.sent));
    // Nothing of the chain's own elements is left but its ports.
    assert!(!said.contains("IPFilter") && said.contains("[0]nf/ToDevice@7"), "{said}");
}

/// Rules in their order, over traffic that hits each of them.
#[test]
fn a_list_of_rules_is_said_in_click_and_does_the_same() {
    let folder = Folder::with_examples(&["firewall-acl"]);
    let rules = "firewall-acl/acl.rules";
    let options = ["--acl", rules, "--acl-miss", "20", "--flows", "500", "--count", "5000"];
    folder.millrace(&[&["gen", "firewall-acl/hits.pcap"][..], &options].concat()).sound();
    let (accounts, expected) = run(&folder, "firewall-acl/chain.toml", &["firewall-acl/passed.pcap"]);
    let said = folder.millrace(&["synth", "firewall-acl/chain.toml", "--click"]).sound().text();
    assert!(!said.contains("is not:") && !said.contains("IPFilter"), "{said}");
    let said = said
        .replace("FromDevice(in)", "FromDevice(hits.pcap)")
        .replace("ToDevice(out)", "ToDevice(passed.pcap)");
    folder.write("firewall-acl/said.click", &said);
    let (of_said, frames) = run(&folder, "firewall-acl/said.click", &["firewall-acl/passed.pcap"]);
    assert!(expected == frames && frames[0].len() > 100, "other frames");
    assert_eq!(accounts.dropped, of_said.dropped);
}

/// Flows keep their tables: classes that ask them are the elements', and the rest is sorted out in front.
#[test]
fn what_click_cannot_say_is_left_to_the_elements() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let chain = "nat-firewall-balancer/chain.toml";
    let written = ["nat-firewall-balancer/internet.pcap", "nat-firewall-balancer/servers.pcap"];
    let (accounts, expected) = run(&folder, chain, &written);
    let said = folder.millrace(&["synth", chain, "--click"]).sound().text();
    assert!(said.contains("is not: it asks a table: `nat/rewriter.mappings"), "{said}");
    folder.write("nat-firewall-balancer/said.click", &said);
    folder.write(
        "nat-firewall-balancer/said.toml",
        "links = [\"inside -> [inside]nf[internet] -> internet\", \"nf[servers] -> servers\"]
        [ports]
        inside = { capture = \"../captures/office.pcap\" }
        internet = { write = \"internet.pcap\" }
        servers = { write = \"servers.pcap\" }
        [nf.nf]
        click = \"said.click\"\n",
    );
    folder.millrace(&["check", "nat-firewall-balancer/said.toml"]).sound();
    let (of_said, frames) = run(&folder, "nat-firewall-balancer/said.toml", &written);
    assert!(expected == frames, "other frames");
    assert_eq!((accounts.received, accounts.sent), (of_said.received, of_said.sent));
    let passed = |accounts: &Accounts, name: &str| accounts.element(name).input;
    assert!(passed(&of_said, "nf/nat/not_nat") < passed(&accounts, "nat/not_nat"), "nothing was sorted out");
}

#[test]
fn an_nf_in_a_process_cannot_be_said_in_click() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let run = folder.millrace(&["synth", "nat-firewall-balancer/processes.toml", "--click"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("runs in a process of its own, and cannot be said in Click"),
        "{}",
        run.stderr
    );
}

/// Classes multiply along a chain: `synth` stops at its limits, names who asks most, and execution goes on.
#[test]
fn a_chain_whose_classes_explode_is_described_within_limits() {
    let folder = Folder::with_examples(&["field"]);
    let nfs: String = (0..16).map(|at| format!("[nf.n{at}]\nclick = \"field/firewall.click\"\n")).collect();
    let row: String = (0..16).map(|at| format!("[0]n{at}[1] <-> ")).collect();
    folder.write(
        "long.toml",
        &format!(
            "links = [\"in <-> {row}out\"]\n[ports]\n\
             in = {{ traffic = {{ flows = 9 }}, count = 100, discard = true }}\n\
             out = {{ traffic = {{ flows = 9 }}, count = 100, discard = true }}\n{nfs}"
        ),
    );
    let began = std::time::Instant::now();
    let shown = folder.millrace(&["synth", "long.toml", "--max-classes", "300"]).sound().text();
    // Far more than a busy machine needs.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    for part in [
        " in 1 fused region\n",
        "  classes  300: ",
        "raise --max-classes. The elements that ask most",
        "execution needs no classes",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let asks = shown.lines().find(|line| line.contains("ask most")).expect("a line");
    assert!(asks.contains("/allowed ") || asks.contains("/check"), "{asks}");
    assert!(shown.len() < 200_000, "{} bytes", shown.len());
    folder.millrace(&["run", "long.toml", "--as", "fused", "--json"]).sound().accounts().assert_balanced();
}
