//! What users and networks get wrong: damaged captures, missing things, full disks, frames of any content.
//!
//! Whatever it is: no panic (every run is looked at for that), counters that balance, a message that names
//! the thing, and what was written stays readable.

use crate::captures::{self, frames};
use crate::program::{BINARY, Finished, Folder, Started, examples};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use std::process::Command;

const COUNTING: &str = "FromDevice(in.pcap) -> c :: Counter -> ToDevice(out.pcap);";

fn office() -> Vec<u8> {
    std::fs::read(examples().join("captures/office.pcap")).expect("the example")
}

/// Runs a counting chain over those bytes as `in.pcap`.
fn over(capture: &[u8]) -> (Folder, Finished) {
    let folder = Folder::new();
    std::fs::write(folder.path("in.pcap"), capture).expect("written");
    folder.write("count.click", COUNTING);
    let run = folder.millrace(&["run", "count.click", "--json"]);
    (folder, run)
}

/// Place of each record in a capture, and of its end.
fn records(capture: &[u8]) -> Vec<usize> {
    let mut at = 24;
    let mut places = vec![];
    while at < capture.len() {
        places.push(at);
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().expect("four")) as usize;
    }
    places.push(at);
    places
}

#[test]
fn a_truncated_capture_gives_every_whole_frame_and_is_told() {
    let whole = office();
    let places = records(&whole);
    // Cut in a header, in a frame, and just behind a header.
    for cut in [places[1000] + 5, places[1000] + 16 + 7, places[1000] + 16] {
        let (folder, run) = over(&whole[..cut]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let accounts = run.accounts();
        accounts.assert_balanced();
        assert_eq!((accounts.received, accounts.sent), (1000, 1000));
        assert!(accounts.warnings.iter().any(|f| f.contains("in.pcap")), "{:?}", accounts.warnings);
        assert_eq!(frames(&folder.path("out.pcap")).len(), 1000);
    }
}

#[test]
fn a_corrupt_capture_gives_what_stands_before_the_damage() {
    let mut bytes = office();
    let at = records(&bytes)[500];
    bytes[at + 8..at + 12].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let (folder, run) = over(&bytes);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert_eq!(accounts.received, 500);
    assert!(accounts.warnings.iter().any(|f| f.contains("in.pcap")), "{:?}", accounts.warnings);
    assert_eq!(frames(&folder.path("out.pcap")).len(), 500);
}

#[test]
fn a_capture_with_no_frame_is_no_mistake() {
    let (folder, run) = over(&office()[..24]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.accounts().assert_balanced();
    assert_eq!(frames(&folder.path("out.pcap")).len(), 0);
}

#[test]
fn what_is_no_capture_is_refused_by_name() {
    for bytes in [&b""[..], b"\xd4\xc3", b"this is no capture at all, but long enough to be one"] {
        let (_, run) = over(bytes);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("in.pcap"), "{}", run.stderr);
    }
}

#[test]
fn texts_without_end_are_refused() {
    let folder = Folder::new();
    folder.write("rules.click", "Idle -> IPFilter(file /dev/zero) -> Discard;");
    folder.write("chain.toml", "[nf.a]\nclick = \"/dev/zero\"\n");
    for what in ["/dev/zero", "rules.click", "chain.toml"] {
        let check = folder.millrace(&["check", what]);
        assert_eq!(check.code, Some(2), "{what}: {}", check.stderr);
        let told = "/dev/zero: it has more than 128 MiB, the most that is read";
        assert!(check.stderr.contains(told), "{what}: {}", check.stderr);
    }
}

#[test]
fn what_is_missing_is_told_where_it_is_named() {
    let folder = Folder::new();
    for (text, name) in [
        ("FromDevice(none.pcap) -> Discard;", "none.pcap"),
        ("FromDevice(none0) -> Discard;", "none0"),
        ("FromDevice(net_pcap0,rx_pcap=none.pcap) -> Discard;", "net_pcap0"),
        ("FromDevice(net_nonsense0) -> Discard;", "net_nonsense0"),
        ("FromDevice(ffff:ff:1f.7) -> Discard;", "ffff:ff:1f.7"),
        ("Idle -> ToDevice(no/folder/out.pcap);", "no/folder/out.pcap"),
        ("FromDump(none.pcap) -> Discard;", "none.pcap"),
    ] {
        folder.write("missing.click", text);
        let run = folder.millrace(&["run", "missing.click", "--for", "5"]);
        assert_eq!(run.code, Some(2), "{text}: {}", run.stderr);
        assert!(
            run.stderr.contains(name) && run.stderr.contains("missing.click:1:"),
            "{text}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_full_disk_is_told_and_counted() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "full.toml",
        "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = { capture = \"captures/office.pcap\" }\n\
         out = { write = \"/dev/full\" }\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n",
    );
    let run = folder.millrace(&["run", "full.toml", "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert!(accounts.warnings.iter().any(|f| f.contains("/dev/full")), "{:?}", accounts.warnings);
    let port = accounts.port("out");
    assert!(port.tx_errors > 0, "{port:?}");
    let at_port = accounts.element("nf/ToDevice@2");
    assert_eq!(accounts.received, at_port.sent + at_port.dropped.iter().map(|(_, n)| *n).sum::<u64>());
}

#[test]
fn accounts_that_cannot_be_written_are_told() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write("count.click", "FromDevice(captures/office.pcap) -> Discard;");
    for arguments in ["run count.click", "run count.click --json", "check count.click", "elements"] {
        let mut shell = Command::new("sh");
        let line = format!("\"$0\" {arguments} > /dev/full");
        shell.args(["-c", &line, BINARY]).current_dir(folder.path("."));
        let run = Started::new(shell).wait();
        assert_ne!(run.code, Some(0), "{arguments}");
        assert!(run.stderr.contains("No space left"), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn what_cannot_run_is_told_at_once() {
    let folder = Folder::new();
    for text in ["", "// nothing\n", "AddressInfo(a 10.0.0.1);", "elementclass A { input -> output }"] {
        folder.write("empty.click", text);
        folder.millrace(&["check", "empty.click"]).sound();
        let run = folder.millrace(&["run", "empty.click"]);
        assert_eq!(run.code, Some(2), "{text}");
        assert!(run.stderr.contains("nothing to run"), "{text}: {}", run.stderr);
    }
    folder.write("one.click", "InfiniteSource(LIMIT 1) -> Discard;");
    let run = folder.millrace(&["run", "one.click", "--workers", "0"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("0 is not in 1..=1024"), "{}", run.stderr);
}

/// A disk that gets full at some point: a small one, mounted for this run only.
#[test]
fn what_fits_on_a_disk_stays_readable() {
    what_fits_stays_readable("ToDevice(disk/out.pcap)");
    what_fits_stays_readable("ToDump(disk/out.pcap, 0)");
}

fn what_fits_stays_readable(sink: &str) {
    let folder = Folder::with_examples(&["captures"]);
    std::fs::create_dir(folder.path("disk")).expect("a folder");
    folder.write("copy.click", &format!("FromDevice(captures/office.pcap) -> out :: {sink};"));
    let mounted = "mount -t tmpfs -o size=700k none disk || exit 99; \"$0\" run copy.click --json; \
                   code=$?; cp disk/out.pcap out.pcap; exit $code";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", mounted, BINARY]).current_dir(folder.path("."));
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIP: a disk of its own needs root and unshare");
        return;
    }
    let run = Started::new(shell).wait();
    if run.code == Some(99) {
        eprintln!("SKIP: no file system can be mounted here: {}", run.stderr);
        return;
    }
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert_eq!(accounts.received, 3443);
    let written = captures::read(&folder.path("out.pcap"));
    assert!((1000..3443).contains(&written.len()), "{}", written.len());
    assert_eq!(written, captures::read(&folder.path("captures/office.pcap"))[..written.len()]);
    let told = accounts.warnings.iter().find(|f| f.contains("out.pcap")).expect("told");
    assert!(told.contains(&written.len().to_string()), "{told}");
    // What the element gave to the file is in it or was lost there; the rest was dropped.
    let port = accounts.port("disk/out.pcap");
    assert_eq!(port.sent.0, written.len() as u64, "{port:?}");
    let element = accounts.element("out");
    assert_eq!(element.sent, port.sent.0 + port.tx_errors, "{port:?}");
    if sink.starts_with("ToDump") {
        // It knows what is in the file, and calls nothing else sent.
        assert_eq!(port.tx_errors, 0, "{port:?}");
        let dropped: u64 = element.dropped.iter().map(|(_, count)| count).sum();
        assert_eq!(element.sent + dropped, 3443);
    }
}

/// Frames of 0 to 9,216 bytes: random, or a packet with some bytes changed.
fn any_frame(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let random = (0usize..9217).prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len));
    let damaged = (
        proptest::sample::select(seeds),
        proptest::collection::vec((0usize..80, any::<u8>()), 0..4),
        proptest::option::of(0usize..9217),
    )
        .prop_map(|(mut frame, changes, len)| {
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            if let Some(len) = len {
                frame.resize(len, 0xa5);
            }
            frame
        });
    prop_oneof![1 => random, 4 => damaged]
}

/// That many frames, the same in each run.
pub fn any_frames(count: usize) -> Vec<Vec<u8>> {
    let seeds: Vec<Vec<u8>> =
        frames(&examples().join("captures/office.pcap")).into_iter().step_by(50).collect();
    let strategy = proptest::collection::vec(any_frame(seeds), count);
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut made = strategy.new_tree(&mut runner).expect("frames").current();
    // The ends of the range are always there.
    made.push(vec![]);
    made.push(vec![0xff; 9216]);
    made
}

#[test]
fn frames_of_any_content_are_forwarded_or_counted() {
    let folder = Folder::new();
    let input = any_frames(600);
    captures::write(&folder.path("in.pcap"), input.iter().map(Vec::as_slice));
    folder.write(
        "router.click",
        "FromDevice(in.pcap) -> check :: CheckIPHeader(14, VERBOSE true)
            -> rt :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);
         rt[0] -> ttl :: DecIPTTL -> SetIPDSCP(7) -> ToDevice(a.pcap);
         rt[1] -> StripIPHeader -> ToDevice(b.pcap);
         check[1] -> ToDump(bad.pcap, SNAPLEN 0); ttl[1] -> IPMirror -> ToDump(expired.pcap, SNAPLEN 0);",
    );
    for engine in ["native", "evaluator"] {
        let run = folder.millrace(&["run", "router.click", "--json", "--engine", engine]).sound();
        let accounts = run.accounts();
        assert!(run.stderr.lines().count() > 100, "what elements print is there: {}", run.stderr);
        accounts.assert_balanced();
        assert_eq!(accounts.received, input.len() as u64);
        let written: Vec<usize> = ["a.pcap", "b.pcap", "bad.pcap", "expired.pcap"]
            .iter()
            .map(|name| frames(&folder.path(name)).len())
            .collect();
        assert_eq!(written.iter().sum::<usize>() as u64, accounts.sent, "{written:?}");
        assert!(written[2] > 100 && written[0] + written[1] > 50, "{written:?}");
    }
}

/// Nothing of a frame is lost or changed on the way through.
#[test]
fn frames_of_any_size_pass_unchanged() {
    let folder = Folder::new();
    let input = any_frames(300);
    captures::write(&folder.path("in.pcap"), input.iter().map(Vec::as_slice));
    folder.write("count.click", COUNTING);
    folder.millrace(&["run", "count.click", "--quiet"]).sound();
    assert!(frames(&folder.path("out.pcap")) == input);
}
