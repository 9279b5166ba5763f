//! A worker's packets that wait for their neighbours' addresses.
//!
//! Each of them is accounted as held, and counted in [`Neighbours::waiting`].

use super::header::EtherHeader;
use super::neighbours::{Limits, Neighbours};
use element::Work;
use shm::Packet;
use shm::burst::Batch;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

// The querier's drop reasons; those from `NO_HEADROOM` to `STOPPED` are of packets that waited.
element::reasons!(
    NO_DESTINATION = "no-destination",
    NOT_CONFIGURED = "not-configured",
    NO_HEADROOM = "no-headroom",
    NO_ANSWER = "arp-no-answer",
    QUEUE_FULL = "arp-queue-full",
    CLEARED = "arp-cleared",
    STOPPED = "arp-stopped",
    REPLY_READ = "arp-reply-read",
    NOT_REPLY = "not-arp-reply",
);

/// How often a worker with waiting packets looks for replies that other workers got.
const LOOK_NS: u64 = 1_000_000;

struct WaitingEntry {
    ip: u32,
    since_ns: u64,
    packet: Packet,
}

/// The packets, oldest first.
pub(super) struct Waiting {
    packets: VecDeque<WaitingEntry>,
    seen_version: u64,
    seen_clears: u64,
}

impl Waiting {
    /// An empty queue, with room for as many packets as the limits allow.
    pub(super) fn new(limits: Limits) -> Waiting {
        let packets = VecDeque::with_capacity(limits.packets.min(1 << 16));
        Waiting { packets, seen_version: 0, seen_clears: 0 }
    }

    /// Queues a packet of a batch, or drops it if too many wait for the same neighbour. If the queue is full,
    /// the oldest packets are dropped.
    pub(super) fn keep(
        &mut self,
        ip: u32,
        index: u16,
        limits: Limits,
        neighbours: &Neighbours,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
    ) {
        let Limits { packets: most, entry_packets, slim_factor, .. } = limits;
        let is_full = || self.packets.iter().filter(|entry| entry.ip == ip).count() >= entry_packets;
        if entry_packets > 0 && is_full() {
            neighbours.drops.fetch_add(1, Relaxed);
            return batch.drop(index, QUEUE_FULL);
        }
        if most > 0 && self.packets.len() >= most {
            let stay = (most - most / slim_factor).max(1);
            while self.packets.len() >= stay {
                let Some(oldest) = self.packets.pop_front() else { break };
                let_go_of(&oldest, QUEUE_FULL, neighbours, work);
            }
        }
        self.packets.push_back(WaitingEntry { ip, since_ns: work.now_ns(), packet: *batch.packet(index) });
        work.hold(1);
        neighbours.waiting.fetch_add(1, Relaxed);
    }

    /// Drops all packets for a reason.
    pub(super) fn drop_all(&mut self, reason: usize, neighbours: &Neighbours, work: &mut Work<'_>) {
        for entry in self.packets.drain(..) {
            let_go_of(&entry, reason, neighbours, work);
        }
    }

    /// Sends the packets whose neighbours are known by now, and drops those that waited for too long or whose
    /// table was cleared. `header` is the header of all of them, but for the destination. Returns how many
    /// packets had no headroom.
    pub(super) fn settle(
        &mut self,
        neighbours: &Neighbours,
        header: EtherHeader,
        work: &mut Work<'_>,
    ) -> u64 {
        let clears = neighbours.clears();
        if std::mem::replace(&mut self.seen_clears, clears) != clears {
            self.drop_all(CLEARED, neighbours, work);
        }
        let (now_ns, timeout_ns) = (work.now_ns(), neighbours.limits().timeout_ns);
        let is_late =
            |entry: &mut WaitingEntry| timeout_ns > 0 && entry.since_ns.saturating_add(timeout_ns) < now_ns;
        while let Some(late) = self.packets.pop_front_if(is_late) {
            let_go_of(&late, NO_ANSWER, neighbours, work);
        }
        let version = neighbours.version();
        let cramped = if std::mem::replace(&mut self.seen_version, version) == version {
            0
        } else {
            self.send_answered(neighbours, header, work)
        };
        if !self.packets.is_empty() {
            work.fire_at(now_ns + LOOK_NS);
        }
        cramped
    }

    /// Takes each packet off the queue once, so that the order stays.
    fn send_answered(&mut self, neighbours: &Neighbours, header: EtherHeader, work: &mut Work<'_>) -> u64 {
        let mut cramped = 0;
        for _ in 0..self.packets.len() {
            let Some(mut entry) = self.packets.pop_front() else { break };
            let Some(dst) = neighbours.known(entry.ip, work.now_ns()) else {
                self.packets.push_back(entry);
                continue;
            };
            work.release(1);
            neighbours.waiting.fetch_sub(1, Relaxed);
            if (EtherHeader { dst, ..header }).push_onto(&mut entry.packet) {
                work.emit(0, &entry.packet);
            } else {
                cramped += 1;
                work.drop(NO_HEADROOM, std::slice::from_ref(&entry.packet));
            }
        }
        cramped
    }
}

/// Drops a packet that waited.
fn let_go_of(entry: &WaitingEntry, reason: usize, neighbours: &Neighbours, work: &mut Work<'_>) {
    work.drop_held(reason, std::slice::from_ref(&entry.packet));
    neighbours.waiting.fetch_sub(1, Relaxed);
    neighbours.drops.fetch_add(1, Relaxed);
}
