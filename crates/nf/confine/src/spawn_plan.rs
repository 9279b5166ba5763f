//! From a confinement and the machine's mechanisms to the steps of a start, and to the report about them.

use crate::applied::{Applied, Mechanism};
use crate::ask;
use crate::confined::Confined;
use crate::confinement::{Confinement, Sockets};
use crate::error::Error;
use crate::files::{self, Files};
use crate::group::{self, Group, Limits, Report};
use crate::seccomp::{self, Allowance};
use crate::steps::{Host, Steps};
use crate::{program, spawner};
use rustix::process::Resource;
use rustix::thread::CapabilitySet;
use std::process::Command;

/// The highest number of a capability, if the kernel does not report its own: CAP_CHECKPOINT_RESTORE.
const LAST_CAPABILITY: u32 = 40;

impl Confinement {
    /// Starts a program under this confinement, as far as the machine has the mechanisms;
    /// [`Confined::applied`] lists them.
    ///
    /// The command's own settings apply, except for user, group and process group, which this replaces.
    /// Descriptors that are not close-on-exec are inherited. A start takes about three milliseconds, and one
    /// more for each ten megabytes of the host's own memory, whose page tables are copied (not those of
    /// shared memory; `MADV_DONTFORK` excludes large private tables, too); about 12 ms more where there are
    /// only control groups of version 1.
    ///
    /// # Errors
    ///
    /// When a granted path cannot be opened, a step of the confinement fails, or the program cannot be
    /// executed. No process is left then.
    pub fn spawn(&self, command: Command) -> Result<Confined, Error> {
        let capabilities = ask::capabilities();
        let limits =
            Limits { memory_bytes: self.memory_bytes, processes: self.processes, cpu_weight: self.weight() };
        let (group, report) = group::make(limits);
        let own_pids = self.own_pids && ask::can_make_pid_namespace();
        let changes_user = CapabilitySet::SETUID | CapabilitySet::SETGID;
        let user = self.user.filter(|_| capabilities.contains(changes_user));
        let is_superuser = user.map_or(rustix::process::geteuid().is_root(), |(user, _)| user == 0);

        let has_filter = ask::has_seccomp();
        let children = own_pids || group.holds_descendants();
        let allowance = Allowance { children, own_pids, sockets: self.sockets };
        let filter = has_filter.then(|| seccomp::programs(allowance)).transpose()?;
        let program = program::file(&command);
        let files = files::ruleset(self, program.as_deref(), is_superuser)?;

        let mut applied = Applied::default();
        self.say_user(user, is_superuser, &mut applied);
        let drops_bound = capabilities.contains(CapabilitySet::SETPCAP);
        applied.enforced(Mechanism::Privileges, "no capabilities, and none by executing a program");
        self.say_filter(has_filter, files.as_ref(), own_pids, &mut applied);
        self.say_limits(&report, group.is_limited_later(), children || !has_filter, user, &mut applied);
        say_lives(own_pids, &group, has_filter, &mut applied);

        let (notes, report) = spawner::notes().map_err(Error::Spawner)?;
        let host = if own_pids { Host::in_proc() } else { Host::Pid(std::process::id()) };
        let last = std::fs::read_to_string("/proc/sys/kernel/cap_last_cap").ok();
        let last = last.and_then(|text| text.trim().parse().ok()).unwrap_or(LAST_CAPABILITY);
        let steps = Steps {
            group: group.folder().map_err(Error::Spawner)?,
            own_pids,
            groups: group.entrances().map_err(Error::Spawner)?,
            limits: self.limits(user.is_some()),
            last_capability: drops_bound.then_some(last),
            user,
            files: files.map(|files| files.ruleset),
            filter,
            ..Steps::new(report, host)
        };
        Confined::start(command, steps, notes, group, applied)
    }

    /// The CPU weight, in the range that the kernel accepts.
    fn weight(&self) -> u32 {
        self.cpu_weight.clamp(1, 10_000)
    }

    /// Limits that a process sets for itself, none of them higher than its present limits.
    fn limits(&self, has_own_user: bool) -> Vec<(Resource, u64)> {
        let mut limits = vec![
            (Resource::Core, 0),
            (Resource::Nofile, self.open_files),
            (Resource::Rtprio, 0),
            (Resource::Nice, 0),
            (Resource::Msgqueue, 0),
        ];
        // The kernel counts processes for each user. With a user that others share, their processes would
        // count, too.
        if has_own_user {
            limits.push((Resource::Nproc, u64::from(self.processes)));
        }
        for (resource, most) in &mut limits {
            if let Some(had) = rustix::process::getrlimit(*resource).maximum {
                *most = had.min(*most);
            }
        }
        limits
    }

    fn say_user(&self, user: Option<(u32, u32)>, is_superuser: bool, applied: &mut Applied) {
        const MECHANISM: Mechanism = Mechanism::UserId;
        match (user, self.user) {
            (Some(_), _) if is_superuser => applied.lacking(MECHANISM, "user 0 owns the system: give another"),
            (Some((user, group)), _) => applied.enforced(MECHANISM, format!("user {user}, group {group}, no other")),
            (None, Some(_)) => applied.lacking(
                MECHANISM,
                "this program does not run as root, with CAP_SETUID and CAP_SETGID; memory that the NF shares for \
                 reading can be opened anew for writing",
            ),
            (None, None) => applied.lacking(MECHANISM, "none was given: it runs as the user of this program"),
        }
    }

