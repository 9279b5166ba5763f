//! Ports of a chain under test.

use super::pace::{Batching, Notes, Pace, Ring};
use super::parts;
use super::stamp::{self, Stamp};
use super::timed_link::TimedLink;
use crate::BenchError;
use crate::start::{Loaded, RunOptions, RunningChain};
use element::configure::Direction;
use element::nf::NfLink;
use packet::{Access, MacAddr};
use port::interface::Interface;
use port::{Moved, Port};
use runtime::Opener;
use runtime::resources::Resources;
use runtime::running::RunPlan;
use runtime::services::Opened;
use shm::pool::PacketPool;
use shm::{Packet, PacketBytes, PacketBytesMut};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// The rings that fill at a set rate in front of a chain's ports with generated traffic.
pub struct Rings {
    /// The ports whose generated frames arrive at a set rate, by name, and their pace.
    pub sources: HashMap<String, Arc<Pace>>,
    /// The ports that count the frames that they are sent, by name, and the pace whose trials they count for.
    pub sinks: HashMap<String, Arc<Pace>>,
    /// Capacity of a ring, in frames.
    pub room: u64,
    /// When rings hand out waiting frames.
    pub batching: Batching,
    /// The pace whose trials record the parts of latencies, where one does: links to NFs write times then.
    pub timed: Option<Arc<Pace>>,
}

impl Rings {
    /// Starts a chain behind these rings. Also returns the rings that were created, by port and worker; the
    /// source of a stamp is an index into this list.
    ///
    /// # Errors
    /// When the chain has errors, or something cannot be opened or started.
    pub fn start(
        self,
        loaded: &mut Loaded,
        run: &RunOptions,
        plan: RunPlan,
    ) -> Result<(RunningChain, Vec<(String, usize)>), BenchError> {
        let resources = loaded.resources(run)?;
        let mut paced = Paced { resources, wanted: self, rings: vec![], notes: HashMap::new() };
        let assembly = loaded.assemble(run, &mut paced)?;
        Ok((loaded.start(run, (assembly, paced.resources), plan)?, paced.rings))
    }
}

/// Opens the ports of a chain, with their rings.
struct Paced {
    /// Opens the ports themselves, and all else.
    resources: Resources,
    wanted: Rings,
    rings: Vec<(String, usize)>,
    /// The recorders of sinks, by port and worker: elements that send to one port share a recorder, so that
    /// it sees their order.
    notes: HashMap<(String, usize), Notes>,
}

// Only `open_port` is its own; the other methods are those of every opener around another.
impl Opener for Paced {
    fn open_port(&mut self, name: &str, direction: Direction, worker: usize) -> Opened {
        let inner = self.resources.open_port(name, direction, worker)?;
        let paces = if direction == Direction::Receive { &self.wanted.sources } else { &self.wanted.sinks };
        let Some(pace) = paces.get(name).map(Arc::clone) else { return Ok(inner) };
        Ok(match direction {
            // A worker without flows has nothing to offer.
            Direction::Receive if inner.is_finished() => inner,
            Direction::Receive => {
                let source = u8::try_from(self.rings.len())
                    .map_err(|_| "loads can be offered to 256 ports and workers".to_string())?;
                self.rings.push((name.into(), worker));
                let ring = Ring::new(self.wanted.room, self.wanted.batching);
                Box::new(PacedPort { inner, side: Side::Source(ring, source), pace })
            }
            Direction::Send => {
                let notes = self.notes.entry((name.into(), worker)).or_insert_with(|| pace.notes());
                let side = Side::Sink(Arc::clone(notes));
                Box::new(PacedPort { inner, side, pace })
            }
        })
    }

    fn open_nf(&mut self, name: &str, worker: usize) -> Result<Box<dyn NfLink>, String> {
        let inner = self.resources.open_nf(name, worker)?;
        Ok(match &self.wanted.timed {
            Some(pace) => Box::new(TimedLink { inner, pace: Arc::clone(pace) }),
            None => inner,
        })
    }

    fn l3_interface(&self, name: &str) -> Option<Arc<Interface>> {
        self.resources.l3_interface(name)
    }

    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        self.resources.port_mac(name)
    }

    fn port_file(&self, name: &str, direction: Direction) -> Option<PathBuf> {
        self.resources.port_file(name, direction)
    }
}

/// A source with a receive ring, or a sink that counts.
struct PacedPort {
    inner: Box<dyn Port>,
    side: Side,
    pace: Arc<Pace>,
}

enum Side {
    /// The ring, and the source number of its stamps.
    Source(Ring, u8),
    Sink(Notes),
}

/// Writes a stamp into a packet that has room for one, and when it was received, where its parts are
/// recorded.
fn write(packet: &mut Packet, stamp: Stamp, received_ns: Option<u64>) {
    let mut bytes = PacketBytesMut::new(packet);
    if let Some(head) = bytes.get(0)
        && let Some(at) = stamp::room(&head, bytes.len())
        && let Some(before) = bytes.get(at)
    {
        let _ = bytes.copy_in(at, &stamp.encode(&before));
        if let Some(received_ns) = received_ns {
            parts::begin(&mut bytes, received_ns);
        }
    }
}

/// The stamp of a packet.
pub(crate) fn read(packet: &Packet) -> Option<Stamp> {
    let bytes = PacketBytes::new(packet);
    Stamp::decode(&bytes.get(stamp::offset(bytes.len())?)?)
}

impl Port for PacedPort {
    port::pass_on_to_inner!();

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let Side::Source(ring, source) = &mut self.side else { return Moved::default() };
        let now_ns = self.pace.now_ns();
        let waiting = ring.arrive(&self.pace, now_ns);
        let most = out.len().min(usize::try_from(waiting).unwrap_or(usize::MAX));
        let Some(out) = out.get_mut(..most).filter(|out| !out.is_empty()) else { return Moved::default() };
        let moved = self.inner.receive(pool, out);
        if self.pace.is_stamped() {
            let received_ns = self.pace.is_timed().then_some(now_ns);
            let mut left = out.get_mut(..moved.packets).unwrap_or_default();
            loop {
                let plain = ring.until_stamp().min(left.len());
                ring.fetched(plain);
                let next = left.get_mut(plain..).and_then(<[Packet]>::split_first_mut);
                let Some((packet, others)) = next else { break };
                let (number, time_ns) = ring.fetch();
                write(packet, Stamp { source: *source, number, time_ns }, received_ns);
                left = others;
            }
        } else {
            ring.fetched(moved.packets);
        }
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        if let Side::Sink(notes) = &self.side
            && self.pace.is_stamped()
        {
            let sent = list.iter().filter_map(|index| packets.get(usize::from(*index)));
            let is_sampled = self.pace.is_sampled();
            let stamps = sent.map(|packet| (packet, read(packet)));
            let mut stamps = stamps.filter(|(_, stamp)| stamp.is_some() || !is_sampled).peekable();
            // Packets without stamps need neither the clock nor the lock.
            if stamps.peek().is_some()
                && let Some(notes) = notes.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            {
                let now_ns = self.pace.now_ns();
                for (packet, stamp) in stamps {
                    notes.record(stamp, now_ns);
                    if let Some(stamp) = stamp.filter(|_| self.pace.is_timed()) {
                        notes.record_parts(&PacketBytes::new(packet), stamp, now_ns);
                    }
                }
            }
        }
        let moved = self.inner.send(pool, packets, list);
        self.pace.count_sent(moved.packets);
        moved
    }
}
