//! Resolves port names.

use chain::PortDecl;
use diag::did_you_mean;
use element::configure::MissingDevice;
use packet::MacAddr;
use port::capture::is_capture_name;
use port::{DpdkSpec, driver_names};
use std::path::{Path, PathBuf};

/// The folder of network interfaces in Linux's sysfs.
const INTERFACES: &str = "/sys/class/net";
/// The folder of PCI devices in Linux's sysfs.
const PCI_DEVICES: &str = "/sys/bus/pci/devices";
/// The most bytes of an interface's name in Linux.
const MOST_NAME_BYTES: usize = 15;
/// The most interfaces that a message lists.
const MOST_LISTED: usize = 8;
/// In front of the name of an interface in configurations for netmap. The interface is opened without netmap.
const NETMAP: &str = "netmap:";

/// The target of a port name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A port of the chain file, by number.
    Declared(usize),
    /// A capture file.
    Capture(PathBuf),
    /// A DPDK device string or a PCI address.
    Device(String),
    /// A network interface of this machine.
    Interface(String),
    /// A port of DPDK by its number, which is not resolved.
    Numbered(String),
}

/// Resolves a port name of an element.
///
/// # Errors
/// A sentence that lists the available ports.
pub(super) fn resolve(name: &str, declared: &[PortDecl], folder: &Path) -> Result<Target, String> {
    if let Some(number) = declared.iter().position(|port| port.name == name) {
        return Ok(Target::Declared(number));
    }
    if is_capture_name(name) {
        return Ok(Target::Capture(folder.join(name)));
    }
    if DpdkSpec::is_meant(name) {
        return Ok(Target::Device(name.to_string()));
    }
    match name.parse::<usize>() {
        Ok(number) if number < declared.len() => return Ok(Target::Declared(number)),
        _ if is_interface(interface(name)) => return Ok(Target::Interface(interface(name).to_string())),
        _ => {}
    }
    let names = || declared.iter().map(|port| port.name.as_str());
    let known = match declared {
        [] => "the chain declares no ports".to_string(),
        _ => format!("the chain's ports are {}", names().collect::<Vec<_>>().join(", ")),
    };
    let remedy = did_you_mean(name, names()).unwrap_or_else(|| {
        "name one of them, a capture file (.pcap, .pcapng), a DPDK device (net_..., a PCI address) or a \
         network interface of this machine"
            .into()
    });
    Err(format!("there is no port `{name}`; {known}; {remedy}"))
}

/// The name of the network interface that a device is, without the prefix for netmap.
pub(super) fn interface(device: &str) -> &str {
    device.strip_prefix(NETMAP).unwrap_or(device)
}

/// Whether a name has the form of a network interface's name.
fn is_interface_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !['/', ',', '=', ':'].contains(&c);
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.')
}

/// The device of another machine that a name may be which is no port: a network interface, or a port of DPDK
/// by its number. A name that is close to that of a declared port is misspelt.
pub(super) fn elsewhere(name: &str, declared: &[PortDecl]) -> Option<Target> {
    let names = declared.iter().map(|port| port.name.as_str());
    if !is_interface_name(interface(name)) || did_you_mean(name, names).is_some() {
        return None;
    }
    if !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Target::Interface(interface(name).to_string()));
    }
    declared.is_empty().then(|| Target::Numbered(name.to_string()))
}

/// What a number lacks that names no declared port.
pub(super) fn no_number(number: &str) -> Unavailable {
    Unavailable::Missing(MissingDevice {
        message: format!("there is no port `{number}`: which device has a number depends on the machine"),
        help:
            "name a PCI address or a network interface, or declare the ports in a chain file, in whose order \
               they have numbers"
                .into(),
    })
}

/// Whether this machine has a network interface of that name.
fn is_interface(name: &str) -> bool {
    is_interface_name(name) && Path::new(INTERFACES).join(name).exists()
}

/// Why a device cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Unavailable {
    /// No machine has such a device.
    Wrong(String),
    /// This machine has no such device.
    Missing(MissingDevice),
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unavailable::Wrong(message) => f.write_str(message),
            Unavailable::Missing(MissingDevice { message, help }) => write!(f, "{message}: {help}"),
        }
    }
}

fn no_interface(name: &str) -> Unavailable {
    Unavailable::Missing(MissingDevice {
        message: format!("this machine has no network interface `{name}`"),
        help: interface_help(name, interfaces()),
    })
}

