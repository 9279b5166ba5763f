//! A packet that an NF has.

use crate::ends::Received;
use crate::metadata::Metadata;
use ::packet::access::Access;
use shm::Frame;
use shm::descriptor::HEADROOM;
use std::cell::RefCell;

thread_local! {
    /// Packets that went out of scope, which their link returns to the host.
    static ABANDONED: RefCell<Vec<Received>> = const { RefCell::new(vec![]) };
}

/// A packet that belongs to the NF until the NF sends or drops it. One that goes out of scope is dropped.
///
/// Bytes are read and written by offset from the packet's first byte, in place, through [`Access`]; the views
/// of the crate `millrace-packet` use it. Other NFs of the same trust group map the same memory, so a second
/// read of a byte may differ from the first. An observer's packets cannot be written: the functions that
/// write return false.
#[derive(Debug)]
pub struct Packet {
    received: Received,
    input: u16,
    /// Whether the slot's metadata block is valid.
    known: bool,
    /// An observer's memory is mapped read-only: a write would end the process.
    writable: bool,
    given: bool,
}

impl Packet {
    #[inline]
    pub(crate) fn new(received: Received, input: u16, writable: bool, known: bool) -> Packet {
        Packet { received, input, known, writable, given: false }
    }

    /// Whether it has metadata.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Gives up the packet: returns its values, and the packet is no longer the NF's.
    #[inline]
    pub(crate) fn give(mut self) -> Received {
        self.given = true;
        self.received
    }

    /// Packets of this thread that went out of scope since the last call.
    #[inline]
    pub(crate) fn abandoned() -> Vec<Received> {
        ABANDONED.with_borrow_mut(|abandoned| match abandoned.is_empty() {
            true => vec![],
            false => std::mem::take(abandoned),
        })
    }

    /// The number of the interface that it was received from; 0 for one that the NF made.
    #[inline]
    pub fn interface(&self) -> usize {
        usize::from(self.input)
    }

    /// Bytes before it that [`Packet::push`] can use.
    pub fn headroom(&self) -> usize {
        usize::from(self.received.data)
    }

    /// Bytes after it that [`Packet::append`] can use.
    pub fn tailroom(&self) -> usize {
        shm::descriptor::BUF_BYTES.saturating_sub(self.headroom() + self.len())
    }

    /// Adds bytes before the packet; false, without effect, when they do not fit.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(data) = self.headroom().checked_sub(bytes.len()).filter(|_| self.writable) else {
            return false;
        };
        self.set(data, self.len() + bytes.len());
        self.copy_in(0, bytes)
    }

    /// Removes bytes from the packet's front; false, without effect, when it has fewer.
    pub fn pull(&mut self, bytes: usize) -> bool {
        let Some(left) = self.len().checked_sub(bytes) else { return false };
        self.set(self.headroom() + bytes, left);
        true
    }

    /// Adds bytes after the packet; false, without effect, when they do not fit.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.tailroom() || !self.writable {
            return false;
        }
        let end = self.len();
        self.set(self.headroom(), end + bytes.len());
        self.copy_in(end, bytes)
    }

    /// Cuts the packet to this length; a shorter one stays as it is.
    pub fn truncate(&mut self, len: usize) {
        self.set(self.headroom(), self.len().min(len));
    }

    /// Replaces the packet's bytes; false, without effect, when they do not fit.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        if HEADROOM + bytes.len() > shm::descriptor::BUF_BYTES || !self.writable {
            return false;
        }
        self.set(HEADROOM, bytes.len());
        self.copy_in(0, bytes)
    }

    /// Appends a copy of all its bytes to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        let whole = out.get_mut(start..).is_some_and(|place| self.copy_out(0, place));
        debug_assert!(whole, "a packet reads all of its length");
    }

    /// The packet's metadata.
    pub fn metadata(&self) -> Metadata {
        let known = if self.known { self.received.parked() } else { None };
        known.as_ref().map_or_else(Metadata::default, Metadata::of)
    }

    /// Changes the metadata, for the next receiver of the packet. Without [`crate::Options::metadata`] this
    /// has no effect.
    pub fn set_metadata(&mut self, metadata: &Metadata) {
        // An observer cannot write the metadata block.
        if self.known
            && self.writable
            && let Some(mut packet) = self.received.parked()
        {
            metadata.put(&mut packet);
            shm::park(&packet);
        }
    }

    /// The address of its first byte in this process, for C. Valid for [`Access::len`] bytes, and for the
    /// headroom and tailroom around them, until the packet is sent or dropped.
    pub fn address(&self) -> usize {
        self.received.buf as usize + self.headroom()
    }

    /// Sets the packet's first byte and length inside its slot's buffer.
    fn set(&mut self, data: usize, len: usize) {
        (self.received.data, self.received.len) = (data as u16, len as u16);
    }

    #[inline]
    fn frame(&self) -> Frame {
        Frame::at(self.received.region, self.received.buf, self.received.data, self.received.len)
    }
}

impl Access for Packet {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.received.len)
    }

    #[inline]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        self.frame().read(offset, out)
    }

    #[inline]
    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.writable && self.frame().write(offset, bytes)
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        if !self.given {
            // In a thread that ends, no link can return the packet any more; the host then counts it as lost.
            let _ = ABANDONED.try_with(|abandoned| abandoned.borrow_mut().push(self.received));
        }
    }
}
