//! Numbers that one process writes and another reads: an NF's counters, and notes of who works on what.
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

/// The page, or several. Whoever else has it may write anything at any time; to read it is no race.
#[derive(Debug)]
pub struct Page {
    file: OwnedFd,
    mapping: Mapping,
    words: usize,
}

impl Page {
    /// A page of zeros.
    ///
    /// # Errors
    ///
    /// When the system has no memory.
    pub fn create() -> Result<Page, ShmError> {
        Page::create_for(PAGE_WORDS)
    }

    /// As many pages of zeros as so many numbers need.
    ///
    /// # Errors
    ///
    /// When the system has no memory.
    pub fn create_for(words: usize) -> Result<Page, ShmError> {
        let bytes = bytes(words);
        let file = memfd::create("millrace-page", bytes, MemfdFlags::empty(), Seals::Final)
            .map_err(|(action, error)| failed(action, bytes, error))?;
        let mapping = Mapping::of(&file, bytes)?;
        Ok(Page { file, mapping, words: bytes / 8 })
    }

    /// A page that another process made.
    ///
    /// # Errors
    ///
    /// When the file could shrink, or is smaller than a page.
    pub fn open(file: OwnedFd) -> Result<Page, ShmError> {
        Page::open_for(file, PAGE_WORDS)
    }

    /// Pages for so many numbers that another process made.
    ///
    /// # Errors
    ///
    /// When the file could shrink, or is smaller.
    pub fn open_for(file: OwnedFd, words: usize) -> Result<Page, ShmError> {
        let bytes = bytes(words);
        memfd::check(&file, bytes)?;
        let mapping = Mapping::of(&file, bytes)?;
        Ok(Page { file, mapping, words: bytes / 8 })
    }

    /// How many numbers it has.
    pub fn words(&self) -> usize {
        self.words
    }

    fn word(&self, number: usize) -> Option<&AtomicU64> {
        // SAFETY: inside the mapping, aligned to 8 bytes, mapped as long as `self` lives, and only ever seen as an
        // atomic.
        (number < self.words)
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

    /// Sets a number that is still what it was.
    pub fn replace(&self, number: usize, before: u64, value: u64) {
        if let Some(word) = self.word(number) {
            let _ = word.compare_exchange(before, value, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Bytes of the pages that hold so many numbers.
fn bytes(words: usize) -> usize {
    (8 * words.max(1)).next_multiple_of(BYTES)
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
