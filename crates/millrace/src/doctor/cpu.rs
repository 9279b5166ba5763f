//! The processor: cores, instruction sets, caches, frequency, cycle counter, isolation of pinned workers,
//! performance counters.

use std::collections::HashSet;

use super::machine::{Machine, value_of};
use super::report::{Finding, Probe};
use crate::text::plural;

/// The probes of this section.
pub const PROBES: &[Probe] =
    &[model, cores, instruction_sets, caches, numa, frequency, tsc, isolation, counters];

const CPUINFO: &str = "/proc/cpuinfo";

fn model(machine: &Machine<'_>) -> Vec<Finding> {
    let name = machine.field(CPUINFO, "model name").unwrap_or_else(|| "unknown".into());
    let inside = if machine.cpu_flag("hypervisor") { ", a virtual machine" } else { "" };
    vec![Finding::ok("CPU", format!("{name}{inside}"))]
}

/// The numbers of logical processors, cores and sockets.
fn topology(machine: &Machine<'_>) -> (usize, usize, usize) {
    let text = machine.read(CPUINFO).unwrap_or_default();
    let (mut logical, mut cores, mut sockets) = (0, HashSet::new(), HashSet::new());
    for block in text.split("\n\n") {
        let value = |key: &str| value_of(block, key);
        let Some(processor) = value("processor") else {
            continue;
        };
        logical += 1;
        let socket = value("physical id").unwrap_or_default();
        // If the cores have no numbers, each logical processor counts as a core.
        cores.insert((socket.clone(), value("core id").unwrap_or(processor)));
        sockets.insert(socket);
    }
    (logical, cores.len(), sockets.len())
}

fn cores(machine: &Machine<'_>) -> Vec<Finding> {
    let (logical, cores, sockets) = topology(machine);
    let smt = if logical > cores { "SMT on" } else { "no SMT" };
    let text = format!("{} on {}, {smt}", plural(cores, "core"), plural(sockets, "socket"));
    vec![match cores {
        0 => Finding::limited("cores", "unknown: /proc/cpuinfo cannot be read"),
        1 => Finding::limited("cores", format!("{text}: workers share it with all else"))
            .remedy("give the machine two cores or more; one core still runs everything, slower"),
        _ => Finding::ok("cores", text),
    }]
}

fn instruction_sets(machine: &Machine<'_>) -> Vec<Finding> {
    let all = ["sse4_2", "popcnt", "aes", "avx2", "bmi2", "avx512f", "avx512bw", "vaes"];
    let found: Vec<_> = all.into_iter().filter(|flag| machine.cpu_flag(flag)).collect();
    let text = if found.is_empty() { "none known".to_owned() } else { found.join(" ") };
    let name = "instructions";
    vec![if !found.contains(&"sse4_2") {
        Finding::missing(name, format!("{text}; DPDK as Debian builds it needs SSE 4.2"))
            .remedy("use an x86-64-v2 processor, or let the virtual machine see the host's (-cpu host)")
    } else if !found.contains(&"avx2") {
        Finding::limited(name, format!("{text}; without AVX2 rule lookup takes its slower path"))
            .remedy("in a virtual machine: let it see the host's processor (-cpu host)")
    } else {
        Finding::ok(name, text)
    }]
}

fn caches(machine: &Machine<'_>) -> Vec<Finding> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    let found: Vec<_> = machine
        .names(folder)
        .iter()
        .filter_map(|index| {
            let value = |name: &str| machine.read(&format!("{folder}/{index}/{name}"));
            let kind = match value("type")?.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            let shared = value("shared_cpu_list").unwrap_or_default();
            let shared =
                if shared.contains([',', '-']) { format!(" (CPUs {shared})") } else { String::new() };
            Some(format!("L{}{kind} {}{shared}", value("level")?, value("size")?))
        })
        .collect();
    vec![match found.is_empty() {
        true => Finding::limited("caches", "not shown by this kernel"),
        false => Finding::ok("caches", found.join(", ")),
    }]
}

fn numa(machine: &Machine<'_>) -> Vec<Finding> {
    let folder = "/sys/devices/system/node";
    let nodes: Vec<_> = machine
        .names(folder)
        .iter()
        .filter_map(|name| {
            let number = name.strip_prefix("node")?.parse::<u32>().ok()?;
            let cpus = machine.read(&format!("{folder}/{name}/cpulist")).unwrap_or_default();
            let cpus = if cpus.is_empty() { "no CPU".to_owned() } else { format!("CPUs {cpus}") };
            Some(format!("node {number}: {cpus}"))
        })
        .collect();
    vec![match nodes.len() {
        0 => Finding::ok("NUMA", "not shown by this kernel: treated as one node"),
        1 => Finding::ok("NUMA", "one node"),
        count => Finding::ok("NUMA", format!("{count} nodes ({})", nodes.join("; "))),
    }]
}

