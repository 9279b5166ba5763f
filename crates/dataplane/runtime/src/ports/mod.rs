//! The ports of a chain: resolves their names in configurations, opens them, and gives each worker its queue.
//!
//! A name is a port of the chain file, its number, a capture file, a DPDK device, or a network interface of
//! the machine, resolved in that order ([`target`]). A device has a queue for each worker. A capture is read
//! by worker 0; all workers write a capture through one writer. Each worker generates the packets of its own
//! flows. Elements that use the same queue share it ([`handle`]).
//!
//! If any port is a DPDK device, all packets come from DPDK's pool
//! ([`Resources::pools`](crate::resources::Resources::pools)): with another pool, each packet would be
//! copied.

mod handle;
mod share;
mod target;
#[cfg(test)]
mod tests;

pub use port::capture::is_capture_name;

use crate::machine::{HERE, Machine};
use crate::services::Opened;
use chain::{Chain, PortDecl, PortKind, PortSource, Sink, TrafficDecl, device_direction, device_name};
use diag::{Diagnostic, Diagnostics};
use element::configure::{Direction, MissingDevice};
use handle::Queue;
use packet::MacAddr;
use port::capture::{CaptureReader, is_compressed_name};
use port::dpdk::EalOptions;
use port::file::{same_file, whole_name};
use port::{CaptureOptions, CapturePort, Dpdk, DpdkSpec, FrameSet, MemoryPort, Port, PortError};
use share::share;
use shm::packet_region::RegionOptions;
use shm::pool::PacketPool;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use target::{Target, Unavailable};

/// Generates the frames of a port with generated traffic; `None` if there are errors, which it records.
pub type MakeTraffic = Box<dyn Fn(&TrafficDecl, &mut Diagnostics) -> Option<Arc<FrameSet>>>;

/// Creates each worker's handle of the packet pool.
pub type Pools = Box<dyn FnMut(usize) -> PacketPool>;

/// Opens the ports of a chain.
pub struct Ports {
    declared: Vec<PortDecl>,
    folder: PathBuf,
    workers: usize,
    traffic: MakeTraffic,
    dry: bool,
    /// The machine that a check is for.
    machine: Machine,
    /// What this machine lacks for the port that was opened last.
    missing: Option<MissingDevice>,
    /// How many ports the machine refused to open.
    refused_by_machine: usize,
    /// Devices that were reported as missing.
    reported: HashSet<String>,
    /// PCI devices of the chain: DPDK needs them at its start.
    pci: Vec<String>,
    dpdk: Option<Arc<Dpdk>>,
    /// Queues of opened devices that no element has opened yet, by device and worker.
    queues: HashMap<String, Vec<Option<Box<dyn Port>>>>,
    /// Generated frames, by number of the declared port.
    frames: HashMap<usize, Arc<FrameSet>>,
    opened: HashMap<Key, Queue>,
    notes: Vec<String>,
    /// The memory into which devices receive.
    memory: RegionOptions,
    /// Whether the errors of declared ports were recorded.
    is_prepared: bool,
}

/// The key of a queue that several elements share.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    /// A device's queue of a worker, for both directions.
    Device(String, usize),
    /// The traffic that a worker receives from a declared port.
    Source(usize, usize),
    /// A capture that worker 0 reads: each declared port from its first frame on. Elements that name the file
    /// itself (no number) take turns.
    Read(Option<usize>, PathBuf),
    /// A capture that all workers write.
    Write(PathBuf),
    /// The packets that a worker discards at a declared port.
    Discard(usize, usize),
}

impl Ports {
    /// The ports of a chain with this number of workers and the options `memory` for packet memory.
    pub fn new(chain: &Chain, workers: usize, memory: RegionOptions, made: MakeTraffic) -> Ports {
        let devices = chain.graph.elements.iter().filter(|e| device_direction(e.class.as_str()).is_some());
        let named = devices.filter_map(|element| device_name(&element.config)).map(|name| name.text);
        let declared = chain.ports.iter().filter_map(|port| match &port.kind {
            PortKind::Device(device) => Some(device.text.clone()),
            PortKind::Local(..) => None,
        });
        let specs = named.chain(declared).filter(|name| DpdkSpec::is_meant(name));
        let pci = specs.filter_map(|name| DpdkSpec::parse(&name).ok()?.pci().map(str::to_string));
        let mut pci: Vec<String> = pci.collect();
        pci.sort();
        pci.dedup();
        Ports {
            declared: chain.ports.clone(),
            folder: chain.folder.clone(),
            workers: workers.max(1),
            traffic: made,
            dry: false,
            machine: Machine::This,
            missing: None,
            refused_by_machine: 0,
            reported: HashSet::new(),
            pci,
            dpdk: None,
            queues: HashMap::new(),
            frames: HashMap::new(),
            opened: HashMap::new(),
            notes: vec![],
            memory,
            is_prepared: false,
        }
    }

