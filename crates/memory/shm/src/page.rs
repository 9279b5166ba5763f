//! Pages of numbers that one process writes and another reads: an NF's counters, and the slots that NFs of a
//! group are working on.
#![expect(unsafe_code, reason = "makes atomics of mapped memory")]

use crate::ShmError;
use crate::memfd::{self, Seals, failed};
use crate::ring::Mapping;
use rustix::fs::MemfdFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the page.
const BYTES: usize = 4096;
/// Numbers of one page.
pub const PAGE_WORDS: usize = BYTES / 8;

/// One or several pages. Other processes may write any value at any time; reading is no data race.
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

    /// Creates as many pages of zeros as `words` numbers need.
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

    /// Maps a page that another process created.
    ///
    /// # Errors
    ///
    /// If the file could shrink or is smaller than a page.
    pub fn open(file: OwnedFd) -> Result<Page, ShmError> {
        Page::open_for(file, PAGE_WORDS)
    }

    /// Maps pages for `words` numbers that another process created.
    ///
    /// # Errors
    ///
    /// If the file could shrink or is smaller.
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
        // SAFETY: inside the mapping, aligned to 8 bytes, mapped as long as `self` lives, and only ever seen
        // as an atomic.
        (number < self.words)
            .then(|| unsafe { AtomicU64::from_ptr(self.mapping.start().as_ptr().cast::<u64>().add(number)) })
    }

    /// Reads a number; 0 beyond the pages.
    #[inline]
    pub fn load(&self, number: usize) -> u64 {
        self.word(number).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets a number; beyond the pages it does nothing.
    #[inline]
    pub fn store(&self, number: usize, value: u64) {
        if let Some(word) = self.word(number) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Sets a number if its value is still `before`.
    pub fn replace(&self, number: usize, before: u64, value: u64) {
        if let Some(word) = self.word(number) {
            let _ = word.compare_exchange(before, value, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Bytes of the pages for this number of words.
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
