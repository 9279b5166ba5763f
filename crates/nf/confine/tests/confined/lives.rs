//! The end of a confined process, after which none of its processes is left.

use crate::act::{self, ON};
use crate::{PATIENCE, attempt, finish, lacks_root, usual};
use confine::{Confined, Confinement};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared memory in which a process increments a counter.
fn counted() -> (OwnedFd, &'static AtomicU64) {
    let file = rustix::fs::memfd_create("counted", MemfdFlags::empty()).expect("memory");
    rustix::fs::ftruncate(&file, 4096).expect("sized");
    let counter = act::page(file.as_fd()).expect("mapped");
    (file, counter)
}

fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that no process increments the counter any more.
fn is_still(counter: &AtomicU64) {
    let before = counter.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(counter.load(Ordering::SeqCst), before, "somebody still writes");
}

fn pid(confined: &Confined) -> Pid {
    Pid::from_raw(confined.pid() as i32).expect("a number")
}

/// The two mechanisms that contain an NF's processes.
fn ways() -> [Confinement; 2] {
    [usual(), Confinement { own_pids: false, ..usual() }]
}

#[test]
fn a_killed_nf_is_gone_with_all_that_it_started() {
    if lacks_root("a_killed_nf_is_gone_with_all_that_it_started") {
        return;
    }
    for confinement in ways() {
        for _ in 0..10 {
            let (file, counter) = counted();
            let on = file.as_raw_fd().to_string();
            let mut confined = confinement.spawn(attempt("leave", &[(ON, &on)])).expect("starts");
            eventually("somebody counts", || counter.load(Ordering::SeqCst) > 0);
            assert_eq!(confined.try_wait().expect("waits"), None);
            // Another process kills it; the host only learns of the end.
            kill_process(pid(&confined), Signal::KILL).expect("killed");
            let mut status = None;
            eventually("gone", || {
                status = confined.try_wait().expect("waits");
                status.is_some()
            });
            is_still(counter);
            assert_eq!(status.and_then(|status| status.signal()), Some(libc::SIGKILL));
            // A second call returns the same status.
            assert_eq!(confined.try_wait().expect("waits"), status);
        }
    }
}

#[test]
fn an_nf_that_ends_is_gone_with_all_that_it_started() {
    if lacks_root("an_nf_that_ends_is_gone_with_all_that_it_started") {
        return;
    }
    for confinement in ways() {
        let (file, counter) = counted();
        let on = file.as_raw_fd().to_string();
        let mut confined = confinement.spawn(attempt("leave-and-go", &[(ON, &on)])).expect("starts");
        assert_eq!(finish(&mut confined).code(), Some(0));
        is_still(counter);
    }
}

#[test]
fn what_is_dropped_is_killed() {
    if lacks_root("what_is_dropped_is_killed") {
        return;
    }
    for confinement in ways() {
        let (file, counter) = counted();
        let on = file.as_raw_fd().to_string();
        let confined = confinement.spawn(attempt("leave", &[(ON, &on)])).expect("starts");
        eventually("somebody counts", || counter.load(Ordering::SeqCst) > 0);
        drop(confined);
        is_still(counter);
    }
    let prefix = format!("millrace-{}-", std::process::id());
    // Other tests of this program may have groups at the time; those are removed, too.
    eventually("groups are removed", || groups(&prefix).is_empty());
}

/// Control groups with this prefix.
fn groups(prefix: &str) -> Vec<String> {
    fn look(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    found.push(entry.path().display().to_string());
                }
                look(&entry.path(), prefix, found);
            }
        }
    }
    let mut found = vec![];
    look(Path::new("/sys/fs/cgroup"), prefix, &mut found);
    found
}

#[test]
fn waiting_ends_in_time() {
    let mut confined = Confinement::default().spawn(attempt("stay", &[])).expect("starts");
    let start = Instant::now();
    assert_eq!(confined.wait(Duration::from_millis(30)).expect("waits"), None);
    assert!(start.elapsed() >= Duration::from_millis(30));
    confined.kill_all().expect("killed");
    assert_eq!(finish(&mut confined).signal(), Some(libc::SIGKILL));
    // No process is left to be killed, and no other process is killed.
    confined.kill_all().expect("none to kill");
}

#[test]
fn it_outlives_the_thread_that_started_it() {
    let start = || Confinement::default().spawn(attempt("stay", &[])).expect("starts");
    let mut confined = std::thread::spawn(start).join().expect("ends");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(confined.try_wait().expect("waits"), None);
}

#[test]
fn it_runs_on_the_cores_of_the_thread_that_started_it() {
    let all = rustix::thread::sched_getaffinity(None).expect("known");
    let first = (0..1024).find(|cpu| all.is_set(*cpu)).expect("runs somewhere");
    let ran = std::thread::spawn(move || {
        let mut one = rustix::thread::CpuSet::new();
        one.set(first);
        rustix::thread::sched_setaffinity(None, &one).expect("pinned");
        let confined = Confinement::default().spawn(attempt("stay", &[])).expect("starts");
        rustix::thread::sched_getaffinity(Some(pid(&confined))).expect("known").count()
    });
    assert_eq!(ran.join().expect("ends"), 1);
}

#[test]
fn it_dies_with_the_host_and_leaves_no_group() {
    if lacks_root("it_dies_with_the_host_and_leaves_no_group") {
        return;
    }
    let (file, counter) = counted();
    let on = file.as_raw_fd().to_string();
    let mut host = attempt("host", &[(ON, &on)]);
    let mut host = host.stdout(Stdio::piped()).spawn().expect("starts");
    let lines = BufReader::new(host.stdout.take().expect("a pipe")).lines();
    let nf = lines.map_while(Result::ok).find_map(|line| line.split_once("nf ")?.1.parse::<u32>().ok());
    let nf = nf.expect("the host says its NF's number");
    eventually("somebody counts", || counter.load(Ordering::SeqCst) > 0);
    host.kill().expect("killed");
    host.wait().expect("waited for");
    eventually("the NF is gone", || !Path::new(&format!("/proc/{nf}")).exists());
    is_still(counter);
    // The next host removes what the killed one could not.
    let again = attempt("brief-host", &[]).status().expect("runs");
    assert!(again.success(), "{again}");
    assert_eq!(groups(&format!("millrace-{}-", host.id())), [""; 0]);
}
