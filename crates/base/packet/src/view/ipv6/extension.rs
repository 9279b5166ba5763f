//! The chain of IPv6 extension headers (RFC 8200 section 4), followed up to [`MAX_HEADERS`].
//!
//! The walk follows hop-by-hop, routing, fragment, destination options, authentication, mobility, HIP and
//! Shim6 headers (RFC 7045). It does not follow ESP, whose payload is encrypted. A fragment header with an
//! offset ends the walk: the middle of a datagram follows.

use crate::view::{available, protocol};
use crate::{Access, Error, Header};

/// The most extension headers that are followed.
pub const MAX_HEADERS: usize = 8;

/// One extension header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Extension {
    /// Its kind: see [`protocol`].
    pub kind: u8,
    /// Where it begins, in bytes from the start of the packet.
    pub at: usize,
    /// Its length in bytes.
    pub len: usize,
}

/// The fields of a fragment header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Offset in the original datagram in bytes.
    pub offset: usize,
    /// More fragments follow.
    pub more_fragments: bool,
    /// Identification.
    pub id: u32,
}

impl Fragment {
    /// Whether it is a part of a datagram: an atomic fragment (RFC 6946) is whole.
    #[inline]
    pub const fn is_partial(self) -> bool {
        self.offset != 0 || self.more_fragments
    }
}

/// The result of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extensions {
    list: [Extension; MAX_HEADERS],
    count: usize,
    /// The next header of the last one: the upper-layer protocol, unless it is a later fragment.
    pub next_header: u8,
    /// Where the next header begins, in bytes from the start of the packet.
    pub payload: usize,
    /// The fragment header, if there was one; of several, the first that is partial.
    pub fragment: Option<Fragment>,
    is_later_fragment: bool,
}

impl Extensions {
    /// The headers in order.
    #[inline]
    pub fn headers(&self) -> &[Extension] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// Whether the payload begins in the middle of a datagram.
    #[inline]
    pub const fn is_later_fragment(&self) -> bool {
        self.is_later_fragment
    }
}

/// Whether the walk follows a header of that kind.
#[inline]
pub const fn is_extension(kind: u8) -> bool {
    matches!(
        kind,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTH
            | protocol::DEST_OPTIONS
            | protocol::MOBILITY
            | protocol::HIP
            | protocol::SHIM6
    )
}

/// Follows extension headers from `at`, where a header of kind `first` begins, up to `end`.
///
/// # Errors
///
/// [`Error::Truncated`]; [`Error::TooMany`]; [`Error::BadField`] for hop-by-hop options that are not
/// first (RFC 8200 section 4.1); [`Error::HeaderTooShort`] for an authentication header below 12 bytes.
pub fn walk<A: Access + ?Sized>(packet: &A, at: usize, end: usize, first: u8) -> Result<Extensions, Error> {
    let mut seen = Extensions {
        list: [Extension::default(); MAX_HEADERS],
        count: 0,
        next_header: first,
        payload: at,
        fragment: None,
        is_later_fragment: false,
    };
    while is_extension(seen.next_header) && !seen.is_later_fragment() {
        let kind = seen.next_header;
        if kind == protocol::HOP_BY_HOP && seen.count > 0 {
            let found = u32::from(kind);
            return Err(Error::BadField { header: Header::Ipv6Extension, field: "next header", found });
        }
        let have_bytes = available(packet, seen.payload, end);
        let truncated =
            |need_bytes| Error::Truncated { header: Header::Ipv6Extension, need_bytes, have_bytes };
        // Every kind is at least 8 bytes long, so one copy holds all fields that are read.
        let bytes: [u8; 8] = match packet.get(seen.payload) {
            Some(bytes) if have_bytes >= 8 => bytes,
            _ => return Err(truncated(8)),
        };
        let len = match kind {
            protocol::FRAGMENT => 8,
            protocol::AUTH => (usize::from(bytes[1]) + 2) * 4,
            _ => (usize::from(bytes[1]) + 1) * 8,
        };
        if kind == protocol::AUTH && len < 12 {
            return Err(Error::HeaderTooShort { header: Header::Ipv6Extension, found_bytes: len });
        }
        if have_bytes < len {
            return Err(truncated(len));
        }
        if kind == protocol::FRAGMENT {
            let offset = u16::from_be_bytes([bytes[2], bytes[3]]);
            let fragment = Fragment {
                offset: usize::from(offset & 0xfff8),
                more_fragments: offset & 1 != 0,
                id: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            };
            // A second fragment header must not hide the first one.
            seen.is_later_fragment |= fragment.offset != 0;
            if !seen.fragment.is_some_and(Fragment::is_partial) {
                seen.fragment = Some(fragment);
            }
        }
        let Some(slot) = seen.list.get_mut(seen.count) else {
            return Err(Error::TooMany { header: Header::Ipv6Extension, limit: MAX_HEADERS });
        };
        *slot = Extension { kind, at: seen.payload, len };
        seen.count += 1;
        seen.payload += len;
        seen.next_header = bytes[0];
    }
    Ok(seen)
}
