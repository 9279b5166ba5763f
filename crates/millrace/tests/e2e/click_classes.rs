//! Classes of Click's, in chains that run modular and fused with the same result.

use crate::program::Folder;

/// How chains run.
const MODES: [&[&str]; 3] = [&[], &["--as", "fused"], &["--as", "fused", "--cache", "eager"]];

/// Runs a configuration that writes the dump `out` in each mode, and compares its lines.
#[track_caller]
fn expect_lines(text: &str, expected: &[&str]) {
    for mode in MODES {
        let folder = Folder::new();
        folder.write("a.click", text);
        let run = folder.millrace(&[&["run", "a.click"], mode].concat()).sound();
        let dump = std::fs::read_to_string(folder.path("out")).expect("a dump");
        let lines: Vec<&str> = dump.lines().filter(|line| !line.starts_with('!')).collect();
        assert_eq!(lines, expected, "{mode:?}: {}", run.text());
    }
}

#[test]
fn ftp_passes_a_translator_with_right_sequence_numbers() {
    let dump = "!data ip_src sport ip_dst dport ip_proto tcp_seq tcp_ack tcp_flags payload\\n\
        10.0.0.5 4000 198.51.100.7 21 T 1000 0 S -\\n\
        10.0.0.5 4000 198.51.100.7 21 T 1001 501 PA \\\"PORT 10,0,0,5,15,160\\\\r\\\\n\\\"\\n\
        10.0.0.5 4000 198.51.100.7 21 T 1023 501 PA \\\"LIST\\\\r\\\\n\\\"\\n\
        198.51.100.7 21 203.0.113.1 61024 T 501 1031 PA \\\"200\\\"\\n\
        198.51.100.7 20 203.0.113.1 61025 T 7 0 S -\\n";
    let text = format!(
        "FromIPSummaryDump(DATA \"{dump}\", CHECKSUM true, STOP true) -> CheckIPHeader -> FTPPortMapper(nat, nat, 0)
            -> nat :: TCPRewriter(pattern 203.0.113.1 61024-65535# - - 0 1)
            -> CheckTCPHeader -> out :: ToIPSummaryDump(out, FIELDS ip_src sport ip_dst dport tcp_seq tcp_ack payload);
         nat[1] -> CheckTCPHeader -> out;"
    );
    expect_lines(
        &text,
        &[
            "203.0.113.1 61024 198.51.100.7 21 1000 0 \"\"",
            "203.0.113.1 61024 198.51.100.7 21 1001 501 \"PORT 203,0,113,1,238,97\\r\\n\"",
            "203.0.113.1 61024 198.51.100.7 21 1026 501 \"LIST\\r\\n\"",
            "198.51.100.7 21 10.0.0.5 4000 501 1028 \"200\"",
            "198.51.100.7 20 10.0.0.5 4000 7 0 \"\"",
        ],
    );
}

#[test]
fn aggregates_are_set_counted_and_filtered() {
    let text = "FromIPSummaryDump(DATA \"!data ip_src ip_dst ip_proto sport dport\\n\
        10.0.0.1 20.0.0.9 U 1 7\\n10.0.0.2 20.0.0.9 U 2 7\\n11.0.0.1 20.0.0.9 T 3 8\\n10.0.0.7 20.0.0.9 U 4 8\\n\", \
        CHECKSUM true, STOP true) -> CheckIPHeader -> f :: AggregateIP(ip src/8) -> c :: AggregateCounter(AGGREGATE_CALL 1 s.switch 1)
        -> s :: Switch(0) -> a :: AggregateFilter(0 0-10) -> out :: ToIPSummaryDump(out, FIELDS sport aggregate);
        s[1] -> AggregateIP(dport, INCREMENTAL false) -> out";
    expect_lines(text, &["1 10", "2 10", "3 8", "4 8"]);
}

#[test]
fn mappings_are_numbered() {
    let text = "FromIPSummaryDump(DATA \"!data ip_src ip_dst ip_proto sport dport\\n\
        10.0.0.1 20.0.0.9 U 1 7\\n10.0.0.2 20.0.0.9 U 2 7\\n10.0.0.1 20.0.0.9 U 1 7\\n\", CHECKSUM true, STOP true) -> CheckIPHeader
        -> r :: IPRewriter(pattern 203.0.113.1 61024-65535# - - 0 0, SET_AGGREGATE true)
        -> ToIPSummaryDump(out, FIELDS sport aggregate)";
    expect_lines(text, &["61024 0", "61025 1", "61024 0"]);
}

#[test]
fn a_script_gets_a_signal_and_the_run_does_not_end_by_it() {
    use rustix::process::Signal;
    let folder = Folder::new();
    folder.write(
        "a.click",
        "RatedSource(LENGTH 64, RATE 100) -> Discard; n :: Script(print \"got\", set c $(add $c 1), goto end $(lt $c 2), stop, \
         TYPE SIGNAL INT)",
    );
    let run = folder.start(&["run", "a.click", "-q", "--for", "60"]);
    for _ in 0..2 {
        std::thread::sleep(std::time::Duration::from_millis(700));
        run.signal(Signal::INT);
    }
    let finished = run.wait();
    let all = finished.text() + &finished.stderr;
    assert_eq!(all.matches("got").count(), 2, "{all}");
}

/// Runs a configuration in virtual time in each mode, and compares what it prints.
#[track_caller]
fn expect_printed(text: &str, expected: &[&str]) {
    for mode in MODES {
        let folder = Folder::new();
        folder.write("a.click", text);
        let run = folder.millrace(&[&["run", "-q", "--simtime", "a.click"], mode].concat()).sound();
        let all = run.text() + &run.stderr;
        let printed = all.lines().map(str::trim_end).filter(|line| line.starts_with("=="));
        assert_eq!(printed.collect::<Vec<_>>(), expected, "{mode:?}: {all}");
    }
}

#[test]
fn what_pulls_from_a_switch_is_scheduled_while_there_is_something_to_pull() {
    // An input that never gives is found out by a pull only, which the second switch keeps back at first.
    let text = "src :: InfiniteSource(\\<11>, LIMIT 2) -> [0]s :: PullSwitch(-1); Idle -> [1]s;
        s -> gate :: SimplePullSwitch(-1) -> Print(==C, CONTENTS false) -> d :: Discard;
        Idle -> t :: PullSwitch -> gate2 :: SimplePullSwitch(-1) -> d2 :: Discard;
        Script(print \"==$(d.scheduled) $(d2.scheduled)\", write gate.switch 0, write gate2.switch 0, wait 1,
            print \"==$(d.scheduled) $(d2.scheduled)\", write s.switch 1, print \"==$(d.scheduled)\",
            write s.switch 0, print \"==$(d.scheduled)\", wait 1, print \"==$(d.scheduled)\", stop)";
    let second = ["==false", "==true", "==C:    1", "==C:    1", "==false"];
    expect_printed(text, &[&["==false true", "==false false"], second.as_slice()].concat());
}

#[test]
fn a_counter_switches_what_pulls_through_it() {
    let text = "InfiniteSource(\\<11>, LIMIT 4, STOP true) -> PullNull -> Counter(COUNT_CALL 3 b.active true)
        -> b :: Bypass -> Print(==C, CONTENTS false) -> Discard; b[1] -> Print(==D, CONTENTS false) -> [1]b;";
    expect_printed(text, &["==C:    1", "==C:    1", "==C:    1", "==D:    1", "==C:    1"]);
}

#[test]
fn a_filter_moves_its_end_by_its_own_call() {
    let text = "FromIPSummaryDump(DATA \"!data timestamp\\n0.1\\n1.0\\n1.2\\n5.5\\n\", STOP true)
        -> t :: TimeFilter(0, 1, END_CALL s.run $t) -> c :: Counter -> Discard;
        s :: Script(TYPE PASSIVE, init x 0, goto exit $(gt $x 1), set x $(add $x 1), print \"==$1\", write t.extend_interval 1);
        DriverManager(pause, print \"==$(c.count)\", stop)";
    expect_printed(text, &["==1.000000", "==5.500000", "==3"]);
}

#[test]
fn a_shaper_is_pulled_at_its_rate_and_the_rest_beside_it() {
    let text =
        "is :: InfiniteSource(LIMIT 100) -> s :: Shaper(500) => ( [0] -> c :: Counter -> [0]; [1] -> [1] )
        => RoundRobinSched -> all :: Counter -> TimedSink(1ms);
        Script(wait 150ms, print \"==$(ge $(c.count) 58) $(le $(c.count) 60) $(all.count)\",
          write c.reset, write s.rate 250, write s.reset, write is.reset,
          wait 150ms, print \"==$(ge $(c.count) 24) $(le $(c.count) 27) $(all.count)\", stop)";
    // The first time with a burst of 20 ms, the second time without.
    expect_printed(text, &["==true true 100", "==true true 200"]);
}

#[test]
fn ports_have_names() {
    let text = "i :: InfiniteSource(LIMIT 1, STOP true) -> UDPIPEncap(1.0.0.1, foo, 1.0.0.1, ssh)
        -> ToIPSummaryDump(out, FIELDS sport dport); PortInfo(foo 79/udp # a comment)";
    expect_lines(text, &["79 22"]);
}

#[test]
fn patterns_and_arguments_are_exchanged_by_a_script() {
    let text = "s :: InfiniteSource(DATA \\<45000014 00000000 40060000 01010101 02020202>, LIMIT 2, BURST 1, ACTIVE false)
        -> MarkIPHeader -> c :: IPClassifier(udp, -);
        c[0] -> a :: Paint(1) -> out :: ToIPSummaryDump(out, FIELDS ip_proto paint); c[1] -> b :: Paint(2) -> out;
        Script(write s.active true, wait 0.05, write c.pattern0 ip proto tcp, write a.config 7, write s.reset,
               wait 0.05, stop)";
    expect_lines(text, &["T 2", "T 2", "T 7", "T 7"]);
}
