//! The filter of an NF's system calls, in BPF.
//!
//! There are two programs. A process installs both, and the stricter result applies. The first answers calls
//! that are newer than this list, and `clone3`, with `ENOSYS`, so that programs fall back to older ones. The
//! second allows the calls of [`calls`], some of them by their arguments, leaves those of the first program
//! to it, and answers all others with `EPERM`. It is installed last, because it refuses further filters. A
//! call of another architecture kills the process.
//!
//! Arguments are compared as the kernel reads them: flags and commands are 32 bits, and higher bits are
//! ignored.

mod calls;
mod condition;
mod profile;

pub use condition::{Comparison, Condition};
pub use profile::{CallRule, Profile};

use crate::confinement::Sockets;
use crate::error::Error;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// The calls that a filter allows in addition to those of every program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// Whether it allows new processes, not only threads.
    pub children: bool,
    /// Whether it allows to set the cores of threads by their ids: if no threads of other processes are
    /// visible.
    pub own_pids: bool,
    /// The sockets that it allows.
    pub sockets: Sockets,
}

/// Programs that a process installs in this order.
pub(crate) type Programs = [BpfProgram; 2];

/// For each call the lists of conditions of which one must hold; a call without a list is always allowed.
type Rules = BTreeMap<i64, Vec<Vec<Condition>>>;

/// Flags of `clone` that are refused: namespaces; a sibling instead of a child, which the host would have to
/// wait for; a child that starts traced.
const REFUSED_CLONE_FLAGS: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PARENT
    | libc::CLONE_PTRACE) as u32 as u64;

/// Advice that concerns only the calling process. Not included: `MADV_REMOVE`, which zeroes shared packets;
/// `MADV_COLD`, `MADV_PAGEOUT` and `MADV_COLLAPSE`, which delay other processes; merging of pages, which
/// reveals their contents.
const ADVICE: [u64; 19] = [0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23, 24, 102, 103];

/// Commands of `fcntl` except sealing (with `F_ADD_SEALS` an NF could keep others from mapping shared
/// memory), leases, and signals about descriptors to others.
const FCNTL: [i32; 16] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETOWN,
    libc::F_GETPIPE_SZ,
    libc::F_SETPIPE_SZ,
    libc::F_GET_SEALS,
];

/// Not included: `PR_SET_PDEATHSIG`, with which an NF could outlive the host; further filters and modes.
const PRCTL: [i32; 18] = [
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_DUMPABLE,
    libc::PR_SET_DUMPABLE,
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_GET_SECCOMP,
    libc::PR_CAPBSET_READ,
    libc::PR_GET_SECUREBITS,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
    libc::PR_SET_CHILD_SUBREAPER,
    libc::PR_GET_CHILD_SUBREAPER,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_TID_ADDRESS,
    libc::PR_SET_THP_DISABLE,
    libc::PR_GET_THP_DISABLE,
    libc::PR_SET_VMA,
];

/// Commands that insert characters into a terminal's input: `TIOCSTI`, and `TIOCLINUX`, which pastes.
const REFUSED_IOCTLS: [u64; 2] = [libc::TIOCSTI as u32 as u64, libc::TIOCLINUX as u32 as u64];

/// The programs for an NF.
///
/// # Errors
///
/// On an architecture that they cannot be compiled for.
pub(crate) fn programs(allowance: Allowance) -> Result<Programs, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Filter(error.to_string());
    let rules = allowed(allowance);
    let unknown: Rules = unknown().map(|call| (call, vec![])).collect();
    let program = |rules: Rules, otherwise, listed| {
        let arch = std::env::consts::ARCH.try_into()?;
        let rule = |conditions: Vec<Condition>| {
            SeccompRule::new(conditions.into_iter().map(compare).collect::<Result<_, _>>()?)
        };
        let rules = rules.into_iter().map(|(call, lists)| {
            Ok((call, lists.into_iter().map(rule).collect::<Result<_, seccompiler::BackendError>>()?))
        });
        let rules = rules.collect::<Result<_, seccompiler::BackendError>>()?;
        SeccompFilter::new(rules, otherwise, listed, arch)?.try_into()
    };
    let refuse = |errno: i32| SeccompAction::Errno(errno as u32);
    let result: Result<Programs, seccompiler::BackendError> = (|| {
        Ok([
            program(unknown, SeccompAction::Allow, refuse(libc::ENOSYS))?,
            program(rules, refuse(libc::EPERM), SeccompAction::Allow)?,
        ])
    })();
    result.map_err(|error| failed(&error))
}

/// Calls that fail as unknown.
fn unknown() -> impl Iterator<Item = i64> {
    // New calls of some years: each one makes the programs longer, and the kernel checks all instructions
    // when it installs them.
    calls::UNKNOWN.iter().map(|call| call.number).chain(calls::NEWEST + 1..calls::NEWEST + 40)
}

