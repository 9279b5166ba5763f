//! The steps that the new process performs between fork and exec.
//!
//! Invariant: nothing here allocates, locks, panics or unwinds, because other threads of the host may have
//! been in the middle of any operation at the fork. Everything is prepared in [`Steps`]. Each step either
//! succeeds or ends the start: no program runs with less confinement than planned.
//!
//! The order is forced. Groups and limits are first, while the process still has the rights to set them. Then
//! it changes its user id; after that it requests the signal at the host's death, because a change of user id
//! clears the request. Landlock and the filter are last, because they would prevent the earlier steps.
#![expect(unsafe_code, reason = "system calls of a process that may not allocate")]

use crate::ask;
use crate::mounts::Mounts;
use crate::seccomp::Programs;
use crate::step::{STEPS, Step};
use rustix::process::Resource;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Everything that the new process needs, prepared before the fork.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The pipe into which it writes its process id or the failed step.
    pub report: OwnedFd,
    /// The directory of the control group that it is created in.
    pub group: Option<OwnedFd>,
    /// Whether it is created in a PID namespace of its own.
    pub own_pids: bool,
    /// Files of control groups that it enters by itself.
    pub groups: Vec<OwnedFd>,
    /// Limits that it sets for itself.
    pub limits: Vec<(Resource, u64)>,
    /// The mounts in a mount namespace of its own; with these it keeps the privileges of the host.
    pub mounts: Option<Mounts>,
    /// The highest capability to drop from the bounding set; all from 0 on are dropped.
    pub last_capability: Option<u32>,
    /// The user and group that it changes to.
    pub user: Option<(u32, u32)>,
    /// The identity of the host, as the new process can check it.
    pub host: Host,
    /// The Landlock ruleset.
    pub files: Option<OwnedFd>,
    /// The filter.
    pub filter: Option<Programs>,
}

/// How a new process recognizes its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Host {
    /// By `getppid`.
    Pid(u32),
    /// By `/proc`: inside a PID namespace of its own, the process cannot see its parent's id.
    InProc(u32),
    /// Not at all: `/proc` is not mounted.
    Unknown,
}

impl Host {
    /// The identity for a process in a PID namespace of its own.
    pub fn in_proc() -> Host {
        ask::pid_in_proc().map_or(Host::Unknown, Host::InProc)
    }
}

/// A report of the new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepReport {
    /// The process id of the created process.
    Pid(u32),
    /// A step failed.
    Failed(Step, i32),
}

/// Bytes of a report: its kind, and its value.
pub(crate) const NOTE_BYTES: usize = 8;
const PID: u32 = 0;

impl StepReport {
    pub fn parse(bytes: [u8; NOTE_BYTES]) -> Option<StepReport> {
        let [a, b, c, d, value @ ..] = bytes;
        match u32::from_ne_bytes([a, b, c, d]) {
            PID => Some(StepReport::Pid(u32::from_ne_bytes(value))),
            step => {
                let (step, _) = STEPS.into_iter().find(|(known, _)| *known as u32 == step)?;
                Some(StepReport::Failed(step, i32::from_ne_bytes(value)))
            }
        }
    }
}

