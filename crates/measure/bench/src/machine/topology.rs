//! The machine's sockets, cores and threads, and their frequency range, from `/sys`.

use crate::units::counted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

/// A physical core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Core {
    /// The numbers of its logical CPUs: more than one with SMT. Workers use the first.
    pub threads: Vec<usize>,
    /// Its socket.
    pub socket: usize,
    /// The NUMA node of its memory.
    pub node: usize,
}

/// The frequency range of cores, in kHz.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Frequency {
    /// The lowest.
    pub min_khz: u64,
    /// The highest.
    pub max_khz: u64,
    /// The first core's frequency when it was read.
    pub now_khz: Option<u64>,
    /// The governor that selects the frequency, such as `performance` for the highest.
    pub governor: String,
}

/// The cores of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Topology {
    /// The usable cores, in the order of their first logical CPU.
    pub cores: Vec<Core>,
    /// The frequency range, where the kernel sets the frequency.
    pub frequency: Option<Frequency>,
}

impl Topology {
    /// Reads the topology of this machine, for the logical CPUs that this process may use.
    pub fn look(allowed: &[usize]) -> Topology {
        Topology::read(Path::new("/sys/devices/system"), allowed)
    }

    /// Reads a tree like `/sys/devices/system`. A logical CPU that the tree does not describe counts as a
    /// core.
    pub fn read(root: &Path, allowed: &[usize]) -> Topology {
        let mut cores: BTreeMap<(usize, usize), Core> = BTreeMap::new();
        for &cpu in allowed {
            let folder = root.join(format!("cpu/cpu{cpu}"));
            let number = |name: &str| text(&folder.join("topology").join(name))?.parse::<usize>().ok();
            let socket = number("physical_package_id").unwrap_or(0);
            // Its first thread identifies the core: core numbers are only unique within a die.
            let siblings = text(&folder.join("topology/thread_siblings_list"));
            let first = siblings.and_then(|list| super::cores(&list).first().copied()).unwrap_or(cpu);
            let core = cores.entry((socket, first)).or_insert(Core {
                threads: vec![],
                socket,
                node: node(&folder).unwrap_or(0),
            });
            core.threads.push(cpu);
        }
        let mut cores: Vec<Core> = cores.into_values().collect();
        cores.sort_by_key(|core| core.threads.first().copied());
        let first = cores.first().and_then(|core| core.threads.first().copied()).unwrap_or(0);
        Topology { cores, frequency: frequency(&root.join(format!("cpu/cpu{first}/cpufreq"))) }
    }

    /// The sockets with their cores; those with the most cores come first.
    pub fn sockets(&self) -> Vec<(usize, Vec<&Core>)> {
        let mut sockets: BTreeMap<usize, Vec<&Core>> = BTreeMap::new();
        self.cores.iter().for_each(|core| sockets.entry(core.socket).or_default().push(core));
        let mut sockets: Vec<_> = sockets.into_iter().collect();
        sockets.sort_by_key(|(number, cores)| (std::cmp::Reverse(cores.len()), *number));
        sockets
    }

    /// Whether a core has more than one thread.
    pub fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.threads.len() > 1)
    }

    /// The topology as text.
    pub fn sentence(&self) -> String {
        let (cores, sockets) = (counted(self.cores.len(), "core"), counted(self.sockets().len(), "socket"));
        let smt = if self.has_smt() { ", SMT on" } else { ", no SMT" };
        format!("{cores} on {sockets}{smt}")
    }
}

fn text(path: &Path) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// The NUMA node of a logical CPU, whose folder has a link with that name.
fn node(folder: &Path) -> Option<usize> {
    let names = std::fs::read_dir(folder).ok()?.flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).min()
}

