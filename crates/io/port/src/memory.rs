//! The in-memory port: a generator of prepared frames and a sink.
//!
//! Every emitted packet is a fresh copy of its template, so a frame that an element rewrote is not emitted
//! again: replayed traffic is the same on every pass. The cost of that copy is part of every figure measured
//! over this port; [`restore_cost`] measures it.
//!
//! The port is closed-loop: it emits as many packets as are requested and loses none, so it measures
//! saturation. It reads no clock: packets have no timestamp.

use crate::frames::{Filled, FramePlace, FrameSet, LINE_BYTES, fill};
use crate::{Moved, Port, PortError, PortInfo, PortStats, Result};
use shm::{Packet, PacketBytes, PacketPool, Pool};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Frames that a sink keeps for tests.
pub type SentFrames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A generator and a sink in one.
pub struct MemoryPort {
    name: String,
    frames: Option<Arc<FrameSet>>,
    next: usize,
    left: u64,
    origin: u16,
    keep: Option<SentFrames>,
    shares_flows: bool,
    stats: PortStats,
}

impl MemoryPort {
    /// A port that receives the frames repeatedly.
    pub fn generator(name: impl Into<String>, frames: Arc<FrameSet>) -> MemoryPort {
        MemoryPort { frames: Some(frames), left: u64::MAX, ..MemoryPort::sink(name) }
    }

    /// A port that receives nothing and frees sent packets.
    pub fn sink(name: impl Into<String>) -> MemoryPort {
        MemoryPort {
            name: name.into(),
            frames: None,
            next: 0,
            left: 0,
            origin: shm::descriptor::NO_PORT,
            keep: None,
            shares_flows: false,
            stats: PortStats::default(),
        }
    }

    /// Ends the port after that many packets.
    #[must_use]
    pub fn limit(mut self, packets: u64) -> MemoryPort {
        self.left = packets;
        self
    }

    /// Declares that each worker has such a port with flows of its own.
    #[must_use]
    pub fn of_shared_flows(mut self) -> MemoryPort {
        self.shares_flows = true;
        self
    }

    /// Starts with that frame of the set, so that workers that share a set receive different frames at a
    /// time.
    #[must_use]
    pub fn start_at(mut self, frame: usize) -> MemoryPort {
        self.next = self.frames.as_ref().map_or(0, |frames| frame % frames.count());
        self
    }

    /// Stores a copy of every sent frame behind the handle. For tests: it allocates memory for each packet.
    #[must_use]
    pub fn keep_sent(mut self, keep: SentFrames) -> MemoryPort {
        self.keep = Some(keep);
        self
    }
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        PortInfo { shares_flows: self.shares_flows, is_outer: true, ..PortInfo::default() }
    }

    fn set_origin(&mut self, origin: u16) {
        self.origin = origin;
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let Some(frames) = &self.frames else { return Moved::default() };
        let want = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let got = pool.alloc(out.get_mut(..want).unwrap_or_default());
        let places = frames.places();
        let (mut next, mut bytes) = (self.next, 0u64);
        let (mut whole, mut room) = (0, got);
        while whole < room
            && let Some(&place) = places.get(next)
            && let Some(fresh) = out.get_mut(whole..room)
            && let Some(packet) = fresh.first_mut()
        {
            if usize::from(place.len) <= LINE_BYTES {
                shm::stamp(packet, frames.first_line(place), place.len);
                finish(packet, place, self.origin);
            } else {
                match fill(pool, fresh, frames.frame(place)) {
                    Filled::First => {}
                    Filled::Last => room = whole + 1,
                    Filled::No => break,
                }
                if let Some(packet) = out.get_mut(whole) {
                    (packet.origin, packet.packet_type) = (self.origin, place.packet_type);
                }
            }
            next = if next + 1 == places.len() { 0 } else { next + 1 };
            bytes += u64::from(place.len);
            whole += 1;
        }
        self.next = next;
        self.left -= if self.left == u64::MAX { 0 } else { whole as u64 };
        self.stats.rx_packets += whole as u64;
        self.stats.rx_bytes += bytes;
        Moved { packets: whole, bytes }
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let mut bytes = 0;
        for &index in list {
            if let Some(packet) = packets.get(usize::from(index)) {
                bytes += u64::from(packet.total());
                if let Some(keep) = &self.keep {
                    let frame = PacketBytes::new(packet).to_vec();
                    keep.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(frame);
                }
            }
        }
        pool.free(packets, list);
        self.stats.tx_packets += list.len() as u64;
        self.stats.tx_bytes += bytes;
        Moved { packets: list.len(), bytes }
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn is_finished(&self) -> bool {
        self.left == 0
    }
}

#[inline(always)]
fn finish(packet: &mut Packet, place: FramePlace, origin: u16) {
    (packet.mac, packet.origin, packet.packet_type) = (packet.data(), origin, place.packet_type);
}

/// Measures the cost of restoring packets from their templates: the time of `rounds` passes over the set with
/// the template copy alone. The slots are `burst` hot ones, as in a worker. Divide by rounds and frames.
///
/// # Errors
///
/// When the pool has fewer than `burst` slots, or a frame is longer than a slot.
pub fn restore_cost(frames: &FrameSet, pool: &mut PacketPool, burst: usize, rounds: u32) -> Result<Duration> {
    let mut packets = vec![Packet::EMPTY; burst.max(1)];
    let got = pool.alloc(&mut packets);
    packets.truncate(got);
    if got < burst.max(1) {
        pool.free_all(&packets);
        return Err(PortError::NoSlots { wanted: burst.max(1) });
    }
    let mut used = packets.clone();
    let start = Instant::now();
    for _ in 0..rounds {
        let mut slots = used.iter_mut();
        for &place in frames.places() {
            let packet = match slots.next() {
                Some(packet) => packet,
                None => {
                    slots = used.iter_mut();
                    let Some(packet) = slots.next() else { break };
                    packet
                }
            };
            if usize::from(place.len) <= LINE_BYTES {
                shm::stamp(packet, frames.first_line(place), place.len);
            } else {
                let _ = packet.fill(frames.frame(place));
            }
            finish(packet, place, 0);
        }
    }
    let elapsed = start.elapsed();
    pool.free_all(&packets);
    Ok(elapsed)
}
