//! Several NFs with a driver script each: when the run ends, and what becomes of scripts that wait.

use crate::program::{Finished, Folder};
use std::time::{Duration, Instant};

/// The lines of the chain file that run the NFs `a` and `b` in a mode, and the arguments of `run`.
struct Mode {
    name: &'static str,
    a: &'static str,
    b: &'static str,
    arguments: &'static [&'static str],
}

const PROCESS: &str = "runs = \"process\"";

const MODES: [Mode; 7] = [
    Mode { name: "modular", a: "", b: "", arguments: &[] },
    Mode { name: "fused", a: "", b: "", arguments: &["--as", "fused"] },
    Mode { name: "cached", a: "", b: "", arguments: &["--as", "fused", "--cache", "eager"] },
    Mode { name: "two workers", a: "", b: "", arguments: &["--workers", "2"] },
    Mode { name: "a in a process", a: PROCESS, b: "", arguments: &[] },
    Mode { name: "b in a process", a: "", b: PROCESS, arguments: &["--as", "fused"] },
    Mode { name: "both in processes", a: PROCESS, b: PROCESS, arguments: &[] },
];

/// What the chain's traffic is: without end, or 100 packets.
const ENDLESS: &str = "flows = 10, size = \"64\" }";
const SHORT: &str = "flows = 10, size = \"64\" }, count = 100";

/// Runs NF `a`, behind it NF `b`, each with these elements beside those that count and forward its packets.
fn run(mode: &Mode, settings: &str, traffic: &str, [a, b]: [&str; 2]) -> (Finished, Duration) {
    let folder = Folder::new();
    let nf = |extra: &str| {
        format!("FromDevice(0) -> CheckIPHeader(14) -> c :: Counter -> DecIPTTL -> ToDevice(1);\n{extra}\n")
    };
    folder.write("a.click", &nf(a));
    folder.write("b.click", &nf(b));
    folder.write(
        "chain.toml",
        &format!(
            "links = [\"in -> [0]a[1] -> [0]b[1] -> out\"]\n[run]\n{settings}\n[ports]\nin = {{ traffic = {{ \
             {traffic} }}\nout = {{ discard = true }}\n[nf.a]\nclick = \"a.click\"\n{}\n[nf.b]\nclick = \
             \"b.click\"\n{}\n",
            mode.a, mode.b
        ),
    );
    let start = Instant::now();
    // A run that does not end by itself fails the assertions on its time.
    let arguments = [&["run", "chain.toml", "--json", "--for", "60"], mode.arguments].concat();
    let finished = folder.millrace(&arguments);
    (finished, start.elapsed())
}

/// The lines that scripts printed, in their order.
fn printed(run: &Finished) -> Vec<&str> {
    run.stderr.lines().filter_map(|line| line.strip_prefix("script: ")).collect()
}

/// As [`printed`], for scripts that end within moments of each other: what an NF in a process of its own
/// prints comes through a pipe, which may be read when the other NF has printed already.
fn printed_by(mode: &Mode, run: &Finished, expected: [&str; 2]) {
    let mut printed = printed(run);
    if [mode.a, mode.b].contains(&PROCESS) && printed == [expected[1], expected[0]] {
        printed.reverse();
    }
    assert_eq!(printed, expected, "{}: {}", mode.name, run.stderr);
}

const SOON: Duration = Duration::from_secs(30);

#[test]
fn the_run_ends_with_the_last_driver_script() {
    for mode in &MODES {
        let a = "DriverManager(wait 0.2s, print \"script: a stops\", stop)";
        let b = "Script(TYPE DRIVER, wait 0.8s, print \"script: b stops\", stop)";
        for traffic in [ENDLESS, SHORT] {
            for scripts in [[a, b], [b, a]] {
                let (run, time) = run(mode, "", traffic, scripts);
                let name = mode.name;
                let accounts = run.sound().accounts();
                accounts.assert_balanced();
                assert!(time >= Duration::from_millis(800) && time < SOON, "{name}: {time:?}");
            }
        }
        let (run, _) = run(mode, "", ENDLESS, [a, b]);
        assert_eq!(printed(&run), ["a stops", "b stops"], "{}: {}", mode.name, run.stderr);
    }
}

