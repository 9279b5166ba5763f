//! Files in memory that other processes map, too: made and sealed, checked, taken over.
#![expect(unsafe_code, reason = "names descriptors by number")]

use crate::ShmError;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Whether a file's maker still has seals to add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seals {
    /// All that it gets.
    Final,
    /// [`forbid_writing`] comes, once its maker has mapped it.
    Open,
}

/// Makes a file of that size, on pages as the flags say; what failed, where something does.
///
/// It cannot shrink, so that a mapped page never turns into a bus error, and cannot be sealed further, so that
/// nobody who shares it keeps others from mapping it. Mode 0600 from the start: a memfd's default of 0777 would
/// let another user reopen it through /proc.
pub(crate) fn create(
    name: &str,
    bytes: usize,
    pages: MemfdFlags,
    seals: Seals,
) -> Result<OwnedFd, (&'static str, Errno)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | pages;
    let file = rustix::fs::memfd_create(name, flags).map_err(|error| ("create", error))?;
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|error| ("protect", error))?;
    rustix::fs::ftruncate(&file, bytes as u64).map_err(|error| ("size", error))?;
    let last = if seals == Seals::Final { SealFlags::SEAL } else { SealFlags::empty() };
    let seals = SealFlags::SHRINK | SealFlags::GROW | last;
    rustix::fs::fcntl_add_seals(&file, seals).map_err(|error| ("seal", error))?;
    Ok(file)
}

/// Keeps everybody from writing a file who has not mapped it for that yet, for good: also its maker, and whoever
/// opens it anew.
pub(crate) fn forbid_writing(file: &OwnedFd) -> Result<(), (&'static str, Errno)> {
    rustix::fs::fchmod(file, Mode::RUSR).map_err(|error| ("protect", error))?;
    let seals = SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(file, seals).map_err(|error| ("seal", error))
}

/// The same file, open for reading only.
pub(crate) fn for_reading(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// A file in memory with that content, which nobody can change any more: for another process to read.
///
/// # Errors
///
/// When the system has no memory.
pub fn with(content: &[u8]) -> Result<OwnedFd, ShmError> {
    let bytes = content.len();
    let make = || {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("millrace-content", flags).map_err(|error| ("create", error))?;
        rustix::fs::fchmod(&file, Mode::RUSR).map_err(|error| ("protect", error))?;
        let mut left = content;
        while !left.is_empty() {
            let written = rustix::io::write(&file, left).map_err(|error| ("write", error))?;
            left = left.get(written..).unwrap_or_default();
        }
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(|error| ("seal", error))?;
        Ok(file)
    };
    make().map_err(|(action, error)| failed(action, bytes, error))
}

/// Whether a file that another process made has so many bytes for good.
///
/// # Errors
///
/// When it has fewer, or could shrink.
pub(crate) fn check(file: &OwnedFd, bytes: usize) -> Result<(), ShmError> {
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|error| failed("look at", bytes, error))?;
    let stat = rustix::fs::fstat(file).map_err(|error| failed("look at", bytes, error))?;
    let is_fixed = seals.contains(SealFlags::SHRINK) && stat.st_size as u64 >= bytes as u64;
    if is_fixed { Ok(()) } else { Err(ShmError::NotSealed { bytes }) }
}

/// A descriptor that the program which started this one left open, by its number there: a copy that is closed in
/// programs started from here.
///
/// # Errors
///
/// When there is no such descriptor.
pub fn inherited(number: RawFd) -> Result<OwnedFd, ShmError> {
    let failed = |source: Errno| ShmError::NotInherited { number, source: source.into() };
    if number < 0 {
        return Err(failed(Errno::BADF));
    }
    // SAFETY: only to be copied, at once; the system refuses a number that stands for nothing.
    let original = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(original, 0).map_err(failed)
}

/// What the system refused.
pub(crate) fn failed(action: &'static str, bytes: usize, error: Errno) -> ShmError {
    ShmError::Memory { action, bytes, source: error.into() }
}
