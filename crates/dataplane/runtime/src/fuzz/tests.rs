use super::{
    Choices, How, LEFT_OUT, Setup, all_do_the_same, frame, fuzz_both_ways, fuzz_classes, fuzz_forms,
    fuzz_queues, fuzz_routers, run, run_changing,
};
use chain::FusedElements;
use packet::checksum;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use worker::fusion::FlowCache;

/// The number of chains, unless `MILLRACE_CHAINS` sets another.
fn cases() -> u32 {
    std::env::var("MILLRACE_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

/// A chain takes a third of a second.
const SLOW: Duration = Duration::from_secs(10);

/// Tells the bytes of a chain that fails, or that takes much longer than others: `MILLRACE_CASE` runs that chain alone,
/// and a file of these bytes in `fuzz/regressions` keeps it.
fn with_case<T>(data: &[u8], form: impl Fn(&[u8]) -> T) -> T {
    struct Tells<'a>(&'a [u8], Instant);
    impl Drop for Tells<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() || self.1.elapsed() > SLOW {
                let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                eprintln!("MILLRACE_CASE={hex}");
            }
        }
    }
    let _tells = Tells(data, Instant::now());
    form(data)
}

/// The chain of `MILLRACE_CASE`.
fn one_case() -> Option<Vec<u8>> {
    let hex = std::env::var("MILLRACE_CASE").ok()?;
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    Some((0..hex.len()).step_by(2).map(byte).collect())
}

/// The number from which chains are made: the same ones whenever tests are run, so that a change is judged by what it
/// changes. `MILLRACE_SEED` sets another, and `MILLRACE_CHAINS` alone has one chosen, which is printed.
fn seed() -> u64 {
    let told = std::env::var("MILLRACE_SEED").ok().and_then(|seed| seed.parse().ok());
    let is_long = std::env::var_os("MILLRACE_CHAINS").is_some();
    told.unwrap_or_else(|| if is_long { rand_seed() } else { 0 })
}

fn rand_seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), Instant::now())
}

/// Runs random chains, and returns the number of packets that the flow cache handled; `None` after the chain of
/// `MILLRACE_CASE` alone.
fn run_chains(form: impl Fn(&[u8]) -> u64) -> Option<u64> {
    run_each_chain(|_, _| {}, form)
}

/// The same with each chain's bytes changed by its number.
fn run_each_chain(change: impl Fn(u16, &mut [u8]), form: impl Fn(&[u8]) -> u64) -> Option<u64> {
    if let Some(data) = one_case() {
        with_case(&data, form);
        return None;
    }
    let seed = seed();
    println!("MILLRACE_SEED={seed}");
    // What a chain's bytes mean depends on all of them: shorter ones are another chain, and take as long.
    let config = ProptestConfig { cases: cases(), max_shrink_iters: 0, ..ProptestConfig::default() };
    let (number, hits) = (std::cell::Cell::new(0u16), std::cell::Cell::new(0));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let tried = runner.run(&prop::collection::vec(any::<u8>(), 40..900), |mut data| {
        change(number.replace(number.get().wrapping_add(1)), &mut data);
        hits.set(hits.get() + with_case(&data, &form));
        Ok(())
    });
    tried.unwrap_or_else(|failed| panic!("{failed}"));
    Some(hits.get())
}

/// The flow cache decides about so many packets of a chain and more.
fn decide_enough(hits: Option<u64>, each: u64) {
    let few = hits.filter(|hits| *hits <= u64::from(cases()) * each);
    assert_eq!(few, None, "packets that the flow cache decided about");
}

#[test]
fn chains_do_the_same_fused() {
    decide_enough(run_chains(fuzz_forms), 10);
}

#[test]
fn chains_with_answers_do_the_same_fused() {
    decide_enough(run_chains(fuzz_both_ways), 10);
}

#[test]
fn chains_do_the_same_whether_packets_pass_their_queues() {
    decide_enough(run_chains(fuzz_queues), 5);
}

#[test]
fn routers_in_a_row_do_the_same_fused() {
    let Some(unions) = run_chains(fuzz_routers) else { return };
    assert!(unions > u64::from(cases()) / 8, "{unions} unions only");
}

#[test]
fn chains_of_all_classes_do_the_same_fused() {
    let hits = std::cell::Cell::new(0);
    let counts = std::cell::RefCell::new(BTreeMap::<String, usize>::new());
    // Each chain is made for another piece, so that few chains have all.
    let change = |number: u16, data: &mut [u8]| data[..2].copy_from_slice(&number.to_le_bytes());
    let all = run_each_chain(change, |data| {
        let (classes, found) = fuzz_classes(data);
        classes
            .into_iter()
            .for_each(|(class, count)| *counts.borrow_mut().entry(class).or_default() += count);
        hits.set(hits.get() + found);
        found
    });
    if all.is_none() {
        return;
    }
    let counts = counts.into_inner();
    let mut missing = vec![];
    for class in crate::registry::names() {
        let count = counts.get(class).copied().unwrap_or(0);
        match LEFT_OUT.iter().find(|(left_out, _)| *left_out == class) {
            Some((_, reason)) => println!("{class:24} left out: {reason}"),
            None => println!("{class:24} {count}"),
        }
        if count == 0 && !LEFT_OUT.iter().any(|(left_out, _)| *left_out == class) {
            missing.push(class);
        }
    }
    // 200 chains have every piece at least once.
    assert!(missing.is_empty() || cases() < 200, "no chain had {missing:?}");
    assert!(hits.get() > u64::from(cases()), "the flow cache decided about {} packets only", hits.get());
}