/// The network interfaces of this machine.
fn interfaces() -> Vec<String> {
    let names = std::fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// What to write in place of an interface that this machine, which has `names`, does not have.
fn interface_help(name: &str, names: Vec<String>) -> String {
    if let Some(help) = did_you_mean(name, &names) {
        return help;
    }
    let known = match names.as_slice() {
        [] => String::new(),
        few if few.len() <= MOST_LISTED => format!("this machine has {}; ", few.join(", ")),
        many => format!(
            "this machine has {} and {} more; ",
            many[..MOST_LISTED].join(", "),
            many.len() - MOST_LISTED
        ),
    };
    format!(
        "{known}name one of the machine that runs the chain (`ip link` lists them), a DPDK device such as \
         `net_af_packet0,iface=eth0`, or a PCI address"
    )
}

/// Looks for a device on this machine and opens nothing. `device` is the value of `device = "..."` or a
/// device name in a configuration.
///
/// # Errors
/// Why it cannot be opened.
pub(super) fn find_device(device: &str) -> Result<(), Unavailable> {
    let missing = |message: String, help: &str| {
        Err(Unavailable::Missing(MissingDevice { message, help: help.to_string() }))
    };
    if !DpdkSpec::is_meant(device) {
        let name = interface(device);
        return match is_interface_name(name) {
            true if is_interface(name) => Ok(()),
            true => Err(no_interface(name)),
            false => Err(Unavailable::Wrong(format!(
                "`{device}` is no device: name a network interface (`ip link` lists them), a DPDK device such \
                 as `net_af_packet0,iface=eth0`, or a PCI address"
            ))),
        };
    }
    let spec = DpdkSpec::parse(device).map_err(|error| Unavailable::Wrong(error.to_string()))?;
    if let Some(pci) = spec.pci() {
        let devices = Path::new(PCI_DEVICES);
        return match devices.exists() && !devices.join(pci).exists() {
            true => missing(
                format!("this machine has no PCI device {pci}"),
                "name one of the machine that runs the chain: `lspci -D` lists them",
            ),
            false => Ok(()),
        };
    }
    let drivers = driver_names();
    if let Some(why) = driver_is_missing(device, &drivers) {
        // A name that is close to that of a driver is misspelt.
        let base = spec.name().trim_end_matches(|c: char| c.is_ascii_digit());
        return match did_you_mean(base, &drivers) {
            Some(_) => Err(Unavailable::Wrong(why)),
            None => missing(why, "install the driver on the machine that runs the chain"),
        };
    }
    match device.split(',').find_map(|part| part.strip_prefix("iface=")) {
        Some(name) if device.starts_with("net_af_") && !is_interface(name) => Err(no_interface(name)),
        _ => Ok(()),
    }
}

/// The hardware address of a network interface of this machine.
pub(super) fn interface_mac(name: &str) -> Option<MacAddr> {
    if !is_interface(name) {
        return None;
    }
    let text = std::fs::read_to_string(Path::new(INTERFACES).join(name).join("address")).ok()?;
    text.trim().parse().ok()
}

/// Virtual devices whose driver is in a plug-in with another name.
const IN_OTHER_PLUG_INS: [&str; 1] = ["net_tun"];

/// The reason why a virtual device cannot be created: DPDK has no driver of that name here. `None` also if
/// there are no plug-ins to compare with.
fn driver_is_missing(device: &str, drivers: &[String]) -> Option<String> {
    let name = device.split(',').next().unwrap_or_default();
    let mut known = drivers.iter().map(String::as_str).chain(IN_OTHER_PLUG_INS);
    if drivers.is_empty() || !name.starts_with("net_") || known.any(|driver| name.starts_with(driver)) {
        return None;
    }
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let remedy = did_you_mean(base, drivers).unwrap_or_else(|| {
        "virtual devices are net_af_packet, net_af_xdp, net_memif, net_null, net_pcap, net_ring and net_tap, each \
         with a number behind it"
            .to_string()
    });
    Some(format!("DPDK has no driver for `{name}` on this machine; {remedy}"))
}

/// The DPDK device string for the value of `device = "..."` or a device name in a configuration: a network
/// interface is opened through a packet socket, with a queue for each worker.
pub(super) fn device_spec(device: &str, workers: usize) -> Result<String, String> {
    if DpdkSpec::is_meant(device) {
        return match driver_is_missing(device, &driver_names()) {
            None => Ok(device.to_string()),
            Some(why) => Err(why),
        };
    }
    let device = interface(device);
    if !is_interface(device) {
        return Err(no_interface(device).to_string());
    }
    let queues = if workers > 1 { format!(",qpairs={workers}") } else { String::new() };
    Ok(format!("net_af_packet_{device},iface={device}{queues}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_told_with_those_that_there_are() {
        let names = |count: usize| (0..count).map(|at| format!("enp{at}s0")).collect::<Vec<_>>();
        assert_eq!(interface_help("enp1so", names(2)), "did you mean `enp1s0`?");
        let help = interface_help("wlan", names(2));
        assert!(help.starts_with("this machine has enp0s0, enp1s0; name one"), "{help}");
        assert!(interface_help("wlan", names(10)).contains("enp7s0 and 2 more; "));
        assert!(interface_help("wlan", vec![]).starts_with("name one"));
    }

    #[test]
    fn a_device_without_a_driver_is_told_apart() {
        let drivers = ["net_null", "net_pcap", "net_virtio", "net_bond"].map(String::from);
        let why = |device| driver_is_missing(device, &drivers);
        for device in ["net_null0,size=60", "net_virtio_user1", "net_bonding0", "net_tun0", "0000:01:00.0"] {
            assert_eq!(why(device), None, "{device}");
        }
        let told = why("net_pcpa0,rx_pcap=x.pcap").expect("no such driver");
        assert!(told.contains("`net_pcpa0`") && told.contains("net_pcap"), "{told}");
        assert!(why("net_nonsense0").is_some_and(|told| told.contains("net_af_packet")));
        assert_eq!(driver_is_missing("net_nonsense0", &[]), None);
    }
}
