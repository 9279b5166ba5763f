//! Where NFs attach that nobody here started: a socket next to that of the interface.

use super::desk::ChainController;
use nf::message::{FromNf, ToNf};
use nf::socket::Socket;
use nf_host::instance::ExternalNf;
use nf_host::peer;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a visitor may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether the door is to be closed.
const TURN: Duration = Duration::from_millis(200);
/// Visitors that may wait.
const BACKLOG: i32 = 16;

/// The door; closed when it goes out of scope.
pub struct Door {
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Opens the door.
///
/// # Errors
/// When the socket cannot be made.
pub fn open(path: &Path, desk: Arc<ChainController>) -> std::io::Result<Door> {
    let listener = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    rustix::net::bind(&listener, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    let closed: Arc<AtomicBool> = Arc::default();
    let flag = Arc::clone(&closed);
    let thread = std::thread::Builder::new().name("door".into()).spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            if let Some(visitor) = next(&listener) {
                // One that says nothing must not keep others waiting.
                let desk = Arc::clone(&desk);
                let _ =
                    std::thread::Builder::new().name("visitor".into()).spawn(move || welcome(visitor, &desk));
            }
        }
    })?;
    Ok(Door { closed, thread: Some(thread) })
}

impl Drop for Door {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn next(listener: &OwnedFd) -> Option<OwnedFd> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(TURN).ok();
    poll(&mut [PollFd::new(listener, PollFlags::IN)], timeout.as_ref()).ok().filter(|ready| *ready > 0)?;
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC).ok()
}

/// Hears who comes, and offers the place that it names.
fn welcome(visitor: OwnedFd, desk: &ChainController) {
    let (peer, pidfd) = (rustix::net::sockopt::socket_peercred(visitor.as_fd()), peer::pidfd(&visitor));
    let socket = Socket::new(visitor);
    let refuse = |why: String| {
        let _ = socket.send(&ToNf::Refused { why }, &[]);
    };
    let (Ok(peer), Ok(pidfd)) = (peer, pidfd) else {
        return refuse("the system does not say who you are".into());
    };
    let ours = rustix::process::geteuid();
    if peer.uid != ours && !peer.uid.is_root() {
        return refuse(format!(
            "NFs of user {} are not let in: attach as user {}",
            peer.uid.as_raw(),
            ours.as_raw()
        ));
    }
    let hello = match socket.receive::<FromNf>(PATIENCE) {
        Ok(Some((FromNf::Hello(hello), _))) => hello,
        Ok(_) => return refuse("the first message is a hello".into()),
        Err(error) => return refuse(error.to_string()),
    };
    let Some(name) = hello.name.clone() else {
        return refuse("say which NF of the chain this is: set MILLRACE_NF_NAME".into());
    };
    let instances = match desk.instances(&name) {
        Ok(instances) => instances,
        Err(refusal) => return refuse(refusal.text().into()),
    };
    let mut visitor = Some(ExternalNf { socket, pidfd, hello });
    let mut why = format!("NF `{name}` has no place");
    for instance in instances {
        match instance.offer(&mut visitor) {
            Ok(()) => return,
            Err(refusal) => why = refusal,
        }
    }
    if let Some(visitor) = visitor {
        let _ = visitor.socket.send(&ToNf::Refused { why }, &[]);
    }
}