/// The first packet of such a flow leaves by the forward output, all later ones by that of the replies.
#[test]
fn a_flow_that_is_its_own_reply_does_the_same_fused() {
    let text = "FromDevice(in) -> CheckIPHeader(14) -> ip :: IPClassifier(tcp or udp);
        ip -> IPRewriter(pattern 10.0.0.9 80 10.0.0.9 80 0 0) -> r :: IPRewriter(keep 0 1);
        r[0] -> first :: Counter -> ToDevice(out0); r[1] -> later :: Counter -> ToDevice(out1);";
    let seed: Vec<u8> = (0..2_000u32).map(|at| (at * at / 7) as u8).collect();
    let mut choices = Choices(&seed);
    let frames: Vec<Vec<u8>> = (0..20).map(|_| frame(&mut choices)).collect();
    for burst in [1, 7, 64] {
        let setup = Setup { text: text.into(), frames: frames.clone(), burst, step_ns: 0, is_timed: false };
        all_do_the_same(&setup);
        let how = How {
            fused: FusedElements::All,
            evaluator: false,
            cache: FlowCache::Eager,
            pass_queues: true,
            one_by_one: false,
        };
        let (seen, _) = run(&setup, how).expect("a run");
        let count =
            |name: &str| seen.counters.iter().find(|book| book.0.starts_with(name)).map_or(0, |book| book.1);
        assert_eq!(count("first"), 2, "one for each protocol");
        assert!(count("later") > 20, "{}", count("later"));
    }
}

/// Two flows to one server from one port: each new mapping ends the other one's, whose packets in the same burst find it
/// in the flow cache.
#[test]
fn a_mapping_that_another_one_ends_is_not_used_any_more() {
    let text = "FromDevice(in) -> CheckIPHeader(14) -> ip :: IPClassifier(tcp or udp);
        m :: RoundRobinIPMapper(- - 10.0.0.8 - 0 0, - - 10.0.0.7 - 0 0);
        ip -> r :: IPRewriter(m) -> ToDevice(out0);";
    let flow = |target: u8, port: u8| {
        let mut frame = frame(&mut Choices(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 5]));
        (frame[32], frame[35]) = (target, port);
        assert!(checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
        frame
    };
    // First those that nobody ends.
    let alone = (10..18).map(|port| flow(0, port));
    let frames: Vec<Vec<u8>> =
        alone.chain((0..40).map(|at| flow(at % 3, [1, 1, 1, 2, 3][usize::from(at) % 5]))).collect();
    for burst in [1, 7, 64] {
        let setup = Setup { text: text.into(), frames: frames.clone(), burst, step_ns: 0, is_timed: false };
        assert!(all_do_the_same(&setup).hits > 0);
    }
}

/// A mapping of one input ends that of another one, whose packets come behind it in the same burst and get a new port:
/// somebody sends from the address and port that it was given.
#[test]
fn a_mapping_of_one_input_ends_that_of_another_in_order() {
    let text = "FromDevice(in) -> CheckIPHeader(14) -> ip :: IPClassifier(src host 203.0.113.1, -);
        r :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, pattern - - 10.0.0.8 - 1 0);
        ip[0] -> [1]r; ip[1] -> [0]r; r[0] -> ToDevice(out0); r[1] -> ToDevice(out1);";
    let flow = |source: [u8; 4], port: u16, target: [u8; 4]| {
        let mut frame = frame(&mut Choices(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 5]));
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&target);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        assert!(checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
        frame
    };
    let ours = || flow([10, 1, 1, 1], 7, [10, 0, 0, 8]);
    let spoofed = flow([203, 0, 113, 1], 1024, [10, 0, 0, 9]);
    let frames: Vec<Vec<u8>> =
        (0..128).map(|_| ours()).chain([spoofed]).chain((0..20).map(|_| ours())).collect();
    for burst in [1, 7, 64] {
        let setup = Setup { text: text.into(), frames: frames.clone(), burst, step_ns: 0, is_timed: false };
        let sent = |fused: FusedElements, evaluator: bool| {
            let cache = FlowCache::Never;
            let how = How { fused, evaluator, cache, pass_queues: true, one_by_one: false };
            run(&setup, how).expect("a run").0.sent
        };
        assert_eq!(sent(FusedElements::Nothing, true), sent(FusedElements::All, false), "bursts of {burst}");
    }
}

/// The seeds of the fuzzing, and every input that once failed.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    for (target, form) in [
        ("chain_forms", fuzz_forms as fn(&[u8]) -> u64),
        ("chain_answers", fuzz_both_ways),
        ("chain_queues", fuzz_queues),
        ("chain_classes", |data| fuzz_classes(data).1),
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
