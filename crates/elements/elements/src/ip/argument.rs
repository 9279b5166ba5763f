//! Kinds of arguments that several elements take.

use click::config::{Names, Parsed, parse};
use diag::{Diagnostic, Spanned};
use packet::anno::{self, ANNO_BYTES, Anno};
use shm::descriptor::BUF_BYTES;

/// Reads the offset of a header or of an address in it, which must lie in a packet's first segment.
pub fn offset(text: &Spanned, names: &dyn Names) -> Parsed<u16> {
    parse::int_in(0..=BUF_BYTES as i64)(text, names).map(|offset| offset as u16)
}

/// Reads the name or offset of an annotation of `len` bytes.
pub fn annotation(len: u8) -> impl Fn(&Spanned, &dyn Names) -> Parsed<Anno> {
    move |text, names| {
        if let Some(named) = anno::from_name(text.as_str()) {
            if named.len == len {
                return Ok(named);
            }
            let message = format!("annotation `{text}` has {} bytes", named.len);
            return Err(Diagnostic::error(text.span, message).help(format!("{len} are needed")));
        }
        let last = ANNO_BYTES as i64 - i64::from(len);
        let offset = parse::int_in(0..=last)(text, names)?;
        Ok(Anno { offset: offset as u8, len })
    }
}
