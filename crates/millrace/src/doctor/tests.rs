use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;

use super::machine::{Answer, Kernel, Offer, SocketKind};
use super::report::Status;
use super::*;

/// A kernel with prepared answers.
#[derive(Default)]
struct Prepared {
    sockets: Option<Offer>,
    answers: HashMap<String, Answer>,
    confinement: Vec<confine::Offer>,
}

impl Kernel for Prepared {
    fn socket(&self, _kind: SocketKind) -> Offer {
        self.sockets.unwrap_or(Offer::Absent)
    }

    fn ask(&self, program: &str, _arguments: &[&str]) -> Answer {
        self.answers.get(program).cloned().unwrap_or(Answer::NotInstalled)
    }

    fn confinement(&self) -> Vec<confine::Offer> {
        self.confinement.clone()
    }

    fn makes_containers(&self, runtime: &str) -> Option<Result<(), String>> {
        Some(match runtime {
            "crun" => Err("namespaces are refused".into()),
            _ => Ok(()),
        })
    }
}

fn says(answers: &[(&str, &str)]) -> Prepared {
    let answers =
        answers.iter().map(|(program, text)| ((*program).to_owned(), Answer::Output((*text).to_owned())));
    Prepared { sockets: Some(Offer::Works), answers: answers.collect(), ..Prepared::default() }
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    root
}

fn all(root: &Path, kernel: &dyn Kernel) -> Vec<Finding> {
    examine(&Machine::new(root, kernel)).into_iter().flat_map(|(_, findings)| findings).collect()
}

fn named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.name == name).unwrap_or_else(|| panic!("no finding {name}"))
}

const SERVER_CPUINFO: &str = "\
processor\t: 0\nmodel name\t: Big Server CPU\nphysical id\t: 0\ncore id\t: 0\nbogomips\t: 4800.00
flags\t\t: sse4_2 popcnt aes avx2 bmi2 avx512f vmx constant_tsc nonstop_tsc

processor\t: 1\nphysical id\t: 0\ncore id\t: 0\n
processor\t: 2\nphysical id\t: 1\ncore id\t: 0\n
processor\t: 3\nphysical id\t: 1\ncore id\t: 0\n";

