use super::{fuzz_both_ways, fuzz_forms, fuzz_queues, fuzz_routers, run_changing};
use chain::FusedElements;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use worker::fusion::FlowCache;

/// The number of chains, unless `MILLRACE_CHAINS` sets another.
fn cases() -> u32 {
    std::env::var("MILLRACE_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

/// Runs random chains, and returns the number of packets that the flow cache handled.
fn run_chains(form: fn(&[u8]) -> u64) -> u64 {
    let config = ProptestConfig { cases: cases(), ..ProptestConfig::default() };
    let hits = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(config);
    let tried = runner.run(&prop::collection::vec(any::<u8>(), 40..900), |data| {
        hits.set(hits.get() + form(&data));
        Ok(())
    });
    tried.unwrap_or_else(|failed| panic!("{failed}"));
    hits.get()
}

#[test]
fn chains_do_the_same_fused() {
    let hits = run_chains(fuzz_forms);
    assert!(hits > u64::from(cases()) * 10, "the flow cache decided about {hits} packets only");
}

#[test]
fn chains_with_answers_do_the_same_fused() {
    let hits = run_chains(fuzz_both_ways);
    assert!(hits > u64::from(cases()) * 10, "the flow cache decided about {hits} packets only");
}

#[test]
fn chains_do_the_same_whether_packets_pass_their_queues() {
    let hits = run_chains(fuzz_queues);
    assert!(hits > u64::from(cases()) * 5, "the flow cache decided about {hits} packets only");
}

#[test]
fn routers_in_a_row_do_the_same_fused() {
    let unions = run_chains(fuzz_routers);
    assert!(unions > u64::from(cases()) / 8, "{unions} unions only");
}

/// The seeds of the fuzzing, and every input that once failed.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    for (target, form) in [
        ("chain_forms", fuzz_forms as fn(&[u8]) -> u64),
        ("chain_answers", fuzz_both_ways),
        ("chain_queues", fuzz_queues),
    ] {
        testkit::replay::replay(target, 4, |data| {
            form(data);
        });
    }
}

/// From burst to burst: one second for two passes.
const STEP_NS: u64 = 80_000_000;

/// Chains that a script changes, so that cached results become wrong.
const CHANGING: &[&str] = &[
    // A route leads to another output; later it is removed; later it is added again.
    "FromDevice(in) -> MarkIPHeader(14) -> GetIPAddress(30) -> rt :: RadixIPLookup(10.0.0.0/8 0);
     rt[0] -> zero :: Counter -> Discard; rt[1] -> one :: Counter -> Discard;
     Script(wait 0.9, write rt.set 10.0.0.0/8 1, wait 0.8, write rt.remove 10.0.0.0/8, wait 0.8, write rt.add 10.0.0.0/9 1);",
    // A prefix is split.
    "FromDevice(in) -> MarkIPHeader(14) -> GetIPAddress(30) -> rt :: RadixIPLookup(0/0 0);
     rt[0] -> zero :: Counter -> Discard; rt[1] -> one :: Counter -> Discard;
     Script(wait 1.1, write rt.add 10.0.0.0/16 1, wait 0.7, write rt.add 10.193.0.0/16 1, wait 0.7, write rt.flush);",
    // All mappings are removed, and the next ones get other ports.
    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1);
     nat[0] -> low :: IPClassifier(src port < 1045, -);
     low[0] -> few :: Counter -> Discard; low[1] -> many :: Counter -> Discard; nat[1] -> Discard;
     Script(wait 1.2, write nat.clear, wait 1, write nat.clear);",
    // A value that a handler sets is a constant of the program.
    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> p :: Paint(0) -> nat :: UDPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1)
     -> s :: PaintSwitch; nat[1] -> Discard;
     s[0] -> zero :: Counter -> Discard; s[1] -> one :: Counter -> Discard;
     Script(wait 1.2, write p.color 1, wait 1, write p.color 0);",
    // Other rules, few of them: another program.
    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1)
     -> f :: IPFilter(allow dst port 53 or 443, deny all) -> a :: Counter -> Discard; nat[1] -> Discard;
     f[1] -> b :: Counter -> Discard;
     Script(wait 0.9, write f.config '1 dst port 53, allow all', wait 0.8, write f.config 'deny all', wait 0.8,
     write f.config 'allow dst port 53 or 443, deny all');",
    // Packets without an entry, and packets that fail the guards of their entry, run through the program in
    // their order.
    "FromDevice(in) -> CheckLength(90) -> r :: RoundRobinSwitch;
     r[0] -> a :: CheckIPHeader(14) -> Discard; r[1] -> b :: IPClassifier(udp, -) -> Discard; b[1] -> Discard;
     r[2] -> c :: Counter -> Discard;",
    // More flows than mappings: new mappings replace old ones.
    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1,
     MAPPING_CAPACITY 5, UDP_GUARANTEE 0, TCP_GUARANTEE 0);
     nat[0] -> low :: IPClassifier(src port < 1045, -);
     low[0] -> few :: Counter -> Discard; low[1] -> many :: Counter -> Discard; nat[1] -> Discard;",
];

