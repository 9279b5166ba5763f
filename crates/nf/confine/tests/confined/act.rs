//! Attempts, each performed in a process of its own. Its exit status is 0 for success, otherwise the error
//! number.
#![expect(unsafe_code, reason = "makes system calls that a hostile program would")]

use confine::{Confinement, Mechanism};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The environment variable that names the attempt.
pub const ACT: &str = "CONFINE_ACT";
/// The object of the attempt: an inherited descriptor, a process, a path, or a number.
pub const ON: &str = "CONFINE_ON";

/// Starts the attempt; does nothing if none is named.
#[test]
fn act() {
    let Ok(name) = std::env::var(ACT) else { return };
    let on = std::env::var(ON).unwrap_or_default();
    let code = match perform(&name, &on) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or_else(|| panic!("{name}: {error}")),
    };
    std::process::exit(code);
}

fn call(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A system call by its number, with harmless arguments.
fn system_call(number: libc::c_long, first: i64, second: i64) -> io::Result<()> {
    // SAFETY: no address but null is among the arguments.
    call(unsafe { libc::syscall(number, first, second, 0i64, 0i64, 0i64, 0i64) }).map(drop)
}

fn inherited(on: &str) -> BorrowedFd<'static> {
    // SAFETY: the test left this descriptor open for the attempt, which does not close it.
    unsafe { BorrowedFd::borrow_raw(on.parse().expect("a descriptor")) }
}

