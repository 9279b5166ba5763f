//! NFs written as for Click, with a queue in front of each output: packets pass it, and `synth` says of every
//! other queue why they wait there.

use crate::accounts::Accounts;
use crate::program::Folder;
use crate::synthesis::golden;

const NF: &str = "FromDevice(in) -> check :: CheckIPHeader(14) -> ttl :: DecIPTTL -> count :: Counter
    -> q :: Queue(1000)
    -> ToDevice(out);
check[1] -> Discard;
ttl[1] -> Discard;
";

const CHAIN: &str = "links = [\"inside -> [in]a[out] -> [in]b[out] -> [in]c[out] -> outside\"]
[ports]
inside = { capture = \"captures/office.pcap\" }
outside = { write = \"out.pcap\" }
[nf.a]
click = \"a.click\"
[nf.b]
click = \"b.click\"
[nf.c]
click = \"c.click\"
";

const HANDLERS: [(&str, &str); 4] =
    [("a/q.length", "0"), ("b/q.drops", "0"), ("c/q.highwater_length", "0"), ("c/q.capacity", "1000")];

fn folder(nfs: [&str; 3]) -> Folder {
    let folder = Folder::with_examples(&["captures"]);
    folder.write("chain.toml", CHAIN);
    for (name, text) in ["a.click", "b.click", "c.click"].iter().zip(nfs) {
        folder.write(name, text);
    }
    folder
}

fn run(folder: &Folder, words: &[&str]) -> (Vec<u8>, Accounts) {
    let accounts = folder.millrace(&[&["run", "--json", "chain.toml"], words].concat()).sound().accounts();
    accounts.assert_balanced();
    (std::fs::read(folder.path("out.pcap")).expect("written"), accounts)
}

#[test]
fn packets_pass_the_queues_of_a_chain() {
    let without = NF.replace("-> q :: Queue(1000)", "");
    let (expected, of_expected) = run(&folder([&without; 3]), &[]);
    assert!(of_expected.sent > 3_000);
    let queued = folder([NF; 3]);
    let handlers: Vec<&str> = HANDLERS.iter().flat_map(|(name, _)| ["-H", name]).collect();
    let forms: [&[&str]; 4] = [
        &["--as", "modular"],
        &["--as", "fused", "--cache", "off"],
        &["--as", "fused", "--cache", "eager"],
        &["--as", "fused", "--engine", "evaluator"],
    ];
    for words in forms {
        let (sent, accounts) = run(&queued, &[words, &handlers].concat());
        assert!(sent == expected, "other frames, or in another order: {words:?}");
        for (handler, value) in HANDLERS {
            assert_eq!(accounts.handlers[handler], value, "{handler} {words:?}");
        }
        for queue in ["a/q", "b/q", "c/q"] {
            let element = accounts.element(queue);
            assert_eq!((element.input, &element.outputs[..]), (of_expected.sent, &[of_expected.sent][..]));
        }
    }
    let (_, accounts) = run(&queued, &["--workers", "2", "--as", "fused"]);
    assert_eq!(accounts.sent, of_expected.sent);
}

/// What bounds a region: the port's queue, and queues in which packets wait for a reason.
#[test]
fn synth_says_why_packets_wait() {
    let shaped = NF.replace("-> ToDevice", "-> shaper :: Shaper(1000000) -> ToDevice");
    let small = NF.replace("Queue(1000)", "Queue(40)");
    let watched = NF.replace("-> q ::", "-> RED(100, 500, 0.1) -> q ::");
    let rated = NF.replace("-> ToDevice", "-> rated :: RatedUnqueue(1000000) -> Counter -> ToDevice");
    let behind = NF.replace("-> ToDevice", "-> behind :: Counter -> ToDevice");
    let mut shown = String::new();
    for nfs in [[NF, &shaped, &behind], [&small, &watched, &rated]] {
        let text = folder(nfs).millrace(&["synth", "chain.toml"]).sound().text();
        shown += text.lines().next().unwrap_or_default();
        let of_regions = text.lines().filter(|line| line.contains("enters ") || line.contains("leaves "));
        let others = text.lines().skip_while(|line| !line.starts_with("by themselves"));
        of_regions.chain(others).for_each(|line| shown += &format!("\n{line}"));
        shown += "\n\n";
    }
    golden("synth-queues.txt", &shown);
}
