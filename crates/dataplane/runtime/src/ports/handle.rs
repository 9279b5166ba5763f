//! An element's handle of a port's queue.
//!
//! An element that uses a queue alone calls the port directly. Only elements that share one
//! (`FromDevice(eth0)` and `ToDevice(eth0)` on a worker, all workers' writers of a capture) lock it, once per
//! burst. The handle decides this at the first burst: all elements exist by then.
//!
//! Invariant: the statistics of all handles of a queue add up to those of the port: in each direction the
//! first handle reports them.

use element::configure::Direction;
use port::{Moved, Port, PortError, PortInfo, PortStats};
use shm::{Packet, PacketPool};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

type SharedPort = Mutex<Box<dyn Port>>;

/// An opened queue in the opener's table, which does not keep the port open.
pub(super) struct Queue {
    port: Weak<SharedPort>,
    is_reported: [bool; 2],
}

/// An element's handle of a queue.
pub(super) struct Handle {
    name: String,
    hold: Hold,
    direction: Direction,
    /// Whether this handle reports the port's statistics in its direction.
    tells: bool,
}

enum Hold {
    /// Not used yet: whether the queue is shared is not decided.
    Unused(Arc<SharedPort>),
    Shared(Arc<SharedPort>),
    Alone(Box<dyn Port>),
    /// Only during the change.
    Changing,
}

fn lock(port: &SharedPort) -> MutexGuard<'_, Box<dyn Port>> {
    port.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Queue {
    /// A queue and its first handle.
    pub fn new(port: Box<dyn Port>, name: &str, direction: Direction) -> (Queue, Handle) {
        let port = Arc::new(Mutex::new(port));
        let mut queue = Queue { port: Arc::downgrade(&port), is_reported: [false; 2] };
        let handle = queue.handle_of(port, name, direction);
        (queue, handle)
    }

    /// Another handle; `None` if no element has the queue any more.
    pub fn handle(&mut self, name: &str, direction: Direction) -> Option<Handle> {
        let port = self.port.upgrade()?;
        Some(self.handle_of(port, name, direction))
    }

    /// The port's hardware address.
    pub fn mac(&self) -> Option<[u8; 6]> {
        lock(&*self.port.upgrade()?).info().mac
    }

    fn handle_of(&mut self, port: Arc<SharedPort>, name: &str, direction: Direction) -> Handle {
        let told = &mut self.is_reported[usize::from(direction == Direction::Send)];
        let tells = !std::mem::replace(told, true);
        Handle { name: name.to_string(), hold: Hold::Unused(port), direction, tells }
    }
}

impl Handle {
    /// Calls the port.
    #[inline]
    fn with<T>(&mut self, call: impl FnOnce(&mut dyn Port) -> T) -> Option<T> {
        match &mut self.hold {
            Hold::Alone(port) => Some(call(port.as_mut())),
            Hold::Shared(port) | Hold::Unused(port) => Some(call(lock(port).as_mut())),
            Hold::Changing => None,
        }
    }

    fn look<T>(&self, look: impl FnOnce(&dyn Port) -> T) -> Option<T> {
        match &self.hold {
            Hold::Alone(port) => Some(look(port.as_ref())),
            Hold::Shared(port) | Hold::Unused(port) => Some(look(lock(port).as_ref())),
            Hold::Changing => None,
        }
    }

    #[cold]
    fn decide(&mut self) {
        self.hold = match std::mem::replace(&mut self.hold, Hold::Changing) {
            Hold::Unused(port) => match Arc::try_unwrap(port) {
                Ok(port) => Hold::Alone(port.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())),
                Err(port) => Hold::Shared(port),
            },
            decided => decided,
        };
    }

    #[inline]
    fn burst<T>(&mut self, call: impl FnOnce(&mut dyn Port) -> T) -> Option<T> {
        if matches!(self.hold, Hold::Unused(_)) {
            self.decide();
        }
        self.with(call)
    }
}

impl Port for Handle {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        self.look(|port| port.info()).unwrap_or_default()
    }

    fn set_origin(&mut self, origin: u16) {
        self.with(|port| port.set_origin(origin));
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        self.burst(|port| port.receive(pool, out)).unwrap_or_default()
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        self.burst(|port| port.send(pool, packets, list)).unwrap_or_default()
    }

    fn stats(&self) -> PortStats {
        if !self.tells {
            return PortStats::default();
        }
        let all = self.look(|port| port.stats()).unwrap_or_default();
        let none = PortStats::default();
        match self.direction {
            Direction::Receive => PortStats {
                rx_packets: all.rx_packets,
                rx_bytes: all.rx_bytes,
                rx_dropped: all.rx_dropped,
                copies: all.copies,
                ..none
            },
            Direction::Send => PortStats {
                tx_packets: all.tx_packets,
                tx_bytes: all.tx_bytes,
                tx_errors: all.tx_errors,
                ..none
            },
        }
    }

    fn is_finished(&self) -> bool {
        self.look(|port| port.is_finished()).unwrap_or(true)
    }

    fn can_send(&self) -> bool {
        self.look(|port| port.can_send()).unwrap_or(false)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.with(|port| port.flush()).unwrap_or(Ok(()))
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.with(|port| port.take_warnings()).unwrap_or_default()
    }
}
