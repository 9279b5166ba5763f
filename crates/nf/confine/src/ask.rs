//! What the kernel and this process's rights offer, asked without changing anything.
#![expect(unsafe_code, reason = "system calls that no crate in use offers")]

use rustix::thread::CapabilitySet;
use std::sync::OnceLock;

/// Capabilities that this thread can use now.
pub(crate) fn capabilities() -> CapabilitySet {
    rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// The version of Landlock's interface; 0 where it is not there or not enabled.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no memory and makes nothing.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Whether system calls can be filtered.
pub(crate) fn has_seccomp() -> bool {
    let action: libc::c_uint = libc::SECCOMP_RET_ERRNO;
    // SAFETY: asks whether an action exists; the kernel reads one number, which lives for the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, std::ptr::from_ref(&action))
    };
    answer == 0
}

/// Whether processes can be made by the call that places them, in a control group or a PID namespace.
fn has_clone3() -> bool {
    // SAFETY: with no arguments to read the kernel makes no process: it complains of their size.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<libc::c_void>(), 0usize) };
    answer == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Whether processes can be made in a control group.
pub(crate) fn can_clone_into_group() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(has_clone3)
}

/// Whether PID namespaces can be made.
pub(crate) fn can_make_pid_namespace() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        // A thread that ends at once, because it could make no further threads: namespaces are each thread's own.
        // SAFETY: concerns only where children of the calling thread go, and it has none.
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

/// This process as `/proc` shows it: its number may be another one there than the kernel tells itself.
pub(crate) fn pid_in_proc() -> Option<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.split_once(' ')?.0.parse().ok()
}
