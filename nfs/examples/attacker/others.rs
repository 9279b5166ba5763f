//! Attacks on other processes, and on the daemon's sockets.
#![expect(unsafe_code, reason = "attacks by system calls")]

use crate::{Attacker, check, tell};
use std::io::Error;
use std::os::unix::ffi::OsStrExt;

pub fn attack(name: &str, on: &str, _attacker: &mut Attacker) -> bool {
    match name {
        "reach-processes" => processes(on),
        "kill" => kill(on),
        "connect" => on.split_whitespace().for_each(connect),
        "open" => on.split_whitespace().for_each(open),
        "cores" => cores(),
        "look-around" => look_around(),
        _ => return false,
    }
    true
}

/// Counts the results.
fn sum(what: &str, answers: impl Iterator<Item = Result<(), Error>>) {
    let (mut worked, mut refused) = (0u64, std::collections::BTreeMap::<String, u64>::new());
    for answer in answers {
        match answer {
            Ok(()) => worked += 1,
            Err(error) => *refused.entry(error.to_string()).or_default() += 1,
        }
    }
    for (why, count) in refused {
        eprintln!("attack: {what}: refused: {why} ({count} times)");
    }
    if worked > 0 {
        eprintln!("attack: {what}: WORKED ({worked} times)");
    }
}

/// Process ids that may exist: those in the argument, and the first ones.
fn pids(on: &str) -> Vec<i32> {
    let named = on.split_whitespace().filter_map(|pid| pid.parse().ok());
    named.chain(2..4096).filter(|pid| *pid != std::process::id() as i32).collect()
}

/// Reads, writes and traces other processes, and takes their descriptors.
fn processes(on: &str) {
    let pids = pids(on);
    let each = |what: &str, act: fn(i32) -> Result<(), Error>| {
        sum(what, pids.iter().map(|pid| act(*pid)));
    };
    let open = |path: String| std::fs::OpenOptions::new().read(true).write(true).open(path).map(drop);
    sum("/proc/PID/mem", pids.iter().map(|pid| open(format!("/proc/{pid}/mem"))));
    sum("/proc/PID/fd", pids.iter().map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).map(drop)));
    let descriptors = pids.iter().flat_map(|pid| (3..16).map(move |fd| format!("/proc/{pid}/fd/{fd}")));
    sum("/proc/PID/fd/N", descriptors.map(open));
    sum("/proc/PID/environ", pids.iter().map(|pid| std::fs::read(format!("/proc/{pid}/environ")).map(drop)));
    // SAFETY: these calls affect other processes, and must be refused.
    each("ptrace", |pid| check(unsafe { libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0) }));
    // SAFETY: as above.
    each("ptrace seize", |pid| check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) }));
    each("process_vm_writev", |pid| {
        let mut word = 0u64;
        let part = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
        // SAFETY: as above; the buffers are this function's own.
        check(unsafe { libc::process_vm_writev(pid, &part, 1, &part, 1, 0) } as libc::c_long)
    });
    each("pidfd_getfd", |pid| {
        // SAFETY: as above.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        check(pidfd)?;
        // SAFETY: as above.
        check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, 3, 0) })
    });
}

/// Signals all processes.
fn kill(on: &str) {
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        // SAFETY: must be refused, or must find no process.
        sum("kill", pids(on).into_iter().map(|pid| check(unsafe { libc::kill(pid, signal) }.into())));
        // SAFETY: signals all processes that it may signal except itself.
        tell("kill everybody", check(unsafe { libc::kill(-1, signal) }.into()));
    }
    for pid in pids(on) {
        // SAFETY: must be refused.
        let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as u32, 19) };
        if answer == 0 {
            eprintln!("attack: setpriority of {pid}: WORKED");
        }
    }
}

/// Opens a file, for reading and for writing.
fn open(path: &str) {
    let name = path.rsplit('/').next().unwrap_or_default();
    tell(&format!("open {name}"), std::fs::File::open(path).map(drop));
    let write = std::fs::OpenOptions::new().write(true).open(path);
    tell(&format!("open {name} for writing"), write.map(drop));
}

/// Prints the cores that it may run on.
fn cores() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    eprintln!("attack: runs on cores {}", cores.unwrap_or("that nobody tells").trim());
}

/// Prints its view of a container: files, processes, the network, its name, its rights.
fn look_around() {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    eprintln!("attack: sees files {}", names("/").join(" "));
    let numbers = names("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    eprintln!("attack: sees processes {}", numbers.collect::<Vec<_>>().join(" "));
    let interfaces = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let interfaces = interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_string()));
    eprintln!("attack: sees interfaces {}", interfaces.collect::<Vec<_>>().join(" "));
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    eprintln!("attack: is at {}", name.trim());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| ["CapEff", "CapBnd", "NoNewPrivs", "Seccomp:"].iter().any(|key| line.starts_with(key)))
    {
        eprintln!("attack: has {}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let made = |path: &str| std::fs::File::create(path).map(drop);
    for path in ["/new", "/etc/new", "/dev/new", "/proc/sys/kernel/hostname"] {
        tell(&format!("write {path}"), made(path));
    }
    for path in ["/sys/kernel", "/run/millrace-nfs", "/etc/passwd", "/usr/bin/env", "/proc/1/root/etc/passwd"]
    {
        tell(&format!("see {path}"), std::fs::metadata(path).map(drop));
    }
    // SAFETY: a socket without a peer, and namespaces of its own.
    unsafe {
        tell("make a socket", check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into()));
        tell("make a namespace", check(libc::unshare(libc::CLONE_NEWUSER).into()));
        tell(
            "mount",
            check(
                libc::mount(c"none".as_ptr(), c"/dev".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null())
                    .into(),
            ),
        );
    }
}

/// Connects to a socket by its path, as a stream and by datagrams.
fn connect(path: &str) {
    let mut address: libc::sockaddr_un =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    for (to, from) in address.sun_path.iter_mut().zip(std::ffi::OsStr::new(path).as_bytes()) {
        *to = *from as libc::c_char;
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        // SAFETY: system calls on an own socket, with an address that lives.
        let answer = unsafe {
            let socket = libc::socket(libc::AF_UNIX, kind, 0);
            check(socket.into()).and_then(|()| {
                let size = size_of::<libc::sockaddr_un>() as u32;
                check(libc::connect(socket, (&raw const address).cast(), size).into())
            })
        };
        tell(&format!("connect to {name}"), answer);
    }
}
