//! What a chain uses beside its elements: its ports, its L3 interfaces, and its NFs in processes of their
//! own.

use crate::machine::Machine;
use crate::nfs::{Nfs, Starter, Worker};
use crate::ports::{MakeTraffic, Pools, Ports};
use crate::services::{Opened, Opener};
use chain::{Chain, L3InterfaceDecl};
use element::configure::{Direction, MissingDevice};
use element::nf::NfLink;
use nf_host::Supervisor;
use packet::MacAddr;
use port::PortError;
use port::interface::Interface;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Opens the ports of a chain, and starts its NFs.
pub struct Resources {
    pub(crate) ports: Ports,
    nfs: Nfs,
    /// Ports and devices with addresses, by name.
    interfaces: HashMap<String, Arc<Interface>>,
}

impl Resources {
    /// Those of a chain with this number of workers and the options `memory` for packet memory. None is open.
    pub fn new(chain: &Chain, workers: usize, memory: RegionOptions, made: MakeTraffic) -> Resources {
        let workers = workers.max(1);
        let nfs = Nfs::of(chain, workers, memory);
        let ports = Ports::new(chain, workers, nfs.port_memory(), made);
        Resources { ports, nfs, interfaces: interfaces(chain) }
    }

    /// Sets how NF processes are started. Once `interrupted` is set, the host waits for no NF.
    #[must_use]
    pub fn start_by(mut self, starter: Starter, interrupted: Arc<AtomicBool>) -> Resources {
        self.nfs.start_by(starter, interrupted);
        self
    }

    /// Opens ports for a check only, and starts no NF: captures are opened for reading, but no file is
    /// written and no device started. With [`Machine::Any`], devices need not be here.
    #[must_use]
    pub fn dry(mut self, machine: Machine) -> Resources {
        self.ports.dry(machine);
        self.nfs.start_none();
        self
    }

    /// Starts these NFs without packets, each once, in the confinement that it would run in.
    ///
    /// # Errors
    /// A sentence: there is no memory, or the supervisor cannot be started.
    pub(crate) fn start_to_ask(&mut self, names: &[&str]) -> Result<Vec<Box<dyn NfLink>>, String> {
        self.nfs.only_ask();
        let links = names.iter().map(|name| self.nfs.open(name, 0, &self.interfaces));
        let links = links.collect::<Result<_, _>>()?;
        // The NFs share the memory of the pools, which nothing else uses.
        drop(self.pools().map_err(|error| format!("packet memory: {error}"))?);
        Ok(links)
    }

    /// The supervisor of the NF processes; `None` if there are none.
    pub fn supervisor(&self) -> Option<&Supervisor> {
        self.nfs.supervisor()
    }

    /// The pool of this chain's packets; to be called when all ports are open.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn pools(&self) -> Result<Pools, PortError> {
        if let Some(dpdk) = self.ports.dpdk() {
            let worker: Worker = Arc::new({
                let dpdk = Arc::clone(&dpdk);
                move || dpdk.pool()
            });
            self.nfs.share_memory(dpdk.region(), &worker)?;
            return Ok(Box::new(move |_| dpdk.pool()));
        }
        let pool = SharedPool::new(PacketRegion::create(self.nfs.port_memory())?);
        let region = Arc::clone(pool.region());
        let worker: Worker = Arc::new(move || PacketPool::Native(pool.worker()));
        self.nfs.share_memory(Some(&region), &worker)?;
        Ok(Box::new(move |_| worker()))
    }

    /// How much the machine refused to open: a device was busy, or a right was missing.
    pub fn refused_by_machine(&self) -> usize {
        self.ports.refused_by_machine()
    }

    /// Warnings about options that could not be met, as sentences. Each is returned once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = self.ports.take_warnings();
        warnings.extend(self.nfs.warnings());
        warnings
    }
}

/// The ports and devices of a chain that have addresses.
fn interfaces(chain: &Chain) -> HashMap<String, Arc<Interface>> {
    let ports = chain.ports.iter().map(|port| (&port.name, &port.l3_interface));
    let devices = chain.devices.iter().map(|device| (&device.name, &device.l3_interface));
    let interface = |(name, declared): (&String, &Option<L3InterfaceDecl>)| {
        let addresses = declared.as_ref()?.addresses.iter().map(|(address, _)| *address).collect();
        Some((name.clone(), Arc::new(Interface::new(name, addresses))))
    };
    ports.chain(devices).filter_map(interface).collect()
}

impl Opener for Resources {
    fn open_port(&mut self, name: &str, direction: Direction, worker: usize) -> Opened {
        self.ports.open(name, direction, worker)
    }

    fn take_missing(&mut self) -> Option<MissingDevice> {
        self.ports.take_missing()
    }

    fn opens_nothing(&self) -> bool {
        self.ports.is_dry()
    }

    fn count_refusal_by_machine(&mut self) {
        self.ports.count_refusal_by_machine();
    }

    fn open_nf(&mut self, name: &str, worker: usize) -> Result<Box<dyn NfLink>, String> {
        self.nfs.open(name, worker, &self.interfaces)
    }

    fn l3_interface(&self, name: &str) -> Option<Arc<Interface>> {
        self.interfaces.get(name).map(Arc::clone)
    }

    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        self.ports.usable_mac(name)
    }

    fn port_file(&self, name: &str, direction: Direction) -> Option<PathBuf> {
        self.ports.file(name, direction)
    }
}
