//! The daemon, and the commands that steer it.

use crate::program::{BINARY, Finished, Folder, Started};
use std::process::Command;
use std::time::{Duration, Instant};

const CHAIN: &str = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 100, size = \"64\" } }
out = { discard = true }
[nf.nf]
runs = \"process\"
inline = \"FromDevice(0) -> c :: Counter -> ToDevice(1);\"
[nf.guest]
attach = true
interfaces = [\"0\"]
idle = [\"0\"]
";

/// A daemon in a folder of its own.
pub struct Daemon {
    folder: Folder,
    at: String,
    started: Option<Started>,
}

impl Daemon {
    fn new(arguments: &[&str]) -> Daemon {
        Daemon::of(CHAIN, arguments)
    }

    /// With a chain file in its folder.
    pub fn of(chain: &str, arguments: &[&str]) -> Daemon {
        let folder = Folder::new();
        folder.write("chain.toml", chain);
        let mut daemon = Daemon { at: folder.path("at").display().to_string(), folder, started: None };
        daemon.start(arguments);
        daemon
    }

    fn start(&mut self, arguments: &[&str]) {
        let mut command = Command::new(BINARY);
        command.args(["daemon", "--at", &self.at]).args(arguments).current_dir(self.folder.path("."));
        self.started = Some(Started::new(command));
        let end = Instant::now() + Duration::from_secs(60);
        while self.ask(&["chain", "show"]).code != Some(0) {
            assert!(Instant::now() < end, "the daemon does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its folder, with the files of the test.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The folder of its sockets.
    pub fn place(&self) -> &str {
        &self.at
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        self.started.as_ref().expect("it runs").signal(signal);
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path(name)
    }

    /// Writes a file into its folder.
    pub fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    /// Runs a command that steers it.
    pub fn ask(&self, arguments: &[&str]) -> Finished {
        let mut all = arguments.to_vec();
        all.extend(["--at", &self.at]);
        self.folder.millrace(&all)
    }

    /// Starts a command that steers it.
    pub fn start_asking(&self, arguments: &[&str]) -> Started {
        let mut all = arguments.to_vec();
        all.extend(["--at", &self.at]);
        self.folder.start(&all)
    }

    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let finished = self.ask(arguments).sound();
        serde_json::from_slice(&finished.stdout).expect("JSON")
    }

    /// Waits until the accounts are as they should be.
    pub fn await_stats(&self, what: &str, holds: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let stats = self.json(&["stats", "--json"]);
            if holds(&stats) {
                return stats;
            }
            assert!(Instant::now() < end, "{what}: {stats:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn stop(&mut self) -> Finished {
        let started = self.started.take().expect("it runs");
        started.interrupt();
        started.wait()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            started.kill();
        }
    }
}

/// The instance of an NF in `nf list --json` or in the accounts.
pub fn instance<'a>(nfs: &'a serde_json::Value, nf: &str) -> &'a serde_json::Value {
    let list = if nfs.is_array() { nfs } else { &nfs["nfs"] };
    let found = list.as_array().expect("a list").iter().find(|status| status["name"] == nf);
    &found.unwrap_or_else(|| panic!("no {nf} in {nfs:#}"))["instances"][0]
}

#[test]
fn a_chain_is_loaded_steered_exchanged_and_ended() {
    let mut daemon = Daemon::new(&[]);
    let none = daemon.ask(&["stats"]);
    assert!(none.code == Some(1) && none.stderr.contains("no chain is loaded"), "{}", none.stderr);
    daemon.ask(&["chain", "load", "chain.toml"]).sound();
    let out = |stats: &serde_json::Value| stats["sent"].as_u64().unwrap_or(0);
    daemon.await_stats("no packets", |stats| out(stats) > 1000);
    let first = instance(&daemon.json(&["nf", "list", "--json"]), "nf").clone();
    assert_eq!(first["state"], "up");

    // Stopped, its packets are dropped and counted; started, they go on.
    daemon.ask(&["nf", "stop", "nf"]).sound();
    let stopped = daemon.await_stats("nothing dropped", |stats| stats["dropped"].as_u64() > Some(1000));
    assert_eq!(instance(&stopped["nfs"], "nf")["state"], "stopped");
    daemon.ask(&["nf", "start", "nf"]).sound();
    let before = out(&daemon.json(&["stats", "--json"]));
    daemon.await_stats("it does not go on", |stats| out(stats) > before + 1000);
    let restarted = daemon.ask(&["nf", "restart", "nf"]).sound().text();
    assert!(restarted.contains("up"), "{restarted}");
    let third = instance(&daemon.json(&["nf", "list", "--json"]), "nf").clone();
    assert_ne!(third["pid"], first["pid"]);
    assert_eq!(third["restarts"], 2);
    let log = daemon.ask(&["nf", "logs", "nf"]).sound().text();
    assert_eq!(log.matches("-- started").count(), 3, "{log}");

    // What is wrong is said, and changes nothing.
    let unknown = daemon.ask(&["nf", "stop", "nat"]);
    assert!(unknown.stderr.contains("there is no NF `nat`"), "{}", unknown.stderr);
    let twice = daemon.ask(&["chain", "load", "chain.toml"]);
    assert!(twice.stderr.contains("a chain runs already"), "{}", twice.stderr);
    daemon.folder.write("broken.toml", &CHAIN.replace("Counter", "Cuonter"));
    let broken = daemon.ask(&["chain", "swap", "broken.toml"]);
    assert!(broken.code == Some(2) && broken.stderr.contains("did you mean"), "{}", broken.stderr);
    assert_eq!(daemon.json(&["chain", "show", "--json"])["version"], 1);

    daemon.folder.write("other.toml", &CHAIN.replace("Counter", "CheckIPHeader(14)"));
    daemon.ask(&["chain", "swap", "other.toml"]).sound();
    let shown = daemon.json(&["chain", "show", "--json"]);
    assert!(shown["version"] == 2 && shown["running"] == true, "{shown:#}");
    daemon.await_stats("the other does not run", |stats| out(stats) > 1000);
    let metrics = daemon.ask(&["stats", "--prometheus"]).sound().text();
    assert!(metrics.contains("millrace_nf_up{nf=\"nf\",worker=\"0\"} 1"), "{metrics}");
    let state = daemon.ask(&["chain", "handler", "nf/process.state"]).sound().text();
    assert_eq!(state.trim(), "up");

    let end = daemon.ask(&["chain", "unload"]).sound().text();
    assert!(end.contains("in ") && !end.contains("NOT BALANCED"), "{end}");
    assert_eq!(daemon.stop().code, Some(0));
}

#[test]
fn one_daemon_at_a_place_and_one_that_was_killed_is_no_obstacle() {
    let mut daemon = Daemon::new(&["chain.toml"]);
    let second = daemon.folder.millrace(&["daemon", "--at", &daemon.at]);
    assert!(second.code == Some(1) && second.stderr.contains("another daemon runs"), "{}", second.stderr);
    daemon.await_stats("it does not run", |stats| stats["sent"].as_u64() > Some(1000));
    let pid = instance(&daemon.json(&["nf", "list", "--json"]), "nf")["pid"].as_u64().expect("a process");
    daemon.started.take().expect("it runs").kill();
    // Its NFs end with it.
    let end = Instant::now() + Duration::from_secs(10);
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "process {pid} outlives its daemon");
        std::thread::sleep(Duration::from_millis(5));
    }
    let nobody = daemon.ask(&["stats"]);
    assert!(nobody.stderr.contains("no daemon answers"), "{}", nobody.stderr);
    daemon.start(&["chain.toml"]);
    daemon.await_stats("the next one does not run", |stats| stats["sent"].as_u64() > Some(1000));
}

