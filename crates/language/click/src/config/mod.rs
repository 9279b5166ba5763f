//! Configuration strings: the texts between the parentheses of `Class(...)`.
//!
//! The language passes configuration strings to the elements unchanged. Most elements read them as
//! comma-separated arguments, each a list of space-separated words. The functions here split them as Click's
//! `lib/confparse.cc` does, and keep the location of every piece:
//!
//! - [`split_args`], [`split_words`], [`unquote`], [`unquote_bytes`], [`split_keyword`];
//! - [`expand`][]: `$variables`;
//! - [`parse`][]: parses one value (numbers, times, addresses, ...);
//! - [`Args`][]: the arguments that an element declares;
//! - [`Names`], [`NameTable`]: names of addresses, ports and protocols.
//!
//! No configuration string is an error by itself: an unclosed quote extends to the end.

mod args;
mod expand;
mod name_table;
mod names;
pub mod parse;
mod prefix;
mod services;

use std::ops::Range;

use diag::{Span, Spanned};

pub use args::Args;
pub use expand::{Notation, Reference, Variables, expand, limit_bytes};
pub use name_table::{NameTable, ScopedNames};
pub use names::{Addresses, Names, NoNames};
pub use parse::{HandlerRef, Parsed};
pub use prefix::{Ip4Prefix, Ip6Prefix};

pub(crate) use parse::integer_literal;
pub(crate) use services::PROTOCOLS;

use crate::scan;

/// Splits at top-level commas; removes comments and the white space around arguments, keeps
/// quotes. An empty last argument does not count: `(a, )` has one argument.
pub fn split_args(config: &Spanned) -> Vec<Spanned> {
    let len = config.text.len();
    let mut args = Vec::new();
    let mut at = 0;
    while at < len {
        let (pieces, end) = argument(config.text.as_bytes(), at, true);
        if !pieces.is_empty() || end < len {
            args.push(join(config, &pieces, at));
        }
        at = end + 1;
    }
    args
}

/// Joins arguments to one configuration string; the separators have the location `span`.
pub fn join_args<'a>(args: impl IntoIterator<Item = &'a Spanned>, span: Span) -> Spanned {
    let args: Vec<&Spanned> = args.into_iter().collect();
    separated(args, &Spanned::derived(", ", span), span)
}

fn separated<'a>(
    parts: impl IntoIterator<Item = &'a Spanned>,
    separator: &'a Spanned,
    span: Span,
) -> Spanned {
    let parts = parts.into_iter().enumerate();
    Spanned::concat(
        parts.flat_map(|(at, part)| (at > 0).then_some(separator).into_iter().chain([part])),
        span,
    )
}

/// Splits at white space outside quotes; comments separate words too.
pub fn split_words(arg: &Spanned) -> Vec<Spanned> {
    let text = arg.text.as_bytes();
    let mut words = Vec::new();
    let mut at = scan::skip_blank(text, 0);
    while at < text.len() {
        let end = word_end(text, at);
        words.push(arg.slice(at..end));
        at = scan::skip_blank(text, end);
    }
    words
}

fn word_end(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        if scan::is_space(byte) || scan::at_comment(text, at) {
            break;
        }
        at = scan::skip_item(text, at);
    }
    at
}

/// Removes one level of quotes: `'...'` verbatim, `"..."` with its backslash escapes,
/// `\<hex>` also outside quotes.
///
/// Bytes that are no UTF-8 become `U+FFFD`; [`unquote_bytes`] keeps them.
pub fn unquote(arg: &Spanned) -> Spanned {
    let (pieces, _) = argument(arg.text.as_bytes(), 0, false);
    let arg = join(arg, &pieces, 0);
    let text = arg.text.as_str();
    // A text without quotes keeps its exact location.
    if !text.contains(['\'', '"']) && !text.contains("\\<") {
        return arg;
    }
    let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    for quote in ['\'', '"'] {
        let whole = text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
        if whole && !inside.contains(quote) && (quote == '\'' || !inside.contains('\\')) {
            return arg.slice(1..text.len() - 1);
        }
    }
    let bytes = unquote_text(text.as_bytes());
    Spanned::derived(String::from_utf8_lossy(&bytes), arg.span)
}

/// [`unquote`] to bytes.
pub fn unquote_bytes(arg: &Spanned) -> Vec<u8> {
    let (pieces, _) = argument(arg.text.as_bytes(), 0, false);
    unquote_text(join(arg, &pieces, 0).text.as_bytes())
}

/// A double-quoted text that [`unquote`] turns back into `text`.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

