//! The names of DPDK devices as users write them.

use crate::{PortError, Result};
use dpdk_sys::Bus;
use std::fmt;

/// A DPDK device: `net_pcap0,rx_pcap=in.pcap`, `net_af_packet0,iface=eth0`, `0000:00:05.0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DpdkSpec {
    pub(crate) bus: Bus,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl DpdkSpec {
    /// Whether a text has the form of a DPDK device's name. It may still contain errors.
    pub fn is_meant(text: &str) -> bool {
        let name = text.split(',').next().unwrap_or_default();
        ["net_", "eth_", "crypto_"].iter().any(|prefix| name.starts_with(prefix))
            || pci_address(name).is_some()
    }

    /// Parses a device's name and its driver's arguments.
    ///
    /// # Errors
    ///
    /// When the text is neither a PCI address nor the name of a virtual device.
    pub fn parse(text: &str) -> Result<DpdkSpec> {
        let wrong = |what| PortError::Spec { text: text.to_owned(), what };
        let (name, arguments) = text.split_once(',').unwrap_or((text, ""));
        if text.contains('\0') {
            return Err(wrong("it has a zero byte in it"));
        }
        if let Some(address) = pci_address(name) {
            return Ok(DpdkSpec { bus: Bus::Pci, name: address, arguments: arguments.to_owned() });
        }
        if !name.starts_with("net_") && !name.starts_with("eth_") {
            return Err(wrong(
                "a virtual device's name starts with `net_`, a PCI address is like 0000:00:05.0",
            ));
        }
        // DPDK's own limit; DPDK truncates longer names without an error.
        if name.len() > 63 {
            return Err(wrong("names have 63 characters at most"));
        }
        Ok(DpdkSpec { bus: Bus::Vdev, name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// The PCI address, for [`dpdk_sys::EalOptions::pci`], which DPDK needs when it starts.
    pub fn pci(&self) -> Option<&str> {
        (self.bus == Bus::Pci).then_some(self.name.as_str())
    }

    /// The device's name, without its arguments.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for DpdkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.arguments.is_empty() { Ok(()) } else { write!(f, ",{}", self.arguments) }
    }
}

/// A PCI address with its domain: `00:05.0` is `0000:00:05.0`.
fn pci_address(text: &str) -> Option<String> {
    let hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let (front, function) = text.rsplit_once('.')?;
    let mut parts: Vec<&str> = front.split(':').collect();
    if parts.len() == 2 {
        parts.insert(0, "0000");
    }
    let [domain, bus, device] = parts.as_slice() else { return None };
    let valid =
        hex(domain, 4) && hex(bus, 2) && hex(device, 2) && matches!(function.as_bytes(), [b'0'..=b'7']);
    valid.then(|| format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase())
}
