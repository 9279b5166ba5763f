//! Ports of a chain under test.

use super::pace::{Pace, Ring};
use element::configure::Direction;
use element::nf::NfLink;
use element::resolve::Station;
use host::PortOpener;
use host::ports::Ports;
use packet::MacAddr;
use port::{Finding, Moved, Port, PortError, PortInfo, PortStats};
use shm::Packet;
use shm::pool::PacketPool;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens a chain's ports, those with made-up traffic behind a ring that fills at a set rate.
pub struct Paced<'a> {
    /// The ports as they are.
    pub ports: &'a mut Ports,
    /// Names of those with made-up traffic.
    pub sources: HashSet<String>,
    /// Names of those that discard what they are sent.
    pub sinks: HashSet<String>,
    /// When frames arrive.
    pub pace: Arc<Pace>,
    /// Room of a ring, in frames.
    pub room: u64,
}

impl PortOpener for Paced<'_> {
    fn open(&mut self, name: &str, direction: Direction, worker: usize) -> Result<Box<dyn Port>, String> {
        let inner = self.ports.open(name, direction, worker)?;
        let pace = Arc::clone(&self.pace);
        Ok(match direction {
            Direction::Receive if self.sources.contains(name) => {
                Box::new(PacedPort { inner, ring: Some(Ring::new(self.room)), pace })
            }
            Direction::Send if self.sinks.contains(name) => Box::new(PacedPort { inner, ring: None, pace }),
            _ => inner,
        })
    }

    fn open_nf(&mut self, name: &str, worker: usize) -> Result<Box<dyn NfLink>, String> {
        self.ports.open_nf(name, worker)
    }

    fn station(&self, name: &str) -> Option<Arc<Station>> {
        self.ports.station(name)
    }

    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        self.ports.port_mac(name)
    }

    fn file(&self, name: &str, direction: Direction) -> Option<PathBuf> {
        self.ports.file(name, direction)
    }
}

/// A source whose frames wait in a ring, or a sink that counts.
struct PacedPort {
    inner: Box<dyn Port>,
    ring: Option<Ring>,
    pace: Arc<Pace>,
}

impl Port for PacedPort {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn info(&self) -> PortInfo {
        self.inner.info()
    }

    fn set_origin(&mut self, origin: u16) {
        self.inner.set_origin(origin);
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let Some(ring) = &mut self.ring else { return Moved::default() };
        let waiting = ring.arrive(&self.pace, self.pace.now_ns());
        let most = out.len().min(usize::try_from(waiting).unwrap_or(usize::MAX));
        if most == 0 {
            return Moved::default();
        }
        let moved = self.inner.receive(pool, &mut out[..most]);
        ring.fetched(moved.packets);
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let moved = self.inner.send(pool, packets, list);
        self.pace.count_sent(moved.packets);
        moved
    }

    fn stats(&self) -> PortStats {
        self.inner.stats()
    }

    fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    fn can_send(&self) -> bool {
        self.inner.can_send()
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.inner.flush()
    }

    fn take_findings(&mut self) -> Vec<Finding> {
        self.inner.take_findings()
    }
}