#[test]
fn packets_of_an_nf_that_has_stopped_are_processed() {
    for mode in &MODES {
        // Once `a` has stopped, `b` still counts packets, all of which have passed `a`.
        let b = "DriverManager(wait 0.7s, set n $(c.count), wait 0.3s,
                               print \"script: $(gt $(c.count) $n)\", stop)";
        let (run, _) = run(mode, "", ENDLESS, ["DriverManager(wait 0.1s, stop)", b]);
        assert_eq!(printed(&run), ["true"], "{}: {}", mode.name, run.stderr);
        run.sound().accounts().assert_balanced();
    }
}

#[test]
fn a_chain_file_selects_whose_scripts_end_the_run() {
    let slow = "DriverManager(wait 50s, print \"script: slow\", stop)";
    let quick = "DriverManager(wait 0.2s, print \"script: quick\", stop)";
    for mode in &MODES {
        for (settings, scripts) in [
            ("ends_with = \"first\"", [slow, quick]),
            ("ends_with = [\"a\"]", [quick, slow]),
            ("ends_with = [\"b\"]", [slow, quick]),
        ] {
            let (run, time) = run(mode, settings, ENDLESS, scripts);
            // The other script executes its rest when the run ends.
            printed_by(mode, &run, ["quick", "slow"]);
            assert!(time < SOON, "{} {settings}: {time:?}", mode.name);
            run.sound();
        }
    }
}

#[test]
fn a_script_that_waits_for_a_stopped_nf_does_not_hold_the_run() {
    for mode in &MODES {
        // Nobody gives the steps that `b` waits for: it goes on when the run ends.
        for waits in ["pause", "wait_stop", "wait"] {
            let b = format!("DriverManager({waits}, print \"script: b at the end\", stop)");
            let a = "DriverManager(wait 0.2s, print \"script: a\", stop)";
            let (run, time) = run(mode, "", ENDLESS, [a, &b]);
            printed_by(mode, &run, ["a", "b at the end"]);
            assert!(time < SOON, "{} {waits}: {time:?}", mode.name);
            run.sound();
        }
    }
}

