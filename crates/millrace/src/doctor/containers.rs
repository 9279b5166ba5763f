//! Containers and their requirements: runtimes, namespaces, control groups, capabilities.

use super::machine::{Answer, Machine};
use super::report::{Finding, Probe};
use super::virtualization::version;

/// The probes of this section.
pub const PROBES: &[Probe] = &[
    |machine| runtime(machine, "runc", "apt install runc"),
    |machine| runtime(machine, "crun", "apt install crun"),
    |machine| runtime(machine, "podman", "apt install podman"),
    docker,
    namespaces,
    control_groups,
    capabilities,
];

fn docker(machine: &Machine<'_>) -> Vec<Finding> {
    if version(machine, "docker").is_ok() && !machine.has("/run/docker.sock") {
        let version = version(machine, "docker").unwrap_or_default();
        let text = format!("{version}, but its daemon does not run");
        return vec![Finding::limited("docker", text).remedy("systemctl start docker")];
    }
    runtime(machine, "docker", "apt install docker.io")
}

/// Whether a container runtime is installed and can create containers: runc and crun create one that does
/// nothing, and remove it; an engine (podman, docker) only has to answer.
fn runtime(machine: &Machine<'_>, program: &str, install: &str) -> Vec<Finding> {
    let version = match version(machine, program) {
        Ok(version) => version,
        Err(why) => return vec![Finding::missing(program, why).remedy(install)],
    };
    vec![match machine.kernel.makes_containers(program) {
        None => Finding::ok(program, version),
        Some(Ok(())) => Finding::ok(program, format!("{version} makes containers of NFs")),
        Some(Err(why)) => Finding::limited(program, format!("{version} makes no containers of NFs: {why}")),
    }]
}

fn namespaces(machine: &Machine<'_>) -> Vec<Finding> {
    let works = |options: &[&str]| {
        // `unshare` makes the namespaces in a child that ends at once; this process keeps its own.
        let arguments = [options, &["--fork", "true"]].concat();
        matches!(machine.kernel.ask("unshare", &arguments), Answer::Output(_))
    };
    let name = "namespaces";
    vec![if works(&["--user", "--map-root-user", "--net", "--pid", "--mount"]) {
        Finding::ok(name, "user, network, pid and mount namespaces can be made")
    } else if works(&["--net", "--pid", "--mount"]) {
        Finding::limited(name, "network, pid and mount namespaces by privilege only, no user namespaces")
            .remedy("sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000")
    } else {
        Finding::missing(name, "none can be made: NFs cannot be kept apart").remedy(
            "run as root, or: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000",
        )
    }]
}

fn control_groups(machine: &Machine<'_>) -> Vec<Finding> {
    let mounts = machine.read("/proc/mounts").unwrap_or_default();
    let kinds: Vec<_> = mounts.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let (old, new) = (kinds.contains(&"cgroup"), kinds.contains(&"cgroup2"));
    let name = "control groups";
    let remedy = "remove systemd.unified_cgroup_hierarchy=0 from the kernel's command line and reboot";
    vec![match (old, new) {
        (false, true) => {
            let controllers = machine.read("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
            Finding::ok(name, format!("version 2 ({controllers})"))
        }
        (true, true) => {
            Finding::limited(name, "version 1 with a version 2 beside it, which Millrace hides from crun")
                .remedy(remedy)
        }
        (true, false) => Finding::limited(name, "version 1").remedy(remedy),
        (false, false) => Finding::missing(name, "not mounted: no limits on NFs")
            .remedy("mount -t cgroup2 none /sys/fs/cgroup"),
    }]
}

/// The capabilities that Millrace uses: number (`linux/capability.h`), name, purpose.
const CAPABILITIES: [(u32, &str, &str); 7] = [
    (12, "NET_ADMIN", "interfaces and XDP programs"),
    (13, "NET_RAW", "AF_PACKET and AF_XDP ports"),
    (14, "IPC_LOCK", "locked memory"),
    (21, "SYS_ADMIN", "namespaces and mounts"),
    (23, "SYS_NICE", "pinning and priorities"),
    (24, "SYS_RESOURCE", "raising limits"),
    (39, "BPF", "XDP programs"),
];

fn capabilities(machine: &Machine<'_>) -> Vec<Finding> {
    let lacking: Vec<_> = CAPABILITIES.iter().filter(|(number, ..)| !machine.capability(*number)).collect();
    let name = "capabilities";
    if lacking.is_empty() {
        let names = CAPABILITIES.map(|(_, name, _)| name);
        return vec![Finding::ok(name, format!("this process has {}", names.join(", ")))];
    }
    let words: Vec<_> = lacking.iter().map(|(_, name, purpose)| format!("{name} ({purpose})")).collect();
    let text = format!("this process lacks {}", words.join(", "));
    let finding = if lacking.len() == CAPABILITIES.len() {
        Finding::missing(name, text)
    } else {
        Finding::limited(name, text)
    };
    let withheld = lacking.iter().filter(|(number, ..)| !machine.capability_in("CapBnd", *number));
    vec![finding.remedy(if withheld.count() == lacking.len() {
        "withheld by whatever started this system or container; for a container: docker run --cap-add"
    } else {
        "run as root, or: setcap cap_net_admin,cap_net_raw,cap_ipc_lock,cap_sys_nice,cap_bpf+ep \
         $(command -v millrace)"
    })]
}
