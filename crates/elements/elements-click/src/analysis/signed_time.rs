//! Times before and after another one.
//!
//! A timestamp is a number of nanoseconds since 1970. One before that is kept as its two's complement: no time that can
//! be measured has the top bit.

use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::value;

/// Reads a time with a sign, in nanoseconds.
pub(super) fn signed_ns(text: &Spanned, names: &dyn Names) -> Parsed<i64> {
    let trimmed = text.trim();
    let (is_negative, rest) = match trimmed.as_str().chars().next() {
        Some(sign @ ('-' | '+')) => (sign == '-', trimmed.slice(1..trimmed.as_str().len())),
        _ => (false, trimmed),
    };
    let ns = parse::seconds_ns(&rest, names)?;
    let signed = if is_negative { 0i64.checked_sub_unsigned(ns) } else { i64::try_from(ns).ok() };
    signed.ok_or_else(|| diag::Diagnostic::error(text.span, "the time is more than 292 years"))
}

/// A timestamp, which may be before 1970, as Click writes it.
pub(crate) fn time_text(time_ns: u64) -> String {
    let signed = time_ns.cast_signed();
    let sign = if signed < 0 { "-" } else { "" };
    let size_ns = signed.unsigned_abs();
    match size_ns % 1_000 {
        0 => format!("{sign}{}", value::time_text(size_ns)),
        _ => format!("{sign}{}.{:09}", size_ns / 1_000_000_000, size_ns % 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use element::value::written;

    #[test]
    fn signs_are_read_and_written() {
        for (text, ns, written_text) in [
            ("1.5", 1_500_000_000, "1.500000"),
            ("+0.1", 100_000_000, "0.100000"),
            ("-1", -1_000_000_000, "-1.000000"),
            ("-900ms", -900_000_000, "-0.900000"),
            ("-1ns", -1, "-0.000000001"),
            ("0", 0, "0.000000"),
        ] {
            let read = written(text, signed_ns).unwrap();
            assert_eq!((read, time_text(read.cast_unsigned()).as_str()), (ns, written_text), "{text}");
        }
        for text in ["", "-", "--1", "+-1", "soon", "-10000000000", "10000000000"] {
            assert!(written(text, signed_ns).is_err(), "{text}");
        }
    }
}
