//! The NFs of a chain that run in processes of their own: their start, their supervisor, and the packet
//! memory of each trust group.

use chain::{Access, Chain, ExecutionMode, ProcessNf};
use container::ContainerLauncher;
use element::nf::NfLink;
use nf_host::link::ProcessLink;
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

/// Returns how an NF's process is started and its configuration.
pub type Starter = Box<dyn Fn(&ProcessNf) -> NfSpec>;

/// Creates handles of the pool from which ports receive.
pub(crate) type Worker = Arc<dyn Fn() -> PacketPool + Send + Sync>;

/// The NFs that run in processes.
pub(crate) struct Nfs {
    processes: Vec<ProcessNf>,
    workers: usize,
    memory: RegionOptions,
    /// Returns how to start each of them.
    starter: Option<Starter>,
    /// Whether they are only asked whether they would run.
    is_check: bool,
    supervisor: Option<Supervisor>,
    interrupted: Arc<AtomicBool>,
    /// Packet memory of each trust group, set once there is a pool.
    groups: BTreeMap<Group, Arc<OnceLock<Memory>>>,
    /// NFs that pass packets to each other by direct rings.
    direct_groups: DirectGroups,
}

/// A trust group's name. Each observer is a group of its own, and so is each tap on each worker: two may read
/// a packet at a time.
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
    /// The NFs of a chain with this number of workers and the options `memory` for packet memory.
    pub fn of(chain: &Chain, workers: usize, memory: RegionOptions) -> Nfs {
        Nfs {
            processes: chain.processes.clone(),
            workers,
            memory,
            starter: None,
            is_check: false,
            supervisor: None,
            interrupted: Arc::default(),
            groups: groups_of(&chain.processes, workers).map(|group| (group, Arc::default())).collect(),
            direct_groups: DirectGroups::of(chain),
        }
    }

    /// Sets how they are started. Once `interrupted` is set, the host waits for no NF.
    pub fn start_by(&mut self, starter: Starter, interrupted: Arc<AtomicBool>) {
        (self.starter, self.interrupted) = (Some(starter), interrupted);
    }

    /// Only asks them whether they would run.
    pub fn only_ask(&mut self) {
        self.is_check = true;
    }

    /// Starts none of them.
    pub fn start_none(&mut self) {
        self.starter = None;
    }

    /// The supervisor of the NFs; `None` if none was started.
    pub fn supervisor(&self) -> Option<&Supervisor> {
        self.supervisor.as_ref()
    }

    /// Whether NFs process packets in the memory into which ports receive: if there is only one trust group,
    /// observers included.
    fn is_worked_on_in_place(&self) -> bool {
        let trusts = |nf: &&ProcessNf| nf.terms.trust == self.processes[0].terms.trust;
        self.processes.iter().all(|nf| trusts(&nf)) && self.processes.iter().any(|nf| !nf.terms.observes())
    }

    /// The options of the memory into which ports receive: if taps map it, only this process can write it.
    pub fn port_memory(&self) -> RegionOptions {
        let has_taps = self.groups.keys().any(|group| matches!(group, Group::Tap(..)));
        RegionOptions { only_for_reading: has_taps && !self.is_worked_on_in_place(), ..self.memory }
    }

    /// Whether a tap may map the memory into which ports receive. Sets the instance's status to the reason if
    /// not.
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

    /// Sets the memory of each trust group. A single group uses the memory into which ports receive. Several
    /// groups get memory of their own, and so does an observer, which must not write packets that others
    /// read.
    pub fn share_memory(&self, region: Option<&Arc<PacketRegion>>, worker: &Worker) -> Result<(), PortError> {
        let in_place = self.is_worked_on_in_place();
        // However many groups there are, their shares together leave ports enough slots for receiving.
        let all = self.processes.len() * self.workers;
        let share = region.map_or(u64::MAX, |region| Memory::share(region.slots(), all));
        for (group, memory) in &self.groups {
            // Set already by an earlier call for another pool.
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

    /// Warnings about settings of the chain file that could not be met, as sentences, each once.
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

    /// A link to a worker's instance of an NF, which may resolve neighbours through these L3 interfaces.
    /// Without a starter no process is started, and the link has no NF.
    ///
    /// # Errors
    /// A sentence: there is no such NF, or the supervisor cannot be started.
    pub fn open(
        &mut self,
        name: &str,
        worker: usize,
        l3_interfaces: &HashMap<String, Arc<Interface>>,
    ) -> Result<Box<dyn NfLink>, String> {
        let process = self.processes.iter().find(|process| process.name == name);
        let process = process.ok_or_else(|| format!("there is no NF `{name}` in a process of its own"))?;
        let Some(starter) = &self.starter else {
            return Ok(Box::new(ProcessLink::to_nothing()));
        };
        let supervisor = match &mut self.supervisor {
            Some(supervisor) => supervisor,
            none => {
                let in_containers = Arc::new(ContainerLauncher);
                let launchers = Launchers::default().with(ExecutionMode::Container, in_containers);
                let started = Supervisor::start(launchers);
                none.insert(started.map_err(|error| format!("NFs cannot be looked after: {error}"))?)
            }
        };
        let memory = self.groups.get(&Group::of(process, worker)).cloned().unwrap_or_default();
        let number = supervisor.instances().len() as u32;
        let l3_interfaces =
            process.l3_interfaces.iter().map(|name| l3_interfaces.get(name.as_deref()?).cloned()).collect();
        let instance = Instance::new(starter(process), worker, number, memory).beside(l3_interfaces);
        let instance = match self.direct_groups.find(name, worker) {
            Some((group, member)) => instance.in_group(group, member),
            None => instance,
        };
        let instance = if self.is_check { instance.for_check() } else { instance };
        let instance = Arc::new(instance);
        supervisor.add(Arc::clone(&instance));
        Ok(Box::new(ProcessLink::new(instance, Some(supervisor.doorbell()), Arc::clone(&self.interrupted))))
    }
}

/// The trust group of each NF's process on each worker.
fn groups_of(processes: &[ProcessNf], workers: usize) -> impl Iterator<Item = Group> + '_ {
    processes.iter().flat_map(move |nf| (0..workers).map(move |worker| Group::of(nf, worker)))
}
