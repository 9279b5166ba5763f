//! Moving a packet's ends: headers pushed and pulled, tails put and taken.
//!
//! Header offsets (`mac`, `net`, `trans`) count from the buffer, so they keep their meaning while the
//! ends move. No operation here frees or allocates: a chain that is cut short keeps its empty
//! segments until the packet is freed.

use crate::bytes::segments;
use crate::descriptor::{BUF_BYTES, NO_HEADER, Packet, flag, header, is_inside};
use crate::slot::{Segment, link};

impl Packet {
    /// Bytes that can be pushed.
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.data)
    }

    /// Bytes that can be put, in the last segment.
    pub fn tailroom(&self) -> usize {
        let last = if self.segments <= 1 { Some(*self) } else { segments(self).last().map(|(p, _)| p) };
        last.map_or(0, |p| BUF_BYTES.saturating_sub(usize::from(p.data) + p.len as usize))
    }

    /// Grows the packet by `n` bytes in front. Their content is whatever stood there.
    ///
    /// False, and nothing changed, when the headroom is smaller: [`Packet::make_headroom`] first.
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
    /// False, and nothing changed, when the first segment is shorter than that.
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

    /// Grows the packet by `n` bytes at its end. Their content is whatever stood there: write them.
    ///
    /// False, and nothing changed, when the last segment's tailroom is smaller.
    #[inline]
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        // A descriptor of no packet has no segment.
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

    /// Shortens the packet by `n` bytes at its end. False, and nothing changed, when it is shorter.
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

    /// Shortens the packet to `keep` bytes; one that is shorter stays as it is.
    #[inline]
    pub fn truncate(&mut self, keep: usize) {
        let cut = (self.total as usize).saturating_sub(keep);
        let done = self.take(cut);
        debug_assert!(done, "no more than there are");
    }

    /// Moves both ends of the first segment: `len` bytes from `data` of its buffer. What lies there is whatever stood
    /// there; further segments stay.
    ///
    /// False, and nothing changed, when a buffer has not so many bytes, or there is no segment.
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

    /// Has the packet count `rest` bytes of a second segment that is nowhere: for those who try programs on packets
    /// that no pool made. False, and nothing changed, when it has further segments.
    #[must_use]
    pub fn set_rest(&mut self, rest: u32) -> bool {
        // Whatever the first segment grows to, the sum is a number.
        if self.segments == 0 || self.next != 0 || rest > u32::MAX - BUF_BYTES as u32 {
            return false;
        }
        (self.total, self.segments) = (self.len + rest, 1 + u16::from(rest > 0));
        true
    }

    /// Makes a packet of one segment these bytes, behind the headroom that it has.
    ///
    /// False, and nothing changed, when they do not fit.
    #[inline]
    #[must_use]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let len = bytes.len() as u32;
        // Where that is another number the segment has not so many bytes either.
        if self.segments > 1 || !Segment::at(self.region, self.buf, self.data, len).write(0, bytes) {
            return false;
        }
        (self.len, self.total) = (len, len);
        true
    }

    /// Moves the first segment's bytes back so that `n` can be pushed. Header offsets move with them.
    ///
    /// False, and nothing changed, when the slot has no room for that.
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
                // An offset near the end of the buffer that no longer fits is not an offset any more.
                *at = header(at.saturating_add(by));
            }
        }
        true
    }

    #[cold]
    fn put_chain(&mut self, n: usize) -> bool {
        // The last one that there is need not be the last that is counted.
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
