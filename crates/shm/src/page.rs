//! A page of numbers that one process writes and another reads: an NF's counters.
#![expect(unsafe_code, reason = "makes atomics of mapped memory")]

use crate::ShmError;
use crate::memfd::{self, Seals, failed};
use crate::ring::Mapping;
use rustix::fs::MemfdFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the page.
const BYTES: usize = 4096;
/// Numbers that a page has.
pub const PAGE_WORDS: usize = BYTES / 8;

/// The page. Whoever else has it may write anything at any time; to read it is no race.
#[derive(Debug)]
pub struct Page {
    file: OwnedFd,
    mapping: Mapping,
}

impl Page {
    /// A page of zeros.
    ///
    /// # Errors
    ///
    /// When the system has no memory.
    pub fn create() -> Result<Page, ShmError> {
        let file = memfd::create("millrace-page", BYTES, MemfdFlags::empty(), Seals::Final)
            .map_err(|(action, error)| failed(action, BYTES, error))?;
        let mapping = Mapping::of(&file, BYTES)?;
        Ok(Page { file, mapping })
    }

    /// A page that another process made.
    ///
    /// # Errors
    ///
    /// When the file could shrink, or is smaller than a page.
    pub fn open(file: OwnedFd) -> Result<Page, ShmError> {
        memfd::check(&file, BYTES)?;
        let mapping = Mapping::of(&file, BYTES)?;
        Ok(Page { file, mapping })
    }

    fn word(&self, number: usize) -> Option<&AtomicU64> {
        // SAFETY: inside the mapping, aligned to 8 bytes, mapped as long as `self` lives, and only ever seen as an
        // atomic.
        (number < PAGE_WORDS)
            .then(|| unsafe { AtomicU64::from_ptr(self.mapping.start().as_ptr().cast::<u64>().add(number)) })
    }

    /// A number; 0 beyond the page.
    #[inline]
    pub fn load(&self, number: usize) -> u64 {
        self.word(number).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets a number; beyond the page there is nothing to set.
    #[inline]
    pub fn store(&self, number: usize, value: u64) {
        if let Some(word) = self.word(number) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl AsFd for Page {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let page = Page::create().expect("memory");
        let other = Page::open(page.as_fd().try_clone_to_owned().expect("a copy")).expect("the same page");
        other.store(PAGE_WORDS - 1, 7);
        other.store(PAGE_WORDS, 9);
        assert_eq!((page.load(PAGE_WORDS - 1), page.load(PAGE_WORDS), page.load(0)), (7, 0, 0));
    }

    #[test]
    fn a_file_that_could_shrink_is_no_page() {
        let file = rustix::fs::memfd_create("other", MemfdFlags::CLOEXEC).expect("memory");
        rustix::fs::ftruncate(&file, BYTES as u64).expect("sized");
        assert!(matches!(Page::open(file), Err(ShmError::NotSealed { .. })));
    }
}