/// The result of a system call as a `Result`.
fn check(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn prctl(option: libc::c_int, value: u64) -> io::Result<libc::c_long> {
    // SAFETY: the callers' options take numbers and no address.
    check(unsafe { libc::syscall(libc::SYS_prctl, option, value, 0u64, 0u64, 0u64) })
}

impl Steps {
    /// Only the steps that every program takes.
    pub fn new(report: OwnedFd, host: Host) -> Steps {
        Steps {
            report,
            group: None,
            own_pids: false,
            groups: vec![],
            limits: vec![],
            mounts: None,
            last_capability: None,
            user: None,
            host,
            files: None,
            filter: None,
        }
    }

    /// Whether the process is created by a second call, in its control group and PID namespace.
    pub fn is_placed(&self) -> bool {
        self.own_pids || self.group.is_some()
    }

    /// Confines the calling process, which was just forked.
    pub fn take(&self) -> io::Result<()> {
        self.step(Step::Place, || self.place())?;
        self.step(Step::Group, || self.enter_groups())?;
        self.step(Step::Limit, || self.limit())?;
        // No terminal: the NF must not read the host's input, and must not insert any.
        // SAFETY: no arguments. A process that was just forked leads no group, so this succeeds.
        self.step(Step::Session, || check(unsafe { libc::syscall(libc::SYS_setsid) }).map(drop))?;
        self.step(Step::Bound, || self.bound())?;
        self.step(Step::User, || self.become_user())?;
        if self.mounts.is_none() {
            self.step(Step::Privileges, give_up_privileges)?;
        }
        self.step(Step::HostDeath, || self.tie_to_host())?;
        // After the check for the host, which is not visible in the new /proc.
        self.step(Step::Mount, || self.mounts.as_ref().map_or(Ok(()), Mounts::make))?;
        self.step(Step::Files, || self.enter_files())?;
        self.step(Step::Filter, || self.install_filter())
    }

    fn step(&self, step: Step, take: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let result = take();
        if let Err(error) = &result {
            self.report(step as u32, error.raw_os_error().unwrap_or(0) as u32);
        }
        result
    }

    fn report(&self, what: u32, value: u32) {
        let mut bytes = [0; NOTE_BYTES];
        bytes[..4].copy_from_slice(&what.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        // A pipe accepts so few bytes at once. If its reader has ended, so has the host.
        let _ = rustix::io::write(&self.report, &bytes);
    }

    /// Creates the process again, as a child of the host, in its groups: moving a process into a control
    /// group waits for all cores, about 12 ms, and only processes that are created in a PID namespace belong
    /// to it.
    fn place(&self) -> io::Result<()> {
        /// `CLONE_INTO_CGROUP`, of linux/sched.h.
        const INTO_GROUP: u64 = 1 << 33;
        if !self.is_placed() {
            // SAFETY: no arguments.
            self.report(PID, unsafe { libc::getpid() } as u32);
            return Ok(());
        }
        // It uses this process's memory, which was copied once and need not be copied again.
        let mut flags = libc::CLONE_PARENT | libc::CLONE_PARENT_SETTID | libc::CLONE_VM | libc::CLONE_VFORK;
        if self.own_pids {
            flags |= libc::CLONE_NEWPID;
        }
        if self.mounts.is_some() {
            flags |= libc::CLONE_NEWNS;
        }
        let flags = flags as u64 | if self.group.is_some() { INTO_GROUP } else { 0 };
        // Its process id in the host's PID namespace.
        let mut pid = 0u32;
        // In the order of `struct clone_args`: flags, pidfd, child_tid, parent_tid, exit_signal, stack,
        // stack_size, tls, set_tid, set_tid_size, cgroup.
        let group = self.group.as_ref().map_or(0, |group| group.as_raw_fd() as u64);
        let args: [u64; 11] = [flags, 0, 0, (&raw mut pid) as u64, 0, 0, 0, 0, 0, 0, group];
        // SAFETY: the kernel reads the arguments, whose size is right, and writes the number before the new
        // process runs; both live for the call. The C library's cached thread id is wrong in the new process,
        // and nothing uses it before exec.
        let answer = unsafe { go_on_in_clone(args.as_ptr(), size_of_val(&args)) };
        if answer < 0 {
            return Err(io::Error::from_raw_os_error(-answer as i32));
        }
        // SAFETY: the kernel has written it, which the compiler does not see.
        self.report(PID, unsafe { std::ptr::read_volatile(&raw const pid) });
        Ok(())
    }

    fn enter_groups(&self) -> io::Result<()> {
        for group in &self.groups {
            rustix::io::write(group, b"0")?;
        }
        Ok(())
    }

    fn limit(&self) -> io::Result<()> {
        for (resource, most) in &self.limits {
            let limit = rustix::process::Rlimit { current: Some(*most), maximum: Some(*most) };
            rustix::process::setrlimit(*resource, limit)?;
        }
        Ok(())
    }

    /// Clears the bounding set, so that no executed program can gain a capability. This is a second barrier
    /// besides [`give_up_privileges`], for a process that has the right to clear it.
    fn bound(&self) -> io::Result<()> {
        // A kernel without ambient capabilities returns an error, which does not matter.
        let _ = prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64);
        for capability in 0..self.last_capability.map_or(0, |last| last + 1) {
            prctl(libc::PR_CAPBSET_DROP, u64::from(capability))?;
        }
        Ok(())
    }

    /// Changes user and group by system calls: the C library's functions would change all threads, and here
    /// is only one.
    fn become_user(&self) -> io::Result<()> {
        let Some((user, group)) = self.user else { return Ok(()) };
        // SAFETY: numbers only; the list of groups is empty, so none is read.
        unsafe {
            check(libc::syscall(libc::SYS_setgroups, 0usize, std::ptr::null::<libc::gid_t>()))?;
            check(libc::syscall(libc::SYS_setresgid, group, group, group))?;
            check(libc::syscall(libc::SYS_setresuid, user, user, user))?;
        }
        Ok(())
    }

    fn tie_to_host(&self) -> io::Result<()> {
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)?;
        // The host may have ended before this request; then another process is the parent now.
        // SAFETY: no arguments.
        let parent = unsafe { libc::getppid() };
        let host_lives = match self.host {
            Host::Pid(pid) => parent as u32 == pid,
            Host::InProc(pid) => parent_in_proc()? == Some(pid),
            Host::Unknown => true,
        };
        if host_lives { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    fn enter_files(&self) -> io::Result<()> {
        let Some(ruleset) = &self.files else { return Ok(()) };
        // SAFETY: a descriptor and no flags.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
    }

    fn install_filter(&self) -> io::Result<()> {
        for program in self.filter.iter().flatten() {
            seccompiler::apply_filter(program).map_err(|error| match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                _ => io::Error::from_raw_os_error(libc::EINVAL),
            })?;
        }
        Ok(())
    }
}

/// Returns in a new process on the same stack, which the calling process does not change: it waits until the
/// new process has executed or ended, and then ends itself. Returns a negative number in the calling process
/// if no process could be created.
///
/// # Safety
///
/// The arguments are those of `clone3`, with `CLONE_VM` and `CLONE_VFORK`; the process has no other thread.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on_in_clone(args: *const u64, size: usize) -> i64 {
    core::arch::naked_asm!(
        "mov eax, {clone3}",
        "syscall",
        "test rax, rax",
        "jle 2f",
        // The new process uses the stack: the old one must not read it.
        "xor edi, edi",
        "mov eax, {exit_group}",
        "syscall",
        "ud2",
        "2:",
        "ret",
        clone3 = const libc::SYS_clone3,
        exit_group = const libc::SYS_exit_group,
    )
}

