//! The file of the rings of one NF.
//!
//! No peer can remove mapped pages (see `memfd`). It can still punch a hole into the file, which then reads
//! as zeros; they are handled as any other content.
#![expect(unsafe_code, reason = "counts addresses in mapped memory")]

use super::mapped::{Mapped, ring_bytes};
use super::mapping::Mapping;
use crate::ShmError;
use crate::memfd::{self, Seals, failed};
use rustix::fs::MemfdFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Bytes of a page of the file.
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;

/// A number of rings of one size in a file of their own.
#[derive(Debug)]
pub struct RingFile<const RINGS: usize> {
    file: OwnedFd,
    mapping: Arc<Mapping>,
    descriptors: u32,
    /// Bytes from one ring to the next.
    stride: usize,
}

impl<const RINGS: usize> RingFile<RINGS> {
    /// New, empty rings for `descriptors` descriptors each.
    ///
    /// # Errors
    ///
    /// If `descriptors` is no power of two up to [`super::MOST_CLAIMS`], or the system has not enough memory.
    pub fn create(descriptors: u32) -> Result<RingFile<RINGS>, ShmError> {
        let (bytes, stride) = Self::layout(descriptors)?;
        let file = memfd::create("millrace-rings", bytes, MemfdFlags::empty(), Seals::Final)
            .map_err(|(action, error)| failed(action, bytes, error))?;
        let mapping = Arc::new(Mapping::of(&file, bytes)?);
        Ok(RingFile { file, mapping, descriptors, stride })
    }

    /// The rings in a file that another process created for as many descriptors.
    ///
    /// # Errors
    ///
    /// If the file could shrink or is smaller than such rings.
    pub fn open(file: OwnedFd, descriptors: u32) -> Result<RingFile<RINGS>, ShmError> {
        let (bytes, stride) = Self::layout(descriptors)?;
        memfd::check(&file, bytes)?;
        let mapping = Arc::new(Mapping::of(&file, bytes)?);
        Ok(RingFile { file, mapping, descriptors, stride })
    }

    /// Bytes of the file, and bytes from one ring to the next: rings start at cache lines.
    fn layout(descriptors: u32) -> Result<(usize, usize), ShmError> {
        let most = super::MOST_CLAIMS;
        let bytes = ring_bytes(descriptors).ok_or(ShmError::RingSize { descriptors, most })?;
        let stride = bytes.next_multiple_of(LINE_BYTES);
        Ok(((stride * RINGS).next_multiple_of(PAGE_BYTES), stride))
    }

    /// The words of each ring.
    pub fn rings(&self) -> [Mapped; RINGS] {
        std::array::from_fn(|number| {
            // SAFETY: inside the mapping, which is as long as `layout` says.
            let start = unsafe { self.mapping.start().add(number * self.stride) };
            Mapped::new(start, self.descriptors, Arc::clone(&self.mapping))
        })
    }
}

impl<const RINGS: usize> AsFd for RingFile<RINGS> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
