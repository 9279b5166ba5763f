//! The file that the rings of one NF lie in.
//!
//! A memfd of mode 0600 that cannot shrink, so that no peer can take mapped pages away. A peer can still
//! punch a hole into it, which leaves zeros: content like any other.
#![expect(unsafe_code, reason = "maps memory")]

use super::mapped::{Mapped, ring_bytes};
use crate::ShmError;
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Pages that files are made of.
const PAGE_BYTES: usize = 4096;

/// Rings of one size in a file of their own.
#[derive(Debug)]
pub struct RingFile {
    file: OwnedFd,
    mapping: Arc<Mapping>,
    rings: usize,
    claims: u32,
}

/// A file's memory, mapped until nobody uses it any more.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is reached through atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &OwnedFd, bytes: usize) -> Result<Mapping, ShmError> {
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
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this module's own mapping, which nobody uses any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn failed(action: &'static str, bytes: usize, error: rustix::io::Errno) -> ShmError {
    ShmError::Memory { action, bytes, source: error.into() }
}

/// Bytes of a file of so many rings, and from one ring to the next.
fn layout(rings: usize, claims: u32) -> Result<(usize, usize), ShmError> {
    let most = super::MOST_CLAIMS;
    let stride = ring_bytes(claims).ok_or(ShmError::RingSize { claims, most })?;
    Ok(((stride * rings.clamp(1, 1024)).next_multiple_of(PAGE_BYTES), stride))
}

impl RingFile {
    /// New rings, at least one and at most 1,024, for `claims` claims each, without any.
    ///
    /// # Errors
    ///
    /// When `claims` is no power of two up to [`super::MOST_CLAIMS`], or the system has not enough memory.
    pub fn create(rings: usize, claims: u32) -> Result<RingFile, ShmError> {
        let (bytes, _) = layout(rings, claims)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("millrace-rings", flags)
            .map_err(|error| failed("create", bytes, error))?;
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed("protect", bytes, error))?;
        rustix::fs::ftruncate(&file, bytes as u64).map_err(|error| failed("size", bytes, error))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(|error| failed("seal", bytes, error))?;
        RingFile::open(file, rings, claims)
    }

    /// The rings in a file that another process made with the same numbers.
    ///
    /// # Errors
    ///
    /// When the file could shrink, or is smaller than such rings are.
    pub fn open(file: OwnedFd, rings: usize, claims: u32) -> Result<RingFile, ShmError> {
        let (bytes, _) = layout(rings, claims)?;
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(|error| failed("look at", bytes, error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| failed("look at", bytes, error))?;
        if !seals.contains(SealFlags::SHRINK) || (stat.st_size as u64) < bytes as u64 {
            return Err(ShmError::NotSealed { bytes });
        }
        let mapping = Arc::new(Mapping::of(&file, bytes)?);
        Ok(RingFile { file, mapping, rings, claims })
    }

    /// The words of a ring; `None` when there is no such ring.
    pub fn ring(&self, number: usize) -> Option<Mapped> {
        let (_, stride) = layout(self.rings, self.claims).ok()?;
        (number < self.rings.clamp(1, 1024)).then(|| {
            // SAFETY: inside the mapping, which is as long as `layout` says.
            let start = unsafe { self.mapping.start.add(number * stride) };
            Mapped::new(start, self.claims, Arc::clone(&self.mapping))
        })
    }
}

impl AsFd for RingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
