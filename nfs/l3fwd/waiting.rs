//! Packets that wait for the Ethernet address of their next hop.
//!
//! A few packets for each next hop are held, as in RFC 4861 section 7.2.2: enough for the start of a
//! connection. The others are dropped.

use millrace_nfs::SECOND_NS;
use nf::{Held, Link, Neighbour, Packet};
use packet::MacAddr;
use std::collections::VecDeque;
use std::net::IpAddr;

/// The most packets for one next hop, and the most next hops that packets wait for.
const EACH: usize = 4;
const HOPS: usize = 64;
/// The longest wait: the platform answers earlier unless it is overloaded.
const PATIENCE_NS: u64 = 5 * SECOND_NS;

struct Queue {
    interface: usize,
    next: IpAddr,
    since_ns: u64,
    packets: VecDeque<Held>,
}

/// The waiting packets.
#[derive(Default)]
pub struct Waiting {
    queues: Vec<Queue>,
    /// The count of neighbour changes at the last check.
    seen: u64,
}

impl Waiting {
    /// Holds a packet; returns it if there is no room.
    pub fn keep(
        &mut self,
        (interface, next): (usize, IpAddr),
        packet: Packet,
        link: &mut Link,
        now_ns: u64,
    ) -> Result<(), Packet> {
        let at = self.queues.iter().position(|queue| (queue.interface, queue.next) == (interface, next));
        let is_new = at.is_none();
        if !link.can_hold() || (is_new && self.queues.len() >= HOPS) {
            return Err(packet);
        }
        if is_new {
            self.queues.push(Queue {
                interface,
                next,
                since_ns: now_ns,
                packets: VecDeque::with_capacity(EACH),
            });
        }
        let at = at.unwrap_or(self.queues.len() - 1);
        match self.queues.get_mut(at).filter(|queue| queue.packets.len() < EACH) {
            Some(queue) => {
                queue.packets.push_back(link.hold(packet));
                Ok(())
            }
            None => Err(packet),
        }
    }

    /// Whether a neighbour's state has changed since the last check.
    pub fn is_due(&self, link: &Link) -> bool {
        !self.queues.is_empty() && self.seen != link.neighbour_changes()
    }

    /// Removes the packets whose next hop is known or unreachable (`None`), with their output interface, in
    /// their order.
    pub fn settle(&mut self, link: &mut Link, now_ns: u64) -> Vec<(usize, Option<MacAddr>, Vec<Packet>)> {
        self.seen = link.neighbour_changes();
        let mut settled = vec![];
        if self.queues.is_empty() {
            return settled;
        }
        for mut queue in std::mem::take(&mut self.queues) {
            let came = match link.neighbour(queue.interface, queue.next) {
                Neighbour::Known(mac) => Some(mac),
                Neighbour::Unreachable => None,
                Neighbour::Resolving if now_ns.saturating_sub(queue.since_ns) > PATIENCE_NS => None,
                Neighbour::Resolving => {
                    self.queues.push(queue);
                    continue;
                }
            };
            let packets = queue.packets.drain(..).map(|held| link.release(held)).collect();
            settled.push((queue.interface, came, packets));
        }
        settled
    }
}
