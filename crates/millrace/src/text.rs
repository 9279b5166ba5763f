//! Text for people: numbers with separators, and printing that accepts a closed pipe.

use serde::Serialize;
use std::io::{self, Write};
use unit_prefix::NumberPrefix;

/// Prints to standard output; a closed pipe is not an error.
///
/// # Errors
/// When the text cannot be written, to a full disk for example.
pub fn print(text: &str) -> io::Result<()> {
    print_if_read(text).map(drop)
}

/// The same, for one of many texts; `false` where nothing reads them any more.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_if_read(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes lines to standard error. Nothing reads them where that is closed, as after the end of a terminal,
/// which is no reason to end.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text);
}

/// A rate with an SI prefix by its size: `14.881 Mpps`, `400 pps`.
pub fn rate(per_second: f64, unit: &str) -> String {
    match NumberPrefix::decimal(per_second) {
        NumberPrefix::Standalone(rate) => format!("{rate:.0} {unit}"),
        NumberPrefix::Prefixed(prefix, rate) => format!("{rate:.3} {}{unit}", prefix.symbol()),
    }
}

/// What every command prints as JSON: an object with the number of the format, which a change that a reader
/// would notice increments, beside the fields of the result.
#[derive(Serialize)]
struct Envelope<'a, T> {
    format: u32,
    #[serde(flatten)]
    result: &'a T,
}

/// The format of [`print_json`].
pub const FORMAT: u32 = 1;

/// An object as JSON, in several lines, in the envelope of all commands.
///
/// # Errors
/// When it cannot be serialized.
pub fn json(object: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Envelope { format: FORMAT, result: object })? + "\n")
}

/// Prints an object as JSON, in several lines, in the envelope of all commands.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_json(object: &impl Serialize) -> io::Result<()> {
    print(&json(object)?)
}

/// The same on one line, for one of many objects; `false` where nothing reads them any more.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_json_line(object: &impl Serialize) -> io::Result<bool> {
    print_if_read(&(serde_json::to_string(&Envelope { format: FORMAT, result: object })? + "\n"))
}

/// Prints what was found, as JSON or as text.
///
/// # Errors
/// See [`print()`].
pub fn print_found(json: bool, found: &impl Serialize, text: impl FnOnce() -> String) -> io::Result<()> {
    if json { print_json(found) } else { print(&text()) }
}

/// A count with thin separators: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

pub use ::bench::units::counted as plural;

/// Bytes in hexadecimal, separated by `between`.
pub fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
}

/// Lines with a title in front of the first one, in a column of `width` characters.
pub fn titled<L: AsRef<str>>(title: &str, width: usize, lines: &[L]) -> String {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    lines.iter().zip(titles).map(|(line, title)| format!("{title:<width$} {}\n", line.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::{count, rate};

    #[test]
    fn counts_have_separators() {
        let shown = [0, 999, 1_000, 12_345_678].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn rates_have_a_prefix_by_their_size() {
        let shown = [0.0, 0.4, 400.0, 1_500.0, 14_880_952.0, 1e9].map(|number| rate(number, "pps"));
        assert_eq!(shown, ["0 pps", "0 pps", "400 pps", "1.500 kpps", "14.881 Mpps", "1.000 Gpps"]);
    }
}