#[test]
fn a_source_that_stops_ends_the_script_of_its_own_nf() {
    for mode in &MODES {
        let a = "i :: InfiniteSource(LIMIT 10, STOP true) -> Discard;
                 DriverManager(pause, print \"script: a after $(i.count)\", stop)";
        let b = "DriverManager(wait 0.7s, print \"script: b\", stop)";
        let (run, time) = run(mode, "", ENDLESS, [a, b]);
        assert_eq!(printed(&run), ["a after 10", "b"], "{}: {}", mode.name, run.stderr);
        assert!(time >= Duration::from_millis(700) && time < SOON, "{}: {time:?}", mode.name);
        run.sound();
    }
}

#[test]
fn scripts_step_those_of_other_nfs_until_they_have_stopped() {
    let here = &MODES[0];
    let b = "d :: DriverManager(pause, print \"script: b has its step\", stop)";
    let a = "DriverManager(wait 0.2s, write b/d.step, wait 0.4s, print \"script: a\", stop)";
    let (stepped, _) = run(here, "", ENDLESS, [a, b]);
    assert_eq!(printed(&stepped), ["b has its step", "a"], "{}", stepped.stderr);
    stepped.sound();
    let late =
        "DriverManager(wait 0.2s, write b/d.step, wait 0.8s, write b/d.step, print \"script: a $?\", stop)";
    let (late, time) = run(here, "", ENDLESS, [late, b]);
    assert_eq!(printed(&late), ["b has its step", "a -1"], "{}", late.stderr);
    assert!(time < SOON, "{time:?}");
    assert_eq!(late.code, Some(1));
    let warnings = late.accounts().warnings;
    assert!(warnings.iter().any(|text| text.contains("`b/d` has stopped")), "{warnings:?}");
    // An NF in a process of its own is out of reach, which is said, too, and is no reason to wait.
    let (away, time) = run(&MODES[5], "", ENDLESS, [a, b]);
    assert!(time < SOON, "{time:?}");
    let warnings = away.accounts().warnings;
    assert!(warnings.iter().any(|text| text.contains("runs in a process of its own")), "{warnings:?}");
}

#[test]
fn an_nf_has_one_driver_script() {
    let folder = Folder::new();
    folder.write("two.click", "DriverManager(stop);\nIdle -> Discard;\nScript(TYPE DRIVER, stop);\n");
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]a[1] -> out\"]\n[ports]\nin = { traffic = { flows = 1, size = \"64\" } }\n\
         out = { discard = true }\n[nf.a]\ninline = \"\"\"FromDevice(0) -> ToDevice(1);\n\
         DriverManager(stop);\nDriverManager(pause);\"\"\"\n",
    );
    for (file, places) in [
        ("two.click", ["two.click:3:1", "two.click:1:1"]),
        ("chain.toml", ["chain.toml:8:1", "chain.toml:7:1"]),
    ] {
        let check = folder.millrace(&["check", file, "--short"]);
        assert_eq!(check.code, Some(2), "{}", check.stderr);
        assert!(
            check.stderr.starts_with(&format!("{}: error: this is the second", places[0])),
            "{}",
            check.stderr
        );
        assert!(check.stderr.contains(places[1]), "{}", check.stderr);
        assert_eq!(check.stderr.lines().count(), 1, "{}", check.stderr);
    }
}

#[test]
fn the_nfs_that_end_a_run_are_checked() {
    let folder = Folder::new();
    let chain = |ends_with: &str| {
        format!(
            "links = [\"in -> [0]nat[1] -> out\"]\n[run]\nends_with = {ends_with}\n[ports]\n\
             in = {{ traffic = {{ flows = 1, size = \"64\" }} }}\nout = {{ discard = true }}\n[nf.nat]\n\
             inline = \"FromDevice(0) -> ToDevice(1);\"\n"
        )
    };
    for (ends_with, place, part) in [
        ("[\"nta\"]", "chain.toml:3:15:", "there is no NF `nta`; did you mean `nat`?"),
        ("[\"nat\", \"nat\"]", "chain.toml:3:22:", "listed twice"),
        ("[]", "chain.toml:3:13:", "no NF"),
        ("\"last\"", "chain.toml:3:14:", "does not end with `last`"),
        ("7", "chain.toml:3:13:", "text in quotes"),
    ] {
        folder.write("chain.toml", &chain(ends_with));
        let check = folder.millrace(&["check", "chain.toml", "--short"]);
        assert_eq!(check.code, Some(2), "{ends_with}");
        assert!(
            check.stderr.starts_with(place) && check.stderr.contains(part),
            "{ends_with}: {}",
            check.stderr
        );
        assert_eq!(check.stderr.lines().count(), 1, "{}", check.stderr);
    }
}