fn frequency(machine: &Machine<'_>) -> Vec<Finding> {
    let folder = "/sys/devices/system/cpu/cpu0/cpufreq";
    let name = "frequency";
    let Some(governor) = machine.read(&format!("{folder}/scaling_governor")) else {
        let virtual_machine = machine.cpu_flag("hypervisor");
        return vec![if virtual_machine {
            Finding::limited(name, "set by the host; figures may drift with its load")
                .remedy("on the host: apt install linux-cpupower && cpupower frequency-set -g performance")
        } else {
            Finding::limited(name, "no frequency driver: set by firmware")
                .remedy("choose the firmware's performance profile, or let the system control frequency")
        }];
    };
    let driver = machine.read(&format!("{folder}/scaling_driver")).unwrap_or_else(|| "unknown".into());
    let text = format!("governor {governor}, driver {driver}");
    vec![if governor == "performance" {
        Finding::ok(name, text)
    } else {
        Finding::limited(name, format!("{text}: a core that was idle starts slowly"))
            .remedy("apt install linux-cpupower && cpupower frequency-set -g performance")
    }]
}

fn tsc(machine: &Machine<'_>) -> Vec<Finding> {
    let invariant = machine.cpu_flag("constant_tsc") && machine.cpu_flag("nonstop_tsc");
    // The kernel derives bogomips from the TSC on x86: twice its frequency in MHz.
    let mhz = machine.field(CPUINFO, "bogomips").and_then(|text| text.parse::<f64>().ok());
    let rate = mhz.map(|bogomips| format!(", about {:.0} MHz", bogomips / 2.0)).unwrap_or_default();
    let clock = machine
        .read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .unwrap_or_else(|| "unknown".into());
    let name = "cycle counter";
    vec![if !invariant {
        Finding::missing(name, format!("the TSC is not invariant: cycles are no time (clock: {clock})"))
            .remedy("in a virtual machine: pass it through (-cpu host,+invtsc)")
    } else if clock != "tsc" {
        Finding::limited(name, format!("invariant TSC{rate}, but the kernel's clock is {clock}"))
            .remedy("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource")
    } else {
        Finding::ok(name, format!("invariant TSC{rate}, and the kernel's clock"))
    }]
}

fn isolation(machine: &Machine<'_>) -> Vec<Finding> {
    let isolated = machine.read("/sys/devices/system/cpu/isolated").unwrap_or_default();
    let (logical, ..) = topology(machine);
    vec![if isolated.is_empty() {
        let finding = Finding::limited("isolated cores", "none: the scheduler interrupts workers");
        match logical {
            0..=2 => finding.remedy("with two cores there is none to spare; three or more are needed"),
            _ => {
                let cores = format!("1-{}", logical - 1);
                finding.remedy(format!(
                    "add isolcpus={cores} nohz_full={cores} rcu_nocbs={cores} to GRUB_CMDLINE_LINUX in \
                     /etc/default/grub, then update-grub && reboot"
                ))
            }
        }
    } else {
        Finding::ok("isolated cores", isolated)
    }]
}

fn counters(machine: &Machine<'_>) -> Vec<Finding> {
    /// The numbers of CAP_PERFMON and CAP_SYS_ADMIN; either one lifts the restriction.
    const LIFTING: [u32; 2] = [38, 21];
    let name = "perf counters";
    let hardware = machine
        .names("/sys/bus/event_source/devices")
        .into_iter()
        .any(|device| device == "cpu" || device.starts_with("cpu_") || device.starts_with("armv"));
    let Ok(restriction) =
        machine.read("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default().parse::<i32>()
    else {
        return vec![Finding::missing(name, "this kernel has no perf events")];
    };
    vec![if !hardware {
        Finding::missing(name, "no hardware counters: cycles come from the TSC, cache misses are not known")
            .remedy("in a virtual machine: let the host offer its counters (-cpu host,pmu=on)")
    } else if restriction > 2 && !LIFTING.iter().any(|number| machine.capability(*number)) {
        Finding::limited(
            name,
            format!("hardware counters, not for this user (perf_event_paranoid {restriction})"),
        )
        .remedy("sysctl -w kernel.perf_event_paranoid=1")
    } else {
        Finding::ok(name, "hardware counters")
    }]
}
