//! UDP sockets of a multicast group.
#![expect(
    unsafe_code,
    reason = "options that must be set before a socket is bound, which the standard library cannot"
)]

use std::io::{Error, Result};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What sockets of a group are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The group's address and port.
    pub at: SocketAddrV4,
    /// The address to send from, whose interface carries the group; the kernel's choice otherwise.
    pub source: Option<SocketAddrV4>,
    /// Whether programs of this machine receive what is sent.
    pub is_looped: bool,
    /// The bytes that the kernel keeps of packets to send.
    pub send_bytes: Option<u32>,
    /// The bytes that the kernel keeps of received packets.
    pub receive_bytes: Option<u32>,
}

/// The two sockets of a group; neither waits.
#[derive(Debug)]
pub struct Sockets {
    /// Receives what is sent to the group.
    pub receiver: UdpSocket,
    /// Sends.
    pub sender: UdpSocket,
}

/// Sets an option of a socket.
fn set<T>(socket: &impl AsRawFd, level: libc::c_int, option: libc::c_int, value: T) -> Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `value`, which the kernel reads during the call only.
    // All callers of this module pass an integer or an `in_addr`, which have no padding.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// A socket that other programs of this machine may have too, at an address.
fn bind_shared(at: SocketAddrV4) -> Result<UdpSocket> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointers.
    let made = unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_UDP) };
    if made < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the kernel has just made this file, and nothing else closes it.
    let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(made) });
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1 as libc::c_int)?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: at.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*at.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `address`, which the kernel reads during the call only.
    let done = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(socket) }
}

/// Sets the size of a kernel's buffer.
fn set_buffer(socket: &UdpSocket, option: libc::c_int, bytes: Option<u32>) -> Result<()> {
    let bytes = bytes.map(|bytes| libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX));
    bytes.map_or(Ok(()), |bytes| set(socket, libc::SOL_SOCKET, option, bytes))
}

/// Joins a group.
///
/// # Errors
/// A sentence: what the kernel refuses, and what to do.
pub fn join(group: &Group) -> std::result::Result<Sockets, String> {
    let refused = |what: &str, error: Error| format!("{what}: {error}");
    let receiver =
        bind_shared(group.at).map_err(|error| refused(&format!("cannot bind {}", group.at), error))?;
    let from = group.source.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let sender =
        UdpSocket::bind(from).map_err(|error| refused(&format!("cannot send from {from}"), error))?;
    let options = || -> Result<()> {
        sender.set_nonblocking(true)?;
        sender.set_multicast_loop_v4(group.is_looped)?;
        set_buffer(&sender, libc::SO_SNDBUF, group.send_bytes)?;
        set_buffer(&receiver, libc::SO_RCVBUF, group.receive_bytes)?;
        if !from.ip().is_unspecified() {
            let interface = libc::in_addr { s_addr: u32::from(*from.ip()).to_be() };
            set(&sender, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, interface)?;
        }
        Ok(())
    };
    options().map_err(|error| refused("cannot set the socket's options", error))?;
    receiver.join_multicast_v4(group.at.ip(), from.ip()).map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV) => format!(
            "cannot join {}: no route leads to a multicast address; name the address of an interface as \
             SOURCEIP",
            group.at.ip()
        ),
        _ => refused(&format!("cannot join {}", group.at.ip()), error),
    })?;
    Ok(Sockets { receiver, sender })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that goes over the loopback interface comes back whatever `is_looped` says.
    #[test]
    fn the_sender_has_the_options_that_were_asked_for() {
        let at = SocketAddrV4::new(Ipv4Addr::new(239, 7, 7, 9), 7079);
        let source = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        for is_looped in [false, true] {
            let group =
                Group { at, source, is_looped, send_bytes: Some(70_000), receive_bytes: Some(u32::MAX) };
            // The address may be had twice.
            let [one, two] = [join(&group).unwrap(), join(&group).unwrap()];
            assert_eq!(one.sender.multicast_loop_v4().unwrap(), is_looped);
            assert_eq!(one.sender.local_addr().unwrap().ip(), Ipv4Addr::LOCALHOST);
            assert_ne!(one.sender.local_addr().unwrap(), two.sender.local_addr().unwrap());
            assert_eq!(two.receiver.local_addr().unwrap(), at.into());
        }
    }
}
