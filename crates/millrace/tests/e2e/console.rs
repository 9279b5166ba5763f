//! What all commands share: messages, colours, times.

use crate::program::{BINARY, Finished, Folder, Started};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

const ENDLESS: &str = "InfiniteSource(LIMIT -1) -> Discard;";

/// Runs the binary in a folder, in an environment without what users may have set.
fn run(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = Command::new(BINARY);
    for name in
        ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "TERM", "MILLRACE_LOG", "RUST_LOG", "JOURNAL_STREAM"]
    {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).args(arguments).current_dir(folder.path("."));
    Started::new(command).wait()
}

/// The same on a terminal of 200 columns, by script(1); what it shows, errors too.
fn run_on_terminal(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let words: Vec<String> = [BINARY].iter().chain(arguments).map(|word| format!("'{word}'")).collect();
    let mut command = Command::new("script");
    // What a builder's logs can show counts as much as what a terminal can: `CI` is asked, too.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").envs(environment.iter().copied());
    command.args(["-q", "-e", "-c", &words.join(" "), "/dev/null"]).current_dir(folder.path("."));
    Started::new(command).wait().text()
}

#[test]
fn messages_are_as_many_as_asked_for() {
    let folder = Folder::new();
    folder.write("chain.click", ENDLESS);
    let chain = ["run", "chain.click", "--for", "10ms"];
    let told = |environment: &[(&str, &str)], options: &[&str]| {
        let finished = run(&folder, environment, &[&chain[..], options].concat());
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        finished.stderr
    };
    let runs = "chain chain.click runs";
    assert!(!told(&[], &[]).contains(runs));
    assert!(told(&[], &["-v"]).contains(" INFO millrace::run: chain chain.click runs"));
    assert!(told(&[], &["--log", "info"]).contains(runs));
    assert!(told(&[], &["--log", "warn,millrace=info"]).contains(runs));
    assert!(!told(&[], &["--log", "info,millrace=warn"]).contains(runs));
    assert!(told(&[("MILLRACE_LOG", "info"), ("RUST_LOG", "off")], &[]).contains(runs));
    assert!(told(&[("RUST_LOG", "millrace=info")], &[]).contains(runs));
    // Options count more than the environment; what other programs understand is no mistake.
    assert!(!told(&[("MILLRACE_LOG", "info")], &["-q"]).contains(runs));
    assert!(!told(&[("RUST_LOG", "millrace[span{field=1}]=info")], &[]).contains(runs));
    // Before the command, too.
    let before = run(&folder, &[], &[&["-v"][..], &chain].concat());
    assert!(before.stderr.contains(runs), "{}", before.stderr);
}