    /// Whether nothing is opened.
    pub fn is_dry(&self) -> bool {
        self.dry
    }

    /// Opens ports for a check only from now on. With [`Machine::Any`], devices need not be here.
    pub fn dry(&mut self, machine: Machine) {
        (self.dry, self.machine) = (true, machine);
    }

    /// Generates all traffic now, and records its errors at their locations. Otherwise traffic is generated
    /// when its port is opened. Records the declared devices that this machine lacks, too.
    pub fn prepare(&mut self, diags: &mut Diagnostics) {
        for number in 0..self.declared.len() {
            self.frames(number, diags);
        }
        for port in self.declared.iter_mut().filter(|port| !port.broken) {
            let PortKind::Device(device) = &port.kind else { continue };
            let mistake = match target::find_device(&device.text) {
                Ok(()) => continue,
                Err(Unavailable::Wrong(message)) => Diagnostic::error(device.span, message),
                Err(Unavailable::Missing(MissingDevice { message, help })) => {
                    let missing = Diagnostic::error(device.span, message).help(help);
                    self.machine.record([missing], diags);
                    continue;
                }
            };
            diags.push(mistake);
        }
        // Elements do not report them again.
        self.is_prepared = true;
    }

    /// What this machine lacks for the port that was opened last, in a check for another machine. Each device
    /// is returned once.
    pub fn take_missing(&mut self) -> Option<MissingDevice> {
        self.missing.take()
    }

