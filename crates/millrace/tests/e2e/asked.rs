//! NFs that refuse their configuration, programs that are no NF, and what a check runs.

use crate::program::Folder;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// A chain whose NF is this program, with traffic that does not end.
fn chain(program: &str, more: &str) -> String {
    format!(
        "links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = {{ traffic = {{ flows = 10, size = \"64\" }} }}
out = {{ discard = true }}
[nf.nf]
program = \"{program}\"
interfaces = [\"0\", \"1\"]
{more}"
    )
}

/// A program that leaves a file, says two lines and ends.
fn with_script(folder: &Folder) {
    let marker = folder.path("was-run").display().to_string();
    folder.write(
        "refuses.sh",
        &format!("#!/bin/sh\ntouch {marker}\necho it reads its rules\necho 'rules:3: no rule' >&2\nexit 3\n"),
    );
    std::fs::set_permissions(folder.path("refuses.sh"), PermissionsExt::from_mode(0o755)).expect("ours");
}

#[test]
fn a_run_ends_when_an_nf_does_not_run_and_says_why_once() {
    let folder = Folder::new();
    with_script(&folder);
    for (program, more, wrote, why) in [
        (
            "./refuses.sh",
            "confine = false",
            "rules:3: no rule",
            "NF `nf` ended before it was ready (exit status: 3)",
        ),
        ("/bin/true", "", "", "NF `nf` ended before it was ready (exit status: 0)"),
    ] {
        folder.write("chain.toml", &chain(program, more));
        for workers in ["1", "2"] {
            let start = Instant::now();
            let run = folder.millrace(&["run", "chain.toml", "--workers", workers]);
            assert_eq!(run.code, Some(1), "{}", run.stderr);
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
            let all = run.text() + &run.stderr;
            assert_eq!(all.matches(why).count(), 1, "{all}");
            assert!(all.contains(wrote) && !all.contains("was down when"), "{all}");
        }
    }
}

#[test]
fn a_check_runs_nothing_and_asks_on_request() {
    let folder = Folder::new();
    with_script(&folder);
    folder.write("chain.toml", &chain("./refuses.sh", "confine = false"));
    folder.millrace(&["check", "chain.toml"]).sound();
    folder.millrace(&["check", "--here", "chain.toml"]).sound();
    assert!(!folder.path("was-run").exists(), "a check runs no program");
    let asked = folder.millrace(&["check", "--ask", "chain.toml"]);
    assert_eq!(asked.code, Some(2), "{}", asked.stderr);
    assert!(folder.path("was-run").exists());
    for what in ["ended before it was ready (exit status: 3)", "it wrote: rules:3: no rule", "1 mistake"] {
        assert_eq!(asked.stderr.matches(what).count(), 1, "{what}: {}", asked.stderr);
    }
    let asked = folder.millrace(&["check", "--ask", "-j", "chain.toml"]);
    let found: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    assert!(found["error"]["mistakes"][0]["message"].as_str().is_some_and(|told| told.contains("NF `nf`")));
}

/// Confined as in a run, and ready: the process of an NF of elements.
#[test]
fn an_nf_that_runs_says_so() {
    let folder = Folder::new();
    let inline = chain("x", "").replace(
        "program = \"x\"\ninterfaces = [\"0\", \"1\"]",
        "runs = \"process\"\ninline = \"FromDevice(0) -> ToDevice(1);\"",
    );
    folder.write("chain.toml", &inline);
    let start = Instant::now();
    let asked = folder.millrace(&["check", "--ask", "chain.toml"]).sound().text();
    assert!(asked.contains("no mistakes; ") && asked.contains("NF `nf` (click) is ready"), "{asked}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    let asked = folder.millrace(&["check", "--ask", "-j", "chain.toml"]).sound();
    let found: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    assert_eq!((&found["nfs"][0]["name"], &found["nfs"][0]["kind"]), (&"nf".into(), &"click".into()));
}
