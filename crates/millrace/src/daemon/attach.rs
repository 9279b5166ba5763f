//! The attach listener: external NFs attach to its socket, which is beside that of the interface.

use super::controller::ChainController;
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

/// How long an external NF may take to send its hello.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the listener checks whether it is to close.
const TURN: Duration = Duration::from_millis(200);
/// External NFs that may wait to be accepted.
const BACKLOG: i32 = 16;

/// The listener; closed when it goes out of scope.
pub struct AttachListener {
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Opens the listener.
///
/// # Errors
/// When the socket cannot be made.
pub fn open(path: &Path, controller: Arc<ChainController>) -> std::io::Result<AttachListener> {
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
    let thread = std::thread::Builder::new().name("attach".into()).spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            if let Some(external) = next(&listener) {
                // A thread for each: an external NF that sends no hello must not delay others.
                let controller = Arc::clone(&controller);
                let _ = std::thread::Builder::new()
                    .name("external-nf".into())
                    .spawn(move || welcome(external, &controller));
            }
        }
    })?;
    Ok(AttachListener { closed, thread: Some(thread) })
}

impl Drop for AttachListener {
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

/// Checks an external NF's user, receives its hello, and offers it to the instances of the NF that it names.
/// The first instance without a process accepts it.
fn welcome(external: OwnedFd, controller: &ChainController) {
    let (peer, pidfd) = (rustix::net::sockopt::socket_peercred(external.as_fd()), peer::pidfd(&external));
    let socket = Socket::new(external);
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
    let instances = match controller.instances(&name) {
        Ok(instances) => instances,
        Err(refusal) => return refuse(refusal.text().into()),
    };
    let mut external = Some(ExternalNf { socket, pidfd, hello });
    let mut why = format!("NF `{name}` has no place");
    for instance in instances {
        match instance.offer(&mut external) {
            Ok(()) => return,
            Err(refusal) => why = refusal,
        }
    }
    if let Some(external) = external {
        let _ = external.socket.send(&ToNf::Refused { why }, &[]);
    }
}
