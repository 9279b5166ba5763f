//! The process's side: an NF's elements, with rings for ports.
//!
//! Packets are worked on in place. What its elements drop goes back with that word. Packets are made in slots
//! that the host granted, of which there are always some, and dropped ones among those are used again.

use super::{Attachment, READY, RING_CLAIMS, Rings};
use crate::assemble::{Options, assemble};
use crate::chain::ProcessNf;
use crate::running::{Outcome, Plan, Running};
use crate::services::PortOpener;
use diag::Diagnostics;
use element::configure::Direction;
use port::{Moved, Port, PortError, PortInfo, PortStats};
use shm::descriptor::HEADROOM;
use shm::memfd::inherited;
use shm::pool::{PacketPool, Pool, PoolStats};
use shm::region::Region;
use shm::ring::{Action, Claim, Consumer, Mapped, Producer};
use shm::{Packet, ShmError};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Claims that are taken at a time.
const BURST: usize = 64;
/// Empty slots that an NF which makes packets wants to have for each packet that it takes.
const SPARE: usize = 4;
/// How long such an NF waits for empty slots.
const PATIENCE: Duration = Duration::from_millis(10);

/// What the ports and the pool of an NF share: its ends of the rings.
struct Ends {
    region: Arc<Region>,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    grants: Consumer<Mapped>,
    /// Whether elements make packets here, and since when they wait for slots.
    makes: bool,
    starving_since: Option<Instant>,
    /// Packets that came, by input, and that no element has yet.
    came: Vec<VecDeque<Packet>>,
    /// Claims that did not fit into the ring.
    backlog: VecDeque<Claim>,
    /// Claims of the ring that are with elements.
    working: usize,
    /// Empty slots to make packets in.
    granted: Vec<Packet>,
    /// Which slots were granted and are still here.
    is_granted: Vec<bool>,
    /// The host's indices cannot be: nothing more is taken or given.
    broken: bool,
    _file: Rings,
}

type Shared = Arc<Mutex<Ends>>;

