//! The control group of an NF: limits on all its processes together, and a way to find and kill all that it
//! started.
//!
//! Version 2 is used where it is mounted, because the kernel kills such a group at once and processes can be
//! created in it. Limits of version 1 are used if only version 1 has the controllers. Invariant: all
//! processes in a group belong to the NF.

mod dir;
mod hierarchy;

use crate::ask;
use dir::Dir;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// How long the NF may create processes faster than they are moved into a group.
const PATIENCE: Duration = Duration::from_secs(1);
/// The fewest rounds before that is an error: on a busy machine the kernel may take all of that time to move
/// one process, and only the next round finds that no process is left to move.
const LEAST_ROUNDS: u32 = 3;

/// The limits to set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub memory_bytes: Option<u64>,
    pub processes: u32,
    pub cpu_weight: u32,
}

/// The control group of an NF.
#[derive(Debug)]
pub(crate) struct Group {
    /// The group of version 2.
    unified: Option<Dir>,
    /// The groups of version 1.
    legacy: Vec<Dir>,
    /// Why limits of version 1 could not be set.
    placing: OnceLock<String>,
}

/// Whether a limit is enforced.
pub(crate) type Limited = Result<(), String>;

/// The limits that a group has.
#[derive(Debug)]
pub(crate) struct Report {
    pub memory: Limited,
    pub processes: Limited,
    pub cpu: Limited,
}

impl Group {
    /// No group: only a PID namespace contains the NF's processes.
    pub fn none() -> Group {
        Group { unified: None, legacy: vec![], placing: OnceLock::new() }
    }
}

/// Creates a group, with as many of the limits as this machine supports.
pub(crate) fn make(limits: Limits) -> (Group, Report) {
    let trees = hierarchy::trees();
    let unified = hierarchy::unified(&trees);
    let has = unified.as_ref().map_or(&[][..], |base| &base.controllers);
    let legacy = hierarchy::legacy(&trees, has);
    static SWEEP: Once = Once::new();
    SWEEP.call_once(|| unified.iter().chain(&legacy).for_each(|base| Dir::sweep(&base.path)));

    let why = if trees.is_empty() {
        "no control groups are mounted: mount -t cgroup2 none /sys/fs/cgroup"
    } else {
        "no control group with that limit can be made here: run as root, or in a service with Delegate=yes"
    };
    let missing = || Err(why.to_owned());
    let mut report = Report { memory: missing(), processes: missing(), cpu: missing() };
    let mut made = |base: &hierarchy::Base, is_unified| {
        if is_unified {
            hierarchy::enable(base);
        }
        let dir = Dir::make(&base.path).ok()?;
        for controller in &base.controllers {
            let (place, limited) = match *controller {
                "memory" => (&mut report.memory, limit_memory(&dir, is_unified, limits.memory_bytes)),
                "pids" => (&mut report.processes, dir.write("pids.max", &limits.processes.to_string())),
                _ => (&mut report.cpu, limit_cpu(&dir, is_unified, limits.cpu_weight)),
            };
            *place = limited.map_err(|error| format!("the control group refuses it: {error}"));
        }
        Some(dir)
    };
    let unified = unified.and_then(|base| made(&base, true));
    let legacy = legacy.iter().filter_map(|base| made(base, false)).collect();
    (Group { unified, legacy, placing: OnceLock::new() }, report)
}

fn limit_memory(dir: &Dir, is_unified: bool, bytes: Option<u64>) -> io::Result<()> {
    let (file, swap, most_swap) = if is_unified {
        ("memory.max", "memory.swap.max", 0)
    } else {
        // The limits of memory alone, and of memory and swap together.
        ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes.unwrap_or(0))
    };
    let Some(bytes) = bytes else { return Ok(()) };
    dir.write(file, &bytes.to_string())?;
    if dir.has(swap) {
        dir.write(swap, &most_swap.to_string())?;
    }
    if dir.has("memory.oom.group") {
        dir.write("memory.oom.group", "1")?;
    }
    Ok(())
}

fn limit_cpu(dir: &Dir, is_unified: bool, weight: u32) -> io::Result<()> {
    if is_unified {
        return dir.write("cpu.weight", &weight.to_string());
    }
    dir.write("cpu.shares", &cpu_shares(weight).to_string())
}

/// A CPU weight, whose default is 100, as shares of version 1, which count from 2 and whose default is 1,024.
pub fn cpu_shares(weight: u32) -> u64 {
    (u64::from(weight) * 1024 / 100).max(2)
}

impl Group {
    /// Whether it contains all processes that its NF starts: the kernel creates the NF in it, and kills all
    /// of it at once.
    pub fn holds_descendants(&self) -> bool {
        ask::can_clone_into_group() && self.unified.as_ref().is_some_and(Dir::has_kill)
    }

    /// The directory in which the NF is created.
    pub fn folder(&self) -> io::Result<Option<OwnedFd>> {
        let folder = self.unified.as_ref().filter(|_| self.holds_descendants());
        folder.map(|dir| dir.fd().try_clone_to_owned()).transpose()
    }

    /// Files by which the NF itself enters groups. That takes about 12 ms. If another mechanism identifies
    /// the NF's processes, limits of version 1 are therefore set later.
    pub fn entrances(&self) -> io::Result<Vec<OwnedFd>> {
        if self.holds_descendants() {
            return Ok(vec![]);
        }
        self.unified.iter().chain(&self.legacy).map(Dir::entrance).collect()
    }

