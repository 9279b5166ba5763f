//! The process's side: an NF's elements, with two rings for ports.
//!
//! Packets are worked on in place. An NF has no free slots: what its elements drop goes back with that word,
//! and what would have to be made is refused, as by a pool that is empty.

use super::{Attachment, READY, RING_CLAIMS};
use crate::assemble::{Options, assemble};
use crate::chain::ProcessNf;
use crate::running::{Outcome, Plan, Running};
use crate::services::PortOpener;
use diag::Diagnostics;
use element::configure::Direction;
use port::{Moved, Port, PortError, PortInfo, PortStats};
use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use shm::pool::{PacketPool, Pool, PoolStats};
use shm::region::Region;
use shm::ring::{Action, Claim, Consumer, Mapped, Producer, RingFile};
use shm::{Packet, ShmError};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Claims that are taken at a time.
const BURST: usize = 64;

/// What the ports and the pool of an NF share: its ends of the two rings.
struct Rings {
    region: Arc<Region>,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    /// Packets that came, by input, and that no element has yet.
    came: Vec<VecDeque<Packet>>,
    /// Claims that did not fit into the ring.
    backlog: VecDeque<Claim>,
    /// Claims of the ring that are with elements.
    working: usize,
    /// The host's indices cannot be: nothing more is taken or given.
    broken: bool,
    _file: RingFile,
}

type Shared = Arc<Mutex<Rings>>;

fn lock(rings: &Shared) -> MutexGuard<'_, Rings> {
    rings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Rings {
    fn open(attachment: &Attachment, inputs: usize) -> Result<Rings, ShmError> {
        let region = Region::attach(inherited(attachment.region), attachment.slots, true)?;
        let file = RingFile::open(inherited(attachment.rings), 2, RING_CLAIMS)?;
        let missing = || ShmError::RingSize { claims: RING_CLAIMS, most: shm::ring::MOST_CLAIMS };
        let from = Consumer::new(file.ring(0).ok_or_else(missing)?);
        let to = Producer::new(file.ring(1).ok_or_else(missing)?);
        let came = (0..inputs).map(|_| VecDeque::new()).collect();
        Ok(Rings { region, from, to, came, backlog: VecDeque::new(), working: 0, broken: false, _file: file })
    }

    /// Fetches what the host lent. Whoever asks has nothing in hand any more: what came before is released.
    fn fetch(&mut self) {
        self.flush();
        let waiting: usize = self.came.iter().map(VecDeque::len).sum();
        if waiting > 0 || self.broken {
            return;
        }
        self.from.release(std::mem::take(&mut self.working));
        let mut claims = [Claim::default(); BURST];
        let Ok(count) = self.from.take(&mut claims) else {
            self.broken = true;
            return;
        };
        self.working = count;
        for claim in &claims[..count] {
            let parked = shm::unpark(self.region.number(), claim.slot);
            let (Some(parked), Some(queue)) = (parked, self.came.get_mut(usize::from(claim.destination)))
            else {
                continue;
            };
            let (handle, generation) = (u64::from(claim.slot) + 1, claim.generation);
            let len = u32::from(claim.len);
            queue.push_back(Packet { handle, generation, data: claim.data, len, total: len, ..parked });
        }
    }

    /// Gives a packet back.
    fn give(&mut self, packet: &Packet, action: Action, destination: usize) {
        // Its descriptor as the elements left it.
        let whole = packet.segments == 1 && packet.len <= u32::from(u16::MAX) && shm::park(packet);
        let claim = Claim {
            slot: packet.slot,
            generation: packet.generation,
            data: packet.data,
            len: packet.len as u16,
            action: if whole { action } else { Action::Drop } as u8,
            flags: 0,
            destination: destination as u16,
        };
        if !self.backlog.is_empty() || self.to.write(&[claim]) != Ok(1) {
            self.backlog.push_back(claim);
        }
    }

    /// Shows the host what was given.
    fn flush(&mut self) {
        while let Some(claim) = self.backlog.front()
            && self.to.write(&[*claim]) == Ok(1)
        {
            self.backlog.pop_front();
        }
        self.to.publish();
    }
}

fn inherited(number: RawFd) -> OwnedFd {
    #[expect(unsafe_code, reason = "takes over a descriptor that the host left open for this process")]
    // SAFETY: the host opened it for this process and names it once; nothing else here has it.
    unsafe {
        OwnedFd::from_raw_fd(number)
    }
}

