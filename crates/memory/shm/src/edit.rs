//! Moves a packet's ends: pushes and pulls headers, puts and takes tails.
//!
//! Header offsets (`mac`, `net`, `trans`) count from the buffer, so they stay valid while the ends move. No
//! operation here frees or allocates: a chain that is shortened keeps its empty segments until the packet is
//! freed.

use crate::bytes::segments;
use crate::descriptor::{BUF_BYTES, NO_HEADER, Packet, flag, header, is_inside};
use crate::slot::{Segment, link};

impl Packet {
    /// Bytes of headroom, which can be pushed.
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.data)
    }

    /// Bytes of tailroom of the last segment, which can be put.
    pub fn tailroom(&self) -> usize {
        let last = if self.segments <= 1 { Some(*self) } else { segments(self).last().map(|(p, _)| p) };
        last.map_or(0, |p| BUF_BYTES.saturating_sub(usize::from(p.data) + p.len as usize))
    }

    /// Grows the packet by `n` bytes in front. They keep their old contents.
    ///
    /// False, and nothing changed, if the headroom is smaller: call [`Packet::make_headroom`] first.
    #[inline]
    #[must_use]
    pub fn push(&mut self, n: usize) -> bool {
        if n > usize::from(self.data) {
            return false;
        }
        self.data -= n as u16;
        self.len += n as u32;
        self.total += n as u32;
        true
    }

    /// Shortens the packet by `n` bytes in front.
    ///
    /// False, and nothing changed, if the first segment is shorter.
    #[inline]
    #[must_use]
    pub fn pull(&mut self, n: usize) -> bool {
        if n > self.len as usize || n > BUF_BYTES - usize::from(self.data).min(BUF_BYTES) {
            return false;
        }
        self.data += n as u16;
        self.len -= n as u32;
        self.total = self.total.saturating_sub(n as u32);
        true
    }

    /// Grows the packet by `n` bytes at its end. They have any content until they are written.
    ///
    /// False, and nothing changed, when the last segment's tailroom is smaller.
    #[inline]
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        // [`Packet::EMPTY`] has no segment.
        if self.segments != 1 {
            return self.put_chain(n);
        }
        if n > BUF_BYTES || usize::from(self.data) + self.len as usize + n > BUF_BYTES {
            return false;
        }
        self.len += n as u32;
        self.total += n as u32;
        true
    }

    /// Shortens the packet by `n` bytes at its end. False, and nothing changed, if it is shorter.
    #[inline]
    #[must_use]
    pub fn take(&mut self, n: usize) -> bool {
        if n > self.total as usize {
            return false;
        }
        if self.segments > 1 {
            return self.take_chain(n);
        }
        if n > self.len as usize {
            return false;
        }
        self.len -= n as u32;
        self.total -= n as u32;
        true
    }

    /// Shortens the packet to `keep` bytes; a shorter packet stays as it is.
    #[inline]
    pub fn truncate(&mut self, keep: usize) {
        let cut = (self.total as usize).saturating_sub(keep);
        let done = self.take(cut);
        debug_assert!(done, "no more than there are");
    }

    /// Moves both ends of the first segment: it has `len` bytes from `data` of its buffer. They keep their
    /// old contents; further segments stay.
    ///
    /// False, and nothing changed, if the range exceeds the buffer, or there is no segment.
    #[inline]
    #[must_use]
    pub fn set_ends(&mut self, data: u16, len: u32) -> bool {
        if self.segments == 0 || !is_inside(data, len) {
            return false;
        }
        self.total = self.total.saturating_sub(self.len) + len;
        (self.data, self.len) = (data, len);
        true
    }

    /// Adds `rest` bytes of a second segment that does not exist to the total, for tests of programs on
    /// packets without a pool. False, and nothing changed, if the packet has further segments.
    #[must_use]
    pub fn set_rest(&mut self, rest: u32) -> bool {
        // The total cannot overflow, however long the first segment grows.
        if self.segments == 0 || self.next != 0 || rest > u32::MAX - BUF_BYTES as u32 {
            return false;
        }
        (self.total, self.segments) = (self.len + rest, 1 + u16::from(rest > 0));
        true
    }

    /// Replaces the bytes of a packet of one segment, keeping its headroom.
    ///
    /// False, and nothing changed, when they do not fit.
    #[inline]
    #[must_use]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let len = bytes.len() as u32;
        // If `bytes.len()` exceeds a `u32`, the segment is shorter than `bytes` in any case.
        if self.segments > 1 || !Segment::at(self.region, self.buf, self.data, len).write(0, bytes) {
            return false;
        }
        (self.len, self.total) = (len, len);
        true
    }

    /// Moves the first segment's bytes back so that `n` can be pushed. The header offsets move with them.
    ///
    /// False, and nothing changed, if the slot has no room for that.
    #[must_use]
    pub fn make_headroom(&mut self, n: usize) -> bool {
        let (data, len) = (usize::from(self.data), self.len as usize);
        if n <= data {
            return true;
        }
        debug_assert!(self.flags & flag::SHARED == 0, "somebody else reads it");
        if n > BUF_BYTES || !Segment::buffer(self).shift(data, n, len) {
            return false;
        }
        let by = (n - data) as u16;
        self.data = n as u16;
        for at in [&mut self.mac, &mut self.net, &mut self.trans] {
            if *at != NO_HEADER {
                // An offset that would be beyond the buffer's end is unset.
                *at = header(at.saturating_add(by));
            }
        }
        true
    }

    #[cold]
    fn put_chain(&mut self, n: usize) -> bool {
        // The last existing segment need not be the last that is counted.
        let all = (1..=self.segments).zip(segments(self)).last();
        let Some((_, (mut last, _))) = all.filter(|(number, _)| *number == self.segments) else {
            return false;
        };
        if n > BUF_BYTES || usize::from(last.data) + last.len as usize + n > BUF_BYTES {
            return false;
        }
        last.len += n as u32;
        if !link(&last) {
            return false;
        }
        self.total += n as u32;
        true
    }

    #[cold]
    fn take_chain(&mut self, n: usize) -> bool {
        let mut keep = self.total - n as u32;
        let total = keep;
        for (index, (mut segment, _)) in segments(self).enumerate() {
            segment.len = segment.len.min(keep);
            keep -= segment.len;
            if index == 0 {
                self.len = segment.len;
            } else if !link(&segment) {
                return false;
            }
        }
        self.total = total;
        true
    }
}