    /// Whether limits are set after the NF was started.
    pub fn is_limited_later(&self) -> bool {
        self.holds_descendants() && !self.legacy.is_empty()
    }

    /// Sets limits of version 1 on all processes in the group of version 2, and kills the NF if that fails.
    pub fn place(&self) {
        let (end, mut rounds) = (Instant::now() + PATIENCE, 0);
        let result = loop {
            rounds += 1;
            match self.place_once() {
                Ok(true) => break Ok(()),
                Ok(false) if rounds < LEAST_ROUNDS || Instant::now() < end => {}
                Ok(false) => break Err("its processes multiplied too fast to be limited".to_owned()),
                Err(error) => break Err(format!("its limits were refused: {error}")),
            }
        };
        if let Err(why) = result {
            let _ = self.placing.set(why);
            self.kill();
        }
    }

    /// Moves processes that have no limits yet; whether there were none. A process that a limited one creates
    /// is limited.
    fn place_once(&self) -> io::Result<bool> {
        let mut complete = true;
        let all = self.unified.as_ref().map_or(vec![], Dir::processes);
        for dir in &self.legacy {
            let limited = dir.processes();
            for pid in all.iter().filter(|pid| !limited.contains(pid)) {
                complete = false;
                match dir.write("cgroup.procs", &pid.to_string()) {
                    // The process ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    other => other?,
                }
            }
        }
        Ok(complete)
    }

    /// Kills all processes in it.
    pub fn kill(&self) {
        match &self.unified {
            Some(dir) if self.holds_descendants() => dir.kill(),
            _ => self.unified.iter().chain(&self.legacy).for_each(Dir::kill),
        }
    }

    /// Whether no process runs in it.
    pub fn is_empty(&self) -> bool {
        match &self.unified {
            Some(dir) if self.holds_descendants() => dir.is_empty(),
            _ => self.unified.iter().chain(&self.legacy).all(Dir::is_empty),
        }
    }

    /// Why the kernel, or this module, killed the NF; `None` if neither did.
    pub fn why_ended(&self) -> Option<Finding> {
        let placing = self.placing.get().cloned().map(Finding::Other);
        placing.or_else(|| {
            let dirs = self.unified.iter().chain(&self.legacy);
            dirs.into_iter().any(|dir| ran_out_of_memory(dir.path())).then_some(Finding::OutOfMemory)
        })
    }
}

/// The roots of all mounted hierarchies of control groups.
pub fn control_group_trees() -> Vec<PathBuf> {
    hierarchy::trees().into_iter().map(|tree| tree.point).collect()
}

/// Removes a control group, if it exists, and kills the processes in it.
pub fn remove_control_group(group: &Path) {
    if let Ok(dir) = Dir::abandoned(group) {
        dir.remove();
    }
}

/// Whether the kernel has killed a process of a control group because of its memory limit. The counter is in
/// `memory.events` in version 2, and in `memory.oom_control` in version 1.
pub fn ran_out_of_memory(group: &Path) -> bool {
    let killed = |line: &str| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0");
    ["memory.events", "memory.oom_control"]
        .iter()
        .any(|file| std::fs::read_to_string(group.join(file)).is_ok_and(|text| text.lines().any(killed)))
}

/// Why an NF was killed for a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It exceeded its memory limit.
    OutOfMemory,
    /// Another reason, in a sentence.
    Other(String),
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::OutOfMemory => f.write_str("out of memory"),
            Finding::Other(why) => f.write_str(why),
        }
    }
}

/// The groups that could be created on this machine.
#[derive(Debug)]
pub(crate) struct Offers {
    /// Whether such a group would contain all processes that its NF starts.
    pub holds_descendants: bool,
    /// The limits by name, each with the version of control groups that supports it.
    pub limits: Vec<(&'static str, u8)>,
}

/// Checks which groups could be created, and creates none.
pub(crate) fn offers() -> Offers {
    let trees = hierarchy::trees();
    let unified = hierarchy::unified(&trees);
    // The root group has no `cgroup.kill` itself; all other groups have it since Linux 5.14.
    let has_kill = unified
        .as_ref()
        .is_some_and(|base| base.path.join("cgroup.kill").exists() || hierarchy::kernel_is_at_least(5, 14));
    let has = unified.map_or(vec![], |base| base.controllers);
    let legacy = hierarchy::legacy(&trees, &has);
    let mut limits: Vec<_> = has.into_iter().map(|name| (name, 2)).collect();
    limits.extend(legacy.iter().flat_map(|base| base.controllers.iter().map(|name| (*name, 1))));
    Offers { holds_descendants: has_kill && ask::can_clone_into_group(), limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_ran_out_of_memory_is_known_by_either_version() {
        let group = tempfile::tempdir().expect("a folder");
        assert!(!ran_out_of_memory(Path::new("/nowhere")) && !ran_out_of_memory(group.path()));
        for (file, text, killed) in [
            ("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n", false),
            ("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n", true),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", false),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", true),
        ] {
            std::fs::write(group.path().join(file), text).expect("written");
            assert_eq!(ran_out_of_memory(group.path()), killed, "{text}");
            std::fs::remove_file(group.path().join(file)).expect("removed");
        }
    }
}
