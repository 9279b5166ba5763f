//! What a process mounts for itself alone, between fork and exec.
//!
//! Invariant: nothing here allocates, see `steps`; all strings are made before. Nothing that is mounted is seen
//! outside of the process's mount namespace, because all of that is made private first.
#![expect(unsafe_code, reason = "system calls of a process that may not allocate")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What a place where something is bound can be used for.
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

/// A file or a folder that is seen at another place, too.
#[derive(Debug)]
struct Bind {
    source: CString,
    target: CString,
    /// Flags of the place.
    flags: libc::c_ulong,
}

/// What is mounted.
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
    /// Shows a file or folder at a place that is there, without devices and programs with rights of their own.
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

    /// Unmounts what is mounted there.
    pub fn hide(&mut self, place: &Path) -> io::Result<()> {
        self.hidden.push(text(place)?);
        Ok(())
    }

    /// Mounts all of it, and `/proc` of the process's own PID namespace.
    pub fn make(&self) -> io::Result<()> {
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        for place in &self.hidden {
            // SAFETY: the string lives for the call.
            check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) })?;
        }
        for Bind { source, target, flags } in &self.binds {
            mount(Some(source), target, None, libc::MS_BIND)?;
            // Flags of a bind take a second call.
            mount(None, target, None, *flags)?;
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        mount(Some(c"proc"), c"/proc", Some(c"proc"), flags)
    }
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all strings live for the call; no data goes with it.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) })
}
