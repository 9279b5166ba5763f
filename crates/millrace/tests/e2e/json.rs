//! JSON of every command: one envelope with the number of its format, errors too.

use crate::daemon::Daemon;
use crate::program::{BINARY, Finished, Folder};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn parsed(finished: &Finished) -> Value {
    let parsed: Value = serde_json::from_slice(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.text(), finished.stderr));
    assert_eq!(parsed["format"], 1, "{parsed:#}");
    parsed
}

#[test]
fn commands_without_a_daemon_have_one_envelope() {
    let folder = Folder::new();
    folder.write("a.click", "FromDevice(a.pcap) -> c :: Counter -> Discard;");
    folder.millrace(&["gen", "a.pcap", "-n", "10"]).sound();
    for arguments in [
        &["-j", "check", "a.click"][..],
        &["check", "a.click", "--json"],
        &["check", "-j", "a.click", "--programs"],
        &["run", "a.click", "-j"],
        &["synth", "a.click", "-j"],
        &["synth", "a.click", "--prove", "-j"],
        &["explain", "a.click", "--packet", "a.pcap:1", "-j"],
        &["elements", "-j"],
        &["elements", "-j", "Counter"],
        &["doctor", "-j"],
        &["gen", "b.pcap", "-n", "10", "-j"],
        &["fmt", "a.click", "-j"],
    ] {
        let finished = folder.millrace(arguments).sound();
        assert!(parsed(&finished)["error"].is_null(), "{arguments:?}");
    }
    let check = parsed(&folder.millrace(&["check", "-j", "a.click"]));
    assert_eq!(
        (&check["chain"], &check["elements"], &check["warnings"]),
        (&"a.click".into(), &3.into(), &Value::Array(vec![]))
    );
    let run = parsed(&folder.millrace(&["run", "-j", "a.click"]));
    assert_eq!((&run["received"], &run["received_bytes"].is_u64()), (&10.into(), &true), "{run:#}");
    let counter = parsed(&folder.millrace(&["elements", "-j", "Counter"]));
    assert_eq!((&counter["class"], &counter["ports"]), (&"Counter".into(), &"1/1".into()));
    assert!(
        parsed(&folder.millrace(&["elements", "-j"]))["classes"]
            .as_array()
            .is_some_and(|all| all.len() > 100)
    );
}

#[test]
fn a_written_capture_is_described() {
    let folder = Folder::new();
    let arguments = ["-j", "gen", "a.pcap", "-n", "30", "--flows", "7", "--size", "64,1518"];
    let run = folder.millrace(&arguments).sound();
    assert_eq!(run.stderr, "");
    let found = parsed(&run);
    let count = |key: &str| found[key].as_u64().expect("a number");
    assert_eq!(found["capture"], "a.pcap");
    assert_eq!(["frames", "flows", "flows_with_frames", "longer"].map(count), [30, 7, 7, 0]);
    assert_eq!(count("bytes"), 15 * 60 + 15 * 1_514);
    assert_eq!((&found["frame_bytes"]["min"], &found["frame_bytes"]["max"]), (&60.into(), &1_514.into()));
    let classes = found["sizes_with_fcs"].as_array().expect("a list");
    let used = classes.iter().filter(|class| class["frames"] != 0).map(|class| class["to"].as_u64());
    assert_eq!(used.collect::<Vec<_>>(), [Some(64), Some(1_518)]);
    // None: no sizes.
    let none = parsed(&folder.millrace(&["gen", "b.pcap", "-n", "0", "-j"]).sound());
    assert!(none["frame_bytes"].is_null() && none["frames"] == 0, "{none:#}");
}

