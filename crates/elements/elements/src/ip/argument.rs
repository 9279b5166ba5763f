//! Kinds of arguments that several elements take.

use click::config::{Names, Parsed, parse};
use diag::Spanned;
use shm::descriptor::BUF_BYTES;

/// Reads the offset of a header or of an address in it, which must lie in a packet's first segment.
pub fn offset(text: &Spanned, names: &dyn Names) -> Parsed<u16> {
    parse::int_in(0..=BUF_BYTES as i64)(text, names).map(|offset| offset as u16)
}