fn lock(rings: &Shared) -> MutexGuard<'_, Ends> {
    rings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Ends {
    fn open(attachment: Attachment, inputs: usize) -> Result<Ends, ShmError> {
        let region = Region::attach(inherited(attachment.region)?, attachment.slots, true)?;
        let file = Rings::open(inherited(attachment.rings)?, RING_CLAIMS)?;
        let [from, to, grants] = file.rings();
        let came = (0..inputs).map(|_| VecDeque::new()).collect();
        Ok(Ends {
            region,
            from: Consumer::new(from),
            to: Producer::new(to),
            grants: Consumer::new(grants),
            makes: false,
            starving_since: None,
            came,
            backlog: VecDeque::new(),
            working: 0,
            granted: vec![],
            is_granted: vec![false; attachment.slots as usize],
            broken: false,
            _file: file,
        })
    }

    /// Fetches what the host lent. Whoever asks has nothing in hand any more: what came before is released.
    fn fetch(&mut self) {
        self.flush();
        let waiting: usize = self.came.iter().map(VecDeque::len).sum();
        // What does not go out must not come in.
        if waiting > 0 || self.broken || !self.backlog.is_empty() {
            return;
        }
        self.from.release(std::mem::take(&mut self.working));
        let mut claims = [Claim::default(); BURST];
        let Ok(count) = self.from.take(&mut claims) else {
            self.broken = true;
            return;
        };
        self.working = count;
        claims[..count].iter().for_each(|claim| shm::prefetch(self.region.number(), claim.slot));
        for claim in &claims[..count] {
            let queue = self.came.get_mut(usize::from(claim.destination));
            if let (Some(packet), Some(queue)) = (claimed(&self.region, claim), queue) {
                queue.push_back(packet);
            }
        }
    }

    /// Takes the empty slots that were granted.
    fn take_grants(&mut self) {
        let mut claims = [Claim::default(); BURST];
        loop {
            let Ok(count) = self.grants.take(&mut claims) else {
                self.broken = true;
                return;
            };
            for claim in &claims[..count] {
                if let Some(packet) = claimed(&self.region, claim) {
                    self.note_granted(claim.slot, true);
                    self.granted.push(packet);
                }
            }
            // The host knows whose they are; nobody asks what was done to them.
            self.grants.release(count);
            if count < BURST {
                return;
            }
        }
    }

    /// How many packets may be handed out: an NF that makes packets waits until it has slots for them, but not
    /// for ever.
    fn ready_for(&mut self, wanted: usize) -> usize {
        if !self.makes {
            return wanted;
        }
        self.take_grants();
        let ready = self.granted.len() / SPARE;
        if ready > 0 {
            self.starving_since = None;
            return wanted.min(ready);
        }
        let since = *self.starving_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE { wanted } else { 0 }
    }

    /// Notes whether a slot is one that was granted.
    fn note_granted(&mut self, slot: u32, granted: bool) {
        if let Some(known) = self.is_granted.get_mut(slot as usize) {
            *known = granted;
        }
    }

    /// Takes a packet that is not needed any more: to be used again, or back to the host.
    fn free(&mut self, packet: &Packet) {
        if self.is_granted.get(packet.slot as usize) == Some(&true) {
            self.granted.push(*packet);
        } else {
            self.give(packet, Action::Drop, 0);
        }
    }

    /// Gives a packet back.
    fn give(&mut self, packet: &Packet, action: Action, destination: usize) {
        self.note_granted(packet.slot, false);
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

/// The packet that the host claims.
fn claimed(region: &Region, claim: &Claim) -> Option<Packet> {
    let parked = shm::unpark(region.number(), claim.slot)?;
    let (handle, generation) = (u64::from(claim.slot) + 1, claim.generation);
    let len = u32::from(claim.len);
    Some(Packet { handle, generation, data: claim.data, len, total: len, ..parked })
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
        let most = rings.ready_for(out.len());
        let out = &mut out[..most];
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

/// The pool of an NF: it gives what the host granted, and what it takes back of the rest is the host's.
struct LentPool {
    rings: Shared,
    refused: u64,
}

impl Pool for LentPool {
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        let mut rings = lock(&self.rings);
        rings.makes = true;
        if rings.granted.len() < out.len() {
            rings.take_grants();
        }
        let count = out.len().min(rings.granted.len());
        let from = rings.granted.len() - count;
        for (place, slot) in out.iter_mut().zip(rings.granted.drain(from..)) {
            let Packet { buf, handle, slot, generation, region, .. } = slot;
            *place = Packet { buf, handle, data: HEADROOM as u16, slot, generation, region, ..Packet::EMPTY };
        }
        self.refused += (out.len() - count) as u64;
        count
    }

    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        let mut rings = lock(&self.rings);
        for packet in list.iter().filter_map(|index| packets.get(usize::from(*index))) {
            rings.free(packet);
        }
        rings.flush();
    }

    fn free_all(&mut self, packets: &[Packet]) {
        let mut rings = lock(&self.rings);
        packets.iter().for_each(|packet| rings.free(packet));
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
    attachment: Attachment,
    options: &Options,
    stop: &AtomicBool,
    diags: &mut Diagnostics,
) -> Result<Option<Outcome>, String> {
    let rings = Ends::open(attachment, nf.inputs.len()).map_err(|error| error.to_string())?;
    let rings: Shared = Arc::new(Mutex::new(rings));
    let mut interfaces = Interfaces { nf, rings: Arc::clone(&rings) };
    let assembly = assemble(&nf.graph, options, &mut interfaces, diags).map_err(|error| error.to_string())?;
    let Some(assembly) = assembly else { return Ok(None) };
    let print = |line: &str| eprintln!("{line}");
    let plan = Plan { burst: attachment.burst, print, ..Plan::default() };
    let pool = |_| PacketPool::Foreign(Box::new(LentPool { rings: Arc::clone(&rings), refused: 0 }));
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
    let unused = std::mem::take(&mut rings.granted);
    left.iter().chain(&unused).for_each(|packet| rings.give(packet, Action::Drop, 0));
    rings.flush();
    Ok(Some(outcome))
}
