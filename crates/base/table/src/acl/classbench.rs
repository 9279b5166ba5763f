//! ClassBench's text formats: filter sets and header traces.
//!
//! A filter is `@src/len dst/len sport_lo : sport_hi dport_lo : dport_hi proto/mask [flags/mask]`,
//! one a line; a trace line is `src dst sport dport proto [flags] [matched]`, decimal, separated by
//! white space. Lines that are empty or start with `#` are skipped. TCP flags are kept but are no
//! dimension of [`Filter::rule`]: published figures for these sets omit them, and a mask with holes is
//! not an interval.
//!
//! The caller reads and unpacks files: input here is text.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use thiserror::Error;

use super::rule::{AclError, Rule, Schema};

/// Why a line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// Line number, counted from 1.
    pub line: usize,
    /// The mistake.
    pub problem: Problem,
}

/// A mistake in a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// A filter line without its `@`.
    #[error("a filter starts with '@'")]
    NoAt,
    /// The line ends too early.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The text is not of the expected kind.
    #[error("'{text}' is not {wanted}")]
    Not {
        /// The text.
        text: String,
        /// The expected kind.
        wanted: &'static str,
    },
    /// The line has trailing text.
    #[error("'{0}' follows the end of the line's content")]
    Trailing(String),
    /// The values make no rule.
    #[error(transparent)]
    Rule(#[from] AclError),
    /// A range ends before it starts.
    #[error("{lo} : {hi} is an empty range; swap the ends")]
    EmptyRange {
        /// First value.
        lo: u16,
        /// Last value.
        hi: u16,
    },
}

/// One line of a filter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Source prefix: address and length.
    pub src: (u32, u8),
    /// Destination prefix: address and length.
    pub dst: (u32, u8),
    /// First and last source port.
    pub sport: (u16, u16),
    /// First and last destination port.
    pub dport: (u16, u16),
    /// Protocol and its mask.
    pub proto: (u8, u8),
    /// TCP flags and their mask; not part of [`Self::rule`].
    pub flags: (u16, u16),
}

impl Filter {
    /// The filter over [`Schema::ipv4_five_tuple`].
    ///
    /// # Errors
    /// When a prefix is too long or the protocol's mask has holes.
    pub fn rule(&self) -> Result<Rule, AclError> {
        let schema = Schema::ipv4_five_tuple();
        Rule::any(&schema)
            .prefix(&schema, 0, self.src.0, self.src.1)?
            .prefix(&schema, 1, self.dst.0, self.dst.1)?
            .range(&schema, 2, self.sport.0.into(), self.sport.1.into())?
            .range(&schema, 3, self.dport.0.into(), self.dport.1.into())?
            .masked(&schema, 4, self.proto.0.into(), self.proto.1.into())
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "@{}/{}\t{}/{}\t{} : {}\t{} : {}\t0x{:02X}/0x{:02X}\t0x{:04X}/0x{:04X}",
            Ipv4Addr::from(self.src.0),
            self.src.1,
            Ipv4Addr::from(self.dst.0),
            self.dst.1,
            self.sport.0,
            self.sport.1,
            self.dport.0,
            self.dport.1,
            self.proto.0,
            self.proto.1,
            self.flags.0,
            self.flags.1
        )
    }
}

/// One line of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source address, destination address, source port, destination port, protocol.
    pub key: [u32; 5],
    /// TCP flags as in the trace.
    pub flags: u32,
    /// The filter that the header was generated from: it matches, and an earlier one may match too.
    pub made_from: Option<u32>,
}

impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [src, dst, sport, dport, proto] = self.key;
        write!(f, "{src}\t{dst}\t{sport}\t{dport}\t{proto}\t{}", self.flags)?;
        self.made_from.map_or(Ok(()), |index| write!(f, "\t{index}"))
    }
}

/// Parses a filter set.
///
/// # Errors
/// Every line that cannot be read, in order.
pub fn parse_filters(text: &str) -> Result<Vec<Filter>, Vec<LineError>> {
    parse_lines(text, parse_filter)
}

/// Parses a filter set into rules over [`Schema::ipv4_five_tuple`].
///
/// # Errors
/// Every line that cannot be read, in order.
pub fn parse_rules(text: &str) -> Result<Vec<Rule>, Vec<LineError>> {
    parse_lines(text, |line| Ok(parse_filter(line)?.rule()?))
}

/// Parses a trace.
///
/// # Errors
/// Every line that cannot be read, in order.
pub fn parse_trace(text: &str) -> Result<Vec<Header>, Vec<LineError>> {
    parse_lines(text, parse_header)
}

