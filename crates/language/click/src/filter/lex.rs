//! Splits a text into words.

use std::ops::Range;

/// Splits at white space and around operators. `and`, `or` and `not` are ordinary words here. A `:` inside a
/// word belongs to it (`0:1:2:3:4:5`), so that the `:` of `?:` needs spaces around it.
pub fn words(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let len = match byte {
            _ if byte.is_ascii_whitespace() || byte == 0x0b => {
                at += 1;
                continue;
            }
            b'&' | b'|' if next == Some(byte) => 2,
            b'<' | b'>' | b'!' | b'=' if next == Some(b'=') => 2,
            _ if is_word(byte) => {
                bytes.get(at..).map_or(1, |rest| rest.iter().take_while(|b| is_word(**b)).count())
            }
            // One character, of any length in bytes.
            _ => text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
        };
        words.push(at..at + len);
        at += len;
    }
    words
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-./@_:".contains(&byte)
}
