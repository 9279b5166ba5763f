//! Attacks by messages on the socket, and by its standard output and error.
#![expect(unsafe_code, reason = "attacks by system calls")]

use crate::{Attacker, check, tell};
use nf::Merge;
use nf::handler::Text;
use nf::message::{FromNf, Hello, NextHop, PROTOCOL, ToNf};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant};

pub fn attack(name: &str, attacker: &mut Attacker) -> bool {
    let mut number = 0u64;
    let mut count = || {
        number += 1;
        number
    };
    let mut hello = Hello { protocol: PROTOCOL, kind: "again".into(), ..Hello::default() };
    hello.counters = (0..500).map(|counter| format!("counter {counter}\nforged 7")).collect();
    match name {
        "flood-findings" => {
            flood(attacker, |_| FromNf::Finding { text: format!("\x1b[2J finding {}", count()) })
        }
        "flood-failures" => flood(attacker, |_| FromNf::Failed { why: format!("failure {}", count()) }),
        "flood-ready" => flood(attacker, |_| FromNf::Ready),
        "flood-hellos" => flood(attacker, |_| FromNf::Hello(hello.clone())),
        "over" => flood(attacker, |_| FromNf::Over),
        "few-messages" => {
            // As often as an NF may send: this is no flood.
            for _ in 0..20 {
                let _ = attacker
                    .attached
                    .socket
                    .send(&FromNf::Finding { text: format!("number {}", count()) }, &[]);
                attacker.behave(Duration::from_millis(20));
            }
        }
        "ask-neighbours" => ask_neighbours(attacker),
        "garbage" => garbage(attacker, b"{\"say\":\"everything\"} and more"),
        "nesting" => garbage(attacker, &[b'['; 30_000]),
        "nothing" => garbage(attacker, b""),
        "long" => garbage(attacker, &[b'"'; 200_000]),
        "descriptors" => descriptors(attacker),
        "answers" => answers(attacker),
        "stdout" => output(1),
        "stderr" => output(2),
        "spoil-stderr" => spoil(),
        "hang-up" => {
            // SAFETY: the socket's own descriptors; no other code uses them any more.
            unsafe { libc::close(0) };
            // SAFETY: as above.
            unsafe { libc::shutdown(attacker.attached.socket.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
            loop {
                attacker.work();
            }
        }
        _ => return false,
    }
    true
}

/// Handlers with wrong answers.
pub const TRAPS: [&str; 9] =
    ["never", "others", "too-long", "no-file", "device", "pipe", "no-text", "terminal", "refuses"];

/// A memory file of the kind that a confined NF may create.
fn in_memory(bytes: &[u8]) -> Option<rustix::fd::OwnedFd> {
    let file = rustix::fs::memfd_create("text", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    rustix::io::write(&file, bytes).ok().map(|_| file)
}

/// Answers calls of handlers.
fn answers(attacker: &mut Attacker) {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        attacker.work();
        let socket = &attacker.attached.socket;
        let (call, handler) = match socket.receive::<ToNf>(Duration::ZERO) {
            Ok(Some((ToNf::Call { call, handler, .. }, _))) => (call, handler),
            Ok(Some((ToNf::Stop, _))) | Err(_) => std::process::exit(0),
            Ok(_) => continue,
        };
        let answer = |text: Text, files: &[BorrowedFd<'_>]| {
            let _ = socket.send(&FromNf::Answer { call, text, merge: Merge::Sum }, files);
        };
        let here = |text: &str| Text::Here(text.into());
        match handler.as_str() {
            "others" => {
                for call in [0, call + 1, call + 7, u64::MAX] {
                    let text = here("forged");
                    let _ = socket.send(&FromNf::Answer { call, text, merge: Merge::First }, &[]);
                }
            }
            "too-long" => answer(Text::Beside(usize::MAX), &[]),
            "no-file" => answer(Text::Beside(5), &[]),
            "device" => {
                let zero = std::fs::File::open("/dev/zero");
                answer(Text::Beside(5), &zero.iter().map(AsFd::as_fd).collect::<Vec<_>>());
            }
            "pipe" => {
                let Ok((read, _write)) = std::io::pipe() else { continue };
                answer(Text::Beside(5), &[read.as_fd()]);
                // The file stays open while the host may read it.
                std::mem::forget(_write);
            }
            "no-text" => {
                let file = in_memory(&[0xff; 6000]);
                answer(Text::Beside(6000), &file.iter().map(AsFd::as_fd).collect::<Vec<_>>());
            }
            "terminal" => {
                let merge = Merge::First;
                let _ = socket.send(&FromNf::Answer { call, text: here("a\x1b[2J\tb\nc\r"), merge }, &[]);
            }
            "refuses" => {
                let why = "\x1b[31mno ".repeat(2000);
                let _ = socket.send(&FromNf::Refusal { call, why }, &[]);
            }
            _ => {}
        }
    }
}

/// Sends messages as fast as the host receives them, and passes packets meanwhile.
fn flood(attacker: &mut Attacker, mut what: impl FnMut(&mut Attacker) -> FromNf) {
    loop {
        for _ in 0..256 {
            let message = what(attacker);
            let _ = attacker.attached.socket.send(&message, &[]);
        }
        attacker.work();
    }
}

/// Requests neighbours for as many addresses as possible, as often as is no flood; and withdraws requests to
/// make others.
fn ask_neighbours(attacker: &mut Attacker) {
    let end = Instant::now() + Duration::from_secs(2);
    let mut next = 0x0a00_0002u32;
    while Instant::now() < end {
        // The next hops of its packets, and now and then others.
        let hops: Vec<NextHop> = (next..next + 64)
            .map(|number| NextHop {
                interface: if number.is_multiple_of(8) { 7 } else { 1 },
                address: IpAddr::from(number.to_be_bytes()),
            })
            .collect();
        next += 64;
        let _ = attacker.attached.socket.send(&FromNf::Resolve { hops: hops.clone() }, &[]);
        if (next / 64).is_multiple_of(4) {
            let _ = attacker.attached.socket.send(&FromNf::Forget { hops }, &[]);
        }
        attacker.behave(Duration::from_millis(4));
    }
}

/// Sends bytes that are no message.
fn garbage(attacker: &mut Attacker, bytes: &[u8]) {
    let socket = attacker.attached.socket.as_fd().as_raw_fd();
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        // SAFETY: reads the bytes that it is given.
        let sent = unsafe {
            libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        };
        if sent < 0 {
            attacker.work();
        }
    }
}

/// Sends messages with as many descriptors as possible.
fn descriptors(attacker: &mut Attacker) {
    let socket = attacker.attached.socket.as_fd().as_raw_fd();
    let files: Vec<std::fs::File> = (0..250).filter_map(|_| std::fs::File::open("/dev/null").ok()).collect();
    let numbers: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let bytes = size_of_val(numbers.as_slice());
    let mut text = *b"{\"say\":\"ready\"}";
    loop {
        let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
        let mut control = vec![0u64; 256];
        // SAFETY: a message in this function's own memory, with the layout of the C library.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(bytes as u32) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(bytes as u32) as usize;
            std::ptr::copy_nonoverlapping(numbers.as_ptr().cast(), libc::CMSG_DATA(header), bytes);
            libc::sendmsg(socket, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        }
        attacker.work();
    }
}

/// Writes output for two seconds as fast as it is read.
fn output(to: i32) {
    let block = vec![b'x'; 64 << 10];
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        if to == 1 {
            let _ = std::io::stdout().write_all(&block);
        } else {
            let _ = std::io::stderr().write_all(&block);
        }
    }
    println!();
    eprintln!();
}

/// Changes its standard error in ways that would affect other users of the file: there must be none.
fn spoil() {
    // SAFETY: system calls on an own descriptor.
    unsafe {
        let set = libc::fcntl(2, libc::F_SETFL, libc::O_NONBLOCK);
        tell("non-blocking standard error", check(set.into()));
        tell("empty standard error", check(libc::ftruncate(2, 0).into()));
        let mut bytes = [0u8; 16];
        let read = libc::pread(2, bytes.as_mut_ptr().cast(), bytes.len(), 0);
        tell("read standard error", check(read as libc::c_long));
        tell("terminal", check(libc::ioctl(2, libc::TIOCSTI, bytes.as_ptr()).into()));
    }
}
