//! Memory: its size, huge pages, and the limit of locked memory.

use super::machine::Machine;
use super::report::{Finding, Probe};

/// The probes of this section.
pub const PROBES: &[Probe] = &[
    memory,
    |machine| vec![huge_pages(machine, "2 MiB pages", 2048, "2M", "sysctl -w vm.nr_hugepages=1024")],
    |machine| vec![huge_pages(machine, "1 GiB pages", 1 << 20, "1G", RESERVE_LARGE)],
    locking,
];

const RESERVE_LARGE: &str = "add hugepagesz=1G hugepages=4 to GRUB_CMDLINE_LINUX in /etc/default/grub, \
                             then update-grub && reboot (2 MiB pages do as well for most chains)";

fn memory(machine: &Machine<'_>) -> Vec<Finding> {
    let gib = |key: &str| {
        let text = machine.field("/proc/meminfo", key)?;
        let kib = text.split_whitespace().next()?.parse::<u64>().ok()?;
        Some(kib as f64 / f64::from(1 << 20))
    };
    vec![match (gib("MemTotal"), gib("MemAvailable")) {
        (Some(total), Some(free)) if free < 0.5 => {
            Finding::limited("memory", format!("{total:.1} GiB, {free:.1} GiB available"))
                .remedy("half a GiB is wanted for a chain with its buffers: stop something, or add memory")
        }
        (Some(total), Some(free)) => {
            Finding::ok("memory", format!("{total:.1} GiB, {free:.1} GiB available"))
        }
        _ => Finding::limited("memory", "unknown: /proc/meminfo cannot be read"),
    }]
}

fn huge_pages(machine: &Machine<'_>, name: &str, size_kib: u64, option: &str, remedy: &str) -> Finding {
    let folder = format!("/sys/kernel/mm/hugepages/hugepages-{size_kib}kB");
    let Some(reserved) = machine.number(&format!("{folder}/nr_hugepages")) else {
        return Finding::missing(name, "not offered by this kernel or processor");
    };
    if reserved == 0 {
        return Finding::limited(name, "offered, none reserved: ordinary pages are used").remedy(remedy);
    }
    let free = machine.number(&format!("{folder}/free_hugepages")).unwrap_or(0);
    let default_kib = machine
        .field("/proc/meminfo", "Hugepagesize")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let mounts = machine.read("/proc/mounts").unwrap_or_default();
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let size = options.split(',').find_map(|word| word.strip_prefix("pagesize="));
        let fits = size.map_or(default_kib == Some(size_kib), |size| size.eq_ignore_ascii_case(option));
        (kind == "hugetlbfs" && fits).then(|| place.to_owned())
    });
    let text = format!("{reserved} reserved, {free} free");
    match mounted {
        _ if free == 0 => Finding::limited(name, format!("{text}: all in use"))
            .remedy("free some, or reserve more: echo N > ".to_owned() + &folder + "/nr_hugepages"),
        Some(place) => Finding::ok(name, format!("{text}, mounted on {place}")),
        None => {
            Finding::limited(name, format!("{text}, not mounted: programs that want files cannot use them"))
                .remedy(format!(
                    "mkdir -p /dev/hugepages-{option} && mount -t hugetlbfs -o pagesize={option} none \
                 /dev/hugepages-{option}"
                ))
        }
    }
}

fn locking(machine: &Machine<'_>) -> Vec<Finding> {
    /// The number of CAP_IPC_LOCK.
    const IPC_LOCK: u32 = 14;
    /// The memory that a chain locks, with its packet regions, rings and AF_XDP memory.
    const WANTED_BYTES: u64 = 512 << 20;
    let name = "locked memory";
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| {
        line.strip_prefix("Max locked memory")?.split_whitespace().next().map(str::to_owned)
    });
    let Some(soft) = soft else {
        return vec![Finding::limited(name, "unknown: /proc/self/limits cannot be read")];
    };
    let bytes = soft.parse::<u64>().ok();
    let text = match bytes {
        Some(bytes) => format!("limit {:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        None => "no limit".to_owned(),
    };
    vec![if machine.capability(IPC_LOCK) {
        Finding::ok(name, format!("{text}, lifted by CAP_IPC_LOCK"))
    } else if bytes.is_some_and(|bytes| bytes < WANTED_BYTES) {
        Finding::limited(name, format!("{text}: regions may be swapped out and AF_XDP memory refused"))
            .remedy("echo '* - memlock unlimited' > /etc/security/limits.d/millrace.conf, then log in again")
    } else {
        Finding::ok(name, text)
    }]
}