fn server() -> tempfile::TempDir {
    let root = tree(&[
        ("proc/cpuinfo", SERVER_CPUINFO),
        ("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nHugepagesize:    2048 kB\n"),
        (
            "proc/mounts",
            "none /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        ),
        ("proc/self/limits", "Max locked memory         8388608              8388608              bytes\n"),
        ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
        ("proc/sys/kernel/perf_event_paranoid", "3\n"),
        ("sys/devices/system/cpu/isolated", "2-3\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-1\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("sys/devices/system/node/node1/cpulist", "2-3\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/bus/event_source/devices/cpu/type", "4\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1024\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1000\n"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "4\n"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n"),
        ("sys/kernel/iommu_groups/0/type", "DMA\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"),
        ("sys/class/net/lo/ifindex", "1\n"),
        ("sys/class/net/bonding_masters", "\n"),
        ("sys/class/net/eth0/ifindex", "2\n"),
        ("sys/class/net/eth0/operstate", "up\n"),
        ("sys/class/net/eth0/mtu", "1500\n"),
        ("sys/class/net/eth0/speed", "25000\n"),
        ("sys/devices/pci0/0000:3b:00.0/numa_node", "1\n"),
        ("sys/bus/pci/drivers/ice/bind", ""),
        ("usr/lib/x86_64-linux-gnu/librte_eal.so.23", ""),
        ("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_packet.so.23", ""),
        ("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_packet.so.23.0", ""),
        ("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_ice.so.23", ""),
        ("dev/kvm", ""),
        ("dev/vhost-net", ""),
        ("dev/net/tun", ""),
        ("dev/vfio/vfio", ""),
        ("run/docker.sock", ""),
    ]);
    let device = root.path().join("sys/devices/pci0/0000:3b:00.0");
    symlink(&device, root.path().join("sys/class/net/eth0/device")).expect("linked");
    symlink(root.path().join("sys/bus/pci/drivers/ice"), device.join("driver")).expect("linked");
    root
}

#[test]
fn a_well_equipped_server() {
    let root = server();
    let kernel = says(&[
        ("runc", "runc version 1.1.5+ds1\ncommit: x\n"),
        ("docker", "Docker version 20.10.24+dfsg1, build 297e128\n"),
        ("qemu-system-x86_64", "QEMU emulator version 7.2.15 (Debian 1:7.2+dfsg)\n"),
        ("tshark", "TShark (Wireshark) 4.0.17 (Git v4.0.17 packaged).\n"),
        ("tcpdump", "tcpdump version 4.99.3\n"),
        ("pkg-config", "22.11.11\n"),
        ("unshare", ""),
    ]);
    let findings = all(root.path(), &kernel);
    let expected = [
        ("cores", Status::Ok, "2 cores on 2 sockets, SMT on"),
        ("CPU", Status::Ok, "Big Server CPU"),
        ("caches", Status::Ok, "L1d 48K, L3 32768K (CPUs 0-1)"),
        ("NUMA", Status::Ok, "2 nodes (node 0: CPUs 0-1; node 1: CPUs 2-3)"),
        ("frequency", Status::Ok, "governor performance, driver intel_pstate"),
        ("cycle counter", Status::Ok, "invariant TSC, about 2400 MHz, and the kernel's clock"),
        ("isolated cores", Status::Ok, "2-3"),
        ("perf counters", Status::Ok, "hardware counters"),
        ("memory", Status::Ok, "64.0 GiB, 32.0 GiB available"),
        ("2 MiB pages", Status::Ok, "1024 reserved, 1000 free, mounted on /dev/hugepages"),
        ("1 GiB pages", Status::Limited, "4 reserved, 0 free: all in use"),
        ("locked memory", Status::Ok, "limit 8.0 MiB, lifted by CAP_IPC_LOCK"),
        ("eth0", Status::Ok, "ice, 0000:3b:00.0, up, MTU 1500, 25000 Mb/s, NUMA node 1"),
        ("DPDK", Status::Ok, "22.11.11, with headers"),
        (
            "DPDK drivers",
            Status::Limited,
            "af_packet and 1 more; without af_xdp memif null pcap ring tap vhost",
        ),
        ("KVM", Status::Ok, "/dev/kvm opens, by hardware"),
        ("VFIO", Status::Ok, "/dev/vfio/vfio opens"),
        ("IOMMU", Status::Ok, "in use, 1 group"),
        ("runc", Status::Ok, "1.1.5+ds1 makes containers of NFs"),
        ("docker", Status::Ok, "20.10.24+dfsg1 makes containers of NFs"),
        ("crun", Status::Missing, "not installed"),
        ("QEMU", Status::Ok, "7.2.15"),
        ("tshark", Status::Ok, "4.0.17"),
        ("control groups", Status::Ok, "version 2 (cpuset cpu memory)"),
        ("namespaces", Status::Ok, "user, network, pid and mount namespaces can be made"),
    ];
    for (name, status, text) in expected {
        let finding = named(&findings, name);
        assert_eq!((finding.status, finding.finding.as_str()), (status, text), "{name}");
    }
    assert_eq!(named(&findings, "capabilities").status, Status::Ok);
    assert!(!findings.iter().any(|finding| finding.name == "lo" || finding.name == "bonding_masters"));
}

#[test]
fn an_empty_machine_is_described_without_a_panic() {
    let root = tree(&[]);
    let findings = all(root.path(), &Prepared::default());
    assert!(findings.iter().all(|finding| finding.name != "probe"), "{findings:?}");
    // Every missing feature that can be installed or enabled has a remedy.
    for name in ["KVM", "DPDK", "QEMU", "runc", "AF_XDP", "TUN/TAP", "VFIO", "namespaces", "tshark"] {
        let finding = named(&findings, name);
        assert_eq!(finding.status, Status::Missing, "{name}");
        assert!(finding.remedy.is_some(), "{name}");
    }
}

#[test]
fn a_device_without_hardware_is_no_full_kvm() {
    let root = tree(&[("dev/kvm", ""), ("proc/cpuinfo", "processor : 0\nflags : sse4_2 hypervisor\n")]);
    let findings = all(root.path(), &Prepared::default());
    let kvm = named(&findings, "KVM");
    assert_eq!(kvm.status, Status::Limited);
    assert!(kvm.finding.contains("in software"));
    assert_eq!(named(&findings, "cores").status, Status::Limited);
    assert!(named(&findings, "CPU").finding.contains("virtual machine"));
}

#[test]
fn an_unprivileged_user_is_told_what_to_do() {
    let root = tree(&[
        ("proc/self/status", "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"),
        ("proc/self/limits", "Max locked memory         8388608              8388608              bytes\n"),
        ("proc/sys/kernel/perf_event_paranoid", "3\n"),
        ("sys/bus/event_source/devices/cpu_core/type", "4\n"),
        (
            "proc/mounts",
            "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        ),
    ]);
    let mut kernel = Prepared { sockets: Some(Offer::Denied), ..Prepared::default() };
    kernel.answers.insert("podman".into(), Answer::TimedOut);
    kernel.answers.insert("unshare".into(), Answer::Failed);
    let findings = all(root.path(), &kernel);
    for (name, status) in [
        ("AF_PACKET", Status::Limited),
        ("AF_XDP", Status::Limited),
        ("locked memory", Status::Limited),
        ("perf counters", Status::Limited),
        ("control groups", Status::Limited),
        ("capabilities", Status::Missing),
        ("namespaces", Status::Missing),
    ] {
        let finding = named(&findings, name);
        assert_eq!(finding.status, status, "{name}");
        assert!(finding.remedy.is_some(), "{name}");
    }
    assert_eq!(named(&findings, "podman").finding, "installed, but it does not answer");
    let remedy = |findings: &[Finding]| named(findings, "capabilities").remedy.clone().expect("has a remedy");
    assert!(remedy(&findings).starts_with("run as root"));
    let withheld = all(tree(&[]).path(), &says(&[("docker", "Docker version 1.2")]));
    assert!(remedy(&withheld).starts_with("withheld"));
    assert_eq!(named(&withheld, "docker").status, Status::Limited);
}

#[test]
fn what_confines_nfs_is_described_with_its_remedy() {
    let offer = |name, state, remedy| confine::Offer { name, state, text: format!("text of {name}"), remedy };
    let confinement = vec![
        offer("user ids", confine::ProbeState::Whole, None),
        offer("Landlock", confine::ProbeState::Partly, Some("boot another kernel")),
        offer("seccomp", confine::ProbeState::Missing, Some("boot yet another")),
    ];
    let findings = all(tree(&[]).path(), &Prepared { confinement, ..Prepared::default() });
    for (name, status, remedy) in [
        ("user ids", Status::Ok, None),
        ("Landlock", Status::Limited, Some("boot another kernel")),
        ("seccomp", Status::Missing, Some("boot yet another")),
    ] {
        let finding = named(&findings, name);
        assert_eq!((finding.status, finding.remedy.as_deref()), (status, remedy));
        assert_eq!(finding.finding, format!("text of {name}"));
    }
}

#[test]
fn the_live_machine_is_described_in_time() {
    let start = std::time::Instant::now();
    let sections = examine(&Machine::new("/", &LiveKernel));
    // The limit is two seconds; a busy machine that runs other tests meanwhile needs more.
    assert!(start.elapsed().as_secs() < 10, "took {:?}", start.elapsed());
    assert!(sections.iter().all(|(_, findings)| !findings.is_empty()));
    assert!(report::table(&sections, false).contains("Processor"));
}

#[test]
fn a_program_that_hangs_is_stopped() {
    let start = std::time::Instant::now();
    assert_eq!(LiveKernel.ask("sleep", &["60"]), Answer::TimedOut);
    assert!(start.elapsed().as_secs() < 10);
    assert_eq!(LiveKernel.ask("millrace-no-such-program", &[]), Answer::NotInstalled);
    assert_eq!(LiveKernel.ask("false", &[]), Answer::Failed);
    assert_eq!(LiveKernel.ask("echo", &["1.2"]), Answer::Output("1.2\n".into()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever the kernel's files hold, every probe ends with a finding.
    #[test]
    fn strange_files_are_survived(
        texts in proptest::collection::vec("[\\PC\n\t:,. -]{0,60}|[0-9a-f:, \n-]{0,30}", 12),
        version in "\\PC{0,30}",
    ) {
        let paths = [
            "proc/cpuinfo", "proc/meminfo", "proc/mounts", "proc/self/limits", "proc/self/status",
            "proc/sys/kernel/perf_event_paranoid", "sys/devices/system/cpu/isolated",
            "sys/devices/system/cpu/cpu0/cache/index0/type", "sys/devices/system/node/node0/cpulist",
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "sys/class/net/e/ifindex",
            "sys/class/net/e/speed",
        ];
        let files: Vec<_> = paths.iter().zip(&texts).map(|(path, text)| (*path, text.as_str())).collect();
        let root = tree(&files);
        let kernel = says(&[("runc", &version), ("tshark", &version), ("pkg-config", &version)]);
        let findings = all(root.path(), &kernel);
        prop_assert!(findings.iter().all(|finding| finding.name != "probe"));
        prop_assert!(findings.iter().all(|finding| !finding.finding.contains(char::is_control)));
    }
}