/// One object for all files; the mistakes of all of them are in one `error`.
#[test]
fn a_layout_is_told_by_file() {
    let folder = Folder::new();
    folder.write("good.click", "Idle -> Discard;\n");
    folder.write("bad.click", "Idle->Discard;\n");
    let files = |run: &Finished| -> Vec<(Value, Value, Value)> {
        let files = parsed(run)["files"].as_array().expect("a list").clone();
        files
            .iter()
            .map(|one| (one["file"].clone(), one["standard"].clone(), one["written"].clone()))
            .collect()
    };
    let of = |file: &str, standard: bool, written: bool| (file.into(), standard.into(), written.into());
    let run = folder.millrace(&["fmt", "--check", "good.click", "bad.click", "-j"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(files(&run), [of("good.click", true, false), of("bad.click", false, false)]);
    let run = folder.millrace(&["fmt", "good.click", "bad.click", "-j"]).sound();
    assert_eq!(files(&run), [of("good.click", true, false), of("bad.click", false, true)]);
    assert_eq!(std::fs::read_to_string(folder.path("bad.click")).expect("there"), "Idle -> Discard;\n");
    for file in ["one.click", "two.click"] {
        folder.write(file, "a :: ;\n");
    }
    let run = folder.millrace(&["fmt", "one.click", "good.click", "two.click", "-j"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    let error = parsed(&run)["error"].clone();
    let named: Vec<&Value> =
        error["mistakes"].as_array().expect("a list").iter().map(|mistake| &mistake["file"]).collect();
    assert!(named.contains(&&"one.click".into()) && named.contains(&&"two.click".into()), "{error:#}");
}

/// An object for each look, on a line of its own, until nobody reads them.
#[test]
fn what_is_watched_is_an_object_a_line() {
    let daemon = Daemon::of(
        "links = [\"in -> [0]nf[1] -> out\"]
         [ports]
         in = { traffic = { flows = 10 } }
         out = { discard = true }
         [nf.nf]
         inline = \"FromDevice(0) -> ToDevice(1);\"",
        &["chain.toml"],
    );
    for watch in [&["stats", "--watch", "-j", "--interval", "100ms"][..], &["top", "-j", "-i", "100ms"]] {
        let mut command = Command::new(BINARY);
        command.args(watch).args(["--at", daemon.place()]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut next = || -> Value {
            serde_json::from_str(&lines.next().expect("a line").expect("read")).expect("an object a line")
        };
        let (first, second) = (next(), next());
        for stats in [&first, &second] {
            assert!(stats["format"] == 1 && stats["received"].is_u64(), "{watch:?}: {stats:#}");
        }
        assert!(second["up_s"].as_f64() > first["up_s"].as_f64(), "{first:#} {second:#}");
        drop(lines);
        let end = Instant::now() + Duration::from_secs(30);
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break status,
                None if Instant::now() > end => {
                    child.kill().expect("it runs");
                    panic!("{watch:?} goes on though nobody reads");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(status.code(), Some(0), "{watch:?}");
    }
}

#[test]
fn errors_are_json_too() {
    let folder = Folder::new();
    folder.write("wrong.click", "Idle -> Cuonter -> Discard;\nIdle -> Strip(LENGHT 14) -> Discard;\n");
    for (arguments, status, message) in [
        (&["check", "missing.click", "-j"][..], 2, "missing.click cannot be read"),
        (&["check", "-j", "--nonsense"], 2, "--nonsense"),
        (&["elements", "Countr", "-j"], 2, "did you mean `Counter`?"),
        (&["stats", "-j", "--at", "/nowhere"], 1, "no daemon answers"),
        (&["stats", "-j", "--watch", "--at", "/nowhere"], 1, "no daemon answers"),
        (&["top", "-j", "--at", "/nowhere"], 1, "no daemon answers"),
        (&["gen", "-", "-j"], 2, "name a file"),
        (&["fmt", "missing.click", "-j"], 2, "missing.click cannot be read"),
    ] {
        let finished = folder.millrace(arguments);
        assert_eq!(finished.code, Some(status), "{arguments:?}");
        assert!(finished.stderr.contains(message), "for people, too: {}", finished.stderr);
        let error = &parsed(&finished)["error"];
        assert_eq!(error["status"], status, "{error:#}");
        assert!(error["message"].as_str().is_some_and(|told| told.contains(message)), "{error:#}");
    }
    for command in ["check", "run"] {
        let finished = folder.millrace(&[command, "-j", "wrong.click"]);
        assert!(finished.code == Some(2) && finished.stderr.contains("did you mean"), "{}", finished.stderr);
        let error = parsed(&finished)["error"].clone();
        let found = &error["mistakes"];
        assert_eq!(found.as_array().map(Vec::len), Some(2), "{error:#}");
        let first = &found[0];
        assert_eq!(
            (&first["file"], &first["line"], &first["column"]),
            (&"wrong.click".into(), &1.into(), &9.into())
        );
        assert_eq!((&first["text"], &first["severity"]), (&"Cuonter".into(), &"error".into()));
        assert_eq!(first["help"], "did you mean `Counter`?");
        assert_eq!((&found[1]["line"], &found[1]["text"]), (&2.into(), &"LENGHT".into()));
        assert!(!finished.text().contains('╭'), "no drawings: {}", finished.text());
    }
}

#[test]
fn a_daemon_answers_in_the_same_envelope() {
    let daemon = Daemon::of(
        "links = [\"in -> [0]nf[1] -> out\"]
         [ports]
         in = { traffic = { flows = 10 } }
         out = { discard = true }
         [nf.nf]
         runs = \"process\"
         inline = \"FromDevice(0) -> c :: Counter -> ToDevice(1);\"",
        &[],
    );
    let ask = |arguments: &[&str]| parsed(&daemon.ask(&[&["-j"], arguments].concat()));
    assert_eq!(ask(&["chain", "show"])["running"], false);
    assert_eq!(ask(&["chain", "load", "chain.toml"])["running"], true);
    assert_eq!(ask(&["chain", "swap", "chain.toml"])["version"], 2);
    assert_eq!(ask(&["nf", "list"])["nfs"][0]["name"], "nf");
    for act in ["stop", "start", "restart"] {
        assert_eq!(ask(&["nf", act, "nf"])["nfs"][0]["name"], "nf", "{act}");
    }
    assert!(ask(&["nf", "logs", "nf"])["lines"].as_array().is_some_and(|lines| !lines.is_empty()));
    assert_eq!(ask(&["chain", "handler", "nf/process.state"])["value"], "up");
    daemon.write("calls", "nf/process.state\nnf/c.reset_counts 1\n");
    let calls = daemon.ask(&["-j", "chain", "handler", "--file", "calls"]).sound().text();
    let calls: Vec<Value> =
        calls.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!((&calls[0]["value"], &calls[1]["handler"]), (&"up".into(), &"nf/c.reset_counts".into()));
    // A chain with mistakes: no drawing of it, but where they are.
    daemon.write("wrong.click", "Idle -> Cuonter -> Discard;");
    let error = ask(&["chain", "swap", "wrong.click"])["error"].clone();
    assert_eq!((&error["status"], &error["mistakes"][0]["text"]), (&2.into(), &"Cuonter".into()));
    assert!(!error.to_string().contains('╭'), "{error:#}");
    // For people it is drawn.
    assert!(daemon.ask(&["chain", "swap", "wrong.click"]).stderr.contains('╭'));
    assert!(ask(&["stats"])["received"].is_u64());
    assert!(ask(&["chain", "unload"])["elements"].is_array());
    let refused = daemon.ask(&["-j", "chain", "unload"]);
    assert_eq!((refused.code, &parsed(&refused)["error"]["status"]), (Some(1), &1.into()));
}
