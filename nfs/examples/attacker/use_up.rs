//! Attacks by use of resources, by child processes, and by an end at every step.
#![expect(unsafe_code, reason = "forks and ends by system calls")]

use crate::{Attacker, check, tell};
use nf::message::{FromNf, Hello, PROTOCOL};
use nf::socket::Socket;
use rustix::fd::AsFd;
use shm::ring::{Action, Descriptor};
use std::time::Duration;

/// Ends during the handshake or before it; whether that was the attack.
pub fn before_the_handshake(name: &str) -> bool {
    match name {
        "exit-at-once" => std::process::exit(3),
        "never-hello" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "die-after-hello" => {
            let socket = its_socket();
            let hello = Hello { protocol: PROTOCOL, kind: "brief".into(), ..Hello::default() };
            socket.send(&FromNf::Hello(hello), &[]).expect("a host");
            die()
        }
        "wrong-version" => {
            let socket = its_socket();
            let hello = Hello { protocol: 999, kind: "old".into(), ..Hello::default() };
            socket.send(&FromNf::Hello(hello), &[]).expect("a host");
            std::thread::sleep(Duration::from_millis(200));
            std::process::exit(4)
        }
        _ => false,
    }
}

/// The socket of the environment variable.
fn its_socket() -> Socket {
    let host = std::env::var(nf::ENVIRONMENT).unwrap_or_default();
    let number = host.strip_prefix("fd:").and_then(|number| number.parse().ok());
    Socket::new(shm::memfd::inherited(number.unwrap_or(0)).expect("a socket"))
}

/// Ends between hello and ready.
pub fn before_ready(name: &str, attacker: &Attacker) {
    match name {
        "die-before-ready" => die(),
        "ready-twice" => attacker.ready(),
        "die-after-ready" => {
            attacker.ready();
            die()
        }
        _ => {}
    }
}

/// The first of its counters.
const DIED_AT: usize = nf::ends::FIRST_COUNTER;

/// Nanoseconds of the clock that all processes share.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time into its argument.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Passes packets, in one of several ways that make its end hard to handle: with or without children, until
/// it is killed or until it ends by itself at a random step. Writes the time of its end into a counter.
fn soak(attacker: &mut Attacker) {
    if attacker.random.below(3) == 0 {
        for _ in 0..2 {
            // SAFETY: the children continue with copies of everything, as intended.
            if unsafe { libc::fork() } == 0 {
                outlive(attacker)
            }
        }
    }
    if attacker.random.below(2) == 0 {
        attacker.behave_on();
    }
    // Long enough not to count as a failed start, after which the next start would be delayed.
    let long = Duration::from_millis(110 + attacker.random.below(60));
    attacker.behave(long);
    let step = attacker.random.below(7) as u32;
    die_at(attacker, step);
}

