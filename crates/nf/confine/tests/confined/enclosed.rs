//! A process in an enclosure keeps the host's rights, and leaves no process behind.

use crate::{finish, lacks_root};
use confine::{Access, Confined, Enclosure};
use rustix::process::{Pid, test_kill_process};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A shell in an enclosure.
fn shell(enclosure: Enclosure, script: &str) -> Confined {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    enclosure.spawn(command).expect("it starts")
}

fn output(mut confined: Confined) -> String {
    let text = std::io::read_to_string(confined.stdout.take().expect("a pipe")).expect("text");
    finish(&mut confined);
    text
}

#[test]
fn what_is_bound_is_seen_inside_only() {
    if lacks_root("what_is_bound_is_seen_inside_only") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [source, read, write, execute] =
        ["source", "read", "write", "execute"].map(|name| folder.path().join(name));
    std::fs::write(&source, "#!/bin/sh\necho ran\n").expect("written");
    std::fs::set_permissions(&source, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let mut enclosure = Enclosure::new();
    let ways = [(&read, Access::Read), (&write, Access::Write), (&execute, Access::Execute)];
    for (place, access) in ways {
        std::fs::write(place, "").expect("written");
        enclosure.bind(&source, place, access).expect("a path");
    }
    let script = format!(
        "cd {} && cat read && ./execute; ./read || echo not run; (echo more >>read) || echo not written; \
         (echo more >>execute) || echo not written; echo '# more' >>write && cat read; cat /proc/self/status | grep NSpid",
        folder.path().display()
    );
    let told = output(shell(enclosure, &script));
    let lines: Vec<&str> = told.lines().collect();
    let head = [
        "#!/bin/sh",
        "echo ran",
        "ran",
        "not run",
        "not written",
        "not written",
        "#!/bin/sh",
        "echo ran",
        "# more",
    ];
    assert_eq!(lines[..9], head, "{told}");
    // Its /proc shows only its own processes.
    assert!(lines[9].starts_with("NSpid:") && lines[9].split_whitespace().count() == 2, "{told}");
    assert_eq!(std::fs::read_to_string(&read).expect("there"), "");
    assert!(std::fs::read_to_string(&source).expect("there").ends_with("# more\n"));
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounts.contains(&folder.path().display().to_string()));
}

#[test]
fn what_it_starts_ends_with_it_in_namespaces_of_its_own_too() {
    if lacks_root("what_it_starts_ends_with_it_in_namespaces_of_its_own_too") {
        return;
    }
    // Like a runtime: another PID namespace, in another session.
    let script = "setsid unshare --pid --fork --kill-child sh -c 'sleep 1000 & exec sleep 1001' & echo up; exec sleep 1002";
    let mut confined = shell(Enclosure::new(), script);
    let pid = confined.pid();
    let inside = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/root/proc/1/ns/pid")).ok();
        let own = namespace(pid);
        numbers.filter(|other| own.is_some() && namespace(*other) == own).collect::<Vec<_>>()
    };
    let end = Instant::now() + Duration::from_secs(20);
    let mut found = vec![];
    while found.len() < 4 {
        found = inside();
        assert!(Instant::now() < end, "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    confined.kill_all().expect("killed");
    finish(&mut confined);
    // At once: the end of the first process implies it.
    for pid in found {
        let raw = Pid::from_raw(pid as i32).expect("a number");
        assert!(test_kill_process(raw).is_err(), "{pid} is still there");
    }
}
