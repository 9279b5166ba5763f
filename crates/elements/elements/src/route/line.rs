//! The texts of routes and commands: `ADDR/MASK [GW] OUT`.

use click::config::parse::{self, Parsed};
use click::config::{Names, split_words};
use diag::{Diagnostic, Spanned};
use std::fmt;
use std::net::Ipv4Addr;

/// A route's next hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// The gateway, 0 when there is none.
    pub gateway: u32,
    /// The output port.
    pub port: u32,
}

/// A route as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The network's address; bits beyond the length are 0.
    pub prefix: u32,
    /// Length of the prefix in bits.
    pub len: u8,
    /// The gateway, 0 when there is none.
    pub gateway: u32,
    /// The output port; `None` only in a removal, for any port.
    pub port: Option<u32>,
}

impl Line {
    /// Gateway and port of a route that has a port.
    pub fn hop(&self) -> Option<Hop> {
        self.port.map(|port| Hop { gateway: self.gateway, port })
    }
}

/// A route, for messages and dumps.
pub struct Shown(pub u32, pub u8, pub Hop);

impl Shown {
    /// The line of the `table` handler, as Click writes it: columns start at multiples of eight.
    pub fn columns(&self) -> String {
        let prefix = format!("{}/{}\t", Ipv4Addr::from(self.0), self.1);
        let gateway = format!("{}\t", self.gateway());
        let pad = |text: &str, width: usize| if text.len() < width { "\t" } else { "" };
        format!("{prefix}{}{gateway}{}{}", pad(&prefix, 17), pad(&gateway, 9), self.2.port)
    }

    fn gateway(&self) -> String {
        match self.2.gateway {
            0 => "-".to_string(),
            gateway => Ipv4Addr::from(gateway).to_string(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {} {}", Ipv4Addr::from(self.0), self.1, self.gateway(), self.2.port)
    }
}

/// What a route must look like.
const SYNTAX: &str = "a route is written `ADDR/MASK [GATEWAY] OUTPUT`";

/// Reads a route for an element with that many outputs; with `removal` the output may be left off.
pub fn route(outputs: usize, removal: bool) -> impl Fn(&Spanned, &dyn Names) -> Parsed<Line> {
    move |text, names| {
        let words = split_words(text);
        let mut words = words.iter();
        let Some(first) = words.next() else {
            return Err(Diagnostic::error(text.span, "a route is missing").help(SYNTAX));
        };
        let network = parse::ip4_or_prefix(first, names)?;
        let Some(len) = network.len() else {
            let message = format!("mask {} has holes", network.mask);
            return Err(Diagnostic::error(first.span, message)
                .help("routes are matched by their longest prefix: write one route for each network"));
        };
        let mut next = words.next();
        let mut gateway = 0;
        if let Some(word) = next.filter(|word| !is_number(word)) {
            gateway = if word.as_str() == "-" { 0 } else { u32::from(parse::ip4(word, names)?) };
            next = words.next();
        }
        let port = match next {
            Some(word) => Some(port(word, names, outputs, removal)?),
            None if removal => None,
            None => {
                return Err(Diagnostic::error(text.span, "the output of the route is missing").help(SYNTAX));
            }
        };
        if let Some(extra) = words.next() {
            let message = format!("`{extra}` is too much for a route");
            return Err(Diagnostic::error(extra.span, message).help(SYNTAX));
        }
        Ok(Line { prefix: u32::from(network.network()), len, gateway, port: port.flatten() })
    }
}

/// Whether a word can only be an output: addresses have dots, names have letters.
fn is_number(word: &Spanned) -> bool {
    let digits = word.as_str().strip_prefix('-').unwrap_or(word.as_str());
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn port(word: &Spanned, names: &dyn Names, outputs: usize, removal: bool) -> Parsed<Option<u32>> {
    match parse::i32(word, names)? {
        // Click's way to say "whatever its output is".
        -1 if removal => Ok(None),
        port => match u32::try_from(port).ok().filter(|port| (*port as usize) < outputs) {
            Some(port) => Ok(Some(port)),
            None => {
                let message = format!("output {port} does not exist");
                let help = match outputs {
                    0 => "no output is connected".to_string(),
                    1 => "the only output is 0".to_string(),
                    _ => format!("outputs are 0 to {}", outputs - 1),
                };
                Err(Diagnostic::error(word.span, message).help(help))
            }
        },
    }
}

/// What to do with a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Add it; refused where there is one.
    Add,
    /// Add it, or replace the one that is there.
    Set,
    /// Remove it.
    Remove,
}

/// Splits a line of the `ctrl` handler into command and route; `None` for an empty line.
///
/// # Errors
/// A sentence that says what the line should begin with.
pub fn command(text: &Spanned) -> Option<Result<(Command, Spanned), String>> {
    let first = split_words(text).into_iter().next()?;
    let command = match first.as_str() {
        "add" => Command::Add,
        "set" => Command::Set,
        "remove" => Command::Remove,
        other => return Some(Err(format!("bad command `{other}`; it is `add`, `set` or `remove`"))),
    };
    let at = text.as_str().find(first.as_str()).unwrap_or(0) + first.as_str().len();
    Some(Ok((command, text.slice(at..text.as_str().len()))))
}
