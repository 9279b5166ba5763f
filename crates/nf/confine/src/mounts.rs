//! Mounts of a process in its own mount namespace, between fork and exec.
//!
//! Invariant: nothing here allocates, see `steps`; all strings are prepared before. No mount is visible
//! outside of the process's mount namespace, because all mounts are made private first.
#![expect(unsafe_code, reason = "system calls of a process that may not allocate")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The access that a bind mount allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading and executing.
    Execute,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
    /// All of these.
    WriteAndExecute,
}

/// A bind mount of a file or directory.
#[derive(Debug)]
struct Bind {
    source: CString,
    target: CString,
    /// Flags of the mount.
    flags: libc::c_ulong,
}

/// The mounts and unmounts to perform.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    hidden: Vec<CString>,
    binds: Vec<Bind>,
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Mounts {
    /// Adds a bind mount at an existing path, without devices and set-user-id programs.
    pub fn bind(&mut self, source: &Path, target: &Path, access: Access) -> io::Result<()> {
        let narrow = match access {
            Access::Execute => libc::MS_RDONLY,
            Access::Read => libc::MS_RDONLY | libc::MS_NOEXEC,
            Access::Write => libc::MS_NOEXEC,
            Access::WriteAndExecute => 0,
        };
        let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_NOSUID | libc::MS_NODEV | narrow;
        self.binds.push(Bind { source: text(source)?, target: text(target)?, flags });
        Ok(())
    }

    /// Adds an unmount.
    pub fn hide(&mut self, place: &Path) -> io::Result<()> {
        self.hidden.push(text(place)?);
        Ok(())
    }

    /// Performs all of them, and mounts `/proc` of the process's own PID namespace.
    pub fn make(&self) -> io::Result<()> {
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        for place in &self.hidden {
            // SAFETY: the string lives for the call.
            check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) })?;
        }
        for Bind { source, target, flags } in &self.binds {
            mount(Some(source), target, None, libc::MS_BIND)?;
            // The flags of a bind mount need a second call.
            mount(None, target, None, *flags)?;
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        mount(Some(c"proc"), c"/proc", Some(c"proc"), flags)
    }
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all strings live for the call; no data is passed.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) })
}
