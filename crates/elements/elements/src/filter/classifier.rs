//! `Classifier`: sorts packets by bytes at offsets.

use super::filter_plan::FilterPlan;
use super::formula::{Formula, Var, not};
use super::listing::Clause;
use super::sorter::Sorter;
use diag::{Diagnostic, Diagnostics, Spanned};
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use ir::analysis::interval::IntervalSet;
use packet::field::{Base, Field};
use std::ops::Range;
use std::sync::Arc;

/// The class.
pub const CLASS: Class = Class {
    name: "Classifier",
    summary: "sorts packets by bytes at offsets",
    page: "\
# Classifier(PATTERN_1, ..., PATTERN_N)

Sends each packet to the output of the first pattern that it matches; drops a packet that matches none.

A pattern is a list of clauses `OFFSET/VALUE` or `OFFSET/VALUE%MASK`, all of which must match: OFFSET is
decimal and counted from the packet's first byte, VALUE and MASK are hexadecimal, two digits a byte; `?`
is a digit that does not matter. `!` before a clause negates it. The pattern `-` matches
everything. A packet too short for a clause does not match it.

- **ports**: 1 input, push; as many outputs as patterns
- **handlers**: `program` (read): the patterns as Click lists them, a test of four bytes a line; `steps` (read): the
  decisions that run, for people; `config` (read/write): other rules take the place of these while packets flow; `pattern0`, ...
  (read/write): one of them
- **drop reasons**: `no-match`
- **difference**: what runs is not the list of `program` but that of `steps`, which decides the same over runs of bits

    Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -)
",
    codes: PortCodes::SORTER,
    state: StateScope::None,
    make,
};

/// The highest offset of a clause: frames are shorter.
const MAX_OFFSET: usize = 8000;

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (patterns, clauses) = cx.patterns(|text, _, diags| Some(pattern(text, diags)))?;
    let formulas =
        clauses.iter().map(|clauses| Formula::All(clauses.iter().map(formula).collect())).collect();
    let plan = FilterPlan::of_patterns(clauses, formulas);
    Some(BoxElement::transparent(Sorter::of_patterns(cx, "Classifier", Arc::new(plan), &patterns)))
}

/// Reads a pattern: the clauses that must match.
fn pattern(text: &Spanned, diags: &mut Diagnostics) -> Vec<Clause> {
    if text.trim().as_str() == "-" {
        return vec![];
    }
    let (mut parts, errors) = (vec![], diags.errors());
    let mut at = 0;
    let bytes = text.as_str().as_bytes();
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| *byte == b'!' || byte.is_ascii_whitespace()) {
            at += 1;
        }
        let negated = bytes.get(start..at).unwrap_or_default().contains(&b'!');
        let first = at;
        while bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'!') {
            at += 1;
        }
        match clause(text, first..at) {
            Ok((at, bytes)) => parts.push(Clause { at, bytes, negated }),
            Err(mistake) => diags.push(mistake),
        }
    }
    if parts.is_empty() && diags.errors() == errors {
        diags.error(text.span, "the pattern is empty").help("`-` matches every packet");
    }
    parts
}

/// A digit's value and mask; both are 0 for `?`.
fn digit(byte: u8) -> Option<(u8, u8)> {
    match byte {
        b'?' => Some((0, 0)),
        _ => char::from(byte).to_digit(16).map(|digit| (digit as u8, 15)),
    }
}

/// The bytes of hexadecimal digits and their masks.
fn hex(text: &Spanned, range: Range<usize>, what: &str) -> Result<Vec<(u8, u8)>, Diagnostic> {
    let span = text.sub(range.clone());
    let digits = text.as_str().as_bytes().get(range).unwrap_or_default();
    if let Some(wrong) = digits.iter().find(|byte| digit(**byte).is_none()) {
        let message = format!("`{}` is no hexadecimal digit", wrong.escape_ascii());
        return Err(Diagnostic::error(span, message).help("digits are 0 to 9, a to f and `?`"));
    }
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        let message = format!("the {what} has {} digits", digits.len());
        return Err(Diagnostic::error(span, message).help("two hexadecimal digits make a byte"));
    }
    let digits: Vec<(u8, u8)> = digits.iter().filter_map(|byte| digit(*byte)).collect();
    Ok(digits.chunks(2).map(|pair| (pair[0].0 << 4 | pair[1].0, pair[0].1 << 4 | pair[1].1)).collect())
}

/// Reads `OFFSET/VALUE[%MASK]`.
fn clause(text: &Spanned, range: Range<usize>) -> Result<(usize, Vec<(u8, u8)>), Diagnostic> {
    let span = text.sub(range.clone());
    let whole = text.as_str().get(range.clone()).unwrap_or("");
    let Some((offset, rest)) = whole.split_once('/') else {
        let mistake = Diagnostic::error(span, format!("`{whole}` is no clause"));
        return Err(mistake.help("write `OFFSET/VALUE`, such as `12/0800`"));
    };
    let Ok(at) = offset.parse::<usize>() else {
        let span = text.sub(range.start..range.start + offset.len());
        return Err(
            Diagnostic::error(span, format!("`{offset}` is no offset")).help("a decimal number of bytes")
        );
    };
    let value_at = range.start + offset.len() + 1;
    let value_end = value_at + rest.find('%').unwrap_or(rest.len());
    let mut value = hex(text, value_at..value_end, "value")?;
    if value_end < range.end {
        let mask = hex(text, value_end + 1..range.end, "mask")?;
        if mask.len() != value.len() {
            let span = text.sub(value_end + 1..range.end);
            let message = format!("the mask has {} bytes, the value {}", mask.len(), value.len());
            return Err(Diagnostic::error(span, message).help("they must be as long as each other"));
        }
        for ((_, counts), (mask, known)) in value.iter_mut().zip(mask) {
            *counts &= mask & known;
        }
    }
    if at.checked_add(value.len()).is_none_or(|end| end > MAX_OFFSET) {
        let mistake = Diagnostic::error(span, "the clause lies behind the end of every frame");
        return Err(mistake.help(format!("the last byte that can be looked at is {}", MAX_OFFSET - 1)));
    }
    Ok((at, value))
}

/// A clause as runs of bits.
fn formula(clause: &Clause) -> Formula {
    let bytes = bytes_formula(clause.at, &clause.bytes);
    if clause.negated { not(bytes) } else { bytes }
}

fn bytes_formula(at: usize, bytes: &[(u8, u8)]) -> Formula {
    let bit = |n: usize| {
        let (value, mask) = bytes[n / 8];
        let shift = 7 - n % 8;
        (mask >> shift & 1 == 1).then_some(u64::from(value >> shift & 1))
    };
    let mut parts = vec![];
    if let Some(last) = bytes.iter().rposition(|(_, mask)| *mask != 0) {
        parts.push(Formula::Atom(Var::Reach(Base::Data, (at + last + 1) as u16), IntervalSet::one(1)));
    }
    let mut n = 0;
    while n < bytes.len() * 8 {
        let (start, mut value) = (n, 0);
        // A field touches at most eight bytes.
        while n < bytes.len() * 8 && n / 8 < start / 8 + 8 {
            let Some(bit) = bit(n) else { break };
            value = value << 1 | bit;
            n += 1;
        }
        if n > start {
            let field = Field::new(Base::Data, (at * 8 + start) as u16, (n - start) as u8);
            parts.push(Formula::Atom(Var::Field(field), IntervalSet::one(value)));
        } else {
            n += 1;
        }
    }
    Formula::All(parts)
}
