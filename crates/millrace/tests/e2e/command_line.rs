//! What scripts and operators rely on: exit statuses, signals, where a daemon is, who may ask it.

use crate::daemon::Daemon;
use crate::program::{BINARY, Finished, Folder, Started};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ENDLESS: &str = "InfiniteSource(LIMIT -1) -> c :: Counter -> Discard;";
/// A user and a group that own nothing, and a group that may see.
const OTHER: &str = "65534";
const VIEWERS: &str = "64123";

pub fn is_root() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: only root runs commands as another user");
        return false;
    }
    true
}

/// A command as another user, with these further groups.
pub fn as_other(folder: &Folder, groups: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new("setpriv");
    let groups = if groups.is_empty() { "--clear-groups".into() } else { format!("--groups={groups}") };
    command.args([&format!("--reuid={OTHER}"), &format!("--regid={OTHER}"), &groups, BINARY]);
    command.args(arguments).current_dir(folder.path(".")).env_remove("XDG_RUNTIME_DIR");
    Started::new(command).wait()
}

pub fn open_to_all(folder: &Folder) {
    std::fs::set_permissions(folder.path("."), PermissionsExt::from_mode(0o755)).expect("ours");
}

#[test]
fn the_exit_status_tells_a_mistake_from_what_the_machine_refuses() {
    let folder = Folder::new();
    folder.write("wrong.click", "Nonsense -> Discard;");
    folder.write("right.click", ENDLESS);
    let at = folder.path("at").display().to_string();
    for (code, arguments) in [
        (2, &["run", "wrong.click"][..]),
        (2, &["run", "missing.click"]),
        (2, &["run", "right.click", "--brust", "8"]),
        (2, &["elements", "Nope"]),
        (2, &["daemon", "--group", "no such group", "--at", &at]),
        (1, &["stats", "--at", &at]),
        (1, &["chain", "load", "wrong.click", "--at", &at]),
        // Full, whatever is written.
        (1, &["gen", "/dev/full", "--count", "10"]),
    ] {
        let finished = folder.millrace(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {}", finished.stderr);
    }
    if is_root() {
        open_to_all(&folder);
        folder.write("device.click", "FromDevice(lo) -> Discard;");
        let refused = as_other(&folder, "", &["run", "device.click", "--for", "0.1"]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("not permitted"), "{}", refused.stderr);
        // A mistake beside it is a mistake.
        folder.write("both.click", "FromDevice(lo) -> Nonsense -> Discard;");
        assert_eq!(as_other(&folder, "", &["run", "both.click", "--for", "0.1"]).code, Some(2));
    }
}

#[test]
fn doctor_is_strict_on_request() {
    let folder = Folder::new();
    let report = folder.millrace(&["doctor", "--json"]).sound();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let is_complete = report["limited"] == 0 && report["missing"] == 0;
    assert_eq!(folder.millrace(&["doctor", "--strict"]).code, Some(i32::from(!is_complete)));
}

#[test]
fn a_version_says_what_it_is_built_with() {
    let folder = Folder::new();
    let long = folder.millrace(&["--version"]).sound().text();
    for what in ["millrace 0.", "\nDPDK: ", "\nCranelift: 0.", "\nfeatures: ", "\nbuild: "] {
        assert!(long.contains(what), "{what}: {long}");
    }
    let short = folder.millrace(&["-V"]).sound().text();
    assert!(short.lines().count() == 1 && long.starts_with(short.trim_end()), "{short}");
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let lists: Vec<String> = tasks.flatten().flat_map(of_task).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// An NF that is halted does not end when it is asked to, which a run waits for.
#[test]
fn a_second_interrupt_ends_a_run_at_once() {
    let folder = Folder::new();
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]nf[1] -> out\"]
         [ports]
         in = { traffic = { flows = 10 } }
         out = { discard = true }
         [nf.nf]
         runs = \"process\"
         inline = \"FromDevice(0) -> ToDevice(1);\"",
    );
    for (first, second, code) in [(Signal::INT, Signal::INT, 130), (Signal::INT, Signal::TERM, 143)] {
        let mut started = folder.start(&["run", "chain.toml"]);
        let end = Instant::now() + Duration::from_secs(60);
        let nf = loop {
            if let Some(nf) = children(started.id()).pop() {
                break nf;
            }
            assert!(Instant::now() < end, "the NF does not start");
            std::thread::sleep(Duration::from_millis(10));
        };
        // Past its handshake, without which the run would not wait for it.
        std::thread::sleep(Duration::from_millis(500));
        let nf = rustix::process::Pid::from_raw(nf).expect("a process");
        rustix::process::kill_process(nf, Signal::STOP).expect("it runs");
        started.signal(first);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!started.has_ended(), "the first interrupt waits for the NF");
        started.signal(second);
        let finished = started.wait();
        assert_eq!((finished.code, finished.text().as_str()), (Some(code), ""), "{}", finished.stderr);
    }
}

