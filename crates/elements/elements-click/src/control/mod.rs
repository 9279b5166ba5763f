//! `ControlSocket`: lets other programs read and write handlers over a socket.
//!
//! - [`server`]: the listener and its clients, on threads of their own; [`lines`]: what a client sends
//! - [`protocol`]: commands and answers
//!
//! The threads do all input and output. A worker answers a bounded number of requests at a time, between
//! bursts, and never waits for a client.

mod lines;
mod protocol;
mod server;
#[cfg(test)]
mod tests;

use click::config::{Names, Parsed, parse};
use diag::{Diagnostic, Spanned};
use element::handler::{name_of, split_call};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use protocol::{Answer, Request, code};
use server::{Address, Server};

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&CLASS];

/// The class.
pub const CLASS: Class = Class {
    name: "ControlSocket",
    summary: "opens control sockets for other programs",
    page: "\
# ControlSocket(TYPE, PORT|FILENAME [, keywords READONLY, VERBOSE, LOCALHOST, RETRIES, RETRY_WARNINGS])

Listens for programs that read and write handlers, by Click's protocol (`Click::ControlSocket/1.3`): lines
such as `READ c.count` and `WRITE s.switch 1`, answered by lines that begin with a code.

- **ports**: none
- **arguments**: `TYPE`: `TCP` or `UNIX`. `PORT`: a TCP port of 127.0.0.1, with `+` behind it the first free
  one from there on, or with `[::1]:` or `127.0.0.1:` before it. `FILENAME`: a socket that is made with the
  run, removed with it, and open to its user only. `READONLY` (default false): write handlers are not called;
  `VERBOSE` (default false): prints a line for each connection; `RETRIES` (default 0): tries again so often,
  once a second, where the socket is in use; `RETRY_WARNINGS` (default true): with a warning each time
- **commands**: `READ HANDLER [ARGUMENTS]`, `READDATA HANDLER N` and N bytes, `READUNTIL HANDLER [END]` and
  lines up to END or an empty one; `WRITE`, `WRITEDATA`, `WRITEUNTIL` in the same way; `CHECKREAD HANDLER`,
  `CHECKWRITE HANDLER`, `QUIT`. HANDLER is `ELEMENT.HANDLER`, with an element's number from 1 on for its name,
  or a handler of the configuration (`list`, `config`, `flatconfig`, `version`, ...)
- **answers**: `200` done, `500` no command of this form, `501` no such command, `510` no such element, `511`
  no such handler, `520` the handler refused the value, `521` too long, `530` not permitted, `590` other
  mistakes
- **bounds**: 16 clients; a line or a value of 64 KiB; 10 s from the first byte of a command to its last, and
  for a client to take an answer; 800 requests a second of all clients together. Who passes them is told and
  disconnected, or waits
- **handlers**: `port` (read): the TCP port
- **workers**: the first worker answers, with its own values of elements that each worker has, as for scripts
- **difference**: TCP is open to this machine only, so that `LOCALHOST false` and other addresses are refused:
  whoever reaches the socket may change everything. `PROXY` does not exist, and LLRPC is refused. A run ends
  with its sources; the socket does not keep it going
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::OneWorker,
    make,
};

/// How often it looks for requests, with clients and without.
const BUSY_NS: u64 = 10_000_000;
const IDLE_NS: u64 = 50_000_000;
/// Requests that are answered at a time.
const MOST_REQUESTS: usize = 8;

struct ControlSocket {
    name: String,
    read_only: bool,
    /// None on other workers than the first, and in a check.
    server: Option<Server>,
}

