//! Text for people: numbers with separators, and printing that accepts a closed pipe.

use serde::Serialize;
use std::io::{self, Write};

/// Prints to standard output; a closed pipe is not an error.
///
/// # Errors
/// When the text cannot be written, to a full disk for example.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a value as JSON, in several lines.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
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
    use super::count;

    #[test]
    fn counts_have_separators() {
        let shown = [0, 999, 1_000, 12_345_678].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "12,345,678"]);
    }
}