/// Many rules about addresses and ports, so that they are compiled to a table, with a decision for each port.
fn long_list(decisions: [&str; 4]) -> String {
    let of = |(port, action): (&str, &str)| {
        (0..12)
            .map(|at| format!("{action} dst port {port} and dst net 10.{}.0.0/12", at * 16))
            .collect::<Vec<_>>()
    };
    let rules = ["53", "80", "443", "1025"].into_iter().zip(decisions).flat_map(of);
    rules.chain(["deny all".into()]).collect::<Vec<_>>().join(", ")
}

#[test]
fn nothing_is_remembered_that_has_changed() {
    let [first, second, third] =
        [["allow", "1", "deny", "1"], ["1", "1", "allow", "deny"], ["deny", "allow", "1", "deny"]]
            .map(long_list);
    let table = format!(
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1)
         -> f :: IPFilter({first}) -> a :: Counter -> Discard; nat[1] -> Discard;
         f[1] -> b :: Counter -> Discard;
         Script(wait 0.9, write f.config '{second}', wait 0.8, write f.config '{third}', wait 0.8,
         write f.config '{first}');"
    );
    for text in CHANGING.iter().copied().chain([table.as_str()]) {
        let (wanted, _) = run_changing(text, FusedElements::Nothing, true, FlowCache::Never, STEP_NS);
        for evaluator in [true, false] {
            let (found, shortened) =
                run_changing(text, FusedElements::All, evaluator, FlowCache::Eager, STEP_NS);
            assert_eq!(wanted, found, "{text}");
            assert!(shortened.hits > 10, "{shortened:?}: {text}");
        }
    }
}

/// Routers in a row whose routes a script changes, so that their union becomes wrong.
const ROUTERS: &[&str] = &[
    // Of another output, of another gateway, and of a longer prefix; the last one is as at first again.
    "FromDevice(in) -> MarkIPHeader(14) -> GetIPAddress(30) -> one :: RadixIPLookup(10.0.0.0/8 0)
     -> GetIPAddress(30) -> two :: RadixIPLookup(10.0.0.0/8 0, 10.193.0.0/16 1) -> StoreIPAddress(26)
     -> of :: Classifier(26/c0000201, 26/c0000207, -); of[0] -> x :: Counter -> ToDevice(out);
     of[1] -> y :: Counter -> ToDevice(out); of[2] -> z :: Counter -> ToDevice(out);
     one[1] -> a :: Counter -> Discard; two[1] -> b :: Counter -> Discard;
     Script(wait 0.002, write one.set 10.0.0.0/8 1, wait 0.002, write one.set 10.0.0.0/8 0, wait 0.002,
     write two.set 10.0.0.0/16 192.0.2.7 0, wait 0.002, write two.set 10.0.0.0/8 192.0.2.1 0, wait 0.002, write two.remove 10.193.0.0/16,
     wait 0.002, write two.set 10.0.0.0/8 0);",
];

#[test]
fn a_union_follows_its_routes() {
    for text in ROUTERS {
        // Several bursts a tick, at whose end unions are made: until then they are used only if they are right.
        let run = |fused, evaluator| run_changing(text, fused, evaluator, FlowCache::Never, 300_000);
        let (wanted, _) = run(FusedElements::Nothing, true);
        let (found, shortened) = run(FusedElements::All, false);
        assert_eq!(wanted, found, "{text}");
        assert_eq!(shortened.unions, 1, "{text}");
    }
}
