//! Ends of a container: of the first process inside, of the runtime, by the runtime's own command, of the
//! host.

use crate::run::millrace;
use crate::{keys, runtimes, shipped_chain};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Daemon {
    folder: TempDir,
    pub child: Child,
}

impl Daemon {
    fn start(keys: &str) -> Daemon {
        Daemon::with(&shipped_chain(keys))
    }

    /// A daemon with a chain of one NF.
    pub fn with(chain: &str) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
        let mut command = Command::new(millrace());
        command.args(["daemon", "chain.toml", "--at", "at"]).current_dir(folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let daemon = Daemon { folder, child };
        daemon.await_pid(None);
        daemon
    }

    pub fn ask(&self, words: &[&str]) -> serde_json::Value {
        let mut command = Command::new(millrace());
        command.args(words).args(["--json", "--at", "at"]).current_dir(self.folder.path());
        serde_json::from_slice(&command.output().expect("it runs").stdout).unwrap_or_default()
    }

    pub fn tell(&self, words: &[&str]) {
        let mut command = Command::new(millrace());
        let output = command
            .args(words)
            .args(["--at", "at"])
            .current_dir(self.folder.path())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Ends the chain; its packet accounting balances.
    pub fn unload(&self) {
        let mut command = Command::new(millrace());
        let output = command.args(["chain", "unload", "--at", "at"]).current_dir(self.folder.path()).output();
        let told = String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned();
        let balance = told.lines().find(|line| line.starts_with("in ")).unwrap_or_else(|| panic!("{told}"));
        let number =
            |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>();
        let sum = |side: &str| side.split(" + ").map(|part| number(part).expect("a number")).sum::<u64>();
        let (came, went) = balance.split_once(" = ").expect("both sides");
        assert!(sum(came) == sum(went) && sum(came) > 1_000, "{told}");
    }

    /// Waits for a process of the NF other than `but`; returns its id.
    pub fn await_pid(&self, but: Option<i32>) -> i32 {
        let end = Instant::now() + PATIENCE;
        loop {
            let nfs = self.ask(&["nf", "list"]);
            let instance = &nfs["nfs"][0]["instances"][0];
            let pid = instance["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
            match pid.filter(|pid| instance["state"] == "up" && Some(*pid) != but) {
                Some(pid) => return pid,
                None => assert!(Instant::now() < end, "it does not come up: {nfs:#}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that packets pass the NF.
    pub fn assert_alive(&self) {
        let sent = || self.ask(&["stats"])["sent"].as_u64().unwrap_or(0);
        let (before, end) = (sent(), Instant::now() + PATIENCE);
        while sent() < before + 1_000 {
            assert!(Instant::now() < end, "no packets get through");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it runs");
}

fn field(pid: i32, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let found = status.lines().find_map(|line| line.strip_prefix(key));
    found.unwrap_or_default().trim().to_string()
}

/// Whether a process runs.
pub fn lives(pid: i32) -> bool {
    !["", "Z (zombie)", "X (dead)"].contains(&field(pid, "State:").as_str())
}

/// The runtime that is the parent of a container's first process.
fn runtime_of(pid: i32) -> i32 {
    field(pid, "PPid:").parse().expect("a parent")
}

/// The directory and the lock file of a host.
fn folders(host: u32) -> Vec<PathBuf> {
    let all =
        std::fs::read_dir("/run/millrace-nfs").into_iter().flatten().flatten().map(|entry| entry.path());
    let of = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{host}-")))
    };
    all.filter(of).collect()
}

/// The number of control groups of a host's containers.
fn groups(host: u32) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let trees = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        words[2].starts_with("cgroup").then(|| PathBuf::from(words[1]))
    });
    let names = trees.flat_map(|tree| std::fs::read_dir(tree).into_iter().flatten().flatten());
    names
        .filter(|entry| {
            entry.file_name().to_string_lossy().starts_with(&format!("container-of-millrace-{host}-"))
        })
        .count()
}

/// Checks that all of it is removed, at once or soon.
#[track_caller]
fn assert_nothing_left(host: u32) {
    let end = Instant::now() + Duration::from_secs(5);
    while (folders(host).len(), groups(host)) != (0, 0) {
        assert!(Instant::now() < end, "{:?} and {} control groups are left", folders(host), groups(host));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn whatever_is_killed_the_nf_comes_back_and_the_books_balance() {
    for runtime in runtimes("whatever_is_killed_the_nf_comes_back_and_the_books_balance") {
        let daemon = Daemon::start(&keys(runtime));
        daemon.assert_alive();
        // Kill its first process.
        let first = daemon.await_pid(None);
        kill(first);
        let second = daemon.await_pid(Some(first));
        daemon.assert_alive();
        // Kill its runtime: the processes inside end with it.
        kill(runtime_of(second));
        let third = daemon.await_pid(Some(second));
        assert_ne!(field(second, "State:").chars().next(), Some('R'));
        daemon.assert_alive();
        // End it by the runtime's own command, inside the enclosure, as the guide describes.
        let state = folders(daemon.child.id()).into_iter().find(|path| path.is_dir()).expect("a folder");
        let name =
            std::fs::read_dir(state.join("state")).expect("state").flatten().next().expect("one").file_name();
        let mut command = Command::new("nsenter");
        command.args(["--target", &runtime_of(third).to_string(), "--pid", "--mount", runtime, "--root"]);
        // The command may be killed with the container, because it is inside, too.
        let _ =
            command.arg(state.join("state")).arg("kill").arg(&name).arg("KILL").output().expect("it runs");
        let fourth = daemon.await_pid(Some(third));
        daemon.assert_alive();
        // A command outside sees nothing of it and has no effect.
        let state = folders(daemon.child.id()).into_iter().find(|path| path.is_dir()).expect("a folder");
        let name =
            std::fs::read_dir(state.join("state")).expect("state").flatten().next().expect("one").file_name();
        let mut command = Command::new(runtime);
        let _ = command.arg("--root").arg(state.join("state")).arg("kill").arg(&name).arg("KILL").output();
        assert_eq!(daemon.await_pid(None), fourth);
        daemon.assert_alive();
        // A stop removes all of it; a start creates it again.
        daemon.tell(&["nf", "stop", "nf"]);
        assert_nothing_left(daemon.child.id());
        daemon.tell(&["nf", "start", "nf"]);
        daemon.await_pid(Some(fourth));
        daemon.unload();
        assert_nothing_left(daemon.child.id());
    }
}

#[test]
fn containers_end_with_a_host_that_is_killed_and_the_next_one_tidies_up() {
    for runtime in runtimes("containers_end_with_a_host_that_is_killed_and_the_next_one_tidies_up") {
        let mut daemon = Daemon::start(&keys(runtime));
        let (inside, host) = (daemon.await_pid(None), daemon.child.id());
        let runtime_pid = runtime_of(inside);
        // While it lives: once it is killed, another test's host may tidy up.
        assert!(!folders(host).is_empty());
        daemon.child.kill().expect("it runs");
        daemon.child.wait().expect("a child");
        let end = Instant::now() + PATIENCE;
        while lives(inside) || lives(runtime_pid) {
            assert!(Instant::now() < end, "they outlive their host");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The next host is any that starts a container.
        let next = Daemon::start(&keys(runtime));
        assert_nothing_left(host);
        next.assert_alive();
    }
}
