//! NFs in processes of their own: they do what they do in one process, and may be killed.

use crate::accounts::Accounts;
use crate::program::{Folder, Started};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Puts the NFs of a chain file with those names into processes.
fn in_processes(chain: &str, nfs: &[&str]) -> String {
    let mut text = chain.to_string();
    for nf in nfs {
        let (from, to) = (format!("[nf.{nf}]"), format!("[nf.{nf}]\nruns = \"process\""));
        assert!(text.contains(&from), "no {from}");
        text = text.replace(&from, &to);
    }
    text
}

#[test]
fn a_chain_does_the_same_in_processes() {
    let folder = Folder::with_examples(&["nat-firewall-balancer", "captures"]);
    let file = |name: &str| folder.path("nat-firewall-balancer").join(name);
    let chain = std::fs::read_to_string(file("chain.toml")).expect("an example");
    let outputs =
        || ["internet.pcap", "servers.pcap"].map(|name| std::fs::read(file(name)).expect("written"));
    let run = |name: &str| {
        let accounts =
            folder.millrace(&["run", &file(name).display().to_string(), "--json"]).sound().accounts();
        accounts.assert_balanced();
        (accounts.received, accounts.sent, accounts.dropped)
    };
    let (expected, frames) = (run("chain.toml"), outputs());
    assert!(expected.1 > 2_000, "{expected:?}");
    // The example of the repository first.
    assert_eq!(run("processes.toml"), expected);
    assert!(outputs() == frames, "other frames from the example");
    for nfs in [&["nat"][..], &["firewall"], &["nat", "balancer"], &["nat", "firewall", "balancer"]] {
        std::fs::write(file("processes.toml"), in_processes(&chain, nfs)).expect("written");
        assert_eq!(run("processes.toml"), expected, "{nfs:?}");
        assert!(outputs() == frames, "other frames with {nfs:?} in processes");
    }
}

