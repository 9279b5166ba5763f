//! Ports of an experiment's chain: some of them have frames that arrive at a rate of their own.

use crate::load::pace::{Pace, Ring};
use element::configure::Direction;
use element::nf::NfLink;
use element::resolve::Station;
use host::PortOpener;
use host::ports::Ports;
use packet::MacAddr;
use port::{Finding, Moved, Port, PortError, PortInfo, PortStats};
use shm::Packet;
use shm::pool::PacketPool;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Frames that wait for the chain at a port, at most.
const RING: u64 = 1_024;

/// Opens a chain's ports.
pub(super) struct Offered<'a> {
    /// The ports as they are.
    pub ports: &'a mut Ports,
    /// Names of those whose frames arrive at a set rate, and when.
    pub paced: &'a HashMap<String, Arc<Pace>>,
}

impl PortOpener for Offered<'_> {
    fn open(&mut self, name: &str, direction: Direction, worker: usize) -> Result<Box<dyn Port>, String> {
        let inner = self.ports.open(name, direction, worker)?;
        Ok(match self.paced.get(name).filter(|_| direction == Direction::Receive) {
            Some(pace) => Box::new(Arriving { inner, ring: Ring::new(RING), pace: Arc::clone(pace) }),
            None => inner,
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

/// A source whose frames wait in a ring.
struct Arriving {
    inner: Box<dyn Port>,
    ring: Ring,
    pace: Arc<Pace>,
}

impl Port for Arriving {
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
        let waiting = self.ring.arrive(&self.pace, self.pace.now_ns());
        let most = out.len().min(usize::try_from(waiting).unwrap_or(usize::MAX));
        if most == 0 {
            return Moved::default();
        }
        let moved = self.inner.receive(pool, &mut out[..most]);
        self.ring.fetched(moved.packets);
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        self.inner.send(pool, packets, list)
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