#[test]
fn a_daemon_with_a_broken_chain_does_not_start() {
    let folder = Folder::new();
    folder.write("broken.toml", &CHAIN.replace("Counter", "Cuonter"));
    let at = folder.path("at").display().to_string();
    let told = folder.millrace(&["daemon", "--at", &at, "broken.toml"]);
    assert!(told.code == Some(2) && told.stderr.contains("did you mean"), "{}", told.stderr);
}

#[test]
fn idle_nfs_and_their_daemon_cost_next_to_nothing() {
    let folder = Folder::new();
    let mut chain =
        String::from("links = [\"in -> [0]n0[1] -> [0]n1[1] -> [0]n2[1] -> [0]n3[1] -> [0]n4[1] -> out\"]\n");
    chain += "[ports]\nin = { device = \"net_ring0\" }\nout = { discard = true }\n";
    for nf in 0..5 {
        chain += &format!("[nf.n{nf}]\nruns = \"process\"\ninline = \"FromDevice(0) -> ToDevice(1);\"\n");
    }
    folder.write("idle.toml", &chain);
    let daemon = Daemon { at: folder.path("at").display().to_string(), folder, started: None };
    let mut daemon = daemon;
    daemon.start(&["idle.toml"]);
    let up = |nf: &serde_json::Value| nf["instances"][0]["state"] == "up";
    let stats = daemon.await_stats("they do not come up", |stats| {
        stats["nfs"].as_array().is_some_and(|nfs| nfs.len() == 5 && nfs.iter().all(up))
    });
    let nfs = &stats["nfs"];
    let mut processes: Vec<u64> =
        nfs.as_array().expect("a list").iter().filter_map(|nf| nf["instances"][0]["pid"].as_u64()).collect();
    assert_eq!(processes.len(), 5, "{nfs:#}");
    processes.push(u64::from(daemon.started.as_ref().expect("it runs").id()));
    let used = || -> u64 { processes.iter().map(|pid| ticks(*pid)).sum() };
    // What starting costs is over soon.
    std::thread::sleep(Duration::from_secs(1));
    let (before, start) = (used(), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let share = (used() - before) as f64 / 100.0 / start.elapsed().as_secs_f64();
    eprintln!("a daemon with five idle NFs uses {:.2}% of a core", share * 100.0);
    // No figure to rely on, but far from a core: machines are noisy.
    assert!(share < 0.25, "{share}");
}

/// Time that a process and its threads used, in hundredths of a second.
fn ticks(pid: u64) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
}

