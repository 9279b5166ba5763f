//! Memory files that other processes map, too: creates, seals and checks them, and takes over inherited ones.
#![expect(unsafe_code, reason = "names descriptors by number")]

use crate::ShmError;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Whether the file's creator still has seals to add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seals {
    /// All seals are set.
    Final,
    /// The creator calls [`forbid_writing`] once it has mapped the file.
    Open,
}

/// Creates a memory file of this size with pages as the flags define; an error names the operation that
/// failed.
///
/// The file cannot shrink, so that access to a mapped page never raises a bus error. It cannot be sealed
/// further, so that no process that shares it can keep others from mapping it. Its mode is 0600 from the
/// start: a memfd's default of 0777 would let another user reopen it through /proc.
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

/// Forbids every further writable mapping of a file and every further write, also to its creator and to
/// processes that open it again. Existing mappings stay writable.
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

/// A memory file with this content, which no process can change any more: for another process to read.
///
/// # Errors
///
/// If the system has no memory.
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

/// Checks that a file of another process has this many bytes and cannot lose them.
///
/// # Errors
///
/// If it has fewer or could shrink.
pub(crate) fn check(file: &OwnedFd, bytes: usize) -> Result<(), ShmError> {
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|error| failed("look at", bytes, error))?;
    let stat = rustix::fs::fstat(file).map_err(|error| failed("look at", bytes, error))?;
    let is_fixed = seals.contains(SealFlags::SHRINK) && stat.st_size as u64 >= bytes as u64;
    if is_fixed { Ok(()) } else { Err(ShmError::NotSealed { bytes }) }
}

/// A file descriptor that the parent process left open, by its number: a copy that is closed in programs
/// started from here.
///
/// # Errors
///
/// If there is no such file descriptor.
pub fn inherited(number: RawFd) -> Result<OwnedFd, ShmError> {
    let failed = |source: Errno| ShmError::NotInherited { number, source: source.into() };
    if number < 0 {
        return Err(failed(Errno::BADF));
    }
    // SAFETY: used only for the copy at once; the system refuses a number of no open file.
    let original = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(original, 0).map_err(failed)
}

/// An error of the system.
pub(crate) fn failed(action: &'static str, bytes: usize, error: Errno) -> ShmError {
    ShmError::Memory { action, bytes, source: error.into() }
}