/// As above, by the instructions of this architecture: only the names of the constants are the same.
///
/// # Safety
///
/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on_in_clone(args: *const u64, size: usize) -> i64 {
    core::arch::naked_asm!(
        "mov x8, {clone3}",
        "svc 0",
        "cmp x0, 0",
        "b.le 2f",
        "mov x0, 0",
        "mov x8, {exit_group}",
        "svc 0",
        "brk 1",
        "2:",
        "ret",
        clone3 = const libc::SYS_clone3,
        exit_group = const libc::SYS_exit_group,
    )
}

/// Gives up all capabilities of this process, and sets no-new-privileges, so that no program file grants any.
fn give_up_privileges() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` and this process; then effective, permitted and inheritable, twice 32
    /// bits.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    let none = [0u32; 6];
    // SAFETY: the kernel reads the two, which have the sizes of this version and live for the call.
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), none.as_ptr()) })?;
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map(drop)
}

/// The process id of this process's parent in `/proc/self/stat`.
fn parent_in_proc() -> io::Result<Option<u32>> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; 256];
    let count = rustix::io::read(&file, &mut bytes)?;
    Ok(parent_in_stat(&bytes[..count]))
}

/// The name in parentheses may contain any character; the state and the parent follow it.
fn parent_in_stat(stat: &[u8]) -> Option<u32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let digits = stat.get(name_end + 4..)?;
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u32>, digit| {
        number.unwrap_or(0).checked_mul(10)?.checked_add(u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_whatever_the_program_is_called() {
        assert_eq!(parent_in_stat(b"12 (a) R 34 5"), Some(34));
        assert_eq!(parent_in_stat(b"12 (a) R 1 (b) S 77 5"), Some(77));
        assert_eq!(parent_in_stat(b"12 (a"), None);
        assert_eq!(parent_in_stat(b"12 (a) R x"), None);
        let own = parent_in_proc().expect("there is /proc");
        // SAFETY: no arguments.
        assert_eq!(own, Some(unsafe { libc::getppid() } as u32));
    }

    #[test]
    fn notes_are_understood() {
        for (step, _) in STEPS {
            let mut bytes = [0; NOTE_BYTES];
            bytes[..4].copy_from_slice(&(step as u32).to_ne_bytes());
            bytes[4] = 1;
            assert_eq!(StepReport::parse(bytes), Some(StepReport::Failed(step, 1)));
        }
        assert_eq!(StepReport::parse([0xff; NOTE_BYTES]), None);
    }
}
