//! Incremental checksum update (RFC 1624, equation 3): HC' = ~(~HC + ~m + m').
//!
//! A [`Delta`] collects the changes of any number of words, and is applied once to each checksum that covers
//! them. A NAT builds one for its addresses, applies it to the IPv4 header, adds the ports and applies it to
//! TCP or UDP.
//!
//! The two zeros. RFC 1624 section 3 shows why equation 2 of RFC 1141 is wrong: it can give 0xffff for a
//! header whose recomputed checksum is 0x0000. Equation 3 equals a full recomputation, with one exception
//! that no incremental method avoids, since it does not read the other words: **if every covered word is zero
//! after the change**, it gives 0x0000 and a recomputation 0xffff. An IPv4 header (version) and a pseudo
//! header (protocol) are never all zero. An ICMP message can be: an echo reply with identifier, sequence
//! number and payload all zero. Code that changes an ICMP message to type 0, code 0 must use
//! [`Delta::apply_icmp`] or recompute the checksum.
//!
//! If the stored checksum was wrong, the result is wrong by the same amount: an update does not hide the
//! error.

use super::{fold, udp_on_wire};

/// The change of the words that a checksum covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delta(u64);

impl Delta {
    /// No change.
    pub const NONE: Delta = Delta(0);

    /// A word at an even offset changes from `old` to `new`.
    #[inline]
    #[must_use]
    pub const fn change16(self, old: u16, new: u16) -> Delta {
        Delta(self.0 + !old as u64 + new as u64)
    }

    /// Two words change.
    #[inline]
    #[must_use]
    pub const fn change32(self, old: u32, new: u32) -> Delta {
        self.change16((old >> 16) as u16, (new >> 16) as u16).change16(old as u16, new as u16)
    }

    /// Eight words change: an IPv6 address.
    #[inline]
    #[must_use]
    pub const fn change128(self, old: u128, new: u128) -> Delta {
        self.change32((old >> 96) as u32, (new >> 96) as u32)
            .change32((old >> 64) as u32, (new >> 64) as u32)
            .change32((old >> 32) as u32, (new >> 32) as u32)
            .change32(old as u32, new as u32)
    }

    /// The sum of both changes.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Delta) -> Delta {
        Delta(self.0 + fold(other.0) as u64)
    }

    /// The change as one word, to be stored with a flow: `Delta::from_word(d.to_word())` is equivalent to
    /// `d`.
    ///
    /// A change that sums up to zero (0xffff here) differs from no change (0): see the module on the two
    /// zeros. Folding preserves the difference.
    #[inline]
    #[must_use]
    pub const fn to_word(self) -> u16 {
        fold(self.0)
    }

    /// The change that was stored as one word.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u16) -> Delta {
        Delta(word as u64)
    }

    /// The checksum after the change, for IPv4 headers and TCP.
    #[inline]
    #[must_use]
    pub const fn apply(self, check: u16) -> u16 {
        !fold(!check as u64 + self.0)
    }

    /// The checksum after the change, for UDP: 0 (none) stays 0, and a computed 0 becomes 0xffff.
    #[inline]
    #[must_use]
    pub const fn apply_udp(self, check: u16) -> u16 {
        if check == 0 { 0 } else { udp_on_wire(self.apply(check)) }
    }

    /// The checksum after the change, for ICMP messages that may have become all zero.
    ///
    /// Where equation 3 gives 0x0000, this gives 0xffff. For a message that is not all zero a receiver
    /// accepts both, and for one that is only 0xffff. So the result is always valid, but may differ from a
    /// full recomputation.
    #[inline]
    #[must_use]
    pub const fn apply_icmp(self, check: u16) -> u16 {
        udp_on_wire(self.apply(check))
    }
}

/// The checksum after one word changed.
#[inline]
#[must_use]
pub const fn update16(check: u16, old: u16, new: u16) -> u16 {
    Delta::NONE.change16(old, new).apply(check)
}

/// The checksum after two words changed.
#[inline]
#[must_use]
pub const fn update32(check: u16, old: u32, new: u32) -> u16 {
    Delta::NONE.change32(old, new).apply(check)
}

/// The UDP checksum after one word changed: see [`Delta::apply_udp`].
#[inline]
#[must_use]
pub const fn update_udp16(check: u16, old: u16, new: u16) -> u16 {
    Delta::NONE.change16(old, new).apply_udp(check)
}

/// The UDP checksum after two words changed: see [`Delta::apply_udp`].
#[inline]
#[must_use]
pub const fn update_udp32(check: u16, old: u32, new: u32) -> u16 {
    Delta::NONE.change32(old, new).apply_udp(check)
}

/// The checksum after the words `old` became `new`. The shorter slice is extended by zero words, so words may
/// also be added or removed.
#[inline]
#[must_use]
pub fn update(check: u16, old: &[u16], new: &[u16]) -> u16 {
    let words = old.len().max(new.len());
    let word = |words: &[u16], index: usize| words.get(index).copied().unwrap_or(0);
    let changed =
        (0..words).fold(Delta::NONE, |delta, index| delta.change16(word(old, index), word(new, index)));
    changed.apply(check)
}
