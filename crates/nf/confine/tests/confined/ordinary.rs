//! Operations that a confined process can perform, and reports to the host.

use crate::act::ON;
use crate::{act, attempt, finish, lacks_root, run, usual};
use confine::{Confinement, Error, Mechanism};
use std::fs;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

#[test]
fn ordinary_programs_work() {
    if lacks_root("ordinary_programs_work") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let on = folder.path().to_str().expect("text");
    let in_others_namespace = Confinement { own_pids: false, ..usual() };
    let reads = Confinement { reads: vec!["/etc/passwd".into()], ..Confinement::default() };
    for confinement in [usual(), in_others_namespace, reads] {
        let confinement = Confinement { writes: vec![folder.path().into()], ..confinement };
        let status = run(&confinement, attempt("work", &[(ON, on)]));
        assert!(status.success(), "{confinement:?}: {status}");
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "id -u; id -G; exit 7"]).stdout(Stdio::piped());
    let mut confined = usual().spawn(shell).expect("starts");
    let mut text = String::new();
    confined.stdout.take().expect("a pipe").read_to_string(&mut text).expect("read");
    assert_eq!(text, format!("{0}\n{0}\n", crate::USER));
    assert_eq!(finish(&mut confined).code(), Some(7));
    assert_eq!(confined.finding(), None);
}

#[test]
fn memory_comes_over_a_socket() {
    if lacks_root("memory_comes_over_a_socket") {
        return;
    }
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let memory = rustix::fs::memfd_create("packets", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&memory, 4096).expect("sized");
    let mut command = attempt("receive", &[]);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    let mut confined = usual().spawn(command).expect("starts");
    act::send(&ours, memory.as_fd());
    assert_eq!(finish(&mut confined).code(), Some(0));
    assert_eq!(act::page(memory.as_fd()).expect("mapped").load(Ordering::SeqCst), 77);
}

#[test]
fn everything_is_enforced_for_root_and_said() {
    if lacks_root("everything_is_enforced_for_root_and_said") {
        return;
    }
    let confined = usual().spawn(Command::new("/bin/true")).expect("starts");
    let applied = confined.applied();
    for mechanism in [
        Mechanism::UserId,
        Mechanism::Privileges,
        Mechanism::SystemCalls,
        Mechanism::Sockets,
        Mechanism::Processes,
        Mechanism::Limits,
        Mechanism::Descendants,
        Mechanism::HostDeath,
    ] {
        assert!(applied.has(mechanism), "{applied:#?}");
    }
    assert_eq!(applied.measures().len(), 12);
    for measure in applied.missing() {
        eprintln!("SKIP: {measure}");
    }
    let superuser = Confinement::default().spawn(Command::new("/bin/true")).expect("starts");
    let missing: Vec<_> = superuser.applied().missing().map(ToString::to_string).collect();
    let text = "user id: not enforced: none was given: it runs as the user of this program";
    assert!(missing.contains(&text.to_owned()), "{missing:?}");
}

#[test]
fn an_ordinary_user_confines_as_far_as_that_goes() {
    let mut host = attempt("plain-user", &[]);
    if rustix::process::geteuid().is_root() {
        host.uid(65_534).gid(65_534);
    }
    let output = host.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_cannot_start_says_why() {
    let missing = Confinement::default().spawn(Command::new("/no/such/program")).expect_err("is not there");
    assert!(matches!(missing, Error::Exec { .. }), "{missing:?}");
    assert!(missing.to_string().starts_with("cannot run /no/such/program: No such file"), "{missing}");
    let grants = Confinement { reads: vec!["/no/such".into()], ..Confinement::default() };
    let grant = grants.spawn(Command::new("/bin/true")).expect_err("no such path");
    assert!(grant.to_string().starts_with("cannot grant /no/such: No such file"), "{grant}");
    // Not a signal of the caller's choice.
    let aborts = run(&Confinement { own_pids: false, ..Confinement::default() }, {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -ABRT $$"]);
        command
    });
    assert_eq!(aborts.signal(), Some(libc::SIGABRT));
    if lacks_root("what_cannot_start_says_why") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("mode");
    let program = folder.path().join("true");
    fs::copy("/bin/true", &program).expect("copied");
    let closed = usual().spawn(Command::new(&program)).expect_err("its folder is root's");
    let text = closed.to_string();
    assert!(text.contains("as user") && text.contains("folders above"), "{text}");
}