    fn say_filter(&self, has_filter: bool, files: Option<&Files>, own_pids: bool, applied: &mut Applied) {
        const NO_FILTER: &str = "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)";
        const NO_LANDLOCK: &str =
            "Landlock is not in this kernel or not switched on: add landlock to lsm= on its command line";
        if has_filter {
            applied.enforced(Mechanism::SystemCalls, "those of an ordinary program, others are refused");
        } else {
            applied.lacking(Mechanism::SystemCalls, NO_FILTER);
        }
        match files.map(Files::lacks) {
            Some(None) => applied.enforced(Mechanism::Files, "those of the system and those granted"),
            Some(Some(lack)) => {
                applied
                    .enforced(Mechanism::Files, format!("those of the system and those granted, but {lack}"));
            }
            None => applied.lacking(Mechanism::Files, NO_LANDLOCK),
        }
        let holds = files.is_some_and(Files::holds_scopes);
        match self.sockets {
            Sockets::Inherited if has_filter => applied.enforced(Mechanism::Sockets, "inherited ones only"),
            Sockets::Local if has_filter => {
                applied.enforced(Mechanism::Sockets, "UNIX sockets only, as granted")
            }
            Sockets::Network if has_filter => {
                applied.enforced(Mechanism::Sockets, "UNIX, IPv4 and IPv6, as granted")
            }
            Sockets::Network => applied.lacking(Mechanism::Sockets, NO_FILTER),
            _ if holds => applied.lacking(Mechanism::Sockets, format!("but TCP by Landlock: {NO_FILTER}")),
            _ => applied.lacking(Mechanism::Sockets, NO_FILTER),
        }
        if own_pids {
            applied.enforced(Mechanism::Signals, "it sees no process but its own");
        } else if holds {
            applied.enforced(Mechanism::Signals, "to its own processes only");
        } else {
            applied.lacking(
                Mechanism::Signals,
                "those of the same user are within its reach: that takes root, or Linux 6.12 with Landlock",
            );
        }
    }

    fn say_limits(
        &self,
        report: &Report,
        later: bool,
        children: bool,
        user: Option<(u32, u32)>,
        applied: &mut Applied,
    ) {
        let when = if later { ", from some milliseconds after its start" } else { "" };
        match (self.memory_bytes, &report.memory) {
            (None, _) => applied.lacking(Mechanism::Memory, "no limit was given"),
            (Some(bytes), Ok(())) => {
                applied.enforced(Mechanism::Memory, format!("at most {}{when}", mebibytes(bytes)));
            }
            (Some(_), Err(why)) => applied.lacking(Mechanism::Memory, why.as_str()),
        }
        let most = self.processes;
        match &report.processes {
            Ok(()) => {
                applied.enforced(Mechanism::Processes, format!("at most {most}, threads included{when}"))
            }
            Err(_) if user.is_some() => applied.enforced(
                Mechanism::Processes,
                format!("at most {most}, threads included, of all with its user id"),
            ),
            Err(why) if children => applied.lacking(Mechanism::Processes, why.as_str()),
            Err(why) => {
                applied.lacking(Mechanism::Processes, format!("it has one, of any number of threads: {why}"))
            }
        }
        let weight = self.weight();
        match &report.cpu {
            Ok(()) => {
                applied.enforced(Mechanism::CpuShare, format!("weight {weight}, where others have 100{when}"))
            }
            Err(why) => applied.lacking(Mechanism::CpuShare, why.as_str()),
        }
        applied.enforced(
            Mechanism::Limits,
            format!("at most {} descriptors, no core dumps, no better priority", self.open_files),
        );
    }
}

fn say_lives(own_pids: bool, group: &Group, has_filter: bool, applied: &mut Applied) {
    const MECHANISM: Mechanism = Mechanism::Descendants;
    match (own_pids, group.holds_descendants()) {
        (true, true) => applied.enforced(MECHANISM, "they end with it, in a PID namespace and a control group"),
        (true, false) => applied.enforced(MECHANISM, "they end with it, in a PID namespace"),
        (false, true) => applied.enforced(MECHANISM, "they are ended after it, in a control group"),
        (false, false) if has_filter => applied.enforced(
            MECHANISM,
            "it can make none, because neither a PID namespace nor a control group can be made here: that takes \
             root, or a service with Delegate=yes",
        ),
        (false, false) => applied.lacking(
            MECHANISM,
            "neither a PID namespace nor a control group can be made here, and no system call refused: run as root",
        ),
    }
    let but = if own_pids { "" } else { "; what it started ends when the next host starts" };
    applied.enforced(Mechanism::HostDeath, format!("by signal{but}"));
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_one_that_the_kernel_accepts() {
        for (given, used) in [(0, 1), (1, 1), (100, 100), (10_000, 10_000), (u32::MAX, 10_000)] {
            assert_eq!(Confinement { cpu_weight: given, ..Confinement::default() }.weight(), used);
        }
    }
}