#[test]
fn what_is_no_filter_is_refused_with_what_to_write() {
    let folder = Folder::new();
    folder.write("chain.click", ENDLESS);
    for filter in ["loud", "warn,hots", "host=loud"] {
        let refused = run(&folder, &[], &["check", "chain.click", "--log", filter]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains("write a level (off, error, warn, info"), "{}", refused.stderr);
    }
    let refused = run(&folder, &[("MILLRACE_LOG", "loud")], &["check", "chain.click"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("MILLRACE_LOG: write a level"), "{}", refused.stderr);
    assert_eq!(run(&folder, &[], &["check", "chain.click", "-v", "-q"]).code, Some(2));
}

#[test]
fn a_daemon_tells_which_chains_run() {
    let folder = Folder::new();
    folder.write("chain.click", ENDLESS);
    let mut command = Command::new(BINARY);
    command.args(["daemon", "--at", "at", "-v", "chain.click"]).current_dir(folder.path("."));
    command.env_remove("JOURNAL_STREAM");
    let daemon = Started::new(command);
    wait_for_daemon(&folder);
    daemon.interrupt();
    let finished = daemon.wait();
    assert!(
        finished.stderr.contains(" INFO millrace::daemon::controller: chain chain.click runs, number 1"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("chain chain.click has ended"), "{}", finished.stderr);
}

fn wait_for_daemon(folder: &Folder) {
    let end = Instant::now() + Duration::from_secs(60);
    while run(folder, &[], &["chain", "show", "--at", "at"]).code != Some(0) {
        assert!(Instant::now() < end, "the daemon does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where systemd has connected standard error to the journal, messages go to the journal's socket, with their
/// levels. A journal of the test's own takes the place of the system's, in a mount namespace. The fields of a
/// message in the journal's native protocol: `NAME=value` on a line, or `NAME`, the value's length as eight
/// bytes, little-endian, and the value.
fn journal_fields(mut message: &[u8]) -> HashMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = HashMap::new();
    while let Some(end) = message.iter().position(|byte| *byte == b'\n') {
        let (line, rest) = (&message[..end], &message[end + 1..]);
        if let Some(equals) = line.iter().position(|byte| *byte == b'=') {
            fields.insert(text(&line[..equals]), text(&line[equals + 1..]));
            message = rest;
        } else {
            let (length, rest) = rest.split_first_chunk().expect("a length");
            let (value, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            fields.insert(text(line), text(value));
            message = rest.strip_prefix(b"\n").expect("a line's end");
        }
    }
    fields
}

#[test]
fn messages_of_a_service_go_to_the_journal() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: only root makes a mount namespace with a journal of its own");
        return;
    }
    let folder = Folder::new();
    folder.write("chain.click", ENDLESS);
    std::fs::create_dir(folder.path("journal")).expect("a folder");
    let journal = UnixDatagram::bind(folder.path("journal/socket")).expect("a socket");
    journal.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let service = |stream: &str| {
        let errors = std::fs::File::create(folder.path("errors")).expect("a file");
        let stream = match stream {
            "ours" => errors.metadata().map(|file| format!("{}:{}", file.dev(), file.ino())).expect("a file"),
            other => other.to_string(),
        };
        let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
                      mount --bind journal /run/systemd/journal && exec \"$0\" daemon --at at -v chain.click";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, BINARY]).current_dir(folder.path("."));
        command.env("JOURNAL_STREAM", stream).stderr(errors);
        let mut daemon = command.spawn().expect("unshare starts");
        wait_for_daemon(&folder);
        let pid = rustix::process::Pid::from_child(&daemon);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("there");
        daemon.wait().expect("ended");
        std::fs::read_to_string(folder.path("errors")).expect("read")
    };

    let errors = service("ours");
    assert!(!errors.contains("chain.click runs"), "{errors}");
    let (mut heard, mut runs) = (vec![], HashMap::new());
    let mut datagram = [0; 4096];
    while !heard.iter().any(|text: &String| text.contains("chain chain.click has ended")) {
        let length = journal.recv(&mut datagram).expect("a message of the daemon");
        heard.push(String::from_utf8_lossy(&datagram[..length]).into_owned());
        if heard.last().is_some_and(|text| text.contains("chain chain.click runs")) {
            runs = journal_fields(&datagram[..length]);
        }
    }
    // Notice: what tracing calls info, by the library's own table.
    assert_eq!(runs.get("PRIORITY").map(String::as_str), Some("5"), "{runs:?}");
    assert_eq!(runs.get("SYSLOG_IDENTIFIER").map(String::as_str), Some("millrace"), "{runs:?}");

    // Standard error that leads elsewhere is not the journal's, whatever the environment says.
    let errors = service("1:1");
    assert!(errors.contains("chain.click runs"), "{errors}");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let folder = Folder::new();
    folder.write("wrong.click", "a :: Nonsense -> Discard;");
    let on = |text: &str| text.contains("\u{1b}[3") || text.contains("\u{1b}[1m");
    for command in [&["check", "wrong.click"][..], &["run", "wrong.click"], &["doctor"]] {
        let plain = |environment: &[(&str, &str)], options: &[&str]| {
            let finished = run(&folder, environment, &[command, options].concat());
            finished.text() + &finished.stderr
        };
        assert!(!on(&plain(&[], &[])), "{command:?}");
        assert!(on(&plain(&[], &["--color", "always"])), "{command:?}");
        assert!(on(&plain(&[("CLICOLOR_FORCE", "1")], &[])), "{command:?}");
        assert!(!on(&plain(&[("CLICOLOR_FORCE", "1")], &["--color", "never"])), "{command:?}");
        let shown = |environment: &[(&str, &str)], options: &[&str]| {
            run_on_terminal(&folder, environment, &[command, options].concat())
        };
        assert!(on(&shown(&[], &[])), "{command:?}");
        assert!(!on(&shown(&[("NO_COLOR", "1")], &[])), "{command:?}");
        assert!(!on(&shown(&[("TERM", "dumb")], &[])), "{command:?}");
        assert!(!on(&shown(&[], &["--color", "never"])), "{command:?}");
        assert!(on(&shown(&[("NO_COLOR", "1")], &["--color", "always"])), "{command:?}");
    }
    let refused = run(&folder, &[], &["doctor", "--color", "sometimes"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("auto, always, never"), "{}", refused.stderr);
}

#[test]
fn times_have_units_in_every_command() {
    let folder = Folder::new();
    folder.write("chain.click", ENDLESS);
    let timed = |time: &str| {
        let start = Instant::now();
        run(&folder, &[], &["run", "chain.click", "--for", time]).sound();
        start.elapsed()
    };
    for time in ["300ms", "0.3", "0.3s", "0s 300ms"] {
        let took = timed(time);
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(60), "{time}: {took:?}");
    }
    for arguments in [
        &["run", "chain.click", "--for", "soon"][..],
        &["run", "chain.click", "--for", "1 parsec"],
        &["synth", "chain.click", "--prove", "--limit", "long"],
        &["stats", "--watch", "--interval", "often"],
        &["top", "--interval", "often"],
        &["top", "--delay", "often"],
        &["bench", "--seconds", "few"],
        &["bench", "latency", "chain.click", "--seconds", "few"],
        &["bench", "throughput", "chain.click", "--trial", "short"],
        &["bench", "breakdown", "chain.click", "--seconds", "few"],
    ] {
        let refused = run(&folder, &[], arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        let told = "write a time as in `500ms`, `2s` or `1min 30s`; a number alone counts seconds";
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&refused.stderr).contains(told), "{arguments:?}: {}", refused.stderr);
    }
    let refused = run(&folder, &[], &["plan", "chain.click", "--rate", "1Mpps", "--latency", "200"]);
    assert!(refused.stderr.contains("with its unit as in `200us`"), "{}", refused.stderr);
    let refused = run(&folder, &[], &["bench", "latency", "chain.click", "--batch", "4", "--wait", "0"]);
    assert!(refused.stderr.contains("a number alone counts microseconds"), "{}", refused.stderr);
    run(&folder, &[], &["synth", "chain.click", "--prove", "--limit", "90"]).sound();
}

#[test]
fn hints_are_of_use() {
    let folder = Folder::new();
    let told = |arguments: &[&str]| {
        let finished = run(&folder, &[], arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}");
        finished.stderr
    };
    // Nobody is sent to what only Millrace starts.
    for typed in ["nf-proces", "nf-relais", "nfprocess"] {
        assert!(
            !told(&[typed]).contains("nf-process") && !told(&[typed]).contains("nf-relay"),
            "{}",
            told(&[typed])
        );
    }
    assert!(told(&["chek"]).contains("check"));
    assert!(
        told(&["elements", "Zzzzz"]).ends_with("no element class `Zzzzz`; `millrace elements` lists all\n")
    );
    assert!(told(&["elements", "Countr"]).contains("did you mean `Counter`?"));
}

/// A reader that goes away early is no reason to panic.
#[test]
fn a_closed_pipe_ends_nothing_badly() {
    let folder = Folder::new();
    folder.write("a.click", "Idle->Discard;");
    folder.write("b.click", "Idle->Discard;");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(BINARY);
    command.args(["fmt", "--check", "a.click", "b.click"]).current_dir(folder.path("."));
    let output = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().expect("starts");
    let output = output.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(1), ""));
}
