//! The time for which a thread was ready but did not run, because something else had its core: another
//! thread, or, on a virtual machine, another machine.
//!
//! The source is `/proc/PID/task/TID/schedstat`, which Linux keeps for every thread. Where it is missing, the
//! time is not known, and measurements use the clock alone. `/proc/stat` has the time that a hypervisor took
//! from a core (steal time), in ticks of 10 ms; it is used for threads that are pinned to one core.

use std::path::{Path, PathBuf};

/// A thread of some process.
#[derive(Clone, Debug)]
pub struct Thread(PathBuf);

impl Thread {
    /// The thread of a process for whose name `is_it` returns true; the youngest where there are several.
    /// `process` is a number or `self`.
    pub fn find(process: &str, is_it: impl Fn(&str) -> bool) -> Option<Thread> {
        let tasks = std::fs::read_dir(Path::new("/proc").join(process).join("task")).ok()?;
        let named =
            |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| is_it(name.trim_end()));
        let number = |task: &PathBuf| task.file_name()?.to_str()?.parse::<u32>().ok();
        tasks.flatten().map(|task| task.path()).filter(|task| named(task)).max_by_key(number).map(Thread)
    }

    /// The workers of this process. A thread gets its name when it first runs, which on a busy machine is
    /// later than its start.
    pub fn workers(count: usize) -> Vec<Thread> {
        let find = |worker: usize| Thread::find("self", |name| name == format!("worker-{worker}"));
        (0..count).filter_map(find).collect()
    }

    /// The calling thread.
    pub fn current() -> Option<Thread> {
        // The link differs in each thread, but its target stays valid.
        let task = std::fs::read_link("/proc/thread-self").ok()?;
        Some(Thread(Path::new("/proc").join(task)))
    }

    /// Nanoseconds that the thread has waited for a core since it began.
    pub fn waited_ns(&self) -> Option<u64> {
        waited_ns(&std::fs::read_to_string(self.0.join("schedstat")).ok()?)
    }

    /// Nanoseconds that a hypervisor took from the core of a pinned thread since the machine booted. Precise
    /// enough to detect it, too coarse to be subtracted.
    pub fn stolen_ns(&self) -> Option<u64> {
        let status = std::fs::read_to_string(self.0.join("status")).ok()?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let core = allowed.trim().parse::<usize>().ok()?;
        stolen_ns(&std::fs::read_to_string("/proc/stat").ok()?, core)
    }
}

/// A tick of `/proc/stat`: 10 ms on all our platforms (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// Parses the eighth value of a core's line.
fn stolen_ns(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let mut lines = stat.lines().map(str::split_whitespace);
    let mut line = lines.find_map(|mut words| (words.next() == Some(&name)).then_some(words))?;
    line.nth(7)?.parse::<u64>().ok()?.checked_mul(TICK_NS)
}

/// Parses the second value; the values are time on a core, time waiting for one, and timeslices.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiting_time_is_the_second_figure() {
        assert_eq!(waited_ns("123456 789 12\n"), Some(789));
        assert_eq!(waited_ns("123456"), None);
        assert_eq!(waited_ns("a b c"), None);
    }

    #[test]
    fn stolen_time_is_that_of_the_core() {
        let stat =
            "cpu  1 2 3 4 5 6 7 99 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 41 0 0\ncpu10 1 2 3\n";
        assert_eq!((stolen_ns(stat, 0), stolen_ns(stat, 1)), (Some(80_000_000), Some(410_000_000)));
        assert_eq!((stolen_ns(stat, 10), stolen_ns(stat, 2)), (None, None));
    }

    #[test]
    fn threads_are_found_by_name() {
        if !Path::new("/proc/self/schedstat").exists() {
            eprintln!("SKIP: this kernel keeps no /proc/self/schedstat");
            return;
        }
        let (tell, hear) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("to-be-found".into());
        let thread = thread.spawn(move || hear.recv()).expect("a thread");
        // The thread sets its name when it starts.
        let found = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Thread::find("self", |name| name == "to-be-found")
        });
        assert!(found.is_some_and(|thread| thread.waited_ns().is_some()));
        assert!(Thread::find("self", |name| name == "not-to-be-found").is_none());
        drop(tell);
        let _ = thread.join();
    }
}
