//! Names of ICMP types and their codes, as Click has them.

use click::config::{Names, Parsed, parse};
use click::filter::ICMP_TYPES;
use diag::{Diagnostic, Spanned, did_you_mean};
use packet::view::icmp::is_error;

/// Codes by type.
const CODES: &[(u8, &[(&str, u8)])] = &[
    (
        3,
        &[
            ("net", 0),
            ("host", 1),
            ("protocol", 2),
            ("port", 3),
            ("needfrag", 4),
            ("srcroutefail", 5),
            ("netunknown", 6),
            ("hostunknown", 7),
            ("hostisolated", 8),
            ("netprohibited", 9),
            ("hostprohibited", 10),
            ("nettos", 11),
            ("hosttos", 12),
            ("filterprohibited", 13),
            ("hostprecedence", 14),
            ("precedencecutoff", 15),
        ],
    ),
    (5, &[("net", 0), ("host", 1), ("tosnet", 2), ("toshost", 3)]),
    (11, &[("transit", 0), ("reassembly", 1)]),
    (12, &[("erroratptr", 0), ("missingopt", 1), ("length", 2)]),
];

fn named(what: &str, text: &Spanned, names: &dyn Names, known: &[(&'static str, u8)]) -> Parsed<u8> {
    if let Some((_, number)) = known.iter().find(|(name, _)| *name == text.as_str()) {
        return Ok(*number);
    }
    parse::u8(text, names).map_err(|_| {
        let suggestion = did_you_mean(text.as_str(), known.iter().map(|(name, _)| *name));
        let error = Diagnostic::error(text.span, format!("`{text}` is no ICMP {what}"));
        match suggestion {
            Some(help) => error.help(help),
            None => error.help("a name or a number from 0 to 255 is expected"),
        }
    })
}

/// Reads any ICMP type.
pub fn any_type(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    named("type", text, names, ICMP_TYPES)
}

/// Reads an ICMP type that is an error.
pub(super) fn error_type(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    let errors: Vec<_> = ICMP_TYPES.iter().copied().filter(|(_, kind)| is_error(*kind)).collect();
    let kind = named("type", text, names, &errors)?;
    if is_error(kind) {
        return Ok(kind);
    }
    let message = format!("ICMP type {kind} is not an error type");
    Err(Diagnostic::error(text.span, message).help("error types are 3, 4, 5, 11 and 12"))
}

/// Reads a code of an ICMP type.
pub fn code(kind: u8) -> impl Fn(&Spanned, &dyn Names) -> Parsed<u8> {
    move |text, names| {
        let known = CODES.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, codes)| codes);
        named("code", text, names, known)
    }
}
