//! Commands and answers of Click's control sockets.

use std::fmt::Write;

/// The codes of answers.
pub mod code {
    pub const OK: u16 = 200;
    pub const SYNTAX: u16 = 500;
    pub const UNKNOWN: u16 = 501;
    pub const NO_ELEMENT: u16 = 510;
    pub const NO_HANDLER: u16 = 511;
    pub const HANDLER: u16 = 520;
    pub const TOO_LONG: u16 = 521;
    pub const PERMISSION: u16 = 530;
    pub const OTHER: u16 = 590;
}

/// What a server says first.
pub const GREETING: &str = "Click::ControlSocket/1.3\r\n";

/// A request to a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    Read { handler: String, arguments: String },
    Write { handler: String, value: String },
    Check { handler: String, writes: bool },
}

impl Request {
    /// The handler as the client wrote it.
    pub fn handler(&self) -> &str {
        match self {
            Request::Read { handler, .. }
            | Request::Write { handler, .. }
            | Request::Check { handler, .. } => handler,
        }
    }

    fn with(handler: &str, writes: bool, text: String) -> Request {
        let handler = handler.to_string();
        match writes {
            true => Request::Write { handler, value: text },
            false => Request::Read { handler, arguments: text },
        }
    }
}

/// What a line of a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    Ask(Request),
    /// The next bytes are the request's text.
    Data {
        handler: String,
        writes: bool,
        bytes: usize,
    },
    /// The next lines, up to this one, are the request's text.
    Until {
        handler: String,
        writes: bool,
        end: String,
    },
    Quit,
    /// Nothing: an empty line.
    Nothing,
    Wrong(Answer),
}

/// Reads a line.
pub fn command(line: &str) -> Command {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let (handler, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let text = text.trim();
    let upper = name.to_ascii_uppercase();
    let needs_handler =
        || Command::Wrong(Answer::new(code::SYNTAX, format!("Wrong number of arguments to '{name}'")));
    let writes = upper.starts_with("WRITE") || upper.starts_with("SET") || upper == "CHECKWRITE";
    match upper.as_str() {
        "" => Command::Nothing,
        "QUIT" | "CLOSE" if rest.is_empty() => Command::Quit,
        "LLRPC" => {
            Command::Wrong(Answer::new(code::UNKNOWN, "LLRPCs do not exist here: read and write handlers"))
        }
        "READ" | "GET" | "WRITE" | "SET" | "READDATA" | "GETDATA" | "WRITEDATA" | "SETDATA" | "READUNTIL"
        | "WRITEUNTIL" | "CHECKREAD" | "CHECKWRITE"
            if handler.is_empty() =>
        {
            needs_handler()
        }
        "READ" | "GET" | "WRITE" | "SET" => Command::Ask(Request::with(handler, writes, text.to_string())),
        "READDATA" | "GETDATA" | "WRITEDATA" | "SETDATA" => match text.parse() {
            Ok(bytes) => Command::Data { handler: handler.to_string(), writes, bytes },
            Err(_) => Command::Wrong(Answer::new(
                code::SYNTAX,
                format!("Syntax error in '{name}': expected a length"),
            )),
        },
        "READUNTIL" | "WRITEUNTIL" => {
            Command::Until { handler: handler.to_string(), writes, end: text.to_string() }
        }
        "CHECKREAD" | "CHECKWRITE" if text.is_empty() => {
            Command::Ask(Request::Check { handler: handler.to_string(), writes })
        }
        "CHECKREAD" | "CHECKWRITE" | "QUIT" | "CLOSE" => needs_handler(),
        _ => Command::Wrong(Answer::new(code::UNKNOWN, format!("Command '{name}' unimplemented"))),
    }
}

/// The request that a text belongs to.
pub fn with_text(handler: &str, writes: bool, text: String) -> Request {
    Request::with(handler, writes, text)
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    code: u16,
    message: String,
    data: Option<String>,
}

impl Answer {
    /// A line.
    pub fn new(code: u16, message: impl Into<String>) -> Answer {
        Answer { code, message: message.into(), data: None }
    }

    /// A line, and those of the reason.
    pub fn because(code: u16, message: String, reason: &str) -> Answer {
        Answer::new(code, format!("{message}:\n{reason}"))
    }

    /// A line, and a value.
    pub fn data(message: String, data: String) -> Answer {
        Answer { code: code::OK, message, data: Some(data) }
    }

    /// As it is sent.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.message.lines().collect();
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let mark = if number + 1 < lines.len() { '-' } else { ' ' };
            // Control characters would end the line. Writing to a string cannot fail.
            let line: String = line.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
            let _ = write!(text, "{}{mark}{line}\r\n", self.code);
        }
        if let Some(data) = &self.data {
            let _ = write!(text, "DATA {}\r\n{data}", data.len());
        }
        text
    }
}
