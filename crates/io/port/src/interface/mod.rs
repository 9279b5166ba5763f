//! L3 interfaces: the addresses of a port or virtual device on its network, and what packet threads and control threads
//! share of it.
//!
//! - [`table`]: its neighbours, their states, and what is to be done about each
//! - [`wanted`]: the neighbours whose messages packet threads pass on
//!
//! A packet thread never waits here: what it hears goes into a queue, and questions come by another. The table has a
//! lock, which a packet thread takes only where nobody has it.
//!
//! Invariant: an entry is in the table because somebody here asked for it, never because of a packet. So nobody on the
//! network makes the table larger.

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

/// Facts that wait to be taken into the table, and questions that wait to be sent.
const WAITING: usize = 256;

/// What happened, of all workers.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests and solicitations that were answered.
    pub answers: AtomicU64,
    /// Those that were sent.
    pub queries: AtomicU64,
    /// Messages that told something of a neighbour that is wanted.
    pub heard: AtomicU64,
    /// Those that found the queue full.
    pub missed: AtomicU64,
    /// Messages from others that have an address of this station's.
    pub conflicts: AtomicU64,
    /// Questions for which there was no buffer.
    pub no_buffer: AtomicU64,
}

/// The interface.
#[derive(Debug)]
pub struct Interface {
    name: String,
    addresses: Vec<Address>,
    mac: OnceLock<MacAddr>,
    /// What happened.
    pub counters: Counters,
    wanted: Arc<Wanted>,
    heard: ArrayQueue<Fact>,
    /// Ways out for questions: one for each port that the station asks by.
    ways: Mutex<Vec<Arc<ArrayQueue<Ask>>>>,
    table: Mutex<NeighbourTable>,
    /// Whether what subscribers know is out of date.
    has_news: AtomicBool,
    /// Neighbours that were asked for and of which nothing is known.
    unresolved: AtomicU64,
}

impl Interface {
    /// Of a port or device with addresses; its hardware address becomes known when its port is opened.
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
            ways: Mutex::default(),
            has_news: AtomicBool::new(false),
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

    /// Its hardware address, once that is known.
    pub fn mac(&self) -> Option<MacAddr> {
        self.mac.get().copied()
    }

    /// Sets its hardware address; it keeps the first.
    pub fn set_mac(&self, mac: MacAddr) {
        let _ = self.mac.set(mac);
    }

    /// Counts something that happened.
    pub fn count(&self, counter: impl Fn(&Counters) -> &AtomicU64, by: u64) {
        counter(&self.counters).fetch_add(by, Relaxed);
    }

    /// Whether an address is its own.
    pub fn is_own(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.ip == ip)
    }

    /// The address from which it asks for another: the one with the longest prefix that they share.
    fn own_beside(&self, ip: IpAddr) -> Option<IpAddr> {
        let beside = self.addresses.iter().filter(|own| own.reaches(ip));
        beside.max_by_key(|own| own.len).map(|own| own.ip)
    }

    /// Whether an address can be a neighbour's.
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

    /// Does something with the table, for a control thread.
    pub fn with_table<T>(&self, what: impl FnOnce(&mut NeighbourTable) -> T) -> T {
        let mut table = self.lock();
        let result = what(&mut table);
        self.publish(&table);
        result
    }

    fn publish(&self, table: &NeighbourTable) {
        self.has_news.store(table.has_news(), Relaxed);
        self.unresolved.store(table.unresolved() as u64, Relaxed);
    }

    /// Counts one more subscriber of a neighbour, and has it looked for where it is not known.
    ///
    /// # Errors
    /// When it cannot be a neighbour, or there is no room for it.
    pub fn subscribe(&self, ip: IpAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.subscribe(ip))
    }

    /// The same for an operator, who hears nothing of it: it is kept until it is deleted.
    pub fn pin(&self, ip: IpAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.pin(ip))
    }

    /// Notes a neighbour by hand.
    ///
    /// # Errors
    /// As [`Interface::subscribe`].
    pub fn insert(&self, ip: IpAddr, mac: MacAddr) -> Result<(), Refusal> {
        self.check(ip)?;
        self.with_table(|table| table.insert(ip, mac))
    }

    /// Forgets what is known of a neighbour, which is looked for again where somebody wants to know; whether it was there.
    pub fn delete(&self, ip: IpAddr) -> bool {
        self.with_table(|table| table.delete(ip))
    }

    /// Counts one subscriber less.
    pub fn unsubscribe(&self, ip: IpAddr) {
        self.with_table(|table| table.unsubscribe(ip));
    }

    /// Whether a neighbour is in the table, so that to subscribe to it sends nothing by itself.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.lock().has(ip)
    }

    /// What subscribers are to know of a neighbour; `None` while it is looked for.
    pub fn report(&self, ip: IpAddr) -> Option<Report> {
        self.lock().report(ip)
    }

    /// Neighbours whose report changed since the last call. One thread asks.
    pub fn take_news(&self) -> Vec<IpAddr> {
        if !self.has_news.load(Relaxed) {
            return vec![];
        }
        self.with_table(NeighbourTable::take_news)
    }

    /// Whether neighbours are looked for of which nothing is known.
    pub fn is_resolving(&self) -> bool {
        self.unresolved.load(Relaxed) > 0
    }

    /// Tells what was heard of a neighbour, if anybody wants to know; a packet thread's.
    pub fn hear(&self, fact: Fact) {
        if !self.wanted.may_be(fact.ip) {
            return;
        }
        let counter =
            if self.heard.push(fact).is_ok() { &self.counters.heard } else { &self.counters.missed };
        counter.fetch_add(1, Relaxed);
    }

    /// A way out for questions, from now on.
    pub fn add_way(&self) -> Arc<ArrayQueue<Ask>> {
        let way = Arc::new(ArrayQueue::new(WAITING));
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&way));
        way
    }

    /// Takes in what was heard, and has asked what is due; housekeeping of a packet thread, which waits for nobody.
    pub fn turn(&self, now_ns: u64) {
        let (Ok(mut table), Ok(ways)) = (self.table.try_lock(), self.ways.try_lock()) else { return };
        for fact in std::iter::from_fn(|| self.heard.pop()).take(WAITING) {
            table.hear(fact, now_ns);
        }
        table.turn(now_ns, &mut |ask| {
            // All ways or none: who asks by one port only waits for that.
            let has_room = !ways.is_empty() && ways.iter().all(|way| !way.is_full());
            has_room && ways.iter().all(|way| way.push(ask).is_ok())
        });
        self.publish(&table);
    }

    /// The source for an IPv4 question.
    pub fn ipv4_beside(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        match self.own_beside(ip.into())? {
            IpAddr::V4(own) => Some(own),
            IpAddr::V6(_) => None,
        }
    }

    /// The source for an IPv6 question.
    pub fn ipv6_beside(&self, ip: Ipv6Addr) -> Option<Ipv6Addr> {
        match self.own_beside(ip.into())? {
            IpAddr::V6(own) => Some(own),
            IpAddr::V4(_) => None,
        }
    }
}