    /// Warnings about options that could not be met, as sentences. Each is returned once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.dpdk.iter().flat_map(|dpdk| dpdk.notes()));
        notes
    }

    /// DPDK, if a port needs it: then all packets come from its pool.
    pub fn dpdk(&self) -> Option<Arc<Dpdk>> {
        self.dpdk.clone()
    }

    /// The hardware address of a port, if known: of opened devices and of network interfaces.
    pub fn mac(&self, name: &str) -> Option<MacAddr> {
        let target = self.target(name).ok()?;
        let device = match &target {
            Target::Declared(number) => match &self.declared.get(*number)?.kind {
                PortKind::Device(device) => device.text.clone(),
                PortKind::Local(..) => return None,
            },
            Target::Device(device) | Target::Interface(device) => device.clone(),
            Target::Capture(_) | Target::Numbered(_) => return None,
        };
        let spec = target::device_spec(&device, self.workers);
        let opened = spec.as_ref().ok().and_then(|spec| self.opened.get(&Key::Device(spec.clone(), 0)));
        opened.and_then(Queue::mac).map(MacAddr).or_else(|| {
            let interface = device.split(',').find_map(|part| part.strip_prefix("iface="));
            target::interface_mac(interface.unwrap_or(&device))
        })
    }

    fn target(&self, name: &str) -> Result<Target, String> {
        target::resolve(name, &self.declared, &self.folder)
    }

    /// The frames of a declared port with generated traffic; `None` if it has none.
    fn frames(&mut self, number: usize, diags: &mut Diagnostics) -> Option<Arc<FrameSet>> {
        let PortKind::Local(PortSource::Traffic(traffic), _) = &self.declared.get(number)?.kind else {
            return None;
        };
        if let Some(frames) = self.frames.get(&number) {
            return Some(Arc::clone(frames));
        }
        let frames = (self.traffic)(traffic, diags)?;
        self.frames.insert(number, Arc::clone(&frames));
        Some(frames)
    }

    /// A handle of the queue with this key; `make` opens it for the first caller.
    fn share(
        &mut self,
        key: Key,
        name: &str,
        direction: Direction,
        make: impl FnOnce(&mut Self) -> Opened,
    ) -> Opened {
        if let Some(queue) = self.opened.get_mut(&key)
            && let Some(handle) = queue.handle(name, direction)
        {
            return Ok(Box::new(handle));
        }
        let port = make(self)?;
        let (queue, handle) = Queue::new(port, name, direction);
        self.opened.insert(key, queue);
        Ok(Box::new(handle))
    }

    fn open_declared(&mut self, number: usize, direction: Direction, worker: usize) -> Opened {
        let port = self.declared.get(number).cloned().ok_or("there is no such port")?;
        let name = &port.name;
        let is_device = matches!(port.kind, PortKind::Device(_));
        if self.dry && (port.broken || is_device && self.is_prepared) {
            // Errors were reported at the port's declaration.
            return Ok(Box::new(MemoryPort::sink(name.as_str())));
        }
        match (port.kind, direction) {
            (PortKind::Device(device), _) => self.open_device(&device.text, name, direction, worker),
            (PortKind::Local(PortSource::Capture { path, passes }, _), Direction::Receive) => {
                self.read(Some(number), &path, passes, name, worker)
            }
            (PortKind::Local(PortSource::Traffic(traffic), _), Direction::Receive) => {
                let mut mistakes = Diagnostics::new();
                let Some(frames) = self.frames(number, &mut mistakes) else {
                    if self.dry {
                        // `prepare` reported the error at its location.
                        return Ok(Box::new(MemoryPort::sink(name.as_str())));
                    }
                    let told: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
                    return Err(format!("the traffic of `{name}`: {}", told.join("; ")));
                };
                let workers = self.workers;
                self.share(Key::Source(number, worker), name, direction, |_| {
                    let Some((frames, count)) = share(&frames, traffic.count, worker, workers) else {
                        return Ok(Box::new(MemoryPort::sink(name.as_str())));
                    };
                    let generator = MemoryPort::generator(name.as_str(), frames).of_shared_flows();
                    Ok(Box::new(match count {
                        Some(count) => generator.limit(count),
                        None => generator,
                    }))
                })
            }
            (PortKind::Local(PortSource::None, _), Direction::Receive) => {
                Err(format!("nothing comes from port `{name}`: add `capture` or `traffic` to it"))
            }
            (PortKind::Local(source, Sink::Capture(path)), Direction::Send) => {
                // Answers to the packets of a capture have its link type.
                let link_type = match source {
                    PortSource::Capture { path, .. } => {
                        CaptureReader::open(path).ok().and_then(|reader| reader.link_type())
                    }
                    _ => None,
                };
                self.write(&path, link_type, name)
            }
            (PortKind::Local(_, Sink::Discard), Direction::Send) => {
                self.share(Key::Discard(number, worker), name, direction, |_| {
                    Ok(Box::new(MemoryPort::sink(name.as_str())))
                })
            }
            (PortKind::Local(_, Sink::None), Direction::Send) => {
                Err(format!("nothing can be sent to port `{name}`: add `write` or `discard` to it"))
            }
        }
    }

    fn read(&mut self, number: Option<usize>, path: &Path, passes: u64, name: &str, worker: usize) -> Opened {
        let key = whole_name(path);
        if self.opened.contains_key(&Key::Write(key.clone())) {
            return Err(PortError::SameFile { path: path.to_path_buf() }.to_string());
        }
        if worker != 0 {
            // The frames of a capture are in one order, so only worker 0 reads them.
            return Ok(Box::new(MemoryPort::sink(name)));
        }
        let options = CaptureOptions { read: Some(path.to_path_buf()), passes, ..CaptureOptions::default() };
        let workers = self.workers;
        self.share(Key::Read(number, key), name, Direction::Receive, |ports| {
            let port = CapturePort::open(name, &options).map_err(|error| ports.refused(&error))?;
            if workers > 1 {
                ports.notes.push(format!("{name}: a capture is read by one worker, which gives the others the packets of their flows"));
            }
            Ok(Box::new(port))
        })
    }

    fn write(&mut self, path: &Path, link_type: Option<u32>, name: &str) -> Opened {
        if is_compressed_name(path) {
            return Err(PortError::CompressedOutput { path: path.to_path_buf() }.to_string());
        }
        let key = whole_name(path);
        let reads = |port: &PortDecl| matches!(&port.kind, PortKind::Local(PortSource::Capture { path: read, .. }, _) if same_file(read, path));
        if self.opened.contains_key(&Key::Read(None, key.clone())) || self.declared.iter().any(reads) {
            return Err(PortError::SameFile { path: path.to_path_buf() }.to_string());
        }
        if self.dry {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            return match folder.unwrap_or(Path::new(".")).metadata() {
                Ok(_) => Ok(Box::new(MemoryPort::sink(name))),
                Err(error) => Err(format!("cannot create {}: {error}", path.display())),
            };
        }
        let options =
            CaptureOptions { write: Some(path.to_path_buf()), link_type, ..CaptureOptions::default() };
        self.share(Key::Write(key), name, Direction::Send, |ports| {
            Ok(Box::new(CapturePort::open(name, &options).map_err(|error| ports.refused(&error))?))
        })
    }

    fn open_device(&mut self, device: &str, name: &str, direction: Direction, worker: usize) -> Opened {
        if self.dry {
            target::find_device(device).or_else(|why| self.go_without(device, why))?;
            return Ok(Box::new(MemoryPort::sink(name)));
        }
        let spec = target::device_spec(device, self.workers)?;
        self.share(Key::Device(spec.clone(), worker), name, direction, |ports| {
            if !ports.queues.contains_key(&spec) {
                let queues = ports.start_device(&spec)?;
                ports.queues.insert(spec.clone(), queues);
            }
            let queue = ports.queues.get_mut(&spec).and_then(|queues| queues.get_mut(worker)?.take());
            queue.ok_or_else(|| format!("`{device}` has no queue for worker {worker}"))
        })
    }

    /// Continues a check for another machine without a device that is missing here, and stores what is
    /// missing for [`Ports::take_missing`].
    ///
    /// # Errors
    /// A sentence: the device is needed here, or no machine has it.
    fn go_without(&mut self, device: &str, why: Unavailable) -> Result<(), String> {
        match why {
            Unavailable::Missing(missing) if self.machine == Machine::Any => {
                if self.reported.insert(device.to_string()) {
                    let help = format!("{}; {HERE}", missing.help);
                    self.missing = Some(MissingDevice { help, ..missing });
                }
                Ok(())
            }
            why => Err(why.to_string()),
        }
    }

    /// The message of an error, which is counted if the machine refused to open the port.
    fn refused(&mut self, error: &PortError) -> String {
        self.refused_by_machine += usize::from(error.is_of_machine());
        error.to_string()
    }

    /// Counts what the machine refused to an element that opens something by itself.
    pub fn count_refusal_by_machine(&mut self) {
        self.refused_by_machine += 1;
    }

    /// How much the machine refused to open.
    pub fn refused_by_machine(&self) -> usize {
        self.refused_by_machine
    }

    fn start_device(&mut self, spec: &str) -> Result<Vec<Option<Box<dyn Port>>>, String> {
        let spec = DpdkSpec::parse(spec).map_err(|error| error.to_string())?;
        let dpdk = match &self.dpdk {
            Some(dpdk) => Arc::clone(dpdk),
            None => {
                let options = EalOptions { pci: self.pci.clone(), ..EalOptions::default() };
                let dpdk = Dpdk::start(&options, self.memory).map_err(|error| self.refused(&error))?;
                Arc::clone(self.dpdk.insert(Arc::new(dpdk)))
            }
        };
        let queues = u16::try_from(self.workers).map_err(|_| "there are more workers than queues can be")?;
        let ports = dpdk.open(&spec, queues).map_err(|error| {
            let fewer = if queues > 1 { "; with one worker it needs one queue only" } else { "" };
            format!("{}{fewer}", self.refused(&error))
        })?;
        Ok(ports.into_iter().map(|port| Some(Box::new(port) as Box<dyn Port>)).collect())
    }

    /// Opens a worker's queue of a port.
    ///
    /// # Errors
    /// A sentence with the cause and the remedy.
    pub fn open(&mut self, name: &str, direction: Direction, worker: usize) -> Opened {
        let target = match self.target(name) {
            // Another machine may have such a device.
            Err(why) => target::elsewhere(name, &self.declared).ok_or(why)?,
            Ok(target) => target,
        };
        match target {
            Target::Declared(number) => {
                let mut port = self.open_declared(number, direction, worker)?;
                if direction == Direction::Receive {
                    // Bridges send packets to the opposite side according to it.
                    port.set_origin(u16::try_from(number).unwrap_or(shm::descriptor::NO_PORT));
                }
                Ok(port)
            }
            Target::Capture(path) => match direction {
                Direction::Receive => self.read(None, &path, 1, name, worker),
                Direction::Send => self.write(&path, None, name),
            },
            Target::Numbered(number) => {
                self.go_without(&number, target::no_number(&number))?;
                Ok(Box::new(MemoryPort::sink(name)))
            }
            Target::Device(device) | Target::Interface(device) => {
                self.open_device(&device, name, direction, worker)
            }
        }
    }

    /// The hardware address that a port answers with.
    ///
    /// # Errors
    /// A sentence: it has none.
    pub fn usable_mac(&self, name: &str) -> Result<MacAddr, String> {
        if self.dry {
            // Only an opened device has an address.
            return Ok(MacAddr([2, 0, 0, 0, 0, 1]));
        }
        let mac = self.mac(name).filter(|mac| *mac != MacAddr::ZERO);
        mac.ok_or_else(|| format!("port `{name}` has no hardware address to answer with"))
    }

    /// The capture file of a port in a direction, if it has one.
    pub fn file(&self, name: &str, direction: Direction) -> Option<PathBuf> {
        match self.target(name).ok()? {
            Target::Capture(path) => Some(path),
            Target::Declared(number) => match (&self.declared.get(number)?.kind, direction) {
                (PortKind::Local(PortSource::Capture { path, .. }, _), Direction::Receive)
                | (PortKind::Local(_, Sink::Capture(path)), Direction::Send) => Some(path.clone()),
                _ => None,
            },
            Target::Device(_) | Target::Interface(_) | Target::Numbered(_) => None,
        }
    }
}