/// The first page of a shared file.
pub fn page(file: BorrowedFd<'_>) -> io::Result<&'static AtomicU64> {
    // SAFETY: a new mapping, which is never unmapped.
    let memory = unsafe {
        mmap(std::ptr::null_mut(), 4096, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
    };
    // SAFETY: aligned, as long as the program runs, and only ever used as an atomic number.
    Ok(unsafe { AtomicU64::from_ptr(memory.cast()) })
}

/// Forks a process without a parent in this program: its parent ends, and it has a session of its own.
fn forget(work: impl FnOnce()) -> io::Result<()> {
    // SAFETY: no other thread of this program is active.
    match call(i64::from(unsafe { libc::fork() }))? {
        0 => {
            // SAFETY: no arguments.
            unsafe { libc::setsid() };
            // SAFETY: as above.
            match unsafe { libc::fork() } {
                0 => work(),
                // SAFETY: ends at once.
                _ => unsafe { libc::_exit(0) },
            }
        }
        child => {
            // SAFETY: waits for a child of this program; the kernel writes nothing.
            unsafe { libc::waitpid(child as libc::pid_t, std::ptr::null_mut(), 0) };
        }
    }
    Ok(())
}

/// Counts for longer than any test waits; not for ever, so that a failed test leaves no process behind for
/// good.
fn count(counter: &AtomicU64) {
    let end = Instant::now() + 2 * crate::PATIENCE;
    while Instant::now() < end {
        counter.fetch_add(1, Ordering::SeqCst);
    }
    std::process::exit(0);
}

fn perform(name: &str, on: &str) -> io::Result<()> {
    let number = || on.parse::<i64>().expect("a number");
    match name {
        "open" => File::open(on).map(drop),
        "read" => File::open(on)?.read(&mut [0]).map(drop),
        "append" => OpenOptions::new().append(true).create(true).open(on)?.write_all(b"x"),
        "update" => OpenOptions::new().write(true).open(on).map(drop),
        // PTRACE_SEIZE does not stop the traced process.
        "trace" => system_call(libc::SYS_ptrace, 0x4206, number()),
        "vm-read" => {
            let mut byte = 0u8;
            let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            // The other process runs the same program. Any of its bytes will do, so a fault is a success,
            // too.
            let there = libc::iovec { iov_base: perform as fn(_, _) -> _ as *mut _, iov_len: 1 };
            // SAFETY: one byte is written here, into a buffer that has room for it.
            let read =
                call(unsafe { libc::process_vm_readv(number() as i32, &here, 1, &there, 1, 0) } as i64);
            match read {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
                read => read.map(drop),
            }
        }
        "signal" => system_call(libc::SYS_kill, number(), 0),
        "inet" => system_call(libc::SYS_socket, libc::AF_INET.into(), libc::SOCK_STREAM.into()),
        "unix" => system_call(libc::SYS_socket, libc::AF_UNIX.into(), libc::SOCK_STREAM.into()),
        "packet" => system_call(libc::SYS_socket, libc::AF_PACKET.into(), libc::SOCK_RAW.into()),
        "connect" => std::net::TcpStream::connect(on).map(drop),
        "datagrams" => UnixDatagram::pair().map(drop),
        "punch" => {
            let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            Ok(rustix::fs::fallocate(inherited(on), flags, 0, 4096)?)
        }
        "allocate" => Ok(rustix::fs::fallocate(inherited(on), rustix::fs::FallocateFlags::empty(), 0, 4096)?),
        "remove" => {
            let page: *const AtomicU64 = page(inherited(on))?;
            // SAFETY: a mapping of this program; the call may change its contents.
            call(i64::from(unsafe { libc::madvise(page as *mut _, 4096, libc::MADV_REMOVE) })).map(drop)
        }
        "seal" => Ok(rustix::fs::fcntl_add_seals(inherited(on), rustix::fs::SealFlags::FUTURE_WRITE)?),
        "outlive" => system_call(libc::SYS_prctl, libc::PR_SET_PDEATHSIG.into(), 0),
        "root" => system_call(libc::SYS_setresuid, 0, 0),
        "clone" => {
            // A new namespace and a process that ends at once.
            let flags = i64::from(libc::CLONE_NEWUTS | libc::SIGCHLD);
            // SAFETY: memory is not shared, so the child has a copy of this stack.
            match call(unsafe { libc::syscall(libc::SYS_clone, flags, 0i64, 0i64, 0i64, 0i64) })? {
                // SAFETY: ends at once.
                0 => unsafe { libc::_exit(0) },
                _ => Ok(()),
            }
        }
        "clone3" => system_call(libc::SYS_clone3, 0, 0),
        "call" => system_call(number(), -1, -1),
        "capable" => {
            let sets = rustix::thread::capabilities(None)?;
            let none = sets.effective.is_empty() && sets.permitted.is_empty() && sets.inheritable.is_empty();
            if none { Err(io::Error::from_raw_os_error(libc::EPERM)) } else { Ok(()) }
        }
        "raise-limit" => {
            let limit = rustix::process::Rlimit { current: Some(1 << 16), maximum: Some(1 << 16) };
            Ok(rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?)
        }
        "fork" => Command::new("/bin/true").status().map(drop),
        "threads" => {
            let started: io::Result<Vec<_>> = (0..number())
                .map(|_| std::thread::Builder::new().spawn(|| std::thread::sleep(Duration::from_millis(300))))
                .collect();
            started.map(drop)
        }
        "eat" => {
            // Limits of control groups of version 1 are set some milliseconds after the start.
            std::thread::sleep(Duration::from_millis(200));
            let eaten = std::hint::black_box(vec![1u8; number() as usize]);
            if eaten[eaten.len() / 2] == 1 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
        }
        "work" => work(on),
        "receive" => receive(),
        "stay" => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        // Leaves a process behind that writes to shared memory, and stays or ends.
        "leave" | "leave-and-go" => {
            let counter = page(inherited(on))?;
            forget(|| count(counter))?;
            if name == "leave" { perform("stay", on) } else { Ok(()) }
        }
        "host" => host(on),
        "brief-host" => {
            crate::run(&crate::usual(), Command::new("/bin/true"));
            Ok(())
        }
        "plain-user" => plain_user(),
        other => panic!("no attempt {other}"),
    }
}

/// Operations of ordinary programs. `on` is a writable directory.
fn work(on: &str) -> io::Result<()> {
    let sums: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64).map(|n| scope.spawn(move || (0..1000 * n).sum())).collect();
        threads.into_iter().map(|thread| thread.join().expect("sums")).collect()
    });
    assert_eq!(sums[1], 499_500);
    let many = std::hint::black_box(vec![7u8; 64 << 20]);
    assert_eq!(many[1 << 20], 7);
    std::thread::sleep(Duration::from_millis(2));
    let libraries = std::fs::read_dir("/usr/lib")?.count();
    assert!(libraries > 0);
    assert!(std::fs::read_to_string("/etc/passwd")?.contains("root"));
    File::open("/dev/urandom")?.read_exact(&mut [0; 8])?;
    File::create("/dev/null")?.write_all(b"nothing")?;
    let memory = rustix::fs::memfd_create("work", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&memory, 4096)?;
    page(rustix::fd::AsFd::as_fd(&memory))?.store(1, Ordering::SeqCst);
    let (mut one, mut other) = UnixStream::pair()?;
    one.write_all(b"hello")?;
    other.read_exact(&mut [0; 5])?;
    let path = std::path::Path::new(on);
    std::fs::write(path.join("a"), b"text")?;
    std::fs::create_dir(path.join("folder"))?;
    std::fs::rename(path.join("a"), path.join("folder/b"))?;
    assert_eq!(std::fs::read(path.join("folder/b"))?, b"text");
    std::fs::remove_dir_all(path.join("folder"))?;
    let output = Command::new("sh").args(["-c", "echo a b | tr a c; ls /usr | sort | wc -l"]).output()?;
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.starts_with(b"c b\n"), "{output:?}");
    // SAFETY: a signal to itself, for which there is a handler that does nothing.
    unsafe {
        extern "C" fn ignore(_: libc::c_int) {}
        libc::signal(libc::SIGUSR1, ignore as extern "C" fn(libc::c_int) as libc::sighandler_t);
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
    Ok(())
}