const TWO: &str = "
links = [\"left -> [0]mortal[1] -> gone\", \"right -> [0]other[1] -> there\"]
[ports]
left = { traffic = { flows = 100, size = \"64\" } }
right = { traffic = { flows = 100, size = \"64\" } }
gone = { discard = true }
there = { discard = true }
[nf.mortal]
runs = \"process\"
inline = \"FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(1);\"
[nf.other]
runs = \"process\"
inline = \"FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(1);\"
";

/// The process of an NF that a run started.
fn process_of(run: &Started, nf: &str) -> Option<Pid> {
    let parent = format!("PPid:\t{}", run.id());
    std::fs::read_dir("/proc").expect("processes").flatten().find_map(|entry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
        let mut arguments = arguments.split(|byte| *byte == 0);
        let is_it = status.lines().any(|line| line == parent) && arguments.any(|arg| arg == nf.as_bytes());
        is_it.then(|| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).flatten()
    })
}

fn await_process(run: &Started, nf: &str, but: Option<Pid>) -> Pid {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        match process_of(run, nf).filter(|pid| Some(*pid) != but) {
            Some(pid) => return pid,
            None => assert!(Instant::now() < patience, "{nf} does not come back"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn reasons(accounts: &Accounts, nf: &str) -> Vec<String> {
    let dropped = &accounts.element(&format!("{nf}/process")).dropped;
    dropped.iter().filter(|(_, count)| *count > 0).map(|(reason, _)| reason.clone()).collect()
}

#[test]
fn an_nf_is_killed_again_and_again_and_nobody_else_notices() {
    const KILLS: u64 = 12;
    let folder = Folder::new();
    folder.write("two.toml", TWO);
    let handlers = ["mortal/process.restarts", "other/process.restarts"];
    let run = folder.start(&["run", "two.toml", "--json", "-H", handlers[0], "-H", handlers[1]]);
    let mut last = None;
    for kill in 0..KILLS {
        let pid = await_process(&run, "mortal", last);
        // Under load, at moments that are never the same.
        std::thread::sleep(Duration::from_millis(60 + 17 * (kill * kill % 7)));
        kill_process(pid, Signal::KILL).expect("it runs");
        last = Some(pid);
    }
    await_process(&run, "mortal", last);
    std::thread::sleep(Duration::from_millis(300));
    run.interrupt();
    let accounts = run.wait().sound().accounts();
    accounts.assert_balanced();
    assert_eq!(
        (accounts.handlers[handlers[0]].as_str(), accounts.handlers[handlers[1]].as_str()),
        (Some("12"), Some("0"))
    );
    let (mortal, other) = (reasons(&accounts, "mortal"), reasons(&accounts, "other"));
    let expected = ["nf-down", "ring-full", "not-taken", "lost-with-nf", "not-back"];
    assert!(mortal.iter().all(|reason| expected.contains(&reason.as_str())), "{mortal:?}");
    assert!(mortal.iter().any(|reason| reason == "nf-down" || reason == "not-taken"), "{mortal:?}");
    // What is under way when the run is interrupted does not come back in time; and on a machine with much
    // else to do a process may get no core for long.
    assert!(other.iter().all(|reason| reason == "not-back" || reason == "ring-full"), "{other:?}");
    assert!(accounts.port("gone").sent.0 > 1_000 && accounts.port("there").sent.0 > 1_000);
}

#[test]
fn mistakes_in_an_nf_of_its_own_are_told_where_they_stand() {
    let folder = Folder::new();
    let broken = TWO.replacen("DecIPTTL", "Strip(nonsense)", 1);
    folder.write("broken.toml", &broken);
    for command in ["check", "run"] {
        let told = folder.millrace(&[command, "broken.toml"]);
        assert_eq!(told.code, Some(2), "{}", told.stderr);
        assert!(
            told.stderr.contains("broken.toml:10") && told.stderr.contains("nonsense"),
            "{}",
            told.stderr
        );
    }
    folder.write("form.toml", &TWO.replacen("\"process\"", "\"proces\"", 1));
    let told = folder.millrace(&["check", "form.toml"]);
    assert!(told.stderr.contains("did you mean `process`?"), "{}", told.stderr);
}

#[test]
fn an_nf_of_its_own_makes_packets() {
    let folder = Folder::with_examples(&["captures"]);
    let chain = "
links = [\"in -> [0]nf\", \"nf[1] -> one\", \"nf[2] -> two\"]
[ports]
in = { capture = \"captures/office.pcap\" }
one = { write = \"one.pcap\" }
two = { write = \"two.pcap\" }
[nf.nf]
inline = \"FromDevice(0) -> t :: Tee -> ToDevice(1); t[1] -> Queue -> EtherMirror -> ToDevice(2);\"
";
    let outputs = || ["one.pcap", "two.pcap"].map(|name| std::fs::read(folder.path(name)).expect("written"));
    let run = |name: &str| {
        let accounts = folder.millrace(&["run", name, "--json"]).sound().accounts();
        accounts.assert_balanced();
        (accounts, outputs())
    };
    folder.write("chain.toml", chain);
    folder.write("process.toml", &in_processes(chain, &["nf"]));
    let (modular, frames) = run("chain.toml");
    let (process, same) = run("process.toml");
    assert_eq!((process.received, process.sent), (modular.received, modular.sent));
    assert_eq!(process.sent, 2 * process.received);
    assert_eq!(process.element("nf/process").made, process.received);
    assert!(frames == same, "other frames");
}

/// A chain with a program that knows nothing of being an NF.
fn with_program(program: &str, arguments: &str) -> String {
    format!(
        "links = [\"in -> [0]mute[1] -> out\"]\n[ports]\n\
         in = {{ traffic = {{ flows = 1, size = \"64\" }}, count = 10 }}\nout = {{ discard = true }}\n\
         [nf.mute]\nprogram = \"{program}\"\narguments = {arguments}\n"
    )
}

#[test]
fn who_is_waited_for_is_told() {
    let folder = Folder::new();
    folder.write("chain.toml", &with_program("sleep", "[\"60\"]"));
    let run = folder.start(&["run", "chain.toml"]);
    std::thread::sleep(Duration::from_millis(3_500));
    run.interrupt();
    let told = run.wait();
    let waits = "millrace: waiting for NF `mute`, which is not ready yet: for up to 18 s more\n";
    assert!(told.stderr.contains(waits), "{}", told.stderr);
    // Who has ended is not waited for.
    folder.write("chain.toml", &with_program("true", "[]"));
    let start = Instant::now();
    let told = folder.millrace(&["run", "chain.toml"]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(told.text().contains("NF `mute` ended before it was ready (exit status: 0)"), "{}", told.text());
    assert!(!told.stderr.contains("waiting for"), "{}", told.stderr);
}