fn address(text: &Spanned, _names: &dyn Names) -> Parsed<Address> {
    Address::tcp(text.as_str()).map_err(|(message, help)| Diagnostic::error(text.span, message).help(help))
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let worker = cx.worker;
    let mut args = cx.args();
    let is_tcp = args.mandatory_positional(
        "TYPE",
        parse::keyword(&[("TCP", true), ("tcp", true), ("UNIX", false), ("unix", false)]),
    );
    let (address, span) = match is_tcp {
        Some(true) => {
            let read = args.mandatory_positional("PORT", |text: &Spanned, names: &dyn Names| {
                Ok((address(text, names)?, text.span))
            });
            (read.clone().map(|(address, _)| address), read.map(|(_, span)| span))
        }
        Some(false) => {
            let text = args.mandatory_positional("FILENAME", |text: &Spanned, names: &dyn Names| {
                Ok((parse::filename(text, names)?, text.span))
            });
            (text.clone().map(|(path, _)| Address::Unix(path)), text.map(|(_, span)| span))
        }
        None => {
            let _ = args.positional("PORT", parse::any);
            (None, None)
        }
    };
    let read_only = args.keyword("READONLY", parse::bool).unwrap_or(false);
    let verbose = args.keyword("VERBOSE", parse::bool).unwrap_or(false);
    let warns = args.keyword("RETRY_WARNINGS", parse::bool).unwrap_or(true);
    let retries = args.keyword("RETRIES", parse::int_in(0..=1_000_000)).unwrap_or(0) as u32;
    if args.keyword("LOCALHOST", parse::bool) == Some(false) {
        let span = args.span();
        args.error(
            span,
            "LOCALHOST false would open the socket to other machines, whose users could change the chain",
        )
        .help("leave it out, and reach the socket through SSH");
    }
    if !args.finish() {
        return None;
    }
    let mut address = address?;
    if let Address::Unix(path) = &mut address {
        *path = cx.services.path(path);
        if path.as_os_str().len() > server::MOST_PATH_BYTES {
            let message = format!("the name of a socket has at most {} bytes", server::MOST_PATH_BYTES);
            cx.error(span?, message).help("choose a shorter one");
            return None;
        }
    }
    let mut server = None;
    if worker == 0 && !cx.services.opens_nothing() {
        let started = Server::start(address, (retries, warns), verbose);
        if started.is_err() {
            cx.services.count_refusal_by_machine();
        }
        server = Some(cx.accept(span?, started)?);
    }
    Some(BoxElement::opaque(ControlSocket { name: cx.name.to_string(), read_only, server }))
}

impl Opaque for ControlSocket {}

impl Element for ControlSocket {
    element::facts!(writes: false, handlers: HANDLERS);

    fn start(&mut self, work: &mut Work<'_>) {
        if self.server.is_some() {
            work.fire_at(work.now_ns());
        }
    }

    fn fire(&mut self, work: &mut Work<'_>) {
        let Some(server) = self.server.take() else { return };
        for line in server.take_messages() {
            work.print(&format!("{}: {line}", self.name));
        }
        for (request, reply) in server.requests().take(MOST_REQUESTS) {
            let answer = self.answer(&request, server.port(), work);
            // The client may have gone.
            let _ = reply.try_send(answer);
        }
        work.fire_at(work.now_ns().saturating_add(if server.has_clients() { BUSY_NS } else { IDLE_NS }));
        self.server = Some(server);
    }

    fn stop(&mut self, _work: &mut Work<'_>) {
        self.server = None;
    }
}

/// The access that a listed handler has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Listed {
    reads: bool,
    writes: bool,
}

