//! Parsers of single values.
//!
//! Every parser is a [`Parser`], so that an element passes it where it declares an argument:
//! `args.keyword("OFFSET", parse::u32)`. An error states the expected value and has the location of the text.
//! Formats and ranges follow Click's `lib/args.cc`.

mod address;
mod number;
mod text;

use diag::{Diagnostic, Span, Spanned};

use super::{Names, NoNames};

pub use address::{
    ether, ip4, ip4_or_prefix, ip4_prefix, ip6, ip6_or_prefix, ip6_prefix, protocol, udp_port,
};
pub(crate) use address::{ether_text, ip4_prefix_text, ip4_text, ip6_prefix_text, ip6_text};
pub(crate) use number::integer_literal;
pub use number::{
    bandwidth_bytes_per_s, bool, f64, fixed_point, i8, i16, i32, i64, int_in, seconds_ns, u8, u16, u32, u64,
};
pub use text::{HandlerRef, any, bytes, element, filename, handler, keyword, string, word};

/// A value, or the error of its text.
pub type Parsed<T> = Result<T, Diagnostic>;

/// Parses a value of the type `T`.
pub trait Parser<T>: Fn(&Spanned, &dyn Names) -> Parsed<T> {}

impl<T, F: Fn(&Spanned, &dyn Names) -> Parsed<T>> Parser<T> for F {}

/// The value of a text outside a configuration, which has no location and no names of its own; `None` if it
/// has none.
pub fn plain<T>(text: &str, parser: impl Parser<T>) -> Option<T> {
    parser(&Spanned::derived(text, Span::NONE), &NoNames).ok()
}

/// A space-separated list of values. Returns the first error.
pub fn list<T>(item: impl Parser<T>) -> impl Parser<Vec<T>> {
    move |text, names| super::split_words(text).iter().map(|word| item(word, names)).collect()
}

/// The error "expected X, found `text`", at the text.
fn expected<T>(wanted: &str, text: &Spanned) -> Parsed<T> {
    let found =
        if text.text.is_empty() { "nothing".to_owned() } else { format!("`{}`", excerpt(&text.text)) };
    Err(Diagnostic::error(text.span, format!("expected {wanted}, found {found}")))
}

/// The part of an argument that a message quotes.
fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
    }
}