/// What [`quote`] puts between the quotes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '"' | '$' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            c if c.is_ascii_control() => out.push_str(&format!("\\{:03o}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Splits `KEYWORD value`. Any first word of letters, digits and `_:.?!` counts as a keyword if a value
/// follows it; the caller checks whether it has declared the keyword.
pub fn split_keyword(arg: &Spanned) -> Option<(Spanned, Spanned)> {
    let text = arg.text.as_bytes();
    let first = *text.first()?;
    if !first.is_ascii_alphabetic() && first != b'_' {
        return None;
    }
    let keyword_byte = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_:.?!".contains(byte);
    let end = text.iter().take_while(keyword_byte).count();
    let rest = text.get(end..)?;
    let spaces = rest.iter().take_while(|&&byte| scan::is_space(byte)).count();
    if spaces == 0 || spaces == rest.len() {
        return None;
    }
    Some((arg.slice(0..end), arg.slice(end + spaces..text.len())))
}

/// The ranges of the argument that starts at `at`, without comments and outer white space, and the end of the
/// argument: a comma (if `commas`) or the end of the text.
fn argument(text: &[u8], at: usize, commas: bool) -> (Vec<Range<usize>>, usize) {
    let mut at = scan::skip_blank(text, at);
    let mut pieces = Vec::new();
    let (mut left, mut right) = (at, at);
    let mut closed = false;
    while let Some(&byte) = text.get(at) {
        if scan::is_space(byte) {
            at += 1;
        } else if scan::at_comment(text, at) {
            at = scan::skip_comment(text, at);
            closed = true;
        } else if byte == b',' && commas {
            break;
        } else {
            if closed {
                pieces.push(left..right);
                left = at;
                closed = false;
            }
            at = scan::skip_item(text, at);
            right = at;
        }
    }
    if left < right {
        pieces.push(left..right);
    }
    (pieces, at.min(text.len()))
}

/// The ranges joined by single spaces (where comments were).
fn join(config: &Spanned, pieces: &[Range<usize>], at: usize) -> Spanned {
    match pieces {
        [] => Spanned::derived("", config.sub(at..at)),
        [only] => config.slice(only.clone()),
        [first, .., last] => {
            let span = config.sub(first.start..last.end);
            let parts: Vec<Spanned> = pieces.iter().map(|piece| config.slice(piece.clone())).collect();
            separated(&parts, &Spanned::derived(" ", Span { end: span.start, ..span }), span)
        }
    }
}

fn unquote_text(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let hex = text.get(at + 1) == Some(&b'<');
        match byte {
            b'\'' | b'"' if quote.is_none() => quote = Some(byte),
            _ if quote == Some(byte) => quote = None,
            b'\\' if quote == Some(b'"') || (quote.is_none() && hex) => {
                at = unescape(text, at, &mut out);
                continue;
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Appends the bytes of the escape at `at` and returns the offset after it.
fn unescape(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let end = scan::skip_escape(text, at);
    let Some(&kind) = text.get(at + 1) else {
        out.push(b'\\');
        return end;
    };
    let rest = text.get(at + 1..).unwrap_or_default();
    match kind {
        b'\r' | b'\n' => {}
        b'a' => out.push(0x07),
        b'b' => out.push(0x08),
        b'f' => out.push(0x0c),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'v' => out.push(0x0b),
        b'0'..=b'7' => {
            let digits = rest.iter().take(3).take_while(|c| (b'0'..=b'7').contains(c));
            let (len, value) = digits.fold((0, 0u8), |(len, value), digit| {
                (len + 1, value.wrapping_mul(8).wrapping_add(digit - b'0'))
            });
            out.push(value);
            return at + 1 + len;
        }
        b'x' => {
            let digits = rest.get(1..).unwrap_or_default();
            let digits: Vec<u8> = digits.iter().map_while(|&c| hex_digit(c)).collect();
            let value = digits.iter().fold(0u8, |value, digit| value.wrapping_mul(16) | digit);
            out.push(value);
            return at + 2 + digits.len();
        }
        b'<' => {
            let inside = text.get(at + 2..end).unwrap_or_default();
            let mut high = None;
            let mut at = 0;
            while let Some(&byte) = inside.get(at) {
                if scan::at_comment(inside, at) {
                    at = scan::skip_comment(inside, at);
                    continue;
                }
                // Any character but a digit is a separator, as in Click.
                match (hex_digit(byte), high) {
                    (Some(digit), None) => high = Some(digit),
                    (Some(digit), Some(first)) => {
                        out.push(first << 4 | digit);
                        high = None;
                    }
                    (None, _) => {}
                }
                at += 1;
            }
        }
        other => out.push(other),
    }
    end
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
