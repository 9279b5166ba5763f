//! The NFs in C: built here, and run like those in Rust.

use crate::frames::{arp, later_fragment, tcp, udp};
use crate::run::{Setup, shipped};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the programs; `None` without a C compiler.
fn programs() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if Command::new("cc").arg("--version").output().is_err() {
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nfs-in-c");
        std::fs::create_dir_all(&folder).expect("a folder");
        // Each test may be a process of its own: one builds, and the others use the result.
        let lock = File::create(folder.join("lock")).expect("made");
        lock.lock().expect("locked");
        // Cargo builds the library beside the tests.
        let test = std::env::current_exe().expect("this program");
        let library = test.with_file_name("libmillrace_nf.a");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
        let mut make = Command::new("make");
        make.arg("-C").arg(source).arg(format!("LIBRARY={}", library.display()));
        let output = make.arg(format!("OUT={}", folder.display())).output().expect("make");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(folder)
    });
    if built.is_none() {
        eprintln!("SKIP: there is no C compiler `cc`");
    }
    built.as_deref()
}

/// An NF in C.
pub fn program(nf: &str) -> Option<PathBuf> {
    programs().map(|folder| folder.join(format!("nf-c-{nf}")))
}

/// Builds a program of one file; `None` without a C compiler.
pub fn build(source: &Path, folder: &Path) -> Option<PathBuf> {
    // This also checks that the library exists.
    programs()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = folder.join(source.file_stem().expect("a name"));
    let library = std::env::current_exe().expect("this program").with_file_name("libmillrace_nf.a");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(root.join("crates/nf/nf-c/include"));
    cc.arg("-o").arg(&program).arg(source).arg(library).args(["-lpthread", "-ldl", "-lm"]);
    let output = cc.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// An NF in Rust and, with a C compiler, the one in C.
pub fn both(nf: &str) -> Vec<(&'static str, PathBuf)> {
    let mut both = vec![("Rust", shipped(nf))];
    both.extend(program(nf).map(|program| ("C", program)));
    both
}

#[test]
fn the_monitor_counts_and_passes_everything_on() {
    let Some(program) = program("monitor") else { return };
    let frames = [udp("10.0.0.1:1", "10.0.0.2:2", b"x"), udp("[fd00::1]:1", "[fd00::2]:2", b""), vec![0; 13]];
    let outcome = Setup::of(&program, &["lan", "wan"], "").input("lan", &frames).run().sound();
    assert_eq!(outcome.out("wan"), frames);
    let counts = ["packets", "bytes", "ipv4", "ipv6", "arp", "other"].map(|name| outcome.counter(name));
    assert_eq!(counts, [3, 43 + 62 + 13, 1, 1, 0, 1]);
}

#[test]
fn the_firewall_decides_by_the_first_rule() {
    let Some(program) = program("firewall") else { return };
    let rules =
        "# Rules\ndeny any any 10.9.0.0/16\nallow tcp 10.0.0.0/8 any 80-443\nallow udp any 192.0.2.1 53\n";
    let mut frames = vec![
        tcp("10.0.0.1:1000", "10.9.0.1:80", "S", b""),
        tcp("10.0.0.1:1000", "192.0.2.1:443", "S", b""),
        tcp("10.0.0.1:1000", "192.0.2.1:444", "S", b""),
        udp("11.0.0.1:1000", "192.0.2.1:53", b"x"),
        later_fragment("10.0.0.1", "192.0.2.1"),
        arp("10.0.0.1", "10.0.0.2"),
        udp("[fd00::1]:1", "[fd00::2]:2", b""),
    ];
    let mut wrong = frames[1].clone();
    wrong.truncate(40);
    frames.push(wrong);
    let outcome = Setup::of(&program, &["lan", "wan"], rules).input("lan", &frames).run().sound();
    assert_eq!(outcome.out("wan"), [1, 3, 5].map(|at| frames[at].clone()));
    let drops =
        [("denied-by-default", 1), ("denied-by-rule", 1), ("fragment", 1), ("malformed", 1), ("not-ip", 1)];
    assert_eq!(outcome.drops(), drops);
    assert_eq!(outcome.counter("allowed-by-rule"), 2);
    let wrong = "allow tcp 10.0.0.0/33 any\nallow\ndeny any any any\nallow any any any 80\ndefault perhaps\n";
    Setup::of(&program, &["lan", "wan"], wrong).refused(&[
        "config:1: `allow tcp 10.0.0.0/33 any` is no rule",
        "config:2: ",
        "config:4: ",
        "config:5: ",
    ]);
}

#[test]
fn the_scanner_finds_patterns_in_payloads_only() {
    let Some(program) = program("scanner") else { return };
    let mut frames = vec![
        tcp("10.0.0.1:1", "10.0.0.2:80", "P.", b"GET /malware.exe"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"xxattattackxx"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"attac kmalwar e"),
        tcp("10.0.0.1:1", "10.0.0.2:80", ".", b""),
        arp("10.0.0.1", "10.0.0.2"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"ends with ware"),
    ];
    let mut wrong = tcp("10.0.0.1:1", "10.0.0.2:80", ".", b"x");
    wrong[46] = 0xf0;
    frames.push(wrong);
    let mut padded = udp("10.0.0.1:1", "10.0.0.2:80", b"x");
    padded.extend(b"malware");
    frames.push(padded);
    let patterns = "malware\nattack\nalw\nware\n";
    let outcome = Setup::of(&program, &["lan", "wan"], patterns).input("lan", &frames).run().sound();
    assert_eq!(outcome.out("wan").len(), 3, "{outcome:?}");
    assert_eq!(outcome.out("wan"), [3, 4, 7].map(|at| frames[at].clone()));
    assert_eq!(outcome.drops(), [("malformed", 1), ("pattern", 4)]);
    Setup::of(&program, &["lan", "wan"], "").refused(&["config:1: there are no patterns"]);
}

#[test]
fn the_bridge_refuses_a_configuration_that_it_does_not_know() {
    let Some(program) = program("l2fwd") else { return };
    Setup::of(&program, &["a", "b"], "age-s 10\nage 3\n")
        .refused(&["config:2: `age 3` is not `age-s SECONDS`"]);
}
