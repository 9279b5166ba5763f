//! Moving a packet's ends: headers pushed and pulled, tails put and taken.
//!
//! Header offsets (`mac`, `net`, `trans`) count from the buffer, so they keep their meaning while the
//! ends move. No operation here frees or allocates: a chain that is cut short keeps its empty
//! segments until the packet is freed.

use crate::bytes::segments;
use crate::descriptor::{BUF_BYTES, NO_HEADER, Packet, flag};
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
        if self.segments > 1 {
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
        for header in [&mut self.mac, &mut self.net, &mut self.trans] {
            if *header != NO_HEADER {
                // An offset near the end of the buffer that no longer fits is not an offset any more.
                *header = header.checked_add(by).filter(|&at| at as usize <= BUF_BYTES).unwrap_or(NO_HEADER);
            }
        }
        true
    }

    #[cold]
    fn put_chain(&mut self, n: usize) -> bool {
        let Some((mut last, _)) = segments(self).last() else { return false };
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
