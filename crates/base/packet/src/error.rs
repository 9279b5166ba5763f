//! Why a header was not taken: one enum for the crate, with reason names that drop counters use.

use std::fmt;

use thiserror::Error;

/// The header that an [`enum@Error`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names are those of the protocols")]
pub enum Header {
    Ethernet,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Ipv6Extension,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Header::Ethernet => "Ethernet",
            Header::Vlan => "VLAN",
            Header::Arp => "ARP",
            Header::Ipv4 => "IPv4",
            Header::Ipv6 => "IPv6",
            Header::Ipv6Extension => "IPv6 extension",
            Header::Tcp => "TCP",
            Header::Udp => "UDP",
            Header::Icmp => "ICMP",
            Header::Icmp6 => "ICMPv6",
        })
    }
}

/// What is wrong with a header, or with a request to finish a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum Error {
    /// The header, or the packet that it announces, is longer than the bytes that are present.
    #[error("{header}: {need_bytes} bytes needed, {have_bytes} there")]
    Truncated {
        /// Which header.
        header: Header,
        /// Bytes from the start of the header that must be there.
        need_bytes: usize,
        /// Bytes that are present.
        have_bytes: usize,
    },
    /// The version is not the one that the lower layer announced.
    #[error("{header}: version {found}")]
    BadVersion {
        /// Which header.
        header: Header,
        /// The version field.
        found: u8,
    },
    /// The header length field is below the length of the fixed header.
    #[error("{header}: header length of {found_bytes} bytes is less than the fixed header")]
    HeaderTooShort {
        /// Which header.
        header: Header,
        /// The field's value in bytes.
        found_bytes: usize,
    },
    /// A length field contradicts another one.
    #[error("{header}: length field says {found_bytes} bytes, which does not fit the header around it")]
    BadLength {
        /// Which header.
        header: Header,
        /// The field's value in bytes.
        found_bytes: usize,
    },
    /// The checksum does not match.
    #[error("{header}: bad checksum")]
    BadChecksum {
        /// Which header.
        header: Header,
    },
    /// An option's length is impossible.
    #[error("{header}: option {kind} at byte {at_bytes} of the options has a bad length")]
    BadOption {
        /// Which header.
        header: Header,
        /// The option's kind.
        kind: u8,
        /// Where it begins, in bytes from the first option.
        at_bytes: usize,
    },
    /// A field has a value that the protocol does not allow or that is not supported.
    #[error("{header}: {field} is {found:#x}")]
    BadField {
        /// Which header.
        header: Header,
        /// Its name in the RFC.
        field: &'static str,
        /// Its value.
        found: u32,
    },
    /// There are more tags or extension headers than the bounded parse follows.
    #[error("{header}: more than {limit} in a row")]
    TooMany {
        /// Which header.
        header: Header,
        /// The most that are followed.
        limit: usize,
    },
    /// `csum_start + csum_offset` of a partial checksum lies past the end of the packet.
    #[error("checksum field at {start_bytes} + {offset_bytes} lies past the end of {len_bytes} bytes")]
    CsumBeyondEnd {
        /// Where the summed bytes begin.
        start_bytes: usize,
        /// Where the field lies, from the start.
        offset_bytes: usize,
        /// Length of the packet.
        len_bytes: usize,
    },
    /// `csum_offset` of a partial checksum does not lie on a word of the sum.
    #[error("checksum field {offset_bytes} bytes after the start is not on a 16-bit word")]
    CsumOddOffset {
        /// Where the field lies, from the start.
        offset_bytes: usize,
    },
}

impl Error {
    /// Name of the reason, as drop counters show it.
    pub const fn reason(self) -> &'static str {
        match self {
            Error::Truncated { .. } => "truncated",
            Error::BadVersion { .. } => "bad_version",
            Error::HeaderTooShort { .. } => "header_too_short",
            Error::BadLength { .. } => "bad_length",
            Error::BadChecksum { .. } => "bad_checksum",
            Error::BadOption { .. } => "bad_option",
            Error::BadField { .. } => "bad_field",
            Error::TooMany { .. } => "too_many_headers",
            Error::CsumBeyondEnd { .. } => "csum_beyond_end",
            Error::CsumOddOffset { .. } => "csum_odd_offset",
        }
    }

    /// All reason names, for whoever sets up counters before the first packet.
    pub const REASONS: [&'static str; 10] = [
        "truncated",
        "bad_version",
        "header_too_short",
        "bad_length",
        "bad_checksum",
        "bad_option",
        "bad_field",
        "too_many_headers",
        "csum_beyond_end",
        "csum_odd_offset",
    ];
}
