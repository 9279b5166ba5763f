//! The NFs of a chain that run in processes of their own: who starts them, who looks after them, and the packet memory
//! that each trust group has.

use chain::{Access, Chain, ExecutionMode, ProcessNf};
use container::ContainerLauncher;
use element::nf::NfLink;
use nf_host::link::{NoLink, ProcessLink};
use nf_host::memory::Memory;
use nf_host::process::Launchers;
use nf_host::{DirectGroups, Instance, NfSpec, Supervisor};
use port::PortError;
use port::interface::Interface;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::PacketPool;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Says how the process of an NF is started, and what it is told.
pub type Starter = Box<dyn Fn(&ProcessNf) -> NfSpec>;

/// Makes handles of the pool that ports receive from.
pub(crate) type Worker = Arc<dyn Fn() -> PacketPool + Send + Sync>;

/// The NFs in processes.
pub(crate) struct Nfs {
    processes: Vec<ProcessNf>,
    workers: usize,
    memory: RegionOptions,
    /// How to start them.
    starter: Option<Starter>,
    supervisor: Option<Supervisor>,
    interrupted: Arc<AtomicBool>,
    /// Packet memory of each trust group, known once there is a pool.
    groups: BTreeMap<Group, Arc<OnceLock<Memory>>>,
    /// NFs that hand packets to each other.
    direct_groups: DirectGroups,
}

/// A trust group's name. Observers have one each, and taps one for each worker: two may read a packet at a time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    Inline(String),
    Observer(String),
    Tap(String, usize),
}

impl Group {
    fn of(nf: &ProcessNf, worker: usize) -> Group {
        match nf.terms.access {
            Access::Inline => Group::Inline(nf.terms.trust.clone()),
            Access::Observe => Group::Observer(nf.name.clone()),
            Access::Tap => Group::Tap(nf.name.clone(), worker),
        }
    }
}

impl Nfs {
    /// Those of a chain that runs on so many workers, with packet memory as `memory` says.
    pub fn of(chain: &Chain, workers: usize, memory: RegionOptions) -> Nfs {
        Nfs {
            processes: chain.processes.clone(),
            workers,
            memory,
            starter: None,
            supervisor: None,
            interrupted: Arc::default(),
            groups: groups_of(&chain.processes, workers).map(|group| (group, Arc::default())).collect(),
            direct_groups: DirectGroups::of(chain),
        }
    }

    /// Says how they are started; nobody waits for one once `interrupted` is set.
    pub fn start_by(&mut self, starter: Starter, interrupted: Arc<AtomicBool>) {
        (self.starter, self.interrupted) = (Some(starter), interrupted);
    }

    /// Who looks after them, where there are any.
    pub fn supervisor(&self) -> Option<&Supervisor> {
        self.supervisor.as_ref()
    }

    /// Whether NFs work where ports receive: those of the only trust group do, observers among them.
    fn is_worked_on_in_place(&self) -> bool {
        let trusts = |nf: &&ProcessNf| nf.terms.trust == self.processes[0].terms.trust;
        self.processes.iter().all(|nf| trusts(&nf)) && self.processes.iter().any(|nf| !nf.terms.observes())
    }

    /// The memory that ports receive into: where taps see it, nobody but this process can write it.
    pub fn port_memory(&self) -> RegionOptions {
        let has_taps = self.groups.keys().any(|group| matches!(group, Group::Tap(..)));
        RegionOptions { only_for_reading: has_taps && !self.is_worked_on_in_place(), ..self.memory }
    }

    /// Whether a tap may see what ports receive, where it lies. Notes why not.
    fn may_tap(&self, name: &str, worker: usize) -> bool {
        let instances = self.supervisor.as_ref().map_or(vec![], Supervisor::instances);
        let Some(instance) =
            instances.iter().find(|instance| instance.spec.name == name && instance.worker == worker)
        else {
            return false;
        };
        let why = &mut instance.status().why_copies;
        if self.is_worked_on_in_place() {
            *why = Some("its trust group works where ports receive".into());
        }
        why.is_none()
    }