#[test]
fn a_hangup_has_a_daemon_read_its_chain_again() {
    const CHAIN: &str = "s :: InfiniteSource(LIMIT -1) -> c :: Counter -> Discard;";
    let mut daemon = Daemon::of("", &[]);
    daemon.write("chain.click", CHAIN);
    let version = |daemon: &Daemon| daemon.json(&["chain", "show", "--json"])["version"].clone();
    let await_version = |daemon: &Daemon, wanted: u64| {
        let end = Instant::now() + Duration::from_secs(60);
        while version(daemon) != wanted {
            assert!(Instant::now() < end, "{} is not {wanted}", version(daemon));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // Without a chain there is none to read.
    daemon.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    daemon.ask(&["chain", "load", "chain.click", "--burst", "8"]).sound();
    await_version(&daemon, 1);
    // Another text: other handlers.
    daemon.write("chain.click", &CHAIN.replace("c :: Counter", "other :: Counter"));
    daemon.signal(Signal::HUP);
    await_version(&daemon, 2);
    daemon.ask(&["chain", "handler", "other.count"]).sound();
    assert_eq!(daemon.ask(&["chain", "handler", "c.count"]).code, Some(2));
    // Mistakes change nothing.
    daemon.write("chain.click", &CHAIN.replace("Counter", "Cuonter"));
    daemon.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(500));
    let before: u64 =
        daemon.ask(&["chain", "handler", "other.count"]).sound().text().trim().parse().expect("n");
    std::thread::sleep(Duration::from_millis(50));
    let after: u64 =
        daemon.ask(&["chain", "handler", "other.count"]).sound().text().trim().parse().expect("n");
    assert!(after > before && version(&daemon) == 2);
    let finished = daemon.stop();
    assert_eq!(finished.code, Some(0));
    for what in [
        "no chain is loaded",
        "SIGHUP: no chain runs",
        "chain.click was read again and runs, as number 2",
        "did you mean `Counter`?",
        "SIGHUP: nothing was changed: ",
        "chain.click runs on, as number 2",
    ] {
        assert!(finished.stderr.contains(what), "{what}: {}", finished.stderr);
    }
}

#[test]
fn a_daemon_is_found_by_its_environment() {
    let daemon = Daemon::of("", &[]);
    let ask = |environment: &[(&str, &str)]| {
        let mut command = Command::new(BINARY);
        command.args(["chain", "show"]).env_remove("MILLRACE_AT").env_remove("XDG_RUNTIME_DIR");
        command.envs(environment.iter().copied()).current_dir(daemon.path("."));
        Started::new(command).wait()
    };
    assert_eq!(ask(&[("MILLRACE_AT", daemon.place())]).code, Some(0));
    // The folder of the user, in which the daemon's has the name `millrace`.
    std::os::unix::fs::symlink(daemon.place(), daemon.path("millrace")).expect("a link");
    let of_user = daemon.path(".").display().to_string();
    assert_eq!(ask(&[("XDG_RUNTIME_DIR", &of_user), ("MILLRACE_AT", "")]).code, Some(0));
    // What is named counts, even where nobody listens.
    let nowhere = ask(&[("XDG_RUNTIME_DIR", &of_user), ("MILLRACE_AT", "/nowhere")]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("/nowhere/control.sock"), "{nowhere:?}");
}

#[test]
fn a_group_may_see_and_not_change() {
    if !is_root() {
        return;
    }
    let mut daemon = Daemon::of("", &["--group", VIEWERS]);
    daemon.write("chain.click", ENDLESS);
    daemon.ask(&["chain", "load", "chain.click"]).sound();
    open_to_all(daemon.folder());
    let ask = |groups: &str, arguments: &[&str]| {
        let all = [arguments, &["--at", daemon.place()]].concat();
        as_other(daemon.folder(), groups, &all)
    };
    ask(VIEWERS, &["chain", "show"]).sound();
    ask(VIEWERS, &["stats"]).sound();
    ask(VIEWERS, &["chain", "handler", "c.count"]).sound();
    for change in [&["chain", "unload"][..], &["chain", "handler", "c.reset_counts", ""]] {
        let refused = ask(VIEWERS, change);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("you may see and not change"), "{}", refused.stderr);
    }
    let stranger = ask("", &["stats"]);
    assert_eq!(stranger.code, Some(1));
    assert!(stranger.stderr.contains("you may not ask the daemon"), "{}", stranger.stderr);
    assert_eq!(daemon.json(&["chain", "show", "--json"])["running"], true);
    assert_eq!(daemon.stop().code, Some(0));
}

