//! L3 interfaces: the addresses of a port or virtual device on its network, and the neighbour table that
//! packet threads and control threads share.
//!
//! - [`table`]: the neighbours, their states, and the next step of each
//! - [`wanted`]: the neighbours whose messages packet threads queue
//!
//! A packet thread never waits here: it queues the messages of neighbours, and takes requests from another
//! queue. The table has a lock, which a packet thread takes only if it is free.
//!
//! Invariant: an entry is in the table because an NF or an operator requested it, never because of a packet.
//! So no other station can make the table grow.

pub mod table;
#[cfg(test)]
mod tests;
pub mod wanted;

pub use table::{NeighbourTable, Refusal, Report};

use crossbeam_queue::ArrayQueue;
pub use packet::InterfaceAddress as Address;
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use table::{Ask, Fact};
use wanted::Wanted;

/// The capacity of the queues of messages from neighbours and of requests to send.
const WAITING: usize = 256;

/// Counters over all workers.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests and solicitations that were answered.
    pub answers: AtomicU64,
    /// Requests and solicitations that were sent.
    pub queries: AtomicU64,
    /// Messages of subscribed neighbours that were queued.
    pub heard: AtomicU64,
    /// Messages that were dropped because the queue was full.
    pub missed: AtomicU64,
    /// Messages of other stations that use an address of this interface.
    pub conflicts: AtomicU64,
    /// Requests that could not be sent for lack of a buffer.
    pub no_buffer: AtomicU64,
}

/// An L3 interface.
#[derive(Debug)]
pub struct Interface {
    name: String,
    addresses: Vec<Address>,
    mac: OnceLock<MacAddr>,
    /// Its counters.
    pub counters: Counters,
    wanted: Arc<Wanted>,
    heard: ArrayQueue<Fact>,
    /// The queues of requests to send: one for each port by which the interface sends requests.
    request_queues: Mutex<Vec<Arc<ArrayQueue<Ask>>>>,
    table: Mutex<NeighbourTable>,
    /// Whether the report of a neighbour has changed since the last [`Interface::take_events`].
    has_events: AtomicBool,
    /// The number of requested neighbours that have not replied yet.
    unresolved: AtomicU64,
}

impl Interface {
    /// The interface of a port or device with addresses. Its hardware address is set when its port is opened.
    pub fn new(name: &str, addresses: Vec<Address>) -> Interface {
        let wanted: Arc<Wanted> = Arc::default();
        Interface {
            name: name.into(),
            addresses,
            mac: OnceLock::new(),
            counters: Counters::default(),
            table: Mutex::new(NeighbourTable::new(Arc::clone(&wanted))),
            wanted,
            heard: ArrayQueue::new(WAITING),
            request_queues: Mutex::default(),
            has_events: AtomicBool::new(false),
            unresolved: AtomicU64::new(0),
        }
    }

    /// Its name: that of the port or device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its addresses.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Its hardware address, once it is known.
    pub fn mac(&self) -> Option<MacAddr> {
        self.mac.get().copied()
    }

    /// Sets its hardware address; the first call takes effect.
    pub fn set_mac(&self, mac: MacAddr) {
        let _ = self.mac.set(mac);
    }

    /// Increments a counter.
    pub fn count(&self, counter: impl Fn(&Counters) -> &AtomicU64, by: u64) {
        counter(&self.counters).fetch_add(by, Relaxed);
    }