    /// Gives each trust group its memory. The only one works where packets are received; of several each gets memory
    /// of its own, and so does an observer, which must not write what others read.
    pub fn share_memory(&self, region: Option<&Arc<PacketRegion>>, worker: &Worker) -> Result<(), PortError> {
        let in_place = self.is_worked_on_in_place();
        // However many groups there are: what they all have leaves ports enough to receive into.
        let all = self.processes.len() * self.workers;
        let share = region.map_or(u64::MAX, |region| Memory::share(region.slots(), all));
        for (group, memory) in &self.groups {
            // Known already where somebody asks for another pool.
            if memory.get().is_some() {
                continue;
            }
            let nfs = groups_of(&self.processes, self.workers).filter(|of| of == group).count();
            let made = match (group, region) {
                (Group::Inline(_), Some(region)) if in_place => Memory::new(Arc::clone(region), nfs),
                (Group::Inline(_), _) => Memory::of_group(nfs, false, self.memory)?.with_at_most(share),
                (Group::Tap(name, at), Some(region)) if self.may_tap(name, *at) => {
                    Memory::of_tap(Arc::clone(region), Arc::clone(worker)).with_at_most(share)
                }
                (Group::Observer(_) | Group::Tap(..), _) => Memory::of_group(nfs, true, self.memory)?,
            };
            let _ = memory.set(made);
        }
        Ok(())
    }

    /// What is not as the chain file has it, in sentences, each once.
    pub fn warnings(&self) -> Vec<String> {
        let mut notes = vec![];
        for instance in
            self.supervisor.iter().flat_map(Supervisor::instances).filter(|instance| instance.worker == 0)
        {
            let mut told = instance.status();
            let why = told.why_copies.take();
            notes.extend(why.map(|why| format!("NF `{}` is shown copies: {why}", instance.spec.name)));
            let missing = std::mem::take(&mut told.not_enforced);
            if !missing.is_empty() {
                let what = missing.join("; ");
                notes.push(format!("NF `{}`: isolation not enforced: {what}", instance.spec.name));
            }
        }
        notes
    }

    /// A way to a worker's instance of an NF, which may ask these stations for neighbours. Where nothing is started
    /// (`dry`, or nobody said how), there is nobody at its other end.
    ///
    /// # Errors
    /// A sentence that says that there is no such NF, or that it cannot be looked after.
    pub fn open(
        &mut self,
        name: &str,
        worker: usize,
        stations: &HashMap<String, Arc<Interface>>,
        dry: bool,
    ) -> Result<Box<dyn NfLink>, String> {
        let process = self.processes.iter().find(|process| process.name == name);
        let process = process.ok_or_else(|| format!("there is no NF `{name}` in a process of its own"))?;
        let Some(starter) = self.starter.as_ref().filter(|_| !dry) else {
            return Ok(Box::new(NoLink));
        };
        if self.supervisor.is_none() {
            let launchers = Launchers::default().with(ExecutionMode::Container, Arc::new(ContainerLauncher));
            let started = Supervisor::start(launchers);
            self.supervisor = Some(started.map_err(|error| format!("NFs cannot be looked after: {error}"))?);
        }
        let Some(supervisor) = &self.supervisor else { return Ok(Box::new(NoLink)) };
        let memory = self.groups.get(&Group::of(process, worker)).cloned().unwrap_or_default();
        let number = supervisor.instances().len() as u32;
        let stations = process.stations.iter().map(|name| stations.get(name.as_deref()?).cloned()).collect();
        let instance = Instance::new(starter(process), worker, number, memory).beside(stations);
        let instance = match self.direct_groups.find(name, worker) {
            Some((group, member)) => instance.in_group(group, member),
            None => instance,
        };
        let instance = Arc::new(instance);
        supervisor.add(Arc::clone(&instance));
        Ok(Box::new(ProcessLink::new(instance, supervisor.doorbell(), Arc::clone(&self.interrupted))))
    }
}

/// The trust group of each NF's process on each worker.
fn groups_of(processes: &[ProcessNf], workers: usize) -> impl Iterator<Item = Group> + '_ {
    processes.iter().flat_map(move |nf| (0..workers).map(move |worker| Group::of(nf, worker)))
}
