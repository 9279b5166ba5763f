//! `run --simtime`: an hour of virtual time, in every execution mode, is exact and short.

use crate::program::{Finished, Folder};
use std::time::Duration;

const MODES: [&[&str]; 5] = [
    &["--as", "modular"],
    &["--as", "modular", "--burst", "1"],
    &["--as", "fused", "--cache", "never"],
    &["--as", "fused", "--cache", "eager"],
    &["--as", "fused", "--engine", "evaluator"],
];

fn run(folder: &Folder, mode: &[&str], arguments: &[&str]) -> Finished {
    folder.millrace(&[&["run", "a.click", "--json", "--simtime"], mode, arguments].concat())
}

/// The value of a handler at the end; the accounts balance.
fn value(run: &Finished, handler: &str) -> i64 {
    let accounts = run.accounts();
    accounts.assert_balanced();
    let text = accounts.handlers.get(handler).and_then(|value| value.as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{}", run.text()))
}

/// The values that a script read, in order.
fn read(run: &Finished) -> Vec<String> {
    let lines: Vec<&str> = run.stderr.lines().collect();
    let values = lines.windows(2).filter(|pair| pair[0].ends_with(':') && !pair[0].contains(' '));
    values.map(|pair| format!("{}{}", pair[0], pair[1])).collect()
}

#[test]
fn an_hour_of_mappings_that_expire_is_the_same_in_every_mode() {
    let folder = Folder::new();
    folder.write(
        "in",
        "!proto U\n!data timestamp src sport dst dport\n0 10.0.0.1 1 9.9.9.9 53\n1 10.0.0.2 1 9.9.9.9 53\n\
         2 10.0.0.1 1 9.9.9.9 53\n1000 10.0.0.3 1 9.9.9.9 53\n3599 10.0.0.1 1 9.9.9.9 53\n",
    );
    folder.write(
        "a.click",
        "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0, drop, UDP_TIMEOUT 300, UDP_STREAMING_TIMEOUT 300);
         FromIPSummaryDump(in, TIMING true) -> rw -> ToIPSummaryDump(out, FIELDS timestamp src sport dst dport);
         Script(wait 10, read rw.size, wait 330, read rw.size, wait 700, read rw.size, wait 2560, read rw.size,
                print $(now), stop);",
    );
    let text = folder.millrace(&["run", "a.click", "--simtime"]).sound().text();
    assert!(text.contains("s of virtual time") && !text.contains("pps"), "{text}");
    for mode in MODES {
        let run = run(&folder, mode, &[]).sound();
        assert_eq!(
            read(&run),
            ["rw.size:2", "rw.size:0", "rw.size:1", "rw.size:1"],
            "{mode:?}: {}",
            run.stderr
        );
        assert!(run.stderr.contains("1000003600.000000000"), "{mode:?}: {}", run.stderr);
        let out = std::fs::read_to_string(folder.path("out")).expect("it was written");
        let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with('!')).collect();
        let expected = [
            "0.000000 1.0.0.1 1024 9.9.9.9 53",
            "1.000000 1.0.0.1 1025 9.9.9.9 53",
            "2.000000 1.0.0.1 1024 9.9.9.9 53",
        ];
        assert_eq!(lines[..3], expected, "{mode:?}");
        assert_eq!(lines.len(), 5, "{mode:?}: {out}");
    }
}

