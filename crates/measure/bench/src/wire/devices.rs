//! Opens the tester's ports: any device that DPDK has a driver for, in any network namespace.

use super::options::Ends;
use crate::BenchError;
use crate::start::failed;
use port::dpdk::EalOptions;
use port::{Dpdk, DpdkPort, DpdkSpec, Port};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use shm::RegionOptions;
use std::fs::File;
use std::os::fd::AsFd;

/// The tester's packet slots: enough for those that both ports hold, and two bursts.
const SLOTS: u32 = 16_384;
/// Frames in a packet socket's rings: enough that none is lost while the tester has no core for some
/// milliseconds.
const RING_FRAMES: u32 = 8_192;

/// How the tester reaches a network interface of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Means {
    /// Packet sockets with mapped rings (DPDK's net_af_packet).
    #[default]
    AfPacket,
    /// AF_XDP sockets (DPDK's net_af_xdp).
    AfXdp,
}

impl Means {
    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Means::AfPacket => "af-packet",
            Means::AfXdp => "af-xdp",
        }
    }
}

impl std::str::FromStr for Means {
    type Err = String;

    fn from_str(text: &str) -> Result<Means, String> {
        let found = [Means::AfPacket, Means::AfXdp].into_iter().find(|means| means.name() == text);
        found.ok_or_else(|| format!("`{text}`: there are af-packet and af-xdp"))
    }
}

/// The tester's DPDK: started once in a process, with packet memory that lives as long.
pub struct Devices {
    dpdk: Dpdk,
    opened: usize,
}

impl Devices {
    /// Starts DPDK. `named` has to list the PCI devices that are opened later.
    ///
    /// # Errors
    /// When this program was built without DPDK, or it does not start.
    pub fn start(named: &[&str]) -> Result<Devices, BenchError> {
        let specs = named.iter().filter(|name| DpdkSpec::is_meant(name));
        let pci = specs.filter_map(|name| DpdkSpec::parse(name).ok()?.pci().map(str::to_string)).collect();
        let options = EalOptions { pci, ..EalOptions::default() };
        let dpdk = Dpdk::start(&options, RegionOptions::slots(SLOTS)).map_err(failed)?;
        Ok(Devices { dpdk, opened: 0 })
    }

    /// Opens the sending and the receiving port, which may be the same: network interfaces, DPDK devices, PCI
    /// addresses. `within` is the network namespace of the interfaces.
    ///
    /// # Errors
    /// When there is no such device, or it cannot be opened.
    pub fn open(
        &mut self,
        send: &str,
        receive: &str,
        means: Means,
        within: Option<&File>,
    ) -> Result<Ends, BenchError> {
        let sending = self.port(send, means, within)?;
        let receive = match receive == send {
            true => None,
            false => Some(self.port(receive, means, within)?),
        };
        Ok(Ends { send: sending, receive, pool: self.dpdk.pool() })
    }

    /// DPDK's remarks on settings that could not be applied as requested.
    pub fn notes(&self) -> Vec<String> {
        self.dpdk.notes()
    }

    fn port(
        &mut self,
        device: &str,
        means: Means,
        within: Option<&File>,
    ) -> Result<Box<dyn Port>, BenchError> {
        self.opened += 1;
        let text = match (DpdkSpec::is_meant(device), means) {
            (true, _) => device.to_string(),
            // Device names are not reused: a driver may still know the earlier device.
            (false, Means::AfPacket) => {
                format!("net_af_packet{},iface={device},framecnt={RING_FRAMES}", self.opened)
            }
            (false, Means::AfXdp) => format!("net_af_xdp{},iface={device}", self.opened),
        };
        let spec = DpdkSpec::parse(&text).map_err(failed)?;
        let opened = match within {
            None => self.dpdk.open(&spec, 1).map_err(failed)?,
            Some(namespace) => self.open_within(&spec, namespace)?,
        };
        let first = opened.into_iter().next();
        Ok(Box::new(first.ok_or_else(|| failed(format!("{spec} has no queues")))?))
    }

    /// Opens a device in a thread that enters the namespace: its sockets then belong to that namespace for
    /// good.
    fn open_within(&self, spec: &DpdkSpec, namespace: &File) -> Result<Vec<DpdkPort>, BenchError> {
        std::thread::scope(|scope| {
            let open = || {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
                    |error| {
                        failed(format!("a network namespace cannot be entered: {error}; this needs root"))
                    },
                )?;
                self.dpdk.open(spec, 1).map_err(failed)
            };
            let broken = || failed("the thread that opens a device broke off; this is a defect");
            scope.spawn(open).join().map_err(|_| broken())?
        })
    }
}