#[test]
fn a_file_of_handler_calls_is_carried_out_line_by_line() {
    let daemon = Daemon::of("", &[]);
    daemon.write(
        "chain.click",
        "InfiniteSource(LIMIT -1) -> s :: Switch(0) -> Discard; s[1] -> Discard;
         Idle -> rt :: RadixIPLookup(10.0.0.0/8 0) -> Discard;",
    );
    daemon.ask(&["chain", "load", "chain.click"]).sound();
    let calls = "# a switch\n\ns.switch\ns.switch 1\n  read s.switch\nrt.set 10.1.0.0/16 0\n\
                 read rt.lookup 10.1.2.3\nwrite s.switch 0\ns.switch\n";
    let run = |calls: &str| {
        let mut command = Command::new(BINARY);
        command.args(["chain", "handler", "--file", "-", "--at", daemon.place()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        child.stdin.take().expect("piped").write_all(calls.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, stdout, stderr) = run(calls);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout, "s.switch: 0\ns.switch: 1\nrt.lookup 10.1.2.3: 0\ns.switch: 0\n");
    // The first that fails ends it, by its line.
    let (code, stdout, stderr) = run("s.switch 1\nnobody.count\ns.switch 0\n");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("standard input:2: ") && stderr.contains("nobody"), "{stderr}");
    assert_eq!(daemon.ask(&["chain", "handler", "s.switch"]).sound().text().trim(), "1");
    daemon.write("calls", calls);
    assert_eq!(daemon.ask(&["chain", "handler", "--file", "calls"]).sound().text().lines().count(), 4);
    for wrong in [&["chain", "handler"][..], &["chain", "handler", "c.count", "--file", "calls"]] {
        assert_eq!(daemon.ask(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn watched_rates_have_a_prefix_by_size_and_bits() {
    let chain = "links = [\"in -> [0]nf[1] -> out\"]
                 [ports]
                 in = { traffic = { flows = 10, size = \"64\" } }
                 out = { discard = true }
                 [nf.nf]
                 inline = \"FromDevice(0) -> ToDevice(1);\"";
    let daemon = Daemon::of(chain, &["chain.toml"]);
    let watched = daemon.start_asking(&["stats", "--watch", "--interval", "200ms"]);
    std::thread::sleep(Duration::from_millis(1500));
    daemon.ask(&["chain", "unload"]).sound();
    let text = watched.wait().text();
    let line = text.lines().find(|line| line.contains("bit/s")).unwrap_or_else(|| panic!("{text}"));
    // More than 10,000 packets of 60 bytes in a second, however slow the machine.
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(["kpps", "Mpps"].contains(&words[2]) && words[4].starts_with(['M', 'G']), "{line}");
    let number = |at: usize| words[at].trim_start_matches('(').parse::<f64>().expect("a number");
    let scale = |unit: &str| match &unit[..1] {
        "k" => 1e3,
        "M" => 1e6,
        _ => 1e9,
    };
    // Frames of 64 bytes with their checksum: 60 bytes are 480 bits.
    let (packets, bits) = (number(1) * scale(words[2]), number(3) * scale(words[4]));
    assert!((bits / packets - 480.0).abs() < 1.0, "{line}");
}