#[test]
fn rates_and_delays_are_exact() {
    let folder = Folder::new();
    folder.write(
        "a.click",
        "RatedSource(RATE 100) -> a :: Counter -> Discard;
         TimedSource(1) -> Queue(1000) -> DelayUnqueue(30) -> b :: Counter -> Discard;
         InfiniteSource(LIMIT 500) -> Queue(1000) -> RatedUnqueue(RATE 2) -> c :: Counter -> Discard;
         InfiniteSource(LIMIT 500) -> Queue(1000) -> Shaper(4) -> Unqueue -> d :: Counter -> Discard;
         InfiniteSource(DATA abcd, LIMIT 500) -> Queue(1000) -> BandwidthShaper(16Bps) -> Unqueue
             -> e :: Counter -> Discard;
         Idle -> Queue -> TimedSink(0.5);",
    );
    let counts = ["-H", "a.count", "-H", "b.count", "-H", "c.count", "-H", "d.count", "-H", "e.count"];
    for mode in MODES {
        let all = || run(&folder, mode, &[&["--for", "100"], &counts[..]].concat()).sound();
        let first = all();
        let second = all().accounts();
        for (name, expected) in [("a", 10_000), ("b", 70), ("c", 200), ("d", 400), ("e", 400)] {
            let handler = format!("{name}.count");
            let count = value(&first, &handler);
            assert!((count - expected).abs() <= 1, "{mode:?}, {name}: {count}");
            assert_eq!(second.handlers[&handler], count.to_string(), "{mode:?}, {name}");
        }
    }
}

