//! `$variables` in configuration strings, replaced as by Click's `lib/variableenv.cc`.
//!
//! `$name`, `${name}`, `${name-default}`, `${name[2]}` (the third word of the value). Variables inside single
//! quotes and comments are not replaced; inside double quotes the value is escaped. An undefined variable is
//! left unchanged: scripts have variables of their own.

use std::ops::Range;

use diag::Spanned;

use super::{escape, split_words};
use crate::scan;

/// The nesting limit of variables in the values of variables; deeper ones are left unchanged.
const MAX_DEPTH: usize = 10;

/// A configuration string may grow to this size, or to [`GROWTH`] times the size of its text. Variables that
/// multiply their values are stopped here.
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// The growth factor for texts of any size: a large table of routes is expanded through several variables and
/// compound elements.
const GROWTH: usize = 8;

/// The size limit of a configuration string in a text of that many bytes.
pub fn limit_bytes(text_bytes: usize) -> usize {
    text_bytes.saturating_mul(GROWTH).max(MAX_CONFIG_BYTES)
}

/// The values of variables for [`expand`].
pub trait Variables {
    /// The value of `$name`, unexpanded.
    fn value(&self, name: &str) -> Option<&Spanned>;
}

/// Replaces variables by their values. `None` if an intermediate string would exceed `limit_bytes`.
pub fn expand(config: &Spanned, variables: &dyn Variables, limit_bytes: usize) -> Option<Spanned> {
    let mut budget_bytes = limit_bytes;
    expand_text(config, variables, 0, &mut budget_bytes)
}

fn expand_text(
    config: &Spanned,
    variables: &dyn Variables,
    depth: usize,
    budget_bytes: &mut usize,
) -> Option<Spanned> {
    if !config.text.contains('$') {
        *budget_bytes = budget_bytes.checked_sub(config.text.len())?;
        return Some(config.clone());
    }
    let text = config.text.as_bytes();
    let mut parts: Vec<Spanned> = Vec::new();
    let mut copied = 0;
    let mut quoted = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if quoted == Some(b'"') => at += 1,
            b'\'' | b'"' if quoted.is_none() => quoted = Some(byte),
            b'\'' | b'"' if quoted == Some(byte) => quoted = None,
            b'/' if quoted.is_none() && scan::at_comment(text, at) => {
                at = scan::skip_comment(text, at);
                continue;
            }
            b'$' if quoted != Some(b'\'') && depth <= MAX_DEPTH => {
                let Some(reference) = Reference::read(text, at) else {
                    at += 1;
                    continue;
                };
                let end = reference.end;
                let value = reference.value(config, variables, depth, budget_bytes)?;
                if let Some(value) = value {
                    parts.push(config.slice(copied..at));
                    parts.push(if quoted.is_some() { escaped(value) } else { value });
                    copied = end;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(config.slice(copied..text.len()));
    let expanded = Spanned::concat(&parts, config.span);
    *budget_bytes = budget_bytes.checked_sub(expanded.text.len())?;
    Some(expanded)
}

/// The value, escaped for double quotes.
fn escaped(value: Spanned) -> Spanned {
    let inside = escape(&value.text);
    if inside == value.text { value } else { Spanned::derived(inside, value.span) }
}

/// A use of a variable.
pub struct Reference {
    /// How it is written.
    pub notation: Notation,
    /// The bytes without the signs around them.
    pub inside: Range<usize>,
    /// The offset after the whole reference.
    pub end: usize,
}

/// How a variable is used.
pub enum Notation {
    /// `$name`
    Plain,
    /// `${...}`
    Braced,
    /// `$(...)`: a script's own expression; variables inside are replaced.
    Script,
}

impl Reference {
    /// The reference whose `$` is at that offset.
    pub fn read(text: &[u8], dollar: usize) -> Option<Reference> {
        let start = dollar + 2;
        let (notation, inside, end) = match *text.get(dollar + 1)? {
            b'{' => {
                let end = start + text.get(start..)?.iter().position(|&byte| byte == b'}')?;
                (Notation::Braced, start..end, end + 1)
            }
            b'(' => {
                let end = script_end(text, start)?;
                (Notation::Script, start..end, end + 1)
            }
            byte if scan::is_variable(byte) => {
                let name = text.get(dollar + 1..)?;
                let len = name.iter().take_while(|&&byte| scan::is_variable(byte)).count();
                (Notation::Plain, dollar + 1..dollar + 1 + len, dollar + 1 + len)
            }
            _ => return None,
        };
        Some(Reference { notation, inside, end })
    }

    /// Its replacement. `Some(None)` leaves the reference unchanged; `None` means that the size limit is
    /// exceeded.
    fn value(
        &self,
        config: &Spanned,
        variables: &dyn Variables,
        depth: usize,
        budget_bytes: &mut usize,
    ) -> Option<Option<Spanned>> {
        let inside = config.slice(self.inside.clone());
        if let Notation::Plain = self.notation {
            return braced(&inside, variables, depth, budget_bytes);
        }
        let expanded = expand_text(&inside, variables, depth + 1, budget_bytes)?;
        match self.notation {
            Notation::Script if expanded == inside => Some(None),
            Notation::Script => {
                let (start, end) = (self.inside.start, self.inside.end);
                let open = config.slice(start - 2..start);
                let close = config.slice(end..self.end);
                let span = config.sub(start - 2..self.end);
                Some(Some(Spanned::concat([&open, &expanded, &close], span)))
            }
            _ => braced(&expanded, variables, depth, budget_bytes),
        }
    }
}

/// The inside of `${...}`: `name`, `name[index]`, `name-default`.
fn braced(
    inside: &Spanned,
    variables: &dyn Variables,
    depth: usize,
    budget_bytes: &mut usize,
) -> Option<Option<Spanned>> {
    let text = inside.text.trim_start();
    let len = text.bytes().take_while(|&byte| scan::is_variable(byte)).count();
    let (name, rest) = text.split_at(len);
    let mut rest = rest.trim_start();
    let mut index = None;
    if let Some((number, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && let Ok(number) = number.trim().parse::<usize>()
    {
        index = Some(number);
        rest = after.trim_start();
    }
    if let Some(value) = variables.value(name) {
        let value = expand_text(value, variables, depth + 1, budget_bytes)?;
        return Some(Some(match index {
            None => value,
            Some(index) => match split_words(&value).into_iter().nth(index) {
                Some(word) => word,
                None => Spanned::derived("", value.span),
            },
        }));
    }
    if rest.starts_with('-') {
        let at = inside.text.len() - rest.len() + 1;
        let default = inside.slice(at..inside.text.len());
        return expand_text(&default, variables, depth + 1, budget_bytes).map(Some);
    }
    Some(None)
}

/// The offset of the `)` that closes the `$(` whose inside starts at `at`.
fn script_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut level = 1usize;
    let mut quoted = None;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'(' if quoted.is_none() => level += 1,
            b')' if quoted.is_none() => {
                level -= 1;
                if level == 0 {
                    return Some(at);
                }
            }
            b'\'' | b'"' if quoted.is_none() => quoted = Some(byte),
            b'\'' | b'"' if quoted == Some(byte) => quoted = None,
            b'\\' if quoted != Some(b'\'') => at += 1,
            _ => {}
        }
        at += 1;
    }
    None
}
