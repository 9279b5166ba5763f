//! Words for people: numbers with separators, and printing that survives a closed pipe.

use serde::Serialize;
use std::io::{self, Write};

/// Prints to standard output; a reader that went away is not an error.
///
/// # Errors
/// When it cannot be written: a full disk, say.
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

/// A count with thin separators: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
