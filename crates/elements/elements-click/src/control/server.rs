//! The listener of a control socket and its clients: a thread each.

use super::lines::{End, Lines, MOST_BYTES};
use super::protocol::{Answer, Command, GREETING, Request, code, command, with_text};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The most bytes of a UNIX socket's name.
pub const MOST_PATH_BYTES: usize = 107;
const MOST_CLIENTS: usize = 16;
/// Requests that wait for the worker.
const MOST_WAITING: usize = MOST_CLIENTS;
/// Lines that wait to be printed.
const MOST_MESSAGES: usize = 64;
/// How often threads look whether the socket is closed.
const LOOK: Duration = Duration::from_millis(100);
/// For a client to finish a command, and to take an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(1);

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// An address of this machine's loopback, and whether later ports may be used.
    Tcp(SocketAddr, bool),
    /// The path of a socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `PORT`, `PORT+` or `ADDRESS:PORT`.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn tcp(text: &str) -> Result<Address, (String, &'static str)> {
        let (text, later) = text.strip_suffix('+').map_or((text, false), |text| (text, true));
        let plain = text.parse::<u16>().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let address = plain.or_else(|| text.replacen("localhost:", "127.0.0.1:", 1).parse().ok());
        let Some(address) = address else {
            return Err((
                format!("`{text}` is no TCP port"),
                "a number from 0 to 65535 is expected, 0 for any",
            ));
        };
        let is_loopback = match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        };
        if !is_loopback {
            let message =
                format!("{} is not this machine's loopback: others could change the chain", address.ip());
            return Err((message, "name the port alone, and reach the socket through SSH"));
        }
        Ok(Address::Tcp(address, later))
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    fn bind(address: &Address) -> Result<Listener, String> {
        let failed = |error: std::io::Error| match address {
            Address::Tcp(address, _) => format!("port {} cannot be opened: {error}", address.port()),
            Address::Unix(path) => format!("socket {} cannot be opened: {error}", path.display()),
        };
        match address {
            Address::Tcp(address, later) => {
                let last = if *later { u16::MAX } else { address.port() };
                let mut port = address.port();
                loop {
                    match TcpListener::bind(SocketAddr::new(address.ip(), port)) {
                        Ok(listener) => {
                            listener.set_nonblocking(true).map_err(failed)?;
                            return Ok(Listener::Tcp(listener));
                        }
                        Err(error) if error.kind() == ErrorKind::AddrInUse && port < last => port += 1,
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
            Address::Unix(path) => {
                let is_socket = std::fs::metadata(path)
                    .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
                // A run that was killed leaves its socket, at which nobody listens.
                if is_socket
                    && UnixStream::connect(path)
                        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
                {
                    std::fs::remove_file(path).map_err(failed)?;
                }
                let listener = Listener::Unix(UnixListener::bind(path).map_err(failed)?, path.clone());
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
                if let Listener::Unix(listener, _) = &listener {
                    listener.set_nonblocking(true).map_err(failed)?;
                }
                Ok(listener)
            }
        }
    }

    fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(..) => None,
        }
    }

    /// The next client; `None` if there is none within a short time.
    fn accept(&self) -> Option<Client> {
        let client = match self {
            Listener::Tcp(listener) => listener.accept().map(|(client, _)| Client::Tcp(client)),
            Listener::Unix(listener, _) => listener.accept().map(|(client, _)| Client::Unix(client)),
        };
        match client {
            Ok(client) => client.prepare().ok().map(|()| client),
            // No client, or too many open files.
            Err(_) => {
                std::thread::sleep(LOOK / 5);
                None
            }
        }
    }
}

enum Client {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    /// Reads return after a short time, and writes do not wait for ever.
    fn prepare(&self) -> std::io::Result<()> {
        match self {
            Client::Tcp(client) => {
                client.set_nonblocking(false)?;
                client.set_nodelay(true)?;
                client.set_read_timeout(Some(LOOK))?;
                client.set_write_timeout(Some(PATIENCE))
            }
            Client::Unix(client) => {
                client.set_nonblocking(false)?;
                client.set_read_timeout(Some(LOOK))?;
                client.set_write_timeout(Some(PATIENCE))
            }
        }
    }

    fn send(&self, text: &str) -> std::io::Result<()> {
        match self {
            Client::Tcp(client) => (&*client).write_all(text.as_bytes()),
            Client::Unix(client) => (&*client).write_all(text.as_bytes()),
        }
    }
}

impl Read for &Client {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Client::Tcp(client) => (&*client).read(bytes),
            Client::Unix(client) => (&*client).read(bytes),
        }
    }
}

type Asked = (Request, SyncSender<Answer>);

/// What threads share with the element.
#[derive(Default)]
struct Shared {
    is_closed: AtomicBool,
    clients: AtomicUsize,
    port: OnceLock<u16>,
    messages: Mutex<Vec<String>>,
    verbose: bool,
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.is_closed.load(Relaxed)
    }

    fn say(&self, line: String) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < MOST_MESSAGES {
            messages.push(line);
        }
    }

    fn listen(&self, listener: &Listener) {
        if let Some(port) = listener.port() {
            let _ = self.port.set(port);
        }
    }
}