/// Formats filters for [`parse_filters`].
#[must_use]
pub fn write_filters(filters: &[Filter]) -> String {
    filters.iter().fold(String::new(), |mut text, filter| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{filter}");
        text
    })
}

fn parse_lines<T>(text: &str, parse: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, Vec<LineError>> {
    let (mut items, mut errors) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse(line) {
            Ok(item) => items.push(item),
            Err(problem) => errors.push(LineError { line: at + 1, problem }),
        }
    }
    if errors.is_empty() { Ok(items) } else { Err(errors) }
}

/// A line being parsed.
struct Tokens<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Tokens<'a> {
    fn next(&mut self, name: &'static str) -> Result<&'a str, Problem> {
        self.0.next().ok_or(Problem::Missing(name))
    }

    fn end(mut self) -> Result<(), Problem> {
        self.0.next().map_or(Ok(()), |text| Err(Problem::Trailing(text.to_owned())))
    }

    fn prefix(&mut self, name: &'static str) -> Result<(u32, u8), Problem> {
        let text = self.next(name)?;
        let wrong = || Problem::Not { text: text.to_owned(), wanted: "an IPv4 prefix" };
        let (address, len) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let len: u8 = len.parse().map_err(|_| wrong())?;
        if len > 32 { Err(wrong()) } else { Ok((address.into(), len)) }
    }

    fn ports(&mut self, name: &'static str) -> Result<(u16, u16), Problem> {
        let lo = port(self.next(name)?)?;
        let colon = self.next("':' of a port range")?;
        if colon != ":" {
            return Err(Problem::Not { text: colon.to_owned(), wanted: "the ':' of a port range" });
        }
        let hi = port(self.next(name)?)?;
        if lo > hi { Err(Problem::EmptyRange { lo, hi }) } else { Ok((lo, hi)) }
    }
}

fn port(text: &str) -> Result<u16, Problem> {
    text.parse().map_err(|_| Problem::Not { text: text.to_owned(), wanted: "a port number" })
}

fn masked(text: &str, wanted: &'static str, max: u32) -> Result<(u32, u32), Problem> {
    let wrong = || Problem::Not { text: text.to_owned(), wanted };
    let hex = |part: &str| {
        let digits = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"))?;
        u32::from_str_radix(digits, 16).ok().filter(|&value| value <= max)
    };
    let (value, mask) = text.split_once('/').ok_or_else(wrong)?;
    Ok((hex(value).ok_or_else(wrong)?, hex(mask).ok_or_else(wrong)?))
}

fn parse_filter(line: &str) -> Result<Filter, Problem> {
    let mut tokens = Tokens(line.strip_prefix('@').ok_or(Problem::NoAt)?.split_whitespace());
    let src = tokens.prefix("the source prefix")?;
    let dst = tokens.prefix("the destination prefix")?;
    let sport = tokens.ports("the source port range")?;
    let dport = tokens.ports("the destination port range")?;
    let (proto, proto_mask) =
        masked(tokens.next("the protocol")?, "a protocol and mask like 0x06/0xFF", 0xff)?;
    let flags = match tokens.0.next() {
        Some(text) => masked(text, "flags and mask like 0x0000/0x0200", 0xffff)?,
        None => (0, 0),
    };
    tokens.end()?;
    Ok(Filter {
        src,
        dst,
        sport,
        dport,
        proto: (proto as u8, proto_mask as u8),
        flags: (flags.0 as u16, flags.1 as u16),
    })
}

fn parse_header(line: &str) -> Result<Header, Problem> {
    let mut tokens = Tokens(line.split_whitespace());
    let number = |text: &str, wanted: &'static str, max: u32| {
        text.parse::<u32>()
            .ok()
            .filter(|&value| value <= max)
            .ok_or_else(|| Problem::Not { text: text.to_owned(), wanted })
    };
    let address = "an IPv4 address as a decimal number";
    let key = [
        number(tokens.next("the source address")?, address, u32::MAX)?,
        number(tokens.next("the destination address")?, address, u32::MAX)?,
        number(tokens.next("the source port")?, "a port number", 0xffff)?,
        number(tokens.next("the destination port")?, "a port number", 0xffff)?,
        number(tokens.next("the protocol")?, "a protocol number", 0xff)?,
    ];
    let flags = tokens.0.next().map(|text| number(text, "a flags word", u32::MAX)).transpose()?;
    let made_from = tokens.0.next().map(|text| number(text, "a filter index", u32::MAX)).transpose()?;
    tokens.end()?;
    Ok(Header { key, flags: flags.unwrap_or(0), made_from })
}
