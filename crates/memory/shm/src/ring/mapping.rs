//! A file's memory, mapped until its last user drops it.
#![expect(unsafe_code, reason = "maps memory")]

use crate::ShmError;
use crate::memfd::failed;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

/// A file's memory, mapped until its last user drops it.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is accessed through atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of a file that cannot lose them.
    pub(crate) fn of(file: &OwnedFd, bytes: usize) -> Result<Mapping, ShmError> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let start = unsafe {
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(ptr::null_mut(), bytes, rights, MapFlags::SHARED | MapFlags::POPULATE, file, 0)
        };
        let start = start.map_err(|error| failed("map", bytes, error))?;
        let start =
            NonNull::new(start.cast()).ok_or_else(|| failed("map", bytes, rustix::io::Errno::FAULT))?;
        Ok(Mapping { start, bytes })
    }

    /// The start address.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this module's own mapping, which has no users any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