/// Receives shared memory over its standard input, which is a UNIX socket, and counts in it.
fn receive() -> io::Result<()> {
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0u64; 8];
    // SAFETY: zeroes are an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
    // SAFETY: all memory that the message points to lives for the call, with the sizes given.
    call(unsafe { libc::recvmsg(0, &raw mut message, 0) } as i64)?;
    // SAFETY: the kernel filled the message in; the first of its control messages is a descriptor, which this
    // process owns now.
    let memory = unsafe {
        let note = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!note.is_null(), "no descriptor came");
        <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(libc::CMSG_DATA(note).cast::<i32>().read_unaligned())
    };
    page(rustix::fd::AsFd::as_fd(&memory))?.store(77, Ordering::SeqCst);
    Ok(())
}

/// Sends a descriptor over a socket.
pub fn send(socket: &UnixStream, file: BorrowedFd<'_>) {
    let mut part = libc::iovec { iov_base: c"x".as_ptr() as *mut _, iov_len: 1 };
    let mut control = [0u64; 8];
    // SAFETY: zeroes are an empty message; the memory that it is set to point to lives for the call, and the
    // control buffer has room for a descriptor.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as usize;
        let note = libc::CMSG_FIRSTHDR(&raw const message);
        (*note).cmsg_level = libc::SOL_SOCKET;
        (*note).cmsg_type = libc::SCM_RIGHTS;
        (*note).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
        libc::CMSG_DATA(note).cast::<i32>().write_unaligned(file.as_raw_fd());
        call(libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) as i64).expect("sent");
    }
}

/// A host with one NF, which leaves a process behind; prints the NF's process id and stays.
fn host(on: &str) -> io::Result<()> {
    let nf = crate::usual().spawn(crate::attempt("leave", &[(ON, on)])).expect("starts");
    println!("nf {}", nf.pid());
    perform("stay", on)
}

/// A host of an ordinary user: it confines as far as possible, and prints how far.
fn plain_user() -> io::Result<()> {
    let confinement = Confinement { user: Some((1, 1)), ..Confinement::default() };
    let confined = confinement.spawn(crate::attempt("stay", &[])).expect("starts");
    let applied = confined.applied();
    let missing: Vec<_> = applied.missing().map(ToString::to_string).collect();
    println!("{missing:#?}");
    assert!(
        missing
            .iter()
            .any(|text| text.starts_with("user id: not enforced: this program does not run as root"))
    );
    assert!(applied.has(Mechanism::SystemCalls) && applied.has(Mechanism::Descendants));
    let confined_text = format!("{applied:?}");
    drop(confined);
    assert_eq!(crate::run(&confinement, crate::attempt("threads", &[(ON, "3")])).code(), Some(0));
    let forks = crate::run(&confinement, crate::attempt("fork", &[])).code();
    // Possible if a control group can contain and kill them; otherwise refused.
    assert!([Some(0), Some(libc::EPERM)].contains(&forks), "{forks:?}");
    let says_none = confined_text.contains("it can make none");
    assert_eq!(forks == Some(libc::EPERM), says_none, "{confined_text}");
    Ok(())
}
