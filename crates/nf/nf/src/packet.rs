//! A packet that an NF has.

use crate::ends::Received;
use crate::metadata::Metadata;
use ::packet::access::Access;
use shm::Frame;
use shm::descriptor::HEADROOM;
use std::cell::RefCell;

thread_local! {
    /// Packets that went out of scope, for their link to give back.
    static ABANDONED: RefCell<Vec<Received>> = const { RefCell::new(vec![]) };
}

/// A packet that is the NF's until it gives it away. One that goes out of scope is dropped.
///
/// Bytes are read and written by offset from the packet's first byte, in place, through [`Access`]; the views of
/// the crate `millrace-packet` work on it. Other NFs of the same trust group map the same memory: what was read
/// once may read otherwise the next time. An observer's packets cannot be written: whatever would write says false.
#[derive(Debug)]
pub struct Packet {
    received: Received,
    input: u16,
    /// Whether the block in front of it says what is known beside its bytes.
    known: bool,
    /// An observer's memory is mapped for reading: to write there would end the process.
    writable: bool,
    given: bool,
}

impl Packet {
    #[inline]
    pub(crate) fn new(received: Received, input: u16, writable: bool, known: bool) -> Packet {
        Packet { received, input, known, writable, given: false }
    }

    /// Whether it comes with metadata.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// What goes back to the host; the packet is no longer the NF's.
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

    /// Number of the interface that it came in by; 0 for one that the NF made.
    #[inline]
    pub fn interface(&self) -> usize {
        usize::from(self.input)
    }

    /// Bytes in front of it that [`Packet::push`] can use.
    pub fn headroom(&self) -> usize {
        usize::from(self.received.data)
    }

    /// Bytes behind it that [`Packet::append`] can use.
    pub fn tailroom(&self) -> usize {
        shm::descriptor::BUF_BYTES.saturating_sub(self.headroom() + self.len())
    }

    /// Puts bytes in front of the packet; false, and nothing done, when they do not fit.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(data) = self.headroom().checked_sub(bytes.len()).filter(|_| self.writable) else {
            return false;
        };
        self.set(data, self.len() + bytes.len());
        self.copy_in(0, bytes)
    }

    /// Takes bytes off the packet's front; false, and nothing done, when there are not so many.
    pub fn pull(&mut self, bytes: usize) -> bool {
        let Some(left) = self.len().checked_sub(bytes) else { return false };
        self.set(self.headroom() + bytes, left);
        true
    }

    /// Puts bytes behind the packet; false, and nothing done, when they do not fit.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.tailroom() || !self.writable {
            return false;
        }
        let end = self.len();
        self.set(self.headroom(), end + bytes.len());
        self.copy_in(end, bytes)
    }

    /// Cuts the packet to so many bytes; one that is shorter stays as it is.
    pub fn truncate(&mut self, len: usize) {
        self.set(self.headroom(), self.len().min(len));
    }

    /// Makes the packet these bytes; false, and nothing done, when they do not fit.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        if HEADROOM + bytes.len() > shm::descriptor::BUF_BYTES || !self.writable {
            return false;
        }
        self.set(HEADROOM, bytes.len());
        self.copy_in(0, bytes)
    }

    /// All its bytes, copied behind what `out` has.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        let whole = out.get_mut(start..).is_some_and(|place| self.copy_out(0, place));
        debug_assert!(whole, "a packet reads all of its length");
    }

    /// What is known of it beside its bytes.
    pub fn metadata(&self) -> Metadata {
        let known = if self.known { self.received.parked() } else { None };
        known.as_ref().map_or_else(Metadata::default, Metadata::of)
    }

    /// Changes that, for whoever gets the packet next. Without [`crate::Options::metadata`] there is none
    /// to change.
    pub fn set_metadata(&mut self, metadata: &Metadata) {
        // An observer cannot write there.
        if self.known
            && self.writable
            && let Some(mut packet) = self.received.parked()
        {
            metadata.put(&mut packet);
            shm::park(&packet);
        }
    }

    /// The address of its first byte in this process, for C. Valid for [`Access::len`] bytes, and for the headroom
    /// and tailroom around them, until the packet is given away.
    pub fn address(&self) -> usize {
        self.received.buf as usize + self.headroom()
    }

    /// Sets where it begins and how long it is, inside its slot's buffer.
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
            // A thread that ends has nobody to give it to any more; then the host counts it as lost.
            let _ = ABANDONED.try_with(|abandoned| abandoned.borrow_mut().push(self.received));
        }
    }
}