#[test]
fn the_chain_shows_its_devices() {
    let daemon = Daemon::new(&["chain.toml"]);
    daemon.folder.write(
        "devices.toml",
        "links = [\"pair <-> nf\"]\n[ports]\na = { traffic = {}, discard = true }\n\
         b = { traffic = {}, discard = true }\n[device.pair]\nbridged = [\"a\", \"b\"]\nreceives = { a = \"udp\", b = \"all\" }\n\
         peels = [\"vlan\"]\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(0);\"\n",
    );
    daemon.ask(&["chain", "swap", "devices.toml"]).sound();
    let shown = daemon.ask(&["chain", "show"]).sound().text();
    let device = "device pair (bridged a, b), receives a: udp, peels vlan, sends to the opposite side\n";
    assert!(shown.contains(device), "{shown}");
}

/// A NAT goes from one form to the other while packets flow: its mappings stay, and no packet is lost.
#[test]
fn a_chain_changes_its_form_while_packets_flow() {
    let daemon = Daemon::of(
        "
links = [\"in -> [0]nat[1] -> out\"]
[ports]
in = { traffic = { flows = 200, size = \"64\", protocols = \"udp\" } }
out = { discard = true }
[nf.nat]
inline = '''
FromDevice(0) -> Strip(14) -> CheckIPHeader
    -> rw :: IPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1)
    -> c :: Counter -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(1);
rw[1] -> Discard;
'''
",
        &["chain.toml"],
    );
    let sent = |stats: &serde_json::Value| stats["sent"].as_u64().unwrap_or(0);
    let table = || {
        let text = daemon.ask(&["chain", "handler", "nat/rw.udp_table"]).sound().text();
        let mut lines: Vec<String> =
            text.lines().map(|line| line.rsplit_once(" exp").map_or(line, |(flow, _)| flow).into()).collect();
        lines.sort();
        lines
    };
    daemon.await_stats("packets", |stats| sent(stats) > 10_000);
    let before = table();
    assert_eq!(before.len(), 400, "two lines for each flow");
    for (form, fused) in [("fused", 1), ("modular", 0), ("fused", 1)] {
        let shown = daemon.ask(&["chain", "form", form]).sound().text();
        assert!(shown.contains(&format!("run as one function: {fused} of 1")), "{shown}");
        let now = sent(&daemon.json(&["stats", "--json"]));
        daemon.await_stats("more packets", |stats| sent(stats) > now + 10_000);
        assert_eq!(table(), before, "other mappings as {form}");
    }
    let status = daemon.json(&["chain", "show", "--json"]);
    assert_eq!((status["fused"].as_u64(), status["regions"].as_u64()), (Some(1), Some(1)));
    let count = |name: &str| -> u64 {
        daemon.ask(&["chain", "handler", name]).sound().text().trim().parse().expect("a number")
    };
    assert!(count("nat/c.count") > 30_000);
    let ended = daemon.ask(&["chain", "unload"]).sound().text();
    assert!(!ended.contains("NOT BALANCED") && ended.contains("dropped 0"), "{ended}");
}

#[test]
fn a_chain_without_fused_regions_has_one_mode() {
    let daemon = Daemon::new(&["chain.toml"]);
    let refused = daemon.ask(&["chain", "form", "fused"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("millrace synth"), "{}", refused.stderr);
}

/// An offset that wraps was a panic once, which ended the thread that owns the chain.
#[test]
fn a_number_that_wraps_is_a_mistake_and_the_chain_goes_on() {
    let mut daemon = Daemon::of(CHAIN, &["chain.toml"]);
    let inline =
        "FromDevice(0) -> c :: Classifier(18446744073709551615/00, -) -> ToDevice(1); c[1] -> Discard;";
    daemon.write("wraps.toml", &CHAIN.replace("FromDevice(0) -> c :: Counter -> ToDevice(1);", inline));
    let refused = daemon.ask(&["chain", "swap", "wraps.toml"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("behind the end of every frame"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("18446744073709551615/00"), "{}", refused.stderr);
    let shown = daemon.json(&["chain", "show", "--json"]);
    assert!(shown["version"] == 1 && shown["running"] == true, "{shown:#}");
    let out = |stats: &serde_json::Value| stats["sent"].as_u64().unwrap_or(0);
    let before = out(&daemon.json(&["stats", "--json"]));
    daemon.await_stats("it does not go on", |stats| out(stats) > before + 1000);
    assert_eq!(daemon.stop().code, Some(0));
}