#[test]
fn rates_behind_full_queues_are_those_of_click() {
    // The counts that Click's own tests of these classes expect after ten seconds.
    let source = "InfiniteSource(LENGTH 100) -> Queue(10) ->";
    let packets = ["RATE 2", "RATE 2, BURST_SIZE 50", "RATE 2, BURST_DURATION 25", "RATE 100, BURST_SIZE 1"];
    let bytes = [("200Bps", "10"), ("200Bps, BURST_BYTES 5000", "10"), ("200Bps, BURST_DURATION 25", "10")];
    let mut text = String::new();
    for (at, limit) in packets.iter().enumerate() {
        text += &format!("{source} RatedUnqueue({limit}) -> p{at} :: Counter -> Discard;\n");
    }
    for (at, (limit, capacity)) in bytes.iter().enumerate() {
        text += &format!(
            "InfiniteSource(LENGTH 100) -> Queue({capacity}) -> BandwidthRatedUnqueue(RATE 2000Bps)
             -> BandwidthRatedSplitter(RATE {limit}) -> b{at} :: Counter -> Discard;\n"
        );
    }
    text += "InfiniteSource(LENGTH 100) -> Queue(1) -> BandwidthRatedUnqueue(RATE 20000Bps)
             -> BandwidthRatedSplitter(RATE 10000Bps, BURST_BYTES 100) -> b3 :: Counter -> Discard;
             Script(wait 10";
    let names = ["p0", "p1", "p2", "p3", "b0", "b1", "b2", "b3"];
    names.iter().for_each(|name| text += &format!(", read {name}.count"));
    text += ", stop);";
    let folder = Folder::new();
    folder.write("a.click", &text);
    let expected = [20, 69, 69, 1_000, 21, 70, 70, 1_001];
    let expected: Vec<String> =
        names.iter().zip(expected).map(|(name, count)| format!("{name}.count:{count}")).collect();
    for mode in MODES {
        assert_eq!(read(&run(&folder, mode, &[]).sound()), expected, "{mode:?}");
    }
}

#[test]
fn full_queues_stop_a_source_that_has_no_rate() {
    let folder = Folder::new();
    let made = |text: &str| {
        folder.write("a.click", text);
        let of = |mode: &[&str]| {
            let run = run(&folder, mode, &["--for", "1ms", "-H", "s.count"]).sound();
            value(&run, "s.count")
        };
        let first = of(MODES[0]);
        assert!(MODES.iter().all(|mode| of(mode) == first || first > 1_000), "{text}");
        first
    };
    for queue in ["Queue", "FullNoteQueue", "ThreadSafeQueue", "QuickNoteQueue"] {
        assert_eq!(made(&format!("s :: InfiniteSource -> Null -> {queue}(10) -> Idle;")), 10, "{queue}");
    }
    for queue in ["SimpleQueue", "NotifierQueue", "FrontDropQueue"] {
        assert!(made(&format!("s :: InfiniteSource -> {queue}(10) -> Idle;")) > 1_000, "{queue}");
    }
    // Of several queues, the one with most room decides; packets that end elsewhere are never stopped.
    let tee = "s :: InfiniteSource -> t :: Tee -> Queue(10) -> Idle; t[1] ->";
    assert_eq!(made(&format!("{tee} Queue(70) -> Idle;")), 70);
    assert!(made(&format!("{tee} Discard;")) > 1_000);
    assert!(made(&format!("{tee} SimpleQueue(10) -> Idle;")) > 1_000);
    // What leaves a queue makes room, and so does a handler.
    let taken = "s :: InfiniteSource -> Queue(10) -> TimedSink(0.0002)";
    assert_eq!(made(taken), 14);
    let grown = "s :: InfiniteSource -> q :: Queue(10) -> Idle; Script(wait 0.0005, write q.capacity 25)";
    assert_eq!(made(grown), 25);
    assert_eq!(made("s :: InfiniteSource(BURST 64, LIMIT 30) -> Queue(10) -> Idle;"), 10);
}

#[test]
fn a_run_in_which_nothing_will_happen_ends() {
    let folder = Folder::new();
    folder.write("a.click", "RatedSource(RATE 5, LIMIT 10) -> c :: Counter -> Discard;");
    for workers in ["1", "2"] {
        let run = run(&folder, &["--workers", workers], &["-H", "c.count"]).sound();
        let workers: i64 = workers.parse().expect("a number");
        assert_eq!(value(&run, "c.count"), 10 * workers);
    }
}

#[test]
fn a_source_that_never_rests_does_not_stop_the_time() {
    let folder = Folder::new();
    folder.write(
        "a.click",
        "InfiniteSource -> Queue(10) -> RatedUnqueue(RATE 1000) -> c :: Counter -> Discard;",
    );
    let run = run(&folder, &[], &["--for", "10ms", "-H", "c.count"]).sound();
    let count = value(&run, "c.count");
    assert!((10..=31).contains(&count), "{count}");
}

#[test]
fn a_timer_of_a_microsecond_over_an_hour_can_be_interrupted() {
    let folder = Folder::new();
    folder.write("a.click", "TimedSource(0.000001) -> c :: Counter -> Discard;");
    let run = run(&folder, &[], &["--for", "10ms", "-H", "c.count"]).sound();
    let count = value(&run, "c.count");
    assert!((9_990..=10_000).contains(&count), "{count}");
    let started = folder.start(&["run", "a.click", "--quiet", "--simtime", "--for", "3600"]);
    std::thread::sleep(Duration::from_millis(500));
    started.interrupt();
    assert_eq!(started.wait().code, Some(0));
}

#[test]
fn devices_and_processes_are_refused_where_they_are_named() {
    let folder = Folder::new();
    folder.write("a.click", "FromDevice(eth0) -> ToDevice(eth1);");
    let refused = run(&folder, &[], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for device in ["eth0", "eth1"] {
        assert!(
            refused.stderr.contains(&format!("the device `{device}` is in real time")),
            "{}",
            refused.stderr
        );
    }
    folder.write("a.click", "KernelTap(10.0.0.1/24) -> Discard;");
    let refused = run(&folder, &[], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("the interface of `KernelTap@1` is in real time"), "{}", refused.stderr);
    folder.write("nf.click", "FromDevice(0) -> ToDevice(1);");
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]a[1] -> out\"]\n[ports]\nin = { traffic = { flows = 1, size = \"64\" }, count = 9 }\n\
         out = { discard = true }\n[nf.a]\nclick = \"nf.click\"\nruns = \"process\"\n",
    );
    let refused = folder.millrace(&["run", "chain.toml", "--simtime"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("the process of NF `a` is in real time"), "{}", refused.stderr);
    assert!(refused.stderr.contains("chain.toml:"), "{}", refused.stderr);
    // In this process it runs.
    let chain = std::fs::read_to_string(folder.path("chain.toml")).expect("it is there");
    folder.write("chain.toml", &chain.replace("runs = \"process\"\n", ""));
    let run = folder.millrace(&["run", "chain.toml", "--simtime", "--json"]).sound();
    assert_eq!(run.accounts().port("out").sent.0, 9);
}
