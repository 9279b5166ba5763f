//! VLAN tags (IEEE 802.1Q) and stacks of two (IEEE 802.1ad, QinQ).

use super::{copy_header, ethernet, view};
use crate::field::{Base, Field};
use crate::{Access, Error, Header};

/// Length of a tag in bytes: control information and the type behind it.
pub const TAG_BYTES: usize = 4;
/// Tags that are followed.
pub const MAX_TAGS: usize = 2;

// Counted from the tag, so that the same view serves both tags; the field table names the same bits
// counted from the MAC header (`vlan.tci`, `vlan2.tci`, …).
const TCI: Field = Field::new(Base::Data, 0, 16);
const PCP: Field = Field::new(Base::Data, 0, 3);
const DEI: Field = Field::new(Base::Data, 3, 1);
const ID: Field = Field::new(Base::Data, 4, 12);
const TYPE: Field = Field::new(Base::Data, 16, 16);

view! {
    /// A tag at a place in a packet: the place of its control information, right behind the tag
    /// protocol identifier.
    VlanTag {
        /// Tag control information.
        tci / set_tci: u16 = TCI;
        /// Priority code point.
        pcp / set_pcp: u8 = PCP;
        /// Drop eligible indicator.
        dei / set_dei: bool = DEI;
        /// VLAN identifier.
        id / set_id: u16 = ID;
        /// EtherType behind the tag, or the identifier of another tag.
        ethertype / set_ethertype: u16 = TYPE;
    }
}

/// Whether the type announces a tag.
#[inline]
pub const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ethernet::VLAN | ethernet::QINQ | ethernet::QINQ_OLD)
}

/// The tags of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TagStack {
    /// Tag control information, outermost first; zero where there is no tag.
    pub tci: [u16; MAX_TAGS],
    /// Number of tags.
    pub count: usize,
    /// EtherType behind the last tag.
    pub ethertype: u16,
    /// Where the payload begins, in bytes from the start of the packet.
    pub payload: usize,
}

/// Follows tags from `at`, the place behind a type field that holds `ethertype`.
///
/// # Errors
///
/// [`Error::Truncated`]; [`Error::TooMany`] for a third tag. What was found until then is lost.
#[inline]
pub fn walk<A: Access + ?Sized>(packet: &A, at: usize, ethertype: u16) -> Result<TagStack, Error> {
    let mut stack = TagStack { ethertype, payload: at, ..TagStack::default() };
    while is_tag(stack.ethertype) {
        let Some(slot) = stack.tci.get_mut(stack.count) else {
            return Err(Error::TooMany { header: Header::Vlan, limit: MAX_TAGS });
        };
        let [t0, t1, e0, e1] = copy_header(packet, stack.payload, usize::MAX, Header::Vlan)?;
        *slot = u16::from_be_bytes([t0, t1]);
        stack.ethertype = u16::from_be_bytes([e0, e1]);
        stack.count += 1;
        stack.payload += TAG_BYTES;
    }
    Ok(stack)
}