    /// Whether an address is one of the interface's own.
    pub fn is_own(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.ip == ip)
    }

    /// The interface's own address on the network of another address; of several the one with the longest
    /// prefix.
    fn own_beside(&self, ip: IpAddr) -> Option<IpAddr> {
        let beside = self.addresses.iter().filter(|own| own.reaches(ip));
        beside.max_by_key(|own| own.len).map(|own| own.ip)
    }

    /// Checks that an address can be a neighbour's.
    fn check(&self, ip: IpAddr) -> Result<(), Refusal> {
        if self.is_own(ip) {
            return Err(Refusal::Own);
        }
        let shared: Vec<&Address> = self.addresses.iter().filter(|own| own.reaches(ip)).collect();
        if shared.is_empty() || ip.is_multicast() || shared.iter().any(|own| own.is_no_host(ip)) {
            return Err(Refusal::NotOnLink);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, NeighbourTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the table, on a control thread.
    pub fn with_table<T>(&self, what: impl FnOnce(&mut NeighbourTable) -> T) -> T {
        let mut table = self.lock();
        let result = what(&mut table);
        self.publish(&table);
        result
    }

    fn publish(&self, table: &NeighbourTable) {
        self.has_events.store(table.has_events(), Relaxed);
        self.unresolved.store(table.unresolved() as u64, Relaxed);
    }

    /// Adds a subscriber of a neighbour, whose address is requested if it is not known.
    ///
    /// # Errors
    /// When it cannot be a neighbour, or there is no room for it.
    pub fn subscribe(&self, ip: IpAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.subscribe(ip))
    }

    /// Keeps a neighbour in the table until it is deleted, without a subscriber; for operators.
    pub fn pin(&self, ip: IpAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.pin(ip))
    }

    /// Enters a neighbour's hardware address permanently.
    ///
    /// # Errors
    /// As [`Interface::subscribe`].
    pub fn insert(&self, ip: IpAddr, mac: MacAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.insert(ip, mac))
    }

    /// Deletes the state of a neighbour and returns whether it was there. With subscribers its address is
    /// requested again.
    pub fn delete(&self, ip: IpAddr) -> bool {
        self.with_table(|table| table.delete(ip))
    }

    /// Removes a subscriber of a neighbour.
    pub fn unsubscribe(&self, ip: IpAddr) {
        self.with_table(|table| table.unsubscribe(ip));
    }

    /// Whether a neighbour is in the table; subscribing to it then sends no new request.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.lock().has(ip)
    }

    /// The state of a neighbour for subscribers; `None` while its address is requested.
    pub fn report(&self, ip: IpAddr) -> Option<Report> {
        self.lock().report(ip)
    }

    /// Neighbours whose report changed since the last call. One thread calls this.
    pub fn take_events(&self) -> Vec<IpAddr> {
        if !self.has_events.load(Relaxed) {
            return vec![];
        }
        self.with_table(NeighbourTable::take_events)
    }

    /// Whether an address is being requested.
    pub fn is_resolving(&self) -> bool {
        self.unresolved.load(Relaxed) > 0
    }

    /// Queues a neighbour's message if the neighbour may be in the table. Called by packet threads.
    pub fn hear(&self, fact: Fact) {
        if !self.wanted.may_be(fact.ip) {
            return;
        }
        let counter =
            if self.heard.push(fact).is_ok() { &self.counters.heard } else { &self.counters.missed };
        counter.fetch_add(1, Relaxed);
    }

    /// Adds a queue of requests to send, for one more port.
    pub fn add_request_queue(&self) -> Arc<ArrayQueue<Ask>> {
        let queue = Arc::new(ArrayQueue::new(WAITING));
        self.request_queues.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&queue));
        queue
    }

    /// Processes the queued messages, and queues the requests that are due. A packet thread's housekeeping
    /// calls this; it does not wait for a lock.
    pub fn turn(&self, now_ns: u64) {
        let (Ok(mut table), Ok(request_queues)) = (self.table.try_lock(), self.request_queues.try_lock())
        else {
            return;
        };
        for fact in std::iter::from_fn(|| self.heard.pop()).take(WAITING) {
            table.hear(fact, now_ns);
        }
        table.turn(now_ns, &mut |ask| {
            // A request is queued for all ports or for none, so that it counts as sent by all.
            let has_room = !request_queues.is_empty() && request_queues.iter().all(|queue| !queue.is_full());
            has_room && request_queues.iter().all(|queue| queue.push(ask).is_ok())
        });
        self.publish(&table);
    }

    /// The source address of an IPv4 request.
    pub fn ipv4_beside(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        match self.own_beside(ip.into())? {
            IpAddr::V4(own) => Some(own),
            IpAddr::V6(_) => None,
        }
    }

    /// The source address of an IPv6 request.
    pub fn ipv6_beside(&self, ip: Ipv6Addr) -> Option<Ipv6Addr> {
        match self.own_beside(ip.into())? {
            IpAddr::V6(own) => Some(own),
            IpAddr::V4(_) => None,
        }
    }
}