/// A source that stops gives the driver script of its NF a step; the script goes on while packets flow.
#[test]
fn scripts_go_on_after_a_stop() {
    for mode in &MODES {
        let a = "i :: InfiniteSource(LIMIT 10, STOP true) -> q :: Queue(100) -> u :: Unqueue(ACTIVE false) -> n :: Counter -> Discard;
                 r :: RatedSource(LIMIT 3, RATE 20, STOP true) -> Discard;
                 DriverManager(pause, print \"script: a $(q.length) $(n.count)\", write u.active true, wait_stop, print \"script: a $(q.length) $(n.count) $(r.count)\", wait 0.1, print \"script: a ends\")";
        let (run, time) = run(mode, "", ENDLESS, [a, ""]);
        let lines = ["a 10 0", "a 0 10 3", "a ends"];
        if mode.arguments.contains(&"--workers") {
            // A source stops with the first worker's copy of it, and a script reads its own worker's
            // counters.
            assert_eq!(printed(&run).len(), lines.len(), "{}: {}", mode.name, run.stderr);
        } else {
            assert_eq!(printed(&run), lines, "{}: {}", mode.name, run.stderr);
        }
        assert!(time >= Duration::from_millis(190) && time < SOON, "{}: {time:?}", mode.name);
        run.sound().accounts().assert_balanced();
    }
}

#[test]
fn a_script_waits_for_several_stops() {
    let folder = Folder::new();
    folder.write(
        "two.click",
        "a :: InfiniteSource(LIMIT 5, STOP true) -> Discard; b :: RatedSource(LIMIT 2, RATE 20, STOP true) -> Discard;\n\
         DriverManager(wait_stop 2, print \"script: $(a.count) $(b.count)\");\n",
    );
    let run = folder.millrace(&["run", "two.click", "--json", "--for", "30"]).sound();
    assert_eq!(printed(&run), ["5 2"]);
}

/// The end of all sources is a step, too: the script reads what waits, and goes on.
#[test]
fn what_a_script_leaves_undone_is_said() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "end.click",
        "FromDump(captures/office.pcap) -> q :: Queue(100000) -> u :: Unqueue(ACTIVE false) -> c :: Counter -> Discard;\n\
         d :: DriverManager(pause, print \"script: $(q.length)\", write u.active true, wait 0.2,\n\
         print \"script: $(q.length) $(c.count)\", pause, print \"script: not reached\");\n\
         s :: Script(pause, print \"script: nor this\");\nScript(label l, wait 1, goto l);\n",
    );
    let run = folder.millrace(&["run", "end.click", "--json", "--for", "30"]);
    assert_eq!(printed(&run), ["3443", "0 3443"], "{}", run.stderr);
    assert_eq!(run.code, Some(1));
    let warnings = run.accounts().warnings;
    for part in [
        "d: `pause`: the run ended here, at instruction 6: 1 instruction of the script",
        "s: `pause`: the run ended here, at instruction 1: 1 instruction of the script",
    ] {
        assert!(warnings.iter().any(|text| text.contains(part)), "{part}: {warnings:?}");
    }
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

/// A run that ends at a time, or at a signal, lets scripts read queues before they are emptied.
#[test]
fn scripts_read_queues_when_the_run_is_ended() {
    let folder = Folder::new();
    folder.write(
        "queue.click",
        "InfiniteSource(LIMIT 10) -> q :: Queue(100) -> Unqueue(ACTIVE false) -> Discard;\n\
         DriverManager(wait 50s, print \"script: $(q.length)\", pause);\n",
    );
    let timed = folder.millrace(&["run", "queue.click", "--json", "--for", "0.3"]).sound();
    assert_eq!(printed(&timed), ["10"]);
    let interrupted = folder.start(&["run", "queue.click", "--json"]);
    std::thread::sleep(Duration::from_millis(500));
    interrupted.interrupt();
    assert_eq!(printed(&interrupted.wait().sound()), ["10"]);
}

#[test]
fn a_proxy_answers_whoever_calls() {
    let folder = Folder::new();
    folder.write(
        "a.click",
        "p :: Script(TYPE PROXY, goto known $(ne $0 b), error none, label known, print \"==$0 $write $args\",
             returnq \"<$0 $args>\");
         InfiniteSource(\\<11>, LIMIT 3, STOP true) -> Counter(COUNT_CALL 2 p.hit now) -> Discard;",
    );
    let run = folder.millrace(&["run", "-q", "a.click", "-H", "p.asked 7"]).sound();
    let all = run.text() + &run.stderr;
    for part in ["==hit true now", "==asked false 7", "<asked 7>"] {
        assert_eq!(all.matches(part).count(), 1, "{part}: {all}");
    }
    let refused = folder.millrace(&["run", "-q", "a.click", "-H", "p.b"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.text().contains("p.b: `p` ended with an error"), "{}", refused.text());
}
