//! Attacks on memory: writes to read-only memory, hole punching, sealing, reopening.
#![expect(unsafe_code, reason = "attacks by raw pointers and system calls")]

use crate::{Attacker, check, tell};
use rustix::fd::{AsFd, AsRawFd};
use std::ffi::{CString, c_void};
use std::io::Error;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

pub fn attack(name: &str, attacker: &mut Attacker) -> bool {
    match name {
        "write-observed" => write(attacker),
        "work-around-seals" => work_around(attacker),
        "punch-holes" => punch(attacker),
        "scribble" => scribble(attacker, true, true),
        "scribble-rings" => scribble(attacker, true, false),
        "scribble-packets" => scribble(attacker, false, true),
        "find-memory" => find(),
        _ => return false,
    }
    true
}

/// Writes by a pointer.
fn write(attacker: &Attacker) {
    let at = attacker.attached.region.address() as *mut u64;
    for slot in 0..64 {
        // SAFETY: none. If the memory is read-only this process is killed here, as intended.
        unsafe { at.add(slot * 256).write_volatile(0xbad_bad_bad) };
    }
    eprintln!("attack: write: WORKED");
}

fn files(attacker: &Attacker) -> [(&'static str, i32, usize, bool); 3] {
    let attached = &attacker.attached;
    let size = |fd: i32| {
        // SAFETY: queries the size of a file.
        unsafe { libc::lseek(fd, 0, libc::SEEK_END) as usize }
    };
    let of = |name, fd: i32, shared| (name, fd, size(fd), shared);
    [
        of("region", attached.region.as_fd().as_raw_fd(), !attached.welcome.writable),
        of("rings", attached.rings.as_fd().as_raw_fd(), false),
        of("page", attached.page.as_fd().as_raw_fd(), false),
    ]
}

/// All calls by which it might write to files that are open for reading, or deny others the shared memory.
fn work_around(attacker: &mut Attacker) {
    for (name, fd, bytes, only_looks) in files(attacker) {
        let named = |what: &str| format!("{what} {name}");
        // SAFETY: system calls on an own descriptor; the mappings are never accessed.
        unsafe {
            if only_looks {
                let start = attacker.attached.region.address() as *mut c_void;
                tell(&named("mprotect"), check(libc::mprotect(start, bytes, 3).into()));
                let mapped = libc::mmap(null_mut(), bytes, 3, libc::MAP_SHARED, fd, 0);
                tell(&named("map"), check(mapped as libc::c_long));
                let byte = [0u8];
                tell(&named("pwrite"), check(libc::pwrite(fd, byte.as_ptr().cast(), 1, 0) as libc::c_long));
                let zero = libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY);
                tell(&named("sendfile"), check(libc::sendfile(fd, zero, null_mut(), 4096) as libc::c_long));
            }
            let path = CString::new(format!("/proc/self/fd/{fd}")).expect("no zeros");
            if only_looks || name == "region" {
                tell(&named("reopen"), check(libc::open(path.as_ptr(), libc::O_RDWR).into()));
            }
            tell(&named("fchmod"), check(libc::fchmod(fd, 0o777).into()));
            tell(&named("chmod"), check(libc::chmod(path.as_ptr(), 0o777).into()));
            tell(&named("shrink"), check(libc::ftruncate(fd, 0).into()));
            tell(&named("grow"), check(libc::ftruncate(fd, 2 * bytes as i64).into()));
            for (what, seal) in [("seal", libc::F_SEAL_WRITE), ("seal growth of", libc::F_SEAL_GROW)] {
                tell(&named(what), check(libc::fcntl(fd, libc::F_ADD_SEALS, seal).into()));
            }
            let lease = libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK);
            tell(&named("lease"), check(lease.into()));
        }
    }
    if !attacker.attached.welcome.writable {
        let at = attacker.attached.region.address() as u64;
        let through = std::fs::OpenOptions::new().write(true).open("/proc/self/mem");
        let written =
            through.and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, &[0xba; 64], at));
        tell("/proc/self/mem region", written);
    }
}

