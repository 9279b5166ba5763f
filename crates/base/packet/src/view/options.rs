//! Options of IPv4 and TCP headers, which have the same encoding: kind 0 ends the list, kind 1 is one byte of
//! padding, and every other kind has a length byte that also counts kind and length.
//!
//! The options are copied once ([`OptionArea`]) and parsed in the copy.

use crate::{Error, Header};

/// The most bytes of options in either header.
pub const MAX_BYTES: usize = 40;
/// Kind: end of the list.
pub const END: u8 = 0;
/// Kind: one byte of padding.
pub const NOP: u8 = 1;

/// A private copy of a header's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionArea {
    bytes: [u8; MAX_BYTES],
    len: usize,
    header: Header,
}

impl OptionArea {
    /// Copies the options of a header that was copied; bytes beyond 40 are ignored.
    #[inline]
    pub(crate) fn new(header: Header, options: &[u8]) -> OptionArea {
        let mut bytes = [0; MAX_BYTES];
        let len = options.len().min(MAX_BYTES);
        bytes[..len].copy_from_slice(&options[..len]);
        OptionArea { bytes, len, header }
    }

    /// The bytes, padding included.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The options in order, padding included, up to the end of the list.
    #[inline]
    pub fn iter(&self) -> Options<'_> {
        Options { bytes: self.bytes(), at: 0, header: self.header }
    }
}

impl<'a> IntoIterator for &'a OptionArea {
    type Item = Result<TlvOption<'a>, Error>;
    type IntoIter = Options<'a>;

    fn into_iter(self) -> Options<'a> {
        self.iter()
    }
}

/// One option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TlvOption<'a> {
    /// Its kind.
    pub kind: u8,
    /// Offset of its kind byte, in bytes from the first option.
    pub at: usize,
    /// The bytes after the length byte; empty for padding.
    pub data: &'a [u8],
}

/// Iterates over options; ends at kind 0, at the end of the area, or after an option with an invalid length.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
    header: Header,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TlvOption<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        let kind = *rest.first()?;
        let len = match kind {
            END => {
                self.at = self.bytes.len();
                return None;
            }
            NOP => 1,
            _ => rest.get(1).copied().map_or(0, usize::from),
        };
        // A length below 2 would loop or go back; a length past the area would read the payload.
        let data = if kind == NOP { Some([].as_slice()) } else { rest.get(2..len) };
        match data {
            Some(data) => {
                self.at = at + len;
                Some(Ok(TlvOption { kind, at, data }))
            }
            None => {
                self.at = self.bytes.len();
                Some(Err(Error::BadOption { header: self.header, kind, at_bytes: at }))
            }
        }
    }
}
