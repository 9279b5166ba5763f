//! The machine of a measurement: the facts that a reader needs to judge results.
//!
//! - [`topology`]: sockets, cores and threads
//! - [`apart`]: detects cores that a hypervisor moved apart
//! - [`core_time`]: the time for which a thread had its core

pub mod apart;
pub mod core_time;
pub mod topology;

pub use topology::Topology;

use crate::units::counted;
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// A load average above this shows that something else runs, too: it is read before the benchmark starts,
/// which itself makes less than 2.
const BUSY_LOAD: f64 = 0.5;

/// The machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: Vec<usize>,
    /// Ticks of the time-stamp counter in a nanosecond; 0 where there is none.
    pub tsc_ghz: f64,
    /// The kernel's release.
    pub kernel: String,
    /// Free huge pages, in MiB. With enough of them packet memory uses them.
    pub free_huge_mib: u64,
    /// Load average of the last minute, before the measurements.
    pub load: f64,
}

impl Machine {
    /// Reads the facts about this machine.
    pub fn look() -> Machine {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        let free =
            read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").unwrap_or_default();
        let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: field(&cpuinfo, "model name").unwrap_or("unknown").to_string(),
            cores: cores(field(&status, "Cpus_allowed_list").unwrap_or("0")),
            tsc_ghz: worker::clock::cycles_per_ns().unwrap_or(0.0),
            kernel: kernel.trim().to_string(),
            free_huge_mib: free.trim().parse::<u64>().unwrap_or(0) * 2,
            load: load.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
        }
    }

    /// The machine, in a sentence.
    pub fn sentence(&self) -> String {
        let Machine { processor, tsc_ghz, kernel, .. } = self;
        let cores = counted(self.cores.len(), "core");
        let huge = match self.free_huge_mib {
            0 => "no huge pages".into(),
            mib => format!("{mib} MiB of huge pages free"),
        };
        format!("{processor}, {cores}, TSC {tsc_ghz:.3} GHz, Linux {kernel}, {huge}")
    }

    /// Whether something else kept the machine busy.
    pub fn is_busy(&self) -> bool {
        self.load > BUSY_LOAD
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Parses a list as the kernel prints it: `0-3,8`.
fn cores(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(cores("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cores("5"), [5]);
        assert_eq!(cores("x"), [0usize; 0]);
    }

    #[test]
    fn fields_are_found() {
        assert_eq!(field("a\t: 1\nmodel name\t: Some CPU\n", "model name"), Some("Some CPU"));
        assert_eq!(field("a: 1", "b"), None);
    }

    #[test]
    fn there_is_a_core() {
        assert!(!Machine::look().cores.is_empty());
    }
}
