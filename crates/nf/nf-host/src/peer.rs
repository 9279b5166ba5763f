//! Who is at the other end of a socket, as a descriptor: a number may be another's by the time that it is looked at.
#![expect(unsafe_code, reason = "there is no safe function for this socket option")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;

/// `SO_PEERPIDFD`, since Linux 6.5.
const PEER_PIDFD: libc::c_int = 77;

/// The process that connected. Before Linux 6.5 by its number, as the kernel noted it then: whoever has it now, if
/// that process has ended since, is taken for it.
///
/// # Errors
///
/// When it has ended, or the system does not say who it was.
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
        // SAFETY: the kernel has just made it, and nobody else knows of it.
        return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOPROTOOPT) {
        return Err(error);
    }
    let peer: Pid = rustix::net::sockopt::socket_peercred(socket.as_fd())?.pid;
    Ok(pidfd_open(peer, PidfdFlags::empty())?)
}

/// A process by its number; `None` where there is none.
pub fn of_number(pid: u64) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Whether the process that a descriptor is of has ended.
pub fn has_ended(pidfd: &impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ended| ended > 0)
}

/// The number of the process that a descriptor is of; `None` once it has ended and was waited for.
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
        // Either there is no descriptor any more, or it is of nobody: never of somebody else.
        assert!(pidfd(&peer).map_or(true, |pidfd| number(&pidfd).is_none()));
    }
}
