//! Queries of what the kernel and this process's rights allow, without any change.
#![expect(unsafe_code, reason = "system calls that no crate in use offers")]

use rustix::thread::CapabilitySet;
use std::sync::OnceLock;

/// Capabilities that this thread can use now.
pub(crate) fn capabilities() -> CapabilitySet {
    rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// The version of Landlock; 0 if it is missing or disabled.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no memory and creates nothing.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Whether system calls can be filtered.
pub(crate) fn has_seccomp() -> bool {
    let action: libc::c_uint = libc::SECCOMP_RET_ERRNO;
    // SAFETY: queries whether an action exists; the kernel reads one number, which lives for the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, std::ptr::from_ref(&action))
    };
    answer == 0
}

/// Whether `clone3` exists, which creates a process in a control group or a PID namespace.
fn has_clone3() -> bool {
    // SAFETY: without arguments the kernel creates no process: it reports their size as an error.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<libc::c_void>(), 0usize) };
    answer == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Whether processes can be created in a control group.
pub(crate) fn can_clone_into_group() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(has_clone3)
}

/// Whether PID namespaces can be created.
pub(crate) fn can_make_pid_namespace() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        // A separate thread, because it could create no further threads: a namespace is a property of each
        // thread.
        // SAFETY: affects only the children of the calling thread, and it has none.
        let unshare = || unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0;
        has_clone3()
            && std::thread::Builder::new().spawn(unshare).is_ok_and(|thread| thread.join().unwrap_or(false))
    })
}

/// Whether this process may write to a path.
pub(crate) fn may_write(path: &std::path::Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD};
    rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// This process's id in `/proc`, which may differ from the one that the kernel returns to the process.
pub(crate) fn pid_in_proc() -> Option<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.split_once(' ')?.0.parse().ok()
}
