//! `millrace chain handler --file`: the handler calls of a file, a line each.

use crate::console;
use crate::exit::Mistake;
use crate::text::{print, print_json_line};
use anyhow::Context;
use control::Client;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// A call of a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
enum HandlerCall<'a> {
    /// Of a read handler, with an argument behind a blank.
    Read(&'a str),
    /// Of a write handler.
    Write { handler: &'a str, value: &'a str },
}

/// Makes the calls of a file, or of standard input (`-`), in their order, and prints the values that are read.
/// A line is carried out before the next one is read.
///
/// # Errors
/// When the file cannot be read, or a call fails: the message names its line.
pub fn run(client: &Client, file: &Path) -> anyhow::Result<()> {
    let (name, lines): (String, Box<dyn BufRead>) = if file == Path::new("-") {
        ("standard input".into(), Box::new(io::stdin().lock()))
    } else {
        let opened = File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
        (file.display().to_string(), Box::new(BufReader::new(opened)))
    };
    for (at, line) in lines.lines().enumerate() {
        let place = || format!("{name}:{}", at + 1);
        let line = line.with_context(place)?;
        match parse(&line).map_err(Mistake::new).with_context(place)? {
            None => {}
            Some(HandlerCall::Read(call)) => {
                let value = client.read(call).with_context(place)?;
                show(&Called::read(call, &value), || shown(call, value.trim_end()))?;
            }
            Some(HandlerCall::Write { handler, value }) => {
                client.write(handler, value).with_context(place)?;
                show(&Called::written(handler, value), String::new)?;
            }
        }
    }
    Ok(())
}

/// Prints what a call did: as JSON an object a line.
fn show(called: &Called<'_>, text: impl FnOnce() -> String) -> anyhow::Result<()> {
    if console::is_json() { print_json_line(called).map(drop) } else { print(&text()) }
        .context("standard output")
}

/// What a call of a handler did, as JSON.
#[derive(Serialize)]
pub struct Called<'a> {
    handler: &'a str,
    /// The value that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    /// The value that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<&'a str>,
}

impl<'a> Called<'a> {
    /// A handler was read.
    pub fn read(handler: &'a str, value: &'a str) -> Called<'a> {
        Called { handler, value: Some(value.trim_end()), written: None }
    }

    /// A handler was written.
    pub fn written(handler: &'a str, value: &'a str) -> Called<'a> {
        Called { handler, value: None, written: Some(value) }
    }
}

/// A value as `run` prints it.
fn shown(call: &str, value: &str) -> String {
    if value.contains('\n') { format!("{call}:\n{value}\n") } else { format!("{call}: {value}\n") }
}

/// The call of a line; `None` if the line is empty or a comment.
fn parse(line: &str) -> Result<Option<HandlerCall<'_>>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let split = |text: &'_ str| match text.split_once(char::is_whitespace) {
        Some((first, rest)) => (first.len(), text.len() - rest.trim_start().len()),
        None => (text.len(), text.len()),
    };
    let (end, rest) = split(line);
    let (first, rest) = (&line[..end], &line[rest..]);
    let call = match first {
        "read" | "write" if rest.is_empty() => return Err(format!("`{first}` names no handler")),
        "read" => HandlerCall::Read(rest),
        "write" => {
            let (end, value) = split(rest);
            HandlerCall::Write { handler: &rest[..end], value: &rest[value..] }
        }
        handler if rest.is_empty() => HandlerCall::Read(handler),
        handler => HandlerCall::Write { handler, value: rest },
    };
    Ok(Some(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_or_writes() {
        let write = |handler, value| Ok(Some(HandlerCall::Write { handler, value }));
        assert_eq!(parse("  c.count \r\n"), Ok(Some(HandlerCall::Read("c.count"))));
        assert_eq!(parse("read rt.lookup  1.2.3.4"), Ok(Some(HandlerCall::Read("rt.lookup  1.2.3.4"))));
        assert_eq!(parse("s.rate 10Mbps"), write("s.rate", "10Mbps"));
        assert_eq!(parse("rt.add \t 10.0.0.0/8  1 "), write("rt.add", "10.0.0.0/8  1"));
        assert_eq!(parse("write c.reset_counts"), write("c.reset_counts", ""));
        assert_eq!(parse("# c.count"), Ok(None));
        assert_eq!(parse(" "), Ok(None));
        assert!(parse("read").is_err_and(|why| why.contains("`read` names no handler")));
        assert!(parse(" write  ").is_err());
        assert_eq!(parse("ä.ö ü"), write("ä.ö", "ü"));
    }
}
