//! The socket between an NF and its host: each datagram is one message, with descriptors passed along.

use crate::NfError;
use crate::message::MOST_BYTES;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The most descriptors that a message may have.
pub const MOST_DESCRIPTORS: usize = 32;

/// One end of the socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// The socket of an open descriptor.
    pub fn new(fd: OwnedFd) -> Socket {
        Socket { fd }
    }

    /// The two ends of a new socket pair.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn pair() -> Result<(Socket, Socket), NfError> {
        let pair =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        pair.map(|(one, two)| (Socket::new(one), Socket::new(two))).map_err(|error| failed("reach", error))
    }

    /// Connects to the socket of a daemon.
    ///
    /// # Errors
    ///
    /// When no process listens there.
    pub fn connect(path: &Path) -> Result<Socket, NfError> {
        let connect = || {
            let address = rustix::net::SocketAddrUnix::new(path)?;
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            let fd = rustix::net::socket_with(family, SocketType::SEQPACKET, flags, None)?;
            rustix::net::connect(&fd, &address)?;
            Ok(Socket::new(fd))
        };
        connect().map_err(|error| failed("reach", error))
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    ///
    /// When the other side has closed the socket, or does not read from it.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<(), NfError> {
        let bytes = serde_json::to_vec(message).map_err(|error| NfError::BadMessage(error.to_string()))?;
        if bytes.len() > MOST_BYTES || descriptors.len() > MOST_DESCRIPTORS {
            return Err(NfError::BadMessage(format!(
                "{} bytes are more than a message has room for",
                bytes.len()
            )));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // A message that does not fit into the socket's buffer is an error: the other side does not read.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(&self.fd, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(NfError::HungUp),
            Err(error) => Err(failed("write to", error)),
        }
    }

    /// Receives the next message with its descriptors; `None` when none arrived in time.
    ///
    /// # Errors
    ///
    /// When the other side has closed the socket, or the received bytes are no message.
    pub fn receive<M: DeserializeOwned>(
        &self,
        patience: Duration,
    ) -> Result<Option<(M, Vec<OwnedFd>)>, NfError> {
        if !self.await_message(patience)? {
            return Ok(None);
        }
        let mut bytes = vec![0; MOST_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received =
            match rustix::net::recvmsg(&self.fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Ok(received) => received,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
                Err(Errno::CONNRESET) => return Err(NfError::HungUp),
                Err(error) => return Err(failed("hear", error)),
            };
        let mut descriptors = vec![];
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                descriptors.extend(files);
            }
        }
        if received.bytes == 0 {
            return Err(NfError::HungUp);
        }
        if received.flags.contains(rustix::net::ReturnFlags::TRUNC) {
            return Err(NfError::BadMessage("it is longer than messages are".into()));
        }
        let message = serde_json::from_slice(&bytes[..received.bytes]);
        message
            .map(|message| Some((message, descriptors)))
            .map_err(|error| NfError::BadMessage(error.to_string()))
    }

    /// Waits until a message can be read or the other side closes the socket; false on a timeout.
    fn await_message(&self, patience: Duration) -> Result<bool, NfError> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], timeout.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) if !left.is_zero() => {}
                Err(Errno::INTR) => return Ok(false),
                Err(error) => return Err(failed("hear", error)),
            }
        }
    }

    /// The descriptor, for a program that is to inherit it.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn failed(action: &'static str, error: Errno) -> NfError {
    NfError::Socket { action, source: error.into() }
}
