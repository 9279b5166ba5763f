//! Operations that a confined process cannot perform.

use crate::act::ON;
use crate::{attempt, lacks_root, run, usual};
use confine::{Confinement, Sockets};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;

/// An attempt that succeeds without confinement and fails with one of these errors under it.
fn is_refused_by(confinement: &Confinement, act: &str, on: &str, errors: &[i32]) {
    let free = attempt(act, &[(ON, on)]).status().expect("runs");
    assert_eq!(free.code(), Some(0), "{act} on {on} fails without confinement, too");
    let code = run(confinement, attempt(act, &[(ON, on)])).code();
    assert!(
        code.is_some_and(|code| errors.contains(&code)),
        "{act} on {on}: {code:?}, not one of {errors:?}"
    );
}

fn is_refused(act: &str, on: &str, errors: &[i32]) {
    is_refused_by(&usual(), act, on, errors);
}

/// Packet memory as the host shares it: inherited, with a mode that only the host's user may open.
fn memory() -> OwnedFd {
    let file = rustix::fs::memfd_create("packets", MemfdFlags::ALLOW_SEALING).expect("memory");
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).expect("mode");
    rustix::fs::ftruncate(&file, 1 << 16).expect("sized");
    file
}

#[test]
fn files_that_were_not_granted() {
    if lacks_root("files_that_were_not_granted") {
        return;
    }
    is_refused("read", "/etc/shadow", &[libc::EACCES]);
    // Readable by all users, so the user id is not the reason for the refusal.
    is_refused("read", "/proc/version", &[libc::EACCES]);
    let folder = tempfile::tempdir().expect("folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    is_refused("append", &path("new"), &[libc::EACCES]);
    fs::remove_file(path("new")).expect("the free attempt made it");
    fs::write(path("text"), "x").expect("written");
    fs::set_permissions(path("text"), fs::Permissions::from_mode(0o666)).expect("mode");
    is_refused("read", &path("text"), &[libc::EACCES]);
    // A grant for reading does not include writing.
    let reads = Confinement { reads: vec![folder.path().into()], ..usual() };
    assert_eq!(run(&reads, attempt("read", &[(ON, &path("text"))])).code(), Some(0));
    is_refused_by(&reads, "append", &path("text"), &[libc::EACCES]);
    // A grant of one file does not include the files beside it.
    let writes = Confinement { writes: vec![path("text").into()], ..usual() };
    assert_eq!(run(&writes, attempt("append", &[(ON, &path("text"))])).code(), Some(0));
    is_refused_by(&writes, "append", &path("other"), &[libc::EACCES]);
}

#[test]
fn files_of_the_superuser_even_as_one() {
    if lacks_root("files_of_the_superuser_even_as_one") {
        return;
    }
    is_refused_by(&Confinement::default(), "read", "/etc/shadow", &[libc::EACCES]);
}

#[test]
fn other_processes() {
    if lacks_root("other_processes") {
        return;
    }
    let this = std::process::id().to_string();
    is_refused("trace", &this, &[libc::EPERM]);
    is_refused("vm-read", &this, &[libc::EPERM]);
    // It does not see the process, and could not signal it otherwise.
    is_refused("signal", &this, &[libc::ESRCH]);
    is_refused_by(&Confinement { own_pids: false, ..usual() }, "signal", &this, &[libc::EPERM]);
    // As the same user: Landlock refuses it.
    is_refused_by(
        &Confinement { own_pids: false, ..Confinement::default() },
        "signal",
        &this,
        &[libc::EPERM],
    );
    is_refused("open", &format!("/proc/{this}/mem"), &[libc::EACCES]);
    is_refused_by(
        &Confinement { reads: vec!["/proc".into()], ..usual() },
        "read",
        &format!("/proc/{this}/environ"),
        &[libc::EACCES],
    );
    // As the same user: Landlock refuses it.
    let same =
        Confinement { reads: vec!["/proc".into()], writes: vec!["/proc".into()], ..Confinement::default() };
    is_refused_by(&same, "read", &format!("/proc/{this}/environ"), &[libc::EACCES]);
    is_refused_by(&same, "open", &format!("/proc/{this}/mem"), &[libc::EACCES]);
    let file = memory();
    is_refused("update", &format!("/proc/{this}/fd/{}", file.as_raw_fd()), &[libc::EACCES]);
    is_refused_by(&same, "update", &format!("/proc/{this}/fd/{}", file.as_raw_fd()), &[libc::EACCES]);
}

#[test]
fn memory_that_others_use() {
    if lacks_root("memory_that_others_use") {
        return;
    }
    let file = memory();
    let on = file.as_raw_fd().to_string();
    is_refused("punch", &on, &[libc::EPERM]);
    is_refused("remove", &on, &[libc::EPERM]);
    is_refused("seal", &on, &[libc::EPERM]);
    assert_eq!(run(&usual(), attempt("allocate", &[(ON, &on)])).code(), Some(0));
    // A descriptor for reading cannot be reopened for writing.
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let reader = rustix::fs::open(own.as_str(), OFlags::RDONLY, Mode::empty()).expect("opened anew");
    is_refused("update", &format!("/proc/self/fd/{}", reader.as_raw_fd()), &[libc::EACCES]);
}

#[test]
fn sockets_that_were_not_granted() {
    if lacks_root("sockets_that_were_not_granted") {
        return;
    }
    is_refused("inet", "", &[libc::EPERM]);
    is_refused("unix", "", &[libc::EPERM]);
    is_refused("datagrams", "", &[libc::EPERM]);
    is_refused_by(&Confinement { sockets: Sockets::Local, ..usual() }, "inet", "", &[libc::EPERM]);
    is_refused_by(&Confinement { sockets: Sockets::Network, ..usual() }, "packet", "", &[libc::EPERM]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let address = listener.local_addr().expect("has an address").to_string();
    is_refused("connect", &address, &[libc::EPERM]);
    let network = Confinement { sockets: Sockets::Network, ..usual() };
    assert_eq!(run(&network, attempt("connect", &[(ON, &address)])).code(), Some(0));
    assert_eq!(
        run(&Confinement { sockets: Sockets::Local, ..usual() }, attempt("unix", &[])).code(),
        Some(0)
    );
}

#[test]
fn rights_that_were_given_up() {
    if lacks_root("rights_that_were_given_up") {
        return;
    }
    is_refused("root", "", &[libc::EPERM]);
    is_refused("clone", "", &[libc::EPERM]);
    is_refused("outlive", "", &[libc::EPERM]);
    is_refused("capable", "", &[libc::EPERM]);
    // Also as the superuser.
    is_refused_by(&Confinement::default(), "capable", "", &[libc::EPERM]);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.maximum.is_none_or(|most| most >= 1 << 16) {
        is_refused("raise-limit", "", &[libc::EPERM]);
    }
    // After this error programs use the older call, whose flags a filter can read.
    assert_eq!(run(&usual(), attempt("clone3", &[])).code(), Some(libc::ENOSYS));
    // Also for calls that are newer than the list.
    assert_eq!(run(&usual(), attempt("call", &[(ON, "490")])).code(), Some(libc::ENOSYS));
}

#[test]
fn calls_that_reach_into_the_machine() {
    if lacks_root("calls_that_reach_into_the_machine") {
        return;
    }
    for (name, number) in [
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("pivot_root", libc::SYS_pivot_root),
        ("fsopen", libc::SYS_fsopen),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("keyctl", libc::SYS_keyctl),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("io_setup", libc::SYS_io_setup),
        ("init_module", libc::SYS_init_module),
        ("reboot", libc::SYS_reboot),
        ("kexec_load", libc::SYS_kexec_load),
        ("kcmp", libc::SYS_kcmp),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("process_madvise", libc::SYS_process_madvise),
        ("mbind", libc::SYS_mbind),
        ("shmget", libc::SYS_shmget),
        ("seccomp", libc::SYS_seccomp),
    ] {
        let number = number.to_string();
        let free = attempt("call", &[(ON, &number)]).status().expect("runs").code();
        // These need capabilities that a container's superuser may lack.
        let is_withheld = free == Some(libc::EPERM);
        let code = run(&usual(), attempt("call", &[(ON, &number)])).code();
        assert_eq!(code, Some(libc::EPERM), "{name}, which answers {free:?} outside");
        if is_withheld {
            eprintln!("SKIP: {name} is withheld from this program, too");
        }
    }
}

#[test]
fn more_than_its_limits() {
    if lacks_root("more_than_its_limits") {
        return;
    }
    // The kernel counts processes by user, and other tests have some of their own.
    let user = 100_000 + std::process::id();
    let limited = Confinement {
        user: Some((user, user)),
        memory_bytes: Some(64 << 20),
        processes: 12,
        ..Confinement::default()
    };
    let mut eats = limited.spawn(attempt("eat", &[(ON, "209715200")])).expect("starts");
    let status = crate::finish(&mut eats);
    if eats.applied().has(confine::Mechanism::Memory) {
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
        assert_eq!(eats.finding(), Some(&confine::Finding::OutOfMemory));
    } else {
        eprintln!("SKIP: no control groups that limit memory");
    }
    assert_eq!(run(&limited, attempt("eat", &[(ON, "20000000")])).code(), Some(0));
    assert_eq!(run(&limited, attempt("threads", &[(ON, "5")])).code(), Some(0));
    assert_eq!(run(&limited, attempt("threads", &[(ON, "30")])).code(), Some(libc::EAGAIN));
}