impl ControlSocket {
    fn answer(&self, request: &Request, port: Option<u16>, work: &mut Work<'_>) -> Answer {
        let written = request.handler();
        let handler = canonical(written, work);
        match request {
            Request::Read { arguments, .. } => {
                if self.is_own_port(&handler) {
                    let value = port.map_or_else(String::new, |port| port.to_string());
                    return Answer::data(format!("Read handler '{written}' OK"), value);
                }
                let call =
                    if arguments.is_empty() { handler.clone() } else { format!("{handler} {arguments}") };
                match work.read_handler(&call) {
                    Ok(data) => Answer::data(format!("Read handler '{written}' OK"), data),
                    Err(reason) => match self.find(&handler, written, work) {
                        Err(answer) => answer,
                        Ok(Listed { reads: false, .. }) => {
                            Answer::new(code::PERMISSION, format!("Handler '{written}' write-only"))
                        }
                        Ok(_) => {
                            Answer::because(code::OTHER, format!("Read handler '{written}' error"), &reason)
                        }
                    },
                }
            }
            Request::Write { value, .. } => match self.find(&handler, written, work) {
                Err(answer) => answer,
                Ok(Listed { writes: false, .. }) => {
                    Answer::new(code::PERMISSION, format!("Handler '{written}' read-only"))
                }
                Ok(_) if self.read_only => {
                    Answer::new(code::PERMISSION, format!("Permission denied for '{written}'"))
                }
                Ok(_) => match work.write_handler(&handler, value) {
                    Ok(()) => Answer::new(code::OK, format!("Write handler '{written}' OK")),
                    Err(reason) => {
                        Answer::because(code::HANDLER, format!("Write handler '{written}' error"), &reason)
                    }
                },
            },
            Request::Check { writes, .. } => {
                let what = if *writes { "Write" } else { "Read" };
                let able = if *writes { "writable" } else { "readable" };
                match self.find(&handler, written, work) {
                    Err(answer) => answer,
                    Ok(listed) if !(if *writes { listed.writes } else { listed.reads }) => {
                        Answer::new(code::NO_HANDLER, format!("Handler '{written}' not {able}"))
                    }
                    Ok(_) if *writes && self.read_only => {
                        Answer::new(code::PERMISSION, format!("Permission denied for '{written}'"))
                    }
                    Ok(_) => Answer::new(code::OK, format!("{what} handler '{written}' OK")),
                }
            }
        }
    }

    fn is_own_port(&self, handler: &str) -> bool {
        let (element, handler) = split_call(handler);
        let is_this =
            self.name == element || self.name.strip_suffix(element).is_some_and(|scope| scope.ends_with('/'));
        handler == "port" && !element.is_empty() && is_this
    }

    /// The access of a handler.
    ///
    /// # Errors
    /// The answer that it does not exist.
    fn find(&self, handler: &str, written: &str, work: &mut Work<'_>) -> Result<Listed, Answer> {
        if self.is_own_port(handler) {
            return Ok(Listed { reads: true, writes: false });
        }
        let (element, name) = split_call(handler);
        let scope = if element.is_empty() { String::new() } else { element.to_string() };
        let list = work.read_handler(&format!("{scope}.handlers"));
        let list =
            list.map_err(|_| Answer::new(code::NO_ELEMENT, format!("No element named '{element}'")))?;
        let line = list.lines().filter_map(|line| line.split_once('\t')).find(|(listed, _)| *listed == name);
        let (_, access) =
            line.ok_or_else(|| Answer::new(code::NO_HANDLER, format!("No handler named '{written}'")))?;
        Ok(Listed { reads: access.contains('r'), writes: access.contains('w') })
    }
}

/// A handler as the worker finds it: those of the configuration begin with a dot, and an element's number is
/// its name.
fn canonical(written: &str, work: &mut Work<'_>) -> String {
    let name = name_of(written);
    let Some((element, handler)) = name.split_once('.') else { return format!(".{name}") };
    let number = element.parse::<usize>().ok();
    let named = number.and_then(|number| {
        let list = work.read_handler(".list").ok()?;
        Some(list.lines().nth(number).filter(|_| number > 0)?.to_string())
    });
    match named {
        Some(element) => format!("{element}.{handler}"),
        None if number == Some(0) => format!(".{handler}"),
        None => name.to_string(),
    }
}

const HANDLERS: &[Row<ControlSocket>] = &[Row::read("port", |socket, _| {
    socket.server.as_ref().map(|server| server.port().map_or_else(String::new, |port| port.to_string()))
})];
