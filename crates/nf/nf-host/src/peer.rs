//! Which process is at the other end of a socket, as a pidfd: a process id may belong to another process by
//! the time it is used.
#![expect(unsafe_code, reason = "there is no safe function for this socket option")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;

/// `SO_PEERPIDFD`, since Linux 6.5.
const PEER_PIDFD: libc::c_int = 77;

/// The process that connected. Before Linux 6.5 it is found by the process id that the kernel recorded at
/// that time. If that process has ended since, a process with the same id is taken for it.
///
/// # Errors
///
/// When it has ended, or the system does not report it.
pub fn pidfd(socket: &impl AsFd) -> io::Result<OwnedFd> {
    let (mut fd, mut length): (libc::c_int, _) = (-1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the kernel writes a descriptor, whose size is right, and the size; both live for the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_PIDFD,
            (&raw mut fd).cast(),
            &raw mut length,
        )
    };
    if answer == 0 && fd >= 0 {
        // SAFETY: the kernel has just created it, and no other owner exists.
        return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOPROTOOPT) {
        return Err(error);
    }
    let peer: Pid = rustix::net::sockopt::socket_peercred(socket.as_fd())?.pid;
    Ok(pidfd_open(peer, PidfdFlags::empty())?)
}

/// The pidfd of a process id; `None` if there is no such process.
pub fn of_number(pid: u64) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Whether the process of a pidfd has ended.
pub fn has_ended(pidfd: &impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ended| ended > 0)
}

/// The process id of a pidfd; `None` once the process has ended and was waited for.
pub fn number(pidfd: &impl AsFd) -> Option<u32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_fd().as_raw_fd())).ok()?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn who_connects_is_known_by_a_descriptor() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("bound");
        let _other = UnixStream::connect(&path).expect("connected");
        let (peer, _) = listener.accept().expect("accepted");
        let pidfd = pidfd(&peer).expect("known");
        assert_eq!(number(&pidfd), Some(std::process::id()));
    }

    #[test]
    fn who_has_ended_since_is_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("bound");
        let script = format!("import socket; socket.socket(socket.AF_UNIX).connect('{}')", path.display());
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", &script]).spawn() else {
            eprintln!("SKIP: who_has_ended_since_is_nobody: there is no python3 to connect with");
            return;
        };
        let (peer, _) = listener.accept().expect("accepted");
        child.wait().expect("a child");
        // There is no pidfd any more, or it belongs to no process: never to another one.
        assert!(pidfd(&peer).map_or(true, |pidfd| number(&pidfd).is_none()));
    }
}