/// One interface of the NF.
struct RingPort {
    name: String,
    rings: Shared,
    /// Number of the input or output.
    number: usize,
    stats: PortStats,
}

impl Port for RingPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        PortInfo::default()
    }

    fn set_origin(&mut self, _origin: u16) {}

    fn receive(&mut self, _pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let mut rings = lock(&self.rings);
        if rings.came.get(self.number).is_some_and(VecDeque::is_empty) {
            rings.fetch();
        }
        let mut moved = Moved::default();
        let Some(queue) = rings.came.get_mut(self.number) else { return moved };
        for (place, packet) in out.iter_mut().zip(std::iter::from_fn(|| queue.pop_front())) {
            *place = packet;
            moved.packets += 1;
            moved.bytes += u64::from(packet.total);
        }
        self.stats.rx_packets += moved.packets as u64;
        self.stats.rx_bytes += moved.bytes;
        moved
    }

    fn send(&mut self, _pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let mut rings = lock(&self.rings);
        let mut moved = Moved::default();
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            rings.give(packet, Action::Emit, self.number);
            moved.packets += 1;
            moved.bytes += u64::from(packet.total);
        }
        rings.flush();
        self.stats.tx_packets += moved.packets as u64;
        self.stats.tx_bytes += moved.bytes;
        moved
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn flush(&mut self) -> Result<(), PortError> {
        lock(&self.rings).flush();
        Ok(())
    }
}

/// The pool of an NF: it has nothing to give, and what it takes back is the host's.
struct LentPool {
    rings: Shared,
    refused: u64,
}

impl Pool for LentPool {
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        self.refused += out.len() as u64;
        0
    }

    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        let mut rings = lock(&self.rings);
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            rings.give(packet, Action::Drop, 0);
        }
        rings.flush();
    }

    fn free_all(&mut self, packets: &[Packet]) {
        let mut rings = lock(&self.rings);
        packets.iter().for_each(|packet| rings.give(packet, Action::Drop, 0));
        rings.flush();
    }

    fn capacity(&self) -> usize {
        0
    }

    fn available(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats { refused: self.refused, bad_frees: 0 }
    }
}

/// Opens the NF's interfaces.
struct Interfaces<'a> {
    nf: &'a ProcessNf,
    rings: Shared,
}

impl PortOpener for Interfaces<'_> {
    fn open(&mut self, name: &str, direction: Direction, _worker: usize) -> Result<Box<dyn Port>, String> {
        let names = if direction == Direction::Receive { &self.nf.inputs } else { &self.nf.outputs };
        let number = names.iter().position(|known| known == name);
        let number = number.ok_or_else(|| format!("NF `{}` has no interface `{name}`", self.nf.name))?;
        let (name, rings) = (name.to_string(), Arc::clone(&self.rings));
        Ok(Box::new(RingPort { name, rings, number, stats: PortStats::default() }))
    }
}

/// Runs an NF until the host ends it.
///
/// # Errors
/// A sentence that says why it does not run; mistakes of its configuration are in `diags`.
pub fn serve(
    nf: &ProcessNf,
    attachment: &Attachment,
    options: &Options,
    stop: &AtomicBool,
    diags: &mut Diagnostics,
) -> Result<Option<Outcome>, String> {
    let rings = Rings::open(attachment, nf.inputs.len()).map_err(|error| error.to_string())?;
    let rings: Shared = Arc::new(Mutex::new(rings));
    let mut interfaces = Interfaces { nf, rings: Arc::clone(&rings) };
    let assembly = assemble(&nf.graph, options, &mut interfaces, diags).map_err(|error| error.to_string())?;
    let Some(assembly) = assembly else { return Ok(None) };
    let print = |line: &str| eprintln!("{line}");
    let plan = Plan { burst: attachment.burst, print, ..Plan::default() };
    let pool = |_| PacketPool::Dpdk(Box::new(LentPool { rings: Arc::clone(&rings), refused: 0 }));
    let running = Running::start(assembly, &plan, pool).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout();
    out.write_all(&[READY]).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Relaxed) && !running.is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stop();
    let outcome = running.wait();
    let mut rings = lock(&rings);
    // What nobody here has had yet, and what did not fit.
    let left: Vec<Packet> = rings.came.iter_mut().flat_map(std::mem::take).collect();
    left.iter().for_each(|packet| rings.give(packet, Action::Drop, 0));
    rings.flush();
    Ok(Some(outcome))
}