/// A child that writes packets, and after its parent's end also takes and returns them.
fn outlive(attacker: &mut Attacker) -> ! {
    // SAFETY: the next call then also affects children of children.
    unsafe { libc::fork() };
    let parent = rustix::process::getppid();
    loop {
        let at = attacker.random.below(attacker.attached.region.bytes() as u64 / 8) as usize;
        // SAFETY: inside the region, which is mapped for writing.
        unsafe { (attacker.attached.region.address() as *mut u64).add(at).write_volatile(0xbad) };
        if rustix::process::getppid() != parent {
            attacker.work();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Ends at once, whatever is open: by a fault, because the first process of a PID namespace ignores its own
/// signals.
fn die() -> ! {
    // SAFETY: none; it must fault.
    unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
    std::process::exit(9)
}

pub fn attack(name: &str, attacker: &mut Attacker) -> bool {
    if let Some(step) = name.strip_prefix("die-at-") {
        return step.parse().is_ok_and(|step| die_at(attacker, step));
    }
    match name {
        "ready-twice" => {}
        "soak" => soak(attacker),
        "fork" => fork(attacker, true),
        "fork-and-stay" => fork(attacker, false),
        "exec" => {
            let program = c"/bin/sleep";
            let arguments = [program.as_ptr(), c"1000".as_ptr(), std::ptr::null()];
            attacker.take();
            // SAFETY: the arguments live, and end with a null.
            tell("exec", check(unsafe { libc::execv(program.as_ptr(), arguments.as_ptr()) }.into()));
        }
        "memory" => {
            let mut taken: Vec<Vec<u8>> = vec![];
            loop {
                taken.push(vec![0xaa; 16 << 20]);
                attacker.work();
            }
        }
        "shared-memory" => {
            // SAFETY: an own file in memory.
            let file = unsafe { libc::memfd_create(c"more".as_ptr(), 0) };
            for end in 1.. {
                // SAFETY: grows an own file, whose pages are then there.
                if unsafe { libc::fallocate(file, 0, 0, end << 24) } != 0 {
                    tell("more memory", Err(std::io::Error::last_os_error()));
                    break;
                }
            }
        }
        "processes" => {
            let mut made = 0;
            while made < 100_000 {
                // SAFETY: children that only wait.
                match unsafe { libc::fork() } {
                    -1 => break,
                    0 => loop {
                        std::thread::sleep(Duration::from_secs(100));
                    },
                    _ => made += 1,
                }
            }
            let error = std::io::Error::last_os_error();
            eprintln!("attack: processes: refused: after {made}: {error}");
        }
        "open-files" => {
            let mut open = vec![];
            let error = loop {
                match std::fs::File::open("/dev/null") {
                    Ok(file) => open.push(file),
                    Err(error) => break error,
                }
                if open.len() > 1 << 20 {
                    break std::io::Error::other("none");
                }
            };
            eprintln!("attack: open files: refused: after {}: {error}", open.len());
            attacker.behave(Duration::from_millis(500));
        }
        "spin" => {
            // As many threads as possible, all busy.
            for _ in 0..64 {
                let _ = std::thread::Builder::new().spawn(|| {
                    loop {
                        std::hint::spin_loop();
                    }
                });
            }
            attacker.behave_on();
        }
        _ => return false,
    }
    true
}

/// Ends at a step of passing on a burst.
fn die_at(attacker: &mut Attacker, step: u32) -> bool {
    // The same page, mapped again, because the attacker's cannot be borrowed during the burst.
    let page = attacker.attached.page.as_fd().try_clone_to_owned().expect("a descriptor");
    let page = shm::page::Page::open(page).expect("its page");
    let die_at = |here: u32| {
        if here == step {
            page.store(DIED_AT, now_ns());
            die();
        }
    };
    die_at(0);
    let taken = loop {
        let taken = attacker.take();
        if !taken.is_empty() {
            break taken;
        }
    };
    die_at(1);
    let passed: Vec<Descriptor> = taken.iter().map(Attacker::passed).collect();
    let (front, back) = passed.split_at(passed.len() / 2);
    let _ = attacker.to.write(front);
    die_at(2);
    attacker.to.publish();
    die_at(3);
    attacker.from.release(front.len());
    die_at(4);
    let held: Vec<Descriptor> =
        back.iter().map(|descriptor| Descriptor { action: Action::Hold as u8, ..*descriptor }).collect();
    let _ = attacker.to.push(&held);
    die_at(5);
    attacker.from.release(back.len());
    die_at(6);
    false
}

/// Starts children that continue to write packets and descriptors, and ends before them, or stays and is
/// killed.
fn fork(attacker: &mut Attacker, ends: bool) {
    for _ in 0..4 {
        // SAFETY: the children continue with copies of everything, as intended.
        if unsafe { libc::fork() } == 0 {
            // Their own children, too, which have no parent when theirs ends.
            // SAFETY: as above.
            unsafe { libc::fork() };
            // SAFETY: as above.
            unsafe { libc::setsid() };
            loop {
                attacker.work();
                let at = attacker.random.below(attacker.attached.region.bytes() as u64 / 8) as usize;
                if attacker.attached.welcome.writable {
                    // SAFETY: inside the region, which is mapped.
                    unsafe { (attacker.attached.region.address() as *mut u64).add(at).write_volatile(0xbad) };
                }
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    }
    if ends {
        attacker.take();
        std::thread::sleep(Duration::from_millis(20));
        die()
    }
}