fn allowed(allowance: Allowance) -> Rules {
    let plain = calls::PLAIN.iter().chain(calls::OLD).map(|call| call.number);
    let mut rules: Rules = plain.chain(calls::NAMELESS.iter().copied()).map(|call| (call, vec![])).collect();
    // The first program answers these. Of two refusals, that of the program installed last would apply.
    rules.extend(unknown().map(|call| (call, vec![])));
    let mut by_arguments = |call: i64, list: Vec<Vec<Condition>>| rules.insert(call, list);

    let bits = |argument, mask: u64, value: u64| is(argument, Comparison::Masked(mask), value);
    let mut clone = vec![bits(0, REFUSED_CLONE_FLAGS, 0)];
    if !allowance.children {
        clone.push(bits(0, libc::CLONE_THREAD as u64, libc::CLONE_THREAD as u64));
    }
    by_arguments(libc::SYS_clone, vec![clone]);
    // Filling holes is allowed; creating holes, in memory that others use, is not.
    let keep_size = libc::FALLOC_FL_KEEP_SIZE as u32;
    by_arguments(libc::SYS_fallocate, vec![vec![bits(1, u64::from(!keep_size), 0)]]);
    by_arguments(libc::SYS_madvise, one_of(2, ADVICE));
    by_arguments(libc::SYS_fcntl, one_of(1, FCNTL.map(|command| command as u64)));
    by_arguments(libc::SYS_prctl, one_of(0, PRCTL.map(|option| u64::from(option as u32))));
    let ioctl = REFUSED_IOCTLS.iter().map(|command| is(1, Comparison::NotEqual, *command));
    by_arguments(libc::SYS_ioctl, vec![ioctl.collect()]);
    by_arguments(libc::SYS_prlimit64, one_of(0, [0]));
    // Only a query of the personality.
    by_arguments(libc::SYS_personality, one_of(0, [0xffff_ffff]));
    // Itself or its own group, not all processes of a user.
    let itself = vec![is(0, Comparison::Less, 2), is(1, Comparison::Equal, 0)];
    by_arguments(libc::SYS_setpriority, vec![itself]);
    by_arguments(libc::SYS_sched_setaffinity, if allowance.own_pids { vec![] } else { one_of(0, [0]) });
    // No datagram sockets: they can send to any name without a call to connect. The types have flags above
    // these bits.
    let stream = |kind: i32| bits(1, 0xf, kind as u64);
    let unix = || is(0, Comparison::Equal, libc::AF_UNIX as u64);
    let pairs = if allowance.sockets == Sockets::Inherited {
        vec![vec![unix(), stream(libc::SOCK_STREAM)], vec![unix(), stream(libc::SOCK_SEQPACKET)]]
    } else {
        vec![vec![unix()]]
    };
    by_arguments(libc::SYS_socketpair, pairs);
    let families: &[i32] = match allowance.sockets {
        Sockets::Inherited => &[],
        Sockets::Local => &[libc::AF_UNIX],
        Sockets::Network => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6],
    };
    if !families.is_empty() {
        let mut sockets = one_of(0, families.iter().map(|family| *family as u64));
        if allowance.sockets == Sockets::Network {
            // The resolver lists addresses by netlink; changes need capabilities.
            let netlink = is(0, Comparison::Equal, libc::AF_NETLINK as u64);
            sockets.push(vec![netlink, is(2, Comparison::Equal, libc::NETLINK_ROUTE as u64)]);
        }
        by_arguments(libc::SYS_socket, sockets);
        rules.extend(calls::NAMED_SOCKETS.iter().map(|call| (call.number, vec![])));
    }
    if allowance.children {
        rules.extend(calls::FORKS.iter().map(|call| (call.number, vec![])));
    }
    rules
}

fn is(argument: u8, comparison: Comparison, value: u64) -> Condition {
    Condition { argument, comparison, value }
}

fn compare(condition: Condition) -> Result<SeccompCondition, seccompiler::BackendError> {
    let op = match condition.comparison {
        Comparison::Equal => SeccompCmpOp::Eq,
        Comparison::NotEqual => SeccompCmpOp::Ne,
        Comparison::Less => SeccompCmpOp::Lt,
        Comparison::Masked(mask) => SeccompCmpOp::MaskedEq(mask),
    };
    SeccompCondition::new(condition.argument, SeccompCmpArgLen::Dword, op, condition.value)
}

/// Condition lists by which an argument is one of these values.
fn one_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Vec<Vec<Condition>> {
    values.into_iter().map(|value| vec![is(argument, Comparison::Equal, value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_fit_into_the_kernel() {
        for sockets in [Sockets::Inherited, Sockets::Local, Sockets::Network] {
            for children in [false, true] {
                let programs = programs(Allowance { children, own_pids: children, sockets }).expect("made");
                // The limit is BPF_MAXINSNS.
                assert!(programs.iter().all(|program| (1..4096).contains(&program.len())));
            }
        }
    }

    #[test]
    fn what_reaches_into_others_is_on_no_list() {
        let rules = allowed(Allowance { children: true, own_pids: true, sockets: Sockets::Network });
        for call in [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_io_uring_setup,
            libc::SYS_io_setup,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_mbind,
            libc::SYS_fchmodat,
            libc::SYS_setresuid,
        ] {
            assert!(!rules.contains_key(&call), "{call}");
        }
    }
}
