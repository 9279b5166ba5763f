//! Scanners for the lexer and for the configuration-string functions: they find the end of a comment, a
//! quoted string or a `\<hex>` string. Positions are byte offsets; every scanner returns an offset inside or
//! at the end of the text.

/// White space as in C's `isspace`.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// A character of identifiers, except `/`.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@'
}

/// A character of variable names.
pub(crate) fn is_variable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a comment starts at `at`.
pub(crate) fn at_comment(text: &[u8], at: usize) -> bool {
    text.get(at) == Some(&b'/') && matches!(text.get(at + 1), Some(b'/' | b'*'))
}

/// The offset after the line end at or after `at` (`\n`, `\r\n` or `\r`).
pub(crate) fn skip_line(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\n' => return at,
            b'\r' => return at + usize::from(text.get(at) == Some(&b'\n')),
            _ => {}
        }
    }
    text.len()
}

/// The offset after the block comment whose inside starts at `at`, or `None` if it is not closed.
pub(crate) fn skip_block_comment(text: &[u8], at: usize) -> Option<usize> {
    let inside = text.get(at..)?;
    let end = inside.windows(2).position(|pair| pair == b"*/")?;
    Some(at + end + 2)
}

/// The offset after the comment that starts at `at`, with its line end.
pub(crate) fn skip_comment(text: &[u8], at: usize) -> usize {
    if text.get(at + 1) == Some(&b'/') {
        skip_line(text, at + 2)
    } else {
        skip_block_comment(text, at + 2).unwrap_or(text.len())
    }
}

/// The offset after the `\<...>` string whose inside starts at `at`, or `None` if it is not closed.
pub(crate) fn skip_hex(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(&byte) = text.get(at) {
        if byte == b'>' {
            return Some(at + 1);
        }
        at = if at_comment(text, at) { skip_comment(text, at) } else { at + 1 };
    }
    None
}

/// The offset after the escape that starts at `at` (a backslash).
pub(crate) fn skip_escape(text: &[u8], at: usize) -> usize {
    match text.get(at + 1) {
        None => text.len(),
        Some(b'<') => skip_hex(text, at + 2).unwrap_or(text.len()),
        Some(b'\r') if text.get(at + 2) == Some(&b'\n') => at + 3,
        Some(_) => at + 2,
    }
}

/// The offset after the quoted string that starts at `at` with `'` or `"`, or `None` if it is not closed.
pub(crate) fn skip_quote(text: &[u8], at: usize) -> Option<usize> {
    let quote = *text.get(at)?;
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        if byte == quote {
            return Some(at + 1);
        }
        at = if byte == b'\\' && quote == b'"' { skip_escape(text, at) } else { at + 1 };
    }
    None
}

/// The offset after the quoted string, `\<hex>` string or plain byte at `at`.
pub(crate) fn skip_item(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        None => text.len(),
        Some(b'\'' | b'"') => skip_quote(text, at).unwrap_or(text.len()),
        Some(b'\\') if text.get(at + 1) == Some(&b'<') => skip_escape(text, at),
        Some(_) => at + 1,
    }
}

/// The offset after white space and comments.
pub(crate) fn skip_blank(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        if is_space(byte) {
            at += 1;
        } else if at_comment(text, at) {
            at = skip_comment(text, at);
        } else {
            break;
        }
    }
    at.min(text.len())
}