/// Removes pages of shared files, by every call that can.
fn punch(attacker: &mut Attacker) {
    for (name, fd, bytes, _) in files(attacker) {
        // SAFETY: system calls on an own descriptor.
        unsafe {
            let modes = [
                ("punch", libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE),
                ("zero", libc::FALLOC_FL_ZERO_RANGE),
                ("collapse", libc::FALLOC_FL_COLLAPSE_RANGE),
            ];
            for (what, mode) in modes {
                let answer = libc::fallocate(fd, mode, 0, bytes as i64);
                tell(&format!("{what} {name}"), check(answer.into()));
            }
            let start = libc::mmap(null_mut(), bytes, 3, libc::MAP_SHARED, fd, 0);
            let start = if start == libc::MAP_FAILED {
                attacker.attached.region.address() as *mut c_void
            } else {
                start
            };
            for (what, advice) in [("remove", libc::MADV_REMOVE), ("page out", 21), ("collapse", 25)] {
                tell(&format!("{what} {name}"), check(libc::madvise(start, bytes, advice).into()));
            }
        }
    }
    attacker.behave(Duration::from_millis(200));
}

/// Overwrites all writable memory with random bytes, while packets flow.
fn scribble(attacker: &mut Attacker, rings: bool, packets: bool) {
    let files = files(attacker);
    let mapped: Vec<(usize, usize)> = files
        .into_iter()
        .filter(|(name, ..)| if *name == "region" { packets } else { rings })
        .map(|(_, fd, bytes, _)| {
            // SAFETY: a fresh mapping of an own descriptor.
            let start = unsafe { libc::mmap(null_mut(), bytes, 3, libc::MAP_SHARED, fd, 0) };
            (start as usize, bytes)
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        for (start, bytes) in &mapped {
            for _ in 0..64 {
                let at = attacker.random.below(*bytes as u64 / 8) as usize;
                // SAFETY: inside the mapping just created, aligned to 8 bytes; others treat the memory as
                // untrusted.
                unsafe { (*start as *mut u64).add(at).write_volatile(attacker.random.next()) };
            }
        }
        attacker.work();
    }
}

/// Searches for memory of others: descriptors, mappings, devices.
fn find() {
    let memory = |text: &str| text.contains("memfd:") || text.contains("/dev/shm");
    for number in 0..1024 {
        if let Ok(link) = std::fs::read_link(format!("/proc/self/fd/{number}")) {
            let link = link.display().to_string();
            let what = if memory(&link) { "memory" } else { "else" };
            eprintln!("attack: has {what}: {number} {link}");
        }
    }
    for path in ["/dev/mem", "/dev/kmem", "/proc/kcore", "/dev/port"] {
        tell(path, std::fs::OpenOptions::new().read(true).write(true).open(path).map(drop));
    }
    for folder in ["/dev/shm", "/dev/hugepages", "/run", "/tmp", "/proc"] {
        tell(&format!("list {folder}"), std::fs::read_dir(folder).map(drop));
    }
    for file in ["/etc/shadow", "/proc/self/environ", "/root/.bashrc", "/proc/1/maps"] {
        tell(&format!("read {file}"), std::fs::read(file).map(drop));
    }
    for (name, _) in std::env::vars_os() {
        eprintln!("attack: knows: {}", name.display());
    }
    let make = |flag: libc::c_int| -> Result<(), Error> {
        // SAFETY: changes nothing that this program uses.
        check(unsafe { libc::unshare(flag) }.into())
    };
    for (name, flag) in [
        ("user namespace", libc::CLONE_NEWUSER),
        ("mount namespace", libc::CLONE_NEWNS),
        ("network namespace", libc::CLONE_NEWNET),
    ] {
        tell(name, make(flag));
    }
}
