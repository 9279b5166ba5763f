//! Typed views of headers: one module for each header.
//!
//! A view is an offset in a packet, not a borrow of it: each getter and setter takes the packet, reads or
//! writes its field once by copy, and returns `None` or `false` if the packet ends before. The fields are
//! those of [`crate::field`], the table that all later stages share.
//!
//! A `check` copies the header once, validates the copy, and returns its fields (`…Facts`). Use the facts
//! instead of a second read: another process may have changed the bytes in between.

pub mod arp;
pub mod ethernet;
pub mod icmp;
pub mod icmp6;
pub mod ipv4;
pub mod ipv6;
pub mod nd;
pub mod options;
pub mod protocol;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use arp::Arp;
pub use ethernet::Ethernet;
pub use icmp::Icmp;
pub use icmp6::Icmp6;
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use tcp::Tcp;
pub use udp::Udp;
pub use vlan::VlanTag;

use std::net::Ipv4Addr;

use crate::{Access, Error, Header, MacAddr};

/// The type of a field's value in getters and setters.
pub(crate) trait FieldValue {
    fn from_field(bits: u64) -> Self;
    fn to_field(self) -> u64;
}

macro_rules! integer_values {
    ($($type:ty),*) => { $(
        impl FieldValue for $type {
            #[inline]
            fn from_field(bits: u64) -> Self {
                bits as $type
            }

            #[inline]
            fn to_field(self) -> u64 {
                self.into()
            }
        }
    )* };
}

integer_values!(u8, u16, u32);

impl FieldValue for bool {
    #[inline]
    fn from_field(bits: u64) -> Self {
        bits != 0
    }

    #[inline]
    fn to_field(self) -> u64 {
        self.into()
    }
}

impl FieldValue for Ipv4Addr {
    #[inline]
    fn from_field(bits: u64) -> Self {
        Ipv4Addr::from_bits(bits as u32)
    }

    #[inline]
    fn to_field(self) -> u64 {
        self.to_bits().into()
    }
}

impl FieldValue for MacAddr {
    #[inline]
    fn from_field(bits: u64) -> Self {
        MacAddr::from_bits(bits)
    }

    #[inline]
    fn to_field(self) -> u64 {
        self.to_bits()
    }
}

/// Defines a view type with its getters and setters.
macro_rules! view {
    (
        $(#[$doc:meta])* $name:ident {
            $( $(#[$field_doc:meta])* $get:ident / $set:ident: $type:ty = $field:expr; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name {
            at: usize,
        }

        impl $name {
            /// The header that begins `at` bytes from the start of the packet.
            #[inline]
            pub const fn at(at: usize) -> Self {
                Self { at }
            }

            /// Where it begins, in bytes from the start of the packet.
            #[inline]
            pub const fn offset(self) -> usize {
                self.at
            }

            $(
                $(#[$field_doc])*
                #[inline]
                pub fn $get<A: crate::Access + ?Sized>(self, packet: &A) -> Option<$type> {
                    $field.load(packet, self.at).map(crate::view::FieldValue::from_field)
                }

                #[doc = concat!("Sets what [`", stringify!($name), "::", stringify!($get),
                    "`] reads; false if the packet ends before. The caller updates checksums.")]
                #[inline]
                #[must_use]
                pub fn $set<A: crate::Access + ?Sized>(self, packet: &mut A, value: $type) -> bool {
                    $field.store(packet, self.at, crate::view::FieldValue::to_field(value))
                }
            )*
        }
    };
}
use view;

/// Bytes between `at` and `end`, or the packet's end if that comes first.
#[inline]
fn available<A: Access + ?Sized>(packet: &A, at: usize, end: usize) -> usize {
    end.min(packet.len()).saturating_sub(at)
}

/// Copies the fixed part of a header, which must lie before `end`.
#[inline]
fn copy_header<const N: usize, A: Access + ?Sized>(
    packet: &A,
    at: usize,
    end: usize,
    header: Header,
) -> Result<[u8; N], Error> {
    let have_bytes = available(packet, at, end);
    let truncated = Error::Truncated { header, need_bytes: N, have_bytes };
    if have_bytes < N { Err(truncated) } else { packet.get(at).ok_or(truncated) }
}
