//! Access to packet bytes by copies, never by a slice.
//!
//! Another process may write packet memory while it is read, and a packet may be a chain of segments.
//! [`Access`] hides both: a caller always gets a private copy. A value that is read once and checked is the
//! value that is used.
//!
//! Invariants of an implementation: [`Access::len`] does not change while it is borrowed; a copy that would
//! reach past the end copies nothing and fails; no offset or length panics. Two reads of the same bytes may
//! differ, and a copy is not atomic.

/// Bytes of one packet, by offset from its first byte.
///
/// Integers are big-endian, as on the wire. On a slice, `get` is the slice's own method: write
/// `Access::get::<4>(slice, at)` for this one. On arrays and vectors, `get` is this method if the trait is in
/// scope: write `vector.as_slice().get(..4)` for the slice's.
pub trait Access {
    /// Length of the packet in bytes, over all its segments.
    fn len(&self) -> usize;

    /// Fills `out` from `offset`; false, with `out` unchanged, if that reaches past the end.
    #[must_use]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool;

    /// Writes `bytes` at `offset`; false, with nothing written, if that reaches past the end.
    #[must_use]
    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool;

    /// Whether the packet has no bytes.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the `N` bytes at `offset`.
    #[inline]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut out = [0; N];
        self.copy_out(offset, &mut out).then_some(out)
    }

    /// The byte at `offset`.
    #[inline]
    fn u8(&self, offset: usize) -> Option<u8> {
        self.get(offset).map(u8::from_be_bytes)
    }

    /// The 16-bit integer at `offset`.
    #[inline]
    fn u16(&self, offset: usize) -> Option<u16> {
        self.get(offset).map(u16::from_be_bytes)
    }

    /// The 32-bit integer at `offset`.
    #[inline]
    fn u32(&self, offset: usize) -> Option<u32> {
        self.get(offset).map(u32::from_be_bytes)
    }

    /// The 64-bit integer at `offset`.
    #[inline]
    fn u64(&self, offset: usize) -> Option<u64> {
        self.get(offset).map(u64::from_be_bytes)
    }

    /// Writes a byte; false if `offset` is past the end.
    #[inline]
    #[must_use]
    fn put_u8(&mut self, offset: usize, value: u8) -> bool {
        self.copy_in(offset, &[value])
    }

    /// Writes a 16-bit integer; false, with nothing written, if it reaches past the end.
    #[inline]
    #[must_use]
    fn put_u16(&mut self, offset: usize, value: u16) -> bool {
        self.copy_in(offset, &value.to_be_bytes())
    }

    /// Writes a 32-bit integer; false, with nothing written, if it reaches past the end.
    #[inline]
    #[must_use]
    fn put_u32(&mut self, offset: usize, value: u32) -> bool {
        self.copy_in(offset, &value.to_be_bytes())
    }

    /// Writes a 64-bit integer; false, with nothing written, if it reaches past the end.
    #[inline]
    #[must_use]
    fn put_u64(&mut self, offset: usize, value: u64) -> bool {
        self.copy_in(offset, &value.to_be_bytes())
    }
}

/// Private bytes: a header that was copied out, a frame under construction, a test.
impl Access for [u8] {
    #[inline]
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    #[inline]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        let Some(from) = self.get(offset..).and_then(|rest| rest.get(..out.len())) else { return false };
        out.copy_from_slice(from);
        true
    }

    #[inline]
    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.get_mut(offset..).and_then(|rest| rest.get_mut(..bytes.len())) else {
            return false;
        };
        to.copy_from_slice(bytes);
        true
    }
}

macro_rules! through_slice {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => { $(
        impl<$($generics)*> Access for $type {
            #[inline]
            fn len(&self) -> usize {
                self.as_slice().len()
            }

            #[inline]
            fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
                self.as_slice().copy_out(offset, out)
            }

            #[inline]
            fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
                self.as_mut_slice().copy_in(offset, bytes)
            }
        }
    )* };
}

through_slice!([] Vec<u8>, [const LEN: usize] [u8; LEN]);

impl<A: Access + ?Sized> Access for &mut A {
    #[inline]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        (**self).copy_out(offset, out)
    }

    #[inline]
    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        (**self).copy_in(offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments, as a chain of slots has them.
    struct Segments([Vec<u8>; 2]);

    impl Access for Segments {
        fn len(&self) -> usize {
            self.0.iter().map(Vec::len).sum()
        }

        fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
            let whole = self.0.concat();
            whole.copy_out(offset, out)
        }

        fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
            if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len()) {
                return false;
            }
            let first = self.0[0].len();
            for (at, byte) in (offset..).zip(bytes) {
                let (segment, at) = if at < first { (0, at) } else { (1, at - first) };
                self.0[segment][at] = *byte;
            }
            true
        }
    }

    #[test]
    fn integers_are_read_and_written_across_segments_in_wire_order() {
        let mut packet = Segments([vec![0; 3], vec![0; 5]]);
        assert!(packet.put_u32(1, 0x0102_0304));
        assert_eq!(packet.u16(2), Some(0x0203));
        assert_eq!(packet.u64(0), Some(0x0001_0203_0400_0000));
        assert_eq!(packet.get::<2>(3), Some([3, 4]));
    }

    #[test]
    fn beyond_the_end_nothing_is_read_or_written() {
        let mut bytes = vec![1u8, 2, 3];
        let mut out = [9; 2];
        assert!(!bytes.copy_out(2, &mut out) && out == [9; 2]);
        assert!(!bytes.copy_out(usize::MAX, &mut out) && out == [9; 2]);
        assert!(!bytes.put_u16(2, 7) && !bytes.put_u32(usize::MAX, 7));
        assert_eq!(bytes, [1, 2, 3]);
        assert!(bytes.copy_out(3, &mut []), "no bytes at the end are there");
        assert_eq!((bytes.u8(2), bytes.u8(3), bytes.u16(2)), (Some(3), None, None));
    }
}
