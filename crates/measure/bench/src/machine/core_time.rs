//! How long a thread was ready and did not run, because something else had its core: another thread, or, on a virtual
//! machine, another machine.
//!
//! From `/proc/PID/task/TID/schedstat`, which Linux keeps for every thread. Where it is missing the time
//! is not known, and figures are by the clock alone. What a hypervisor took of a core (steal time) is in `/proc/stat`, in
//! ticks of 10 ms; it counts for threads that are pinned to one core.

use std::path::{Path, PathBuf};

/// A thread of some process.
#[derive(Clone, Debug)]
pub struct Thread(PathBuf);

impl Thread {
    /// The thread of a process whose name `is_it`, the youngest of several. `process` is a number or `self`.
    pub fn find(process: &str, is_it: impl Fn(&str) -> bool) -> Option<Thread> {
        let tasks = std::fs::read_dir(Path::new("/proc").join(process).join("task")).ok()?;
        let named =
            |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| is_it(name.trim_end()));
        let number = |task: &PathBuf| task.file_name()?.to_str()?.parse::<u32>().ok();
        tasks.flatten().map(|task| task.path()).filter(|task| named(task)).max_by_key(number).map(Thread)
    }

    /// The packet threads of this process. They take their names when they first run, which on a busy machine is later
    /// than they are started.
    pub fn workers(count: usize) -> Vec<Thread> {
        let find = |worker: usize| Thread::find("self", |name| name == format!("worker-{worker}"));
        (0..count).filter_map(find).collect()
    }

    /// The one that calls this.
    pub fn current() -> Option<Thread> {
        // The link is another one in each thread: what it points to now stays.
        let task = std::fs::read_link("/proc/thread-self").ok()?;
        Some(Thread(Path::new("/proc").join(task)))
    }

    /// Nanoseconds that it has waited for a core since it began.
    pub fn waited_ns(&self) -> Option<u64> {
        waited_ns(&std::fs::read_to_string(self.0.join("schedstat")).ok()?)
    }

    /// Nanoseconds that a hypervisor gave the core of a pinned thread to others, since the machine began: good enough to
    /// tell that it happened, too coarse to be subtracted.
    pub fn stolen_ns(&self) -> Option<u64> {
        let status = std::fs::read_to_string(self.0.join("status")).ok()?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let core = allowed.trim().parse::<usize>().ok()?;
        stolen_ns(&std::fs::read_to_string("/proc/stat").ok()?, core)
    }
}

/// A tick of `/proc/stat`: a hundredth of a second wherever Linux runs that we do (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// The eighth figure of a core's line.
fn stolen_ns(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let mut lines = stat.lines().map(str::split_whitespace);
    let mut line = lines.find_map(|mut words| (words.next() == Some(&name)).then_some(words))?;
    line.nth(7)?.parse::<u64>().ok()?.checked_mul(TICK_NS)
}

/// The second figure: time on a core, time waiting for one, turns.
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
        // It names itself when it starts.
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
