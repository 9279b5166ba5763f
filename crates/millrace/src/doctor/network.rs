//! The network: sockets that carry whole frames, DPDK and its drivers, interfaces, capture tools.

use std::collections::BTreeSet;

use super::machine::{Answer, Machine, Offer, SocketKind};
use super::report::{Finding, Probe};
use super::virtualization::version;

/// The probes of this section.
pub const PROBES: &[Probe] = &[af_packet, af_xdp, tun, dpdk, interfaces, capture_tools];

const RAW_REMEDY: &str =
    "run as root, or: setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep $(command -v millrace)";

fn af_packet(machine: &Machine<'_>) -> Vec<Finding> {
    vec![match machine.kernel.socket(SocketKind::Packet) {
        Offer::Works => Finding::ok("AF_PACKET", "sockets open: net_af_packet ports work"),
        Offer::Denied => Finding::limited("AF_PACKET", "in the kernel, not for this user").remedy(RAW_REMEDY),
        Offer::Absent => Finding::missing("AF_PACKET", "not in this kernel")
            .remedy("use a kernel with CONFIG_PACKET, as Debian's has: apt install linux-image-amd64"),
    }]
}

fn af_xdp(machine: &Machine<'_>) -> Vec<Finding> {
    vec![match machine.kernel.socket(SocketKind::Xdp) {
        Offer::Works => Finding::ok("AF_XDP", "sockets open"),
        Offer::Denied => Finding::limited("AF_XDP", "in the kernel, not for this user").remedy(RAW_REMEDY),
        Offer::Absent => Finding::missing("AF_XDP", "not in this kernel")
            .remedy("use a kernel with CONFIG_XDP_SOCKETS, as Debian's has: apt install linux-image-amd64"),
    }]
}

fn tun(machine: &Machine<'_>) -> Vec<Finding> {
    vec![match machine.open("/dev/net/tun") {
        Offer::Works => Finding::ok("TUN/TAP", "/dev/net/tun opens: net_tap ports work"),
        Offer::Denied => Finding::limited("TUN/TAP", "/dev/net/tun is there and does not open")
            .remedy("chmod 666 /dev/net/tun (Debian's default), or run as root"),
        Offer::Absent => Finding::missing("TUN/TAP", "no /dev/net/tun").remedy("modprobe tun"),
    }]
}

/// The DPDK drivers that ports use, by the names in their libraries' file names.
const DRIVERS: [&str; 8] = ["af_packet", "af_xdp", "memif", "null", "pcap", "ring", "tap", "vhost"];

fn dpdk(machine: &Machine<'_>) -> Vec<Finding> {
    const INSTALL: &str = "apt install libdpdk-dev dpdk";
    let version = match machine.kernel.ask("pkg-config", &["--modversion", "libdpdk"]) {
        Answer::Output(text) => Some(text.trim().to_owned()),
        _ => None,
    };
    let mut drivers = BTreeSet::new();
    let mut library = false;
    let folders = machine.names("/usr/lib").into_iter().map(|name| format!("/usr/lib/{name}"));
    for folder in folders.chain(["/usr/local/lib/x86_64-linux-gnu".into(), "/usr/local/lib".into()]) {
        library |= machine.names(&folder).iter().any(|name| name.starts_with("librte_eal.so"));
        for plugins in machine.names(&format!("{folder}/dpdk")) {
            if plugins.starts_with("pmds-") {
                let names = machine.names(&format!("{folder}/dpdk/{plugins}"));
                drivers.extend(names.iter().filter_map(|name| {
                    let (driver, _) = name.strip_prefix("librte_net_")?.split_once(".so")?;
                    Some(driver.to_owned())
                }));
            }
        }
    }
    let mut findings = vec![match (version, library) {
        (Some(version), _) => Finding::ok("DPDK", format!("{version}, with headers")),
        (None, true) => {
            Finding::limited("DPDK", "libraries without headers: enough to run, not to build").remedy(INSTALL)
        }
        (None, false) => Finding::missing("DPDK", "not installed").remedy(INSTALL),
    }];
    if !drivers.is_empty() {
        let (have, lack): (Vec<_>, Vec<_>) = DRIVERS.iter().partition(|driver| drivers.contains(**driver));
        let more = drivers.len().saturating_sub(have.len());
        let text = format!("{} and {more} more", words(&have));
        findings.push(if lack.is_empty() {
            Finding::ok("DPDK drivers", text)
        } else {
            Finding::limited("DPDK drivers", format!("{text}; without {}", words(&lack))).remedy(INSTALL)
        });
    }
    findings
}

fn words(list: &[&&str]) -> String {
    list.iter().map(|word| **word).collect::<Vec<_>>().join(" ")
}

/// The most interfaces that are listed; further ones are only counted (a host of containers has hundreds).
const INTERFACES_SHOWN: usize = 12;

fn interfaces(machine: &Machine<'_>) -> Vec<Finding> {
    let folder = "/sys/class/net";
    // The folder also contains files of drivers, such as bonding_masters.
    let mut names = machine.names(folder);
    names.retain(|name| name != "lo" && machine.has(&format!("{folder}/{name}/ifindex")));
    if names.is_empty() {
        return vec![Finding::limited("interfaces", "none but the loopback").remedy(
            "ip link add veth0 type veth peer name veth1 && ip link set veth0 up && ip link set veth1 up",
        )];
    }
    let mut findings: Vec<_> = names
        .iter()
        .take(INTERFACES_SHOWN)
        .map(|name| {
            let value =
                |file: &str| machine.read(&format!("{folder}/{name}/{file}")).filter(|v| !v.is_empty());
            let driver = machine.link_name(&format!("{folder}/{name}/device/driver"));
            let mut words = vec![driver.unwrap_or_else(|| "virtual".into())];
            words.extend(machine.link_name(&format!("{folder}/{name}/device")));
            words.push(value("operstate").unwrap_or_else(|| "state unknown".into()));
            words.extend(value("mtu").map(|mtu| format!("MTU {mtu}")));
            // The kernel shows -1 for an unknown speed or node.
            let speed = value("speed").and_then(|speed| speed.parse::<u32>().ok());
            words.extend(speed.filter(|mbps| *mbps > 0).map(|mbps| format!("{mbps} Mb/s")));
            let node = value("device/numa_node").and_then(|node| node.parse::<u32>().ok());
            words.extend(node.map(|node| format!("NUMA node {node}")));
            Finding::ok(name.as_str(), words.join(", "))
        })
        .collect();
    if let Some(more) = names.len().checked_sub(INTERFACES_SHOWN).filter(|more| *more > 0) {
        findings.push(Finding::ok("interfaces", format!("and {more} more")));
    }
    findings
}

fn capture_tools(machine: &Machine<'_>) -> Vec<Finding> {
    [("tshark", "apt install tshark"), ("tcpdump", "apt install tcpdump")]
        .map(|(tool, install)| match version(machine, tool) {
            Ok(version) => Finding::ok(tool, version),
            Err(why) => {
                Finding::missing(tool, format!("{why}; only for reading captures yourself")).remedy(install)
            }
        })
        .into()
}