/// A server; closes its socket when it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    asked: Receiver<Asked>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Opens the socket and starts to listen. `retries` is how often it tries again, and whether it says so.
    ///
    /// # Errors
    /// A sentence: why the socket cannot be opened.
    pub fn start(address: Address, retries: (u32, bool), verbose: bool) -> Result<Server, String> {
        let shared = Arc::new(Shared { verbose, ..Shared::default() });
        let (ask, asked) = sync_channel(MOST_WAITING);
        let listener = match Listener::bind(&address) {
            Ok(listener) => {
                shared.listen(&listener);
                Some(listener)
            }
            Err(_) if retries.0 > 0 => None,
            Err(reason) => return Err(reason),
        };
        let threads = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("control-socket".into())
            .spawn(move || {
                if let Some(listener) = listener.or_else(|| try_again(&address, retries, &threads)) {
                    serve(&listener, &threads, &ask);
                }
            })
            .map_err(|error| format!("no thread for the socket: {error}"))?;
        Ok(Server { shared, asked, thread: Some(thread) })
    }

    /// The requests that wait for an answer.
    pub fn requests(&self) -> impl Iterator<Item = Asked> {
        self.asked.try_iter()
    }

    pub fn has_clients(&self) -> bool {
        self.shared.clients.load(Relaxed) > 0
    }

    /// The TCP port.
    pub fn port(&self) -> Option<u16> {
        self.shared.port.get().copied()
    }

    /// Lines for the user.
    pub fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Relaxed);
        // It ends within a moment, and removes its socket.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn try_again(address: &Address, (retries, warns): (u32, bool), shared: &Shared) -> Option<Listener> {
    for left in (0..retries).rev() {
        let mut waited = Duration::ZERO;
        while waited < RETRY {
            if !shared.goes_on() {
                return None;
            }
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        match Listener::bind(address) {
            Ok(listener) => {
                shared.listen(&listener);
                return Some(listener);
            }
            Err(reason) if warns || left == 0 => {
                shared.say(format!("{reason} ({left} {} left)", if left == 1 { "try" } else { "tries" }));
            }
            Err(_) => {}
        }
    }
    None
}

/// Accepts clients until the socket is closed.
fn serve(listener: &Listener, shared: &Arc<Shared>, ask: &SyncSender<Asked>) {
    let mut number = 0u64;
    while shared.goes_on() {
        let Some(client) = listener.accept() else { continue };
        if shared.clients.load(Relaxed) >= MOST_CLIENTS {
            let answer = Answer::new(code::OTHER, format!("There are {MOST_CLIENTS} clients already"));
            // A client that does not take it is gone at once.
            let _ = client.send(&format!("{GREETING}{}", answer.text()));
            continue;
        }
        number += 1;
        shared.clients.fetch_add(1, Relaxed);
        let (of_client, ask) = (Arc::clone(shared), ask.clone());
        let started = std::thread::Builder::new().name("control-client".into()).spawn(move || {
            if of_client.verbose {
                of_client.say(format!("opened connection {number}"));
            }
            talk(&client, &of_client, &ask);
            if of_client.verbose {
                of_client.say(format!("closed connection {number}"));
            }
            of_client.clients.fetch_sub(1, Relaxed);
        });
        if started.is_err() {
            shared.clients.fetch_sub(1, Relaxed);
        }
    }
}

/// Serves a client until it goes.
fn talk(client: &Client, shared: &Shared, ask: &SyncSender<Asked>) {
    let goes_on = || shared.goes_on();
    let mut lines = Lines::new(client, PATIENCE);
    if client.send(GREETING).is_err() {
        return;
    }
    loop {
        lines.next_command();
        let request = match next_request(&mut lines, &goes_on) {
            Ok(Ok(request)) => request,
            Ok(Err(None)) => continue,
            Ok(Err(Some(answer))) => match client.send(&answer.text()) {
                Ok(()) => continue,
                Err(_) => return,
            },
            Err(end) => {
                let farewell = match end {
                    None | Some(End::Closed) => return,
                    Some(End::TooLong) => Answer::new(
                        code::TOO_LONG,
                        format!("A line or a value has more than {MOST_BYTES} bytes"),
                    ),
                    Some(End::TooSlow) => Answer::new(
                        code::SYNTAX,
                        format!("A command took more than {} s", PATIENCE.as_secs()),
                    ),
                };
                // The client goes in any case.
                let _ = client.send(&farewell.text());
                return;
            }
        };
        let Some(answer) = answered(request, shared, ask) else { return };
        if client.send(&answer.text()).is_err() {
            return;
        }
    }
}

/// The next request, or the answer to a line that is none. The error is why the client goes; `None` if it
/// asked to.
fn next_request(
    lines: &mut Lines<&Client>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Result<Request, Option<Answer>>, Option<End>> {
    Ok(match command(&lines.line(goes_on)?) {
        Command::Ask(request) => Ok(request),
        Command::Data { handler, writes, bytes } => {
            Ok(with_text(&handler, writes, lines.block(bytes, goes_on)?))
        }
        Command::Until { handler, writes, end } => {
            let mut text = String::new();
            loop {
                let line = lines.line(goes_on)?;
                if line.trim_end() == end {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
                if text.len() > MOST_BYTES {
                    return Err(Some(End::TooLong));
                }
            }
            Ok(with_text(&handler, writes, text))
        }
        Command::Quit => return Err(None),
        Command::Nothing => Err(None),
        Command::Wrong(answer) => Err(Some(answer)),
    })
}

/// The worker's answer; `None` when the socket is closed.
fn answered(request: Request, shared: &Shared, ask: &SyncSender<Asked>) -> Option<Answer> {
    let (reply, answer) = sync_channel(1);
    let mut waiting = (request, reply);
    while let Err(full) = ask.try_send(waiting) {
        match full {
            TrySendError::Full(back) if shared.goes_on() => waiting = back,
            _ => return None,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if shared.goes_on() => {}
            Err(_) => return None,
        }
    }
}
