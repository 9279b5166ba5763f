//! The system calls of an ordinary program: a C or Rust program that computes, waits, reads and writes files
//! and communicates over its open descriptors.
//!
//! This is an allow list, because the kernel gets new calls: a call that is not listed is refused. Landlock
//! restricts files and directories, and user ids and namespaces restrict signals, so the calls for these are
//! allowed. Not allowed are calls that access other processes (`ptrace`, `process_vm_readv`, `pidfd_getfd`,
//! `kcmp`, `process_madvise`), that change the machine (mounts, modules, clocks, `bpf`, `reboot`), that
//! access memory past the filter or after the end of a process (`io_uring`, `io_submit`, `userfaultfd`,
//! `vmsplice`), that move pages of other processes (`mbind`, `move_pages`), that change owners and modes of
//! files, which Landlock does not restrict (`chmod`, `chown`, `setxattr`), and calls with many known
//! vulnerabilities that are rarely used (`keyctl`, `splice`, SysV IPC, message queues).

use libc::*;

/// A system call, by its number, and by its name for runtimes that use names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// Its number.
    pub number: c_long,
    named: &'static str,
}

impl Call {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.named.strip_prefix("SYS_").unwrap_or(self.named)
    }
}

macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$(Call { number: $call, named: stringify!($call) }),*] };
}

/// Calls that are allowed with any arguments.
pub(super) const PLAIN: &[Call] = calls![
    // Memory.
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_msync,
    SYS_mincore,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_mlockall,
    SYS_munlockall,
    SYS_memfd_create,
    SYS_membarrier,
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_pkey_mprotect,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_mseal,
    // Threads and synchronization.
    SYS_futex,
    SYS_futex_waitv,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_getcpu,
    SYS_gettid,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    // Its own processes.
    SYS_execve,
    SYS_execveat,
    SYS_wait4,
    SYS_waitid,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_getpid,
    SYS_getppid,
    SYS_getpgid,
    SYS_setpgid,
    SYS_getsid,
    SYS_setsid,
    SYS_getpriority,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_getrusage,
    SYS_times,
    // Signals.
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_signalfd4,
    // Clocks and timers.
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_getitimer,
    SYS_setitimer,
    SYS_timer_create,
    SYS_timer_delete,
    SYS_timer_getoverrun,
    SYS_timer_gettime,
    SYS_timer_settime,
    SYS_timerfd_create,
    SYS_timerfd_gettime,
    SYS_timerfd_settime,
    // Open descriptors.
    SYS_close,
    SYS_close_range,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_eventfd2,
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_preadv,
    SYS_preadv2,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_pwritev2,
    SYS_lseek,
    SYS_sendfile,
    SYS_copy_file_range,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    // Open sockets.
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    // Files and directories.
    SYS_openat,
    SYS_openat2,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_chdir,
    SYS_fchdir,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_ftruncate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_sync_file_range,
    SYS_fadvise64,
    SYS_readahead,
    SYS_flock,
    SYS_umask,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_fgetxattr,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_flistxattr,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    // Ids and the current directory.
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_capget,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    // Further confinement by the program itself.
    SYS_landlock_create_ruleset,
    SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
];

/// Older variants of these calls on this architecture.
#[cfg(target_arch = "x86_64")]
pub(super) const OLD: &[Call] = calls![
    SYS_access,
    SYS_alarm,
    SYS_arch_prctl,
    SYS_creat,
    SYS_dup2,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_eventfd,
    SYS_getdents,
    SYS_getpgrp,
    SYS_inotify_init,
    SYS_link,
    SYS_lstat,
    SYS_mkdir,
    SYS_open,
    SYS_pause,
    SYS_pipe,
    SYS_poll,
    SYS_readlink,
    SYS_rename,
    SYS_renameat,
    SYS_rmdir,
    SYS_select,
    SYS_signalfd,
    SYS_stat,
    SYS_symlink,
    SYS_time,
    SYS_unlink,
];

/// This architecture has no other older variant.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLD: &[Call] = calls![SYS_renameat];

/// Numbers of newer calls that have no name in the C library's bindings yet, allowed with any arguments:
/// map_shadow_stack, futex_wake, futex_wait, futex_requeue.
pub(super) const NAMELESS: &[c_long] = &[453, 454, 455, 456];

/// Calls that are allowed with some arguments.
pub(super) const BY_ARGUMENTS: &[Call] = calls![
    SYS_clone,
    SYS_fallocate,
    SYS_fcntl,
    SYS_ioctl,
    SYS_madvise,
    SYS_personality,
    SYS_prctl,
    SYS_prlimit64,
    SYS_sched_setaffinity,
    SYS_setpriority,
    SYS_socket,
    SYS_socketpair,
];

/// Creates a process by a call without flags.
#[cfg(target_arch = "x86_64")]
pub(super) const FORKS: &[Call] = calls![SYS_fork, SYS_vfork];

/// This architecture has only `clone`.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FORKS: &[Call] = &[];

/// Calls on sockets with names.
pub(super) const NAMED_SOCKETS: &[Call] = calls![SYS_bind, SYS_connect, SYS_listen, SYS_accept, SYS_accept4];

/// Calls that fail as unknown, because programs fall back to older ones only then. `clone3` has its flags in
/// memory, which a filter cannot read.
pub(super) const UNKNOWN: &[Call] = calls![SYS_clone3];

/// The newest system call that the lists above take into account (`file_setattr`, Linux 6.17).
pub(super) const NEWEST: c_long = 469;