fn frequency(folder: &Path) -> Option<Frequency> {
    let khz = |name: &str| text(&folder.join(name))?.parse::<u64>().ok().filter(|khz| *khz > 0);
    Some(Frequency {
        min_khz: khz("cpuinfo_min_freq")?,
        max_khz: khz("cpuinfo_max_freq")?,
        now_khz: khz("scaling_cur_freq"),
        governor: text(&folder.join("scaling_governor")).unwrap_or_else(|| "unknown".into()),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a tree as the kernel shows it, from lines `path text`.
    pub fn recorded(lines: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let (path, text) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let path = root.path().join(path);
            match text {
                // The kernel has a link to the node here; only its name matters.
                "" => std::fs::create_dir_all(&path).expect("made"),
                text => {
                    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                    std::fs::write(&path, format!("{text}\n")).expect("written");
                }
            }
        }
        root
    }

    /// The lines of a logical CPU: its socket and NUMA node, which have the same number, its core there, and
    /// the list of the core's threads.
    fn cpu(number: usize, socket: usize, core: usize, threads: &str) -> String {
        let cpu = format!("cpu/cpu{number}");
        format!(
            "{cpu}/topology/physical_package_id {socket}\n{cpu}/topology/core_id {core}\n\
             {cpu}/topology/thread_siblings_list {threads}\n{cpu}/node{socket}\n"
        )
    }

    /// A desktop processor with 2 cores of 2 threads each; threads of a core are numbered `0,2`, as Intel's.
    pub fn smt() -> String {
        let frequency = "cpu/cpu0/cpufreq/cpuinfo_min_freq 800000\ncpu/cpu0/cpufreq/cpuinfo_max_freq 3600000\n\
                         cpu/cpu0/cpufreq/scaling_cur_freq 3600000\ncpu/cpu0/cpufreq/scaling_governor performance\n";
        [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")]
            .map(|(number, threads)| cpu(number, 0, number % 2, threads))
            .concat()
            + frequency
    }

    /// A server with two sockets of two cores; core numbers repeat in the second socket.
    pub fn sockets() -> String {
        (0..4).map(|number| cpu(number, number % 2, number / 2, &number.to_string())).collect()
    }

    #[test]
    fn threads_of_a_core_are_one_core() {
        let root = recorded(&smt());
        let found = Topology::read(root.path(), &[0, 1, 2, 3]);
        let core = |threads: &[usize]| Core { threads: threads.to_vec(), socket: 0, node: 0 };
        assert_eq!(found.cores, [core(&[0, 2]), core(&[1, 3])]);
        assert!(found.has_smt());
        let frequency = found.frequency.clone().expect("there");
        assert_eq!(
            (frequency.min_khz, frequency.max_khz, frequency.now_khz),
            (800_000, 3_600_000, Some(3_600_000))
        );
        assert_eq!(
            (frequency.governor.as_str(), found.sentence().as_str()),
            ("performance", "2 cores on 1 socket, SMT on")
        );
        // If only one thread of a core may be used, the core has only that one.
        assert_eq!(Topology::read(root.path(), &[2, 3]).cores, [core(&[2]), core(&[3])]);
    }

    #[test]
    fn sockets_are_told_apart_where_cores_have_the_same_numbers() {
        let root = recorded(&sockets());
        let found = Topology::read(root.path(), &[0, 1, 2, 3]);
        assert_eq!((found.cores.len(), found.has_smt(), found.frequency.is_none()), (4, false, true));
        let sockets = found.sockets();
        let cpus: Vec<(usize, Vec<usize>)> = sockets
            .iter()
            .map(|(number, cores)| (*number, cores.iter().map(|core| core.threads[0]).collect()))
            .collect();
        assert_eq!(cpus, [(0, vec![0, 2]), (1, vec![1, 3])]);
        assert_eq!(found.cores[1].node, 1);
        // Sockets with more cores come first.
        assert_eq!(Topology::read(root.path(), &[0, 1, 3]).sockets()[0].0, 1);
    }

    #[test]
    fn a_tree_that_says_nothing_has_a_core_for_each_processor() {
        let root = recorded("");
        let found = Topology::read(root.path(), &[0, 5]);
        assert_eq!(found.sentence(), "2 cores on 1 socket, no SMT");
        assert_eq!(found.cores[1], Core { threads: vec![5], socket: 0, node: 0 });
        assert!(!Topology::look(&[0]).cores.is_empty());
    }
}
