//! Values that handlers write: the same texts as in configurations.

use click::config::{NoNames, Parsed, parse};
use diag::{Span, Spanned};
use std::net::Ipv4Addr;

/// Reads a text with one of the configuration's parsers.
///
/// # Errors
/// A sentence that says what was expected.
pub fn read<T>(
    text: &str,
    parser: impl Fn(&Spanned, &dyn click::config::Names) -> Parsed<T>,
) -> Result<T, String> {
    parser(&Spanned::derived(text.trim(), Span::NONE), &NoNames).map_err(|mistake| mistake.message)
}

/// A Boolean, as in configurations.
///
/// # Errors
/// A sentence that says what was expected.
pub fn boolean(text: &str) -> Result<bool, String> {
    read(text, parse::bool)
}

/// An IPv4 address in host byte order.
///
/// # Errors
/// A sentence that says what was expected.
pub fn address(text: &str) -> Result<u32, String> {
    read(text, parse::ip4).map(u32::from)
}

/// An address as Click writes it.
pub fn show_address(address: u64) -> String {
    Ipv4Addr::from(address as u32).to_string()
}
