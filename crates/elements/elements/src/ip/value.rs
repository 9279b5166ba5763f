//! IPv4 addresses in handlers.

use click::config::{Names, Parsed, parse};
use diag::Spanned;
use std::net::Ipv4Addr;

/// An IPv4 address in host byte order.
///
/// # Errors
/// A sentence that says what was expected.
pub fn address(text: &Spanned, names: &dyn Names) -> Parsed<u32> {
    parse::ip4(text, names).map(u32::from)
}

/// An address as Click writes it.
pub fn show_address(address: u64) -> String {
    Ipv4Addr::from(address as u32).to_string()
}
