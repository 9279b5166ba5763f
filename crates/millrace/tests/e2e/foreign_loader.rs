//! A program of an NF whose ELF header names a loader of its own: no command runs it outside of a container.

use crate::daemon::Daemon;
use crate::program::Folder;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes a program of the system's in a folder want another loader: a script that leaves a mark.
fn plant(folder: &Path) {
    let mut program = std::fs::read("/bin/true").expect("every machine has it");
    let number = |at: usize, bytes: usize| {
        program[at..at + bytes].iter().rev().fold(0, |n, byte| n << 8 | *byte as usize)
    };
    let headers = (0..number(56, 2)).map(|which| number(32, 8) + which * 56);
    let header = headers.into_iter().find(|at| number(*at, 4) == 3).expect("it names its loader");
    let (at, room) = (number(header + 8, 8), number(header + 32, 8));
    let loader = folder.join("l");
    let name = loader.as_os_str().as_encoded_bytes();
    assert!(name.len() < room, "{} is longer than the loader's name", loader.display());
    program[at..at + room].fill(0);
    program[at..at + name.len()].copy_from_slice(name);
    let mark = folder.join("mark");
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::write(&file, bytes).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("set");
    };
    write("l", format!("#!/bin/sh\necho $0 $@ >> {}\n", mark.display()).as_bytes());
    write("program", &program);
    // It does what it is feared to do, where it is run.
    let ran = std::process::Command::new(&loader).status().expect("it runs");
    assert!(ran.success() && mark.exists());
    std::fs::remove_file(mark).expect("removed");
}

const CHAIN: &str = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 1, size = \"64\" } }
out = { discard = true }
[nf.nf]
program = \"./program\"
runs = \"container\"
";

#[test]
fn no_command_runs_a_loader_that_an_nf_names() {
    let folder = Folder::new();
    let here = folder.path(".");
    plant(&here);
    folder.write("chain.toml", CHAIN);
    folder.millrace(&["gen", "one.pcap", "-n", "1"]);
    let untouched = |what: &str| assert!(!here.join("mark").exists(), "{what} ran the loader");
    let chain = "chain.toml";
    for words in [
        &["check", chain][..],
        &["run", chain],
        &["run", chain, "--as", "fused"],
        &["synth", chain],
        &["synth", chain, "--prove"],
        &["explain", chain, "--packet", "one.pcap"],
        &["plan", chain, "--rate", "1Mpps"],
        &["bench", "--one", chain],
        &["bench", "breakdown", chain],
        &["daemon", chain, "--at", "at"],
        &["doctor"],
        // The program itself in the place of a chain.
        &["check", "program"],
        &["run", "program"],
        &["fmt", "program"],
    ] {
        let finished = folder.millrace(words);
        untouched(&words.join(" "));
        if words[0] == "check" && words[1] == chain {
            assert_eq!(finished.code, Some(2), "{}", finished.stderr);
            assert!(
                finished.stderr.contains("which is no program but a text or script"),
                "{}",
                finished.stderr
            );
            // Where the user named it.
            assert!(finished.stderr.contains("chain.toml:7"), "{}", finished.stderr);
        }
        assert!(!finished.stderr.is_empty() || finished.code == Some(0), "{words:?}");
    }
}

#[test]
fn a_daemon_does_not_run_it_either() {
    let mut daemon = Daemon::of(
        &CHAIN.replace(
            "program = \"./program\"\nruns = \"container\"",
            "inline = \"FromDevice(0) -> ToDevice(1);\"",
        ),
        &["chain.toml"],
    );
    let here = daemon.path(".");
    plant(&here);
    daemon.write("evil.toml", CHAIN);
    for words in [&["chain", "swap", "evil.toml"][..], &["chain", "load", "evil.toml"]] {
        let refused = daemon.ask(words);
        assert!(refused.code != Some(0), "{words:?}");
        assert!(!here.join("mark").exists(), "{words:?}");
    }
    assert_eq!(daemon.json(&["chain", "show", "--json"])["running"], true);
    assert_eq!(daemon.stop().code, Some(0));
}
