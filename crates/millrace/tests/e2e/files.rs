//! What a run does to the files that it writes: one writer each, nothing lost before the run starts, nothing
//! held back for long.

use crate::captures::frames;
use crate::program::{Folder, Started};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A folder with `in.pcap`, `hard.pcap` and `soft.pcap`, which are one file, and `keep.pcap`.
fn folder() -> Folder {
    let folder = Folder::with_examples(&["captures"]);
    std::fs::copy(folder.path("captures/office.pcap"), folder.path("in.pcap")).expect("copied");
    std::fs::hard_link(folder.path("in.pcap"), folder.path("hard.pcap")).expect("linked");
    std::os::unix::fs::symlink("in.pcap", folder.path("soft.pcap")).expect("linked");
    std::fs::copy(folder.path("in.pcap"), folder.path("keep.pcap")).expect("copied");
    folder
}

/// Runs and checks a configuration, which is refused with this message at this column of its line, and
/// leaves all files as they were.
#[track_caller]
fn refused(configuration: &str, column: usize, message: &str) {
    let folder = folder();
    folder.write("x.click", configuration);
    let names = || {
        let files = std::fs::read_dir(folder.path("")).expect("a folder");
        files.map(|file| file.expect("a file").file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    for arguments in [&["check", "--short", "x.click"][..], &["run", "x.click"]] {
        let run = folder.millrace(arguments);
        assert_eq!(run.code, Some(2), "{configuration}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{configuration}: {}", run.stderr);
        let place = format!("x.click:1:{column}");
        assert!(run.stderr.contains(&place), "{configuration}: {place}: {}", run.stderr);
        assert_eq!(names(), before, "{configuration}: a file was left or taken away");
        for capture in ["in.pcap", "keep.pcap"] {
            assert_eq!(frames(&folder.path(capture)).len(), 3443, "{configuration}: {capture}");
        }
    }
}

#[test]
fn a_file_has_one_writer() {
    let two = |one: &str, other: &str| {
        format!("FromDump(in.pcap) -> t :: Tee; t[0] -> a :: {one}; t[1] -> b :: {other};")
    };
    for (one, other) in [
        ("ToDevice(out.pcap)", "ToDump(out.pcap)"),
        ("ToDump(out.pcap)", "ToDevice(out.pcap)"),
        ("ToDump(out.pcap)", "ToDump(./out.pcap)"),
        ("ToDump(keep.pcap)", "ToIPSummaryDump(captures/../keep.pcap)"),
        ("ToIPSummaryDump(out.txt)", "ToIPSummaryDump(out.txt)"),
    ] {
        let text = two(one, other);
        let second = text.rfind('(').expect("an argument") + 2;
        refused(&text, second, "`b` writes a file that `a` writes");
    }
    // One port has one writer, however many elements send to it, on however many workers.
    let folder = folder();
    folder.write("x.click", &two("ToDevice(out.pcap)", "ToDevice(./out.pcap)"));
    for workers in ["1", "2"] {
        folder.millrace(&["run", "x.click", "--workers", workers]).sound();
        assert_eq!(frames(&folder.path("out.pcap")).len(), 2 * 3443);
    }
    folder.write("y.click", "FromDump(in.pcap) -> t :: Tee -> ToDump(/dev/null); t[1] -> ToDump(/dev/null);");
    folder.millrace(&["run", "y.click", "--workers", "2"]).sound();
}

#[test]
fn a_file_is_not_read_and_overwritten_at_once() {
    for source in ["FromDump", "FromDevice"] {
        for sink in ["ToDump", "ToDevice", "ToIPSummaryDump"] {
            for name in ["in.pcap", "hard.pcap", "soft.pcap"] {
                let text = format!("a :: {source}(in.pcap) -> b :: {sink}({name});");
                let second = text.rfind('(').expect("an argument") + 2;
                // Ports share what has one name, and know by themselves that this cannot be shared.
                let by_ports = (source, sink) == ("FromDevice", "ToDevice") && name != "hard.pcap";
                let message =
                    if by_ports { "read and overwritten" } else { "`b` writes a file that `a` reads" };
                refused(&text, second, message);
            }
        }
    }
    refused(
        "a :: ToIPSummaryDump(in.pcap); b :: FromIPSummaryDump(hard.pcap) -> a;",
        55,
        "`b` reads a file that `a` writes",
    );
    let folder = folder();
    folder.write("x.click", "FromDump(in.pcap) -> Discard; FromDevice(hard.pcap) -> Discard;");
    folder.millrace(&["run", "x.click"]).sound();
}

#[test]
fn a_chain_file_knows_a_file_by_all_its_names() {
    let folder = folder();
    folder.write(
        "x.toml",
        "links = [\"a -> [0]nf[1] -> b\"]\n[ports]\na = { capture = \"in.pcap\" }\n\
         b = { write = \"hard.pcap\" }\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n",
    );
    let run = folder.millrace(&["run", "x.toml"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("port `b` writes a file that port `a` reads"), "{}", run.stderr);
}

#[test]
fn a_run_that_does_not_start_leaves_its_outputs_as_they_were() {
    for sink in ["ToDevice(keep.pcap)", "ToDump(keep.pcap)", "ToIPSummaryDump(keep.pcap)"] {
        refused(&format!("FromDevice(nope.pcap) -> {sink};"), 12, "nope.pcap: No such file");
    }
    for sink in ["ToDevice(new.pcap)", "ToDump(new.pcap)", "ToIPSummaryDump(new.txt)"] {
        refused(&format!("FromDevice(nope.pcap) -> {sink};"), 12, "nope.pcap: No such file");
    }
    let folder = folder();
    folder.write("x.click", "FromDevice(in.pcap) -> ToDevice(keep.pcap);");
    for arguments in [&["--for", "-1"], &["--cores", "900"]] {
        assert_eq!(folder.millrace(&[&["run", "x.click"][..], arguments].concat()).code, Some(2));
        assert_eq!(frames(&folder.path("keep.pcap")).len(), 3443);
    }
    // One that starts replaces them, even with nothing.
    folder.write("y.click", "FromDevice(in.pcap) -> Discard; Idle -> ToDevice(keep.pcap);");
    folder.millrace(&["run", "y.click"]).sound();
    assert_eq!(frames(&folder.path("keep.pcap")).len(), 0);
}

/// Starts a run that captures a packet each 20 ms and waits until there are some in all its files.
fn slow() -> (Folder, Started) {
    let folder = Folder::new();
    folder.write(
        "slow.click",
        "RatedSource(\\<0102030405060708090a0b0c0d0e0f10>, 50) -> t :: Tee -> ToDevice(a.pcap);
         t[1] -> ToDump(b.pcap); t[2] -> ToIPSummaryDump(c.txt, FIELDS link);",
    );
    let mut run = folder.start(&["run", "slow.click", "--json"]);
    let end = Instant::now() + Duration::from_secs(30);
    let bytes = |name: &str| std::fs::metadata(folder.path(name)).map_or(0, |file| file.len());
    while [("a.pcap", 24), ("b.pcap", 24), ("c.txt", 40)].iter().any(|(name, head)| bytes(name) <= *head) {
        assert!(!run.has_ended() && Instant::now() < end, "nothing is written while it runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    (folder, run)
}

#[test]
fn slow_traffic_is_in_the_files_while_the_run_goes_on() {
    let (folder, run) = slow();
    run.kill();
    assert!(!frames(&folder.path("a.pcap")).is_empty() && !frames(&folder.path("b.pcap")).is_empty());
}

#[test]
fn a_capture_has_its_header_from_the_start() {
    let folder = Folder::new();
    folder.write("idle.click", "i :: Idle -> ToDevice(a.pcap); i -> ToDump(b.pcap);");
    let run = folder.start(&["run", "idle.click", "--quiet"]);
    let end = Instant::now() + Duration::from_secs(30);
    let bytes = |name: &str| std::fs::metadata(folder.path(name)).map_or(0, |file| file.len());
    while bytes("a.pcap") < 24 || bytes("b.pcap") < 24 {
        assert!(Instant::now() < end, "no header is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill();
}

#[test]
fn a_closed_terminal_ends_a_run_with_its_accounts() {
    for signal in [Signal::HUP, Signal::TERM] {
        let (folder, run) = slow();
        run.signal(signal);
        let accounts = run.wait().sound().accounts();
        accounts.assert_balanced();
        assert_eq!(frames(&folder.path("a.pcap")).len() as u64, accounts.port("a.pcap").sent.0);
    }
}
