//! The ARP table of all workers.
//!
//! The packet path never takes the table's lock: each querier keeps a copy of the known neighbours
//! ([`super::arp_resolved`]) and compares the [`Neighbours::version`], which counts changes. A log of the
//! last changes lets it update the copy without reading the whole table.
//!
//! Times are nanoseconds of the workers' clock.

use click::config::{Args, parse, split_words};
use diag::{Span, Spanned};
use element::value::{ether_text, time_text, written};
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much a table holds, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Waiting packets at a worker; 0 for no limit.
    pub(super) packets: usize,
    /// Entries; 0 for no limit.
    pub(super) entries: usize,
    /// Waiting packets for an entry; 0 for no limit.
    pub(super) entry_packets: usize,
    /// When the queue is full, one of so many packets is dropped.
    pub(super) slim_factor: usize,
    /// Life of an entry; 0 for ever.
    pub(super) timeout_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        let timeout_ns = 300 * 1_000_000_000;
        Limits { packets: 2048, entries: 0, entry_packets: 0, slim_factor: 2, timeout_ns }
    }
}

impl Limits {
    /// Reads the arguments that tables and queriers share.
    pub(super) fn read(args: &mut Args<'_>) -> Limits {
        let mut limits = Limits::default();
        let count = |args: &mut Args<'_>, keyword, default: usize| {
            args.keyword(keyword, parse::u32).map_or(default, |count| count as usize)
        };
        limits.packets = count(args, "CAPACITY", limits.packets);
        limits.entries = count(args, "ENTRY_CAPACITY", limits.entries);
        limits.entry_packets = count(args, "ENTRY_PACKET_CAPACITY", limits.entry_packets);
        limits.slim_factor = args
            .keyword("CAPACITY_SLIM_FACTOR", parse::int_in(1..=i64::from(u32::MAX)))
            .map_or(limits.slim_factor, |factor| factor as usize);
        limits.timeout_ns = args.keyword("TIMEOUT", parse::seconds_ns).unwrap_or(limits.timeout_ns);
        limits
    }
}

/// Queries for an address: ten a second, and one in two seconds after ten without an answer.
const QUERY_INTERVAL_NS: u64 = 100_000_000;
const PATIENT_INTERVAL_NS: u64 = 2_000_000_000;
const PATIENT_AFTER: u32 = 10;
/// Changes that the log holds.
const LOG: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NeighbourEntry {
    mac: Option<[u8; 6]>,
    live_at_ns: u64,
    /// When the next query for it may be sent.
    query_from_ns: u64,
    queries: u32,
}

impl NeighbourEntry {
    fn new(mac: Option<[u8; 6]>, now_ns: u64) -> NeighbourEntry {
        NeighbourEntry { mac, live_at_ns: now_ns, query_from_ns: 0, queries: 0 }
    }

    /// The address, if it is known now.
    fn mac_at(&self, now_ns: u64, timeout_ns: u64) -> Option<[u8; 6]> {
        self.mac.filter(|_| !self.is_expired(now_ns, timeout_ns))
    }

    /// What is known of the neighbour now.
    fn known(&self, now_ns: u64, timeout_ns: u64, poll_ns: u64) -> Option<Known> {
        let mac = self.mac_at(now_ns, timeout_ns)?;
        // A time of 0 is none.
        let after = |ns: u64| if ns == 0 { u64::MAX } else { self.live_at_ns.saturating_add(ns) };
        let until_ns = after(timeout_ns).min(after(poll_ns).max(self.query_from_ns));
        Some(Known { mac, until_ns })
    }

    /// Whether a query may be sent now; counts it as sent.
    fn query(&mut self, now_ns: u64) -> bool {
        if now_ns < self.query_from_ns {
            return false;
        }
        self.queries = self.queries.saturating_add(1);
        let patient = self.queries > PATIENT_AFTER;
        self.query_from_ns = now_ns + if patient { PATIENT_INTERVAL_NS } else { QUERY_INTERVAL_NS };
        true
    }

    fn is_expired(&self, now_ns: u64, timeout_ns: u64) -> bool {
        timeout_ns > 0 && self.live_at_ns.saturating_add(timeout_ns) < now_ns
    }
}

/// What is known of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) mac: [u8; 6],
    /// Until then it neither expires nor has to be queried again.
    pub(super) until_ns: u64,
}

/// What to do with a packet to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Send it, and with `query` ask whether the address still holds.
    Known { known: Known, query: bool },
    /// Queue it, and with `query` ask for the address.
    Unknown { query: bool },
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<u32, NeighbourEntry>,
    limits: Limits,
    /// The last changes.
    log: VecDeque<u32>,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    inner: Mutex<Inner>,
    /// Number of changes so far.
    version: AtomicU64,
    /// Number of times that it was cleared.
    clears: AtomicU64,
    /// Packets that wait, of all queriers and workers.
    pub(super) waiting: AtomicU64,
    /// Packets that were dropped while they waited.
    pub(super) drops: AtomicU64,
    next_expiry_ns: AtomicU64,
}

impl Neighbours {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a change; the lock is held.
    fn changed(&self, inner: &mut Inner, ip: u32) {
        if inner.log.len() == LOG {
            inner.log.pop_front();
        }
        inner.log.push_back(ip);
        self.version.fetch_add(1, Relaxed);
    }

    /// Number of changes so far.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Number of times that the table was cleared: waiting packets are dropped then.
    pub(super) fn clears(&self) -> u64 {
        self.clears.load(Relaxed)
    }

    /// The limits.
    pub(super) fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// Sets the limits.
    pub(super) fn set_limits(&self, limits: Limits) {
        self.lock().limits = limits;
    }

    /// What to do with a packet to a neighbour; an unknown neighbour gets an entry. An entry that was not
    /// refreshed for `poll_ns` (0: never) is queried again.
    pub(super) fn ask(&self, ip: u32, now_ns: u64, poll_ns: u64) -> Answer {
        let mut inner = self.lock();
        if !inner.entries.contains_key(&ip) {
            self.make_room(&mut inner, now_ns);
            inner.entries.insert(ip, NeighbourEntry::new(None, now_ns));
        }
        let timeout_ns = inner.limits.timeout_ns;
        let Some(entry) = inner.entries.get_mut(&ip) else { return Answer::Unknown { query: false } };
        // An entry with traffic does not expire, but a known neighbour becomes unknown.
        if entry.is_expired(now_ns, timeout_ns) {
            (entry.mac, entry.live_at_ns) = (None, now_ns);
        }
        let is_polled = poll_ns > 0 && now_ns >= entry.live_at_ns.saturating_add(poll_ns);
        let query = (entry.mac.is_none() || is_polled) && entry.query(now_ns);
        match entry.known(now_ns, timeout_ns, poll_ns) {
            Some(known) => Answer::Known { known, query },
            None => Answer::Unknown { query },
        }
    }

    /// What is known of a neighbour now.
    pub(super) fn known(&self, ip: u32, now_ns: u64) -> Option<[u8; 6]> {
        let inner = self.lock();
        inner.entries.get(&ip)?.mac_at(now_ns, inner.limits.timeout_ns)
    }

    /// Removes old entries until there is room for another.
    fn make_room(&self, inner: &mut Inner, now_ns: u64) {
        let most = inner.limits.entries;
        if most == 0 || inner.entries.len() < most {
            return;
        }
        self.remove_expired(inner, now_ns);
        while inner.entries.len() >= most {
            let oldest = inner.entries.iter().min_by_key(|(ip, entry)| (entry.live_at_ns, **ip));
            let Some(oldest) = oldest.map(|(ip, _)| *ip) else { break };
            inner.entries.remove(&oldest);
            self.changed(inner, oldest);
        }
    }

    fn remove_expired(&self, inner: &mut Inner, now_ns: u64) {
        let timeout_ns = inner.limits.timeout_ns;
        let expired = inner.entries.iter().filter(|(_, entry)| entry.is_expired(now_ns, timeout_ns));
        let expired: Vec<u32> = expired.map(|(ip, _)| *ip).collect();
        for ip in expired {
            inner.entries.remove(&ip);
            self.changed(inner, ip);
        }
    }

    /// Removes expired entries, once in every timeout. Skipped while another worker holds the lock.
    pub(super) fn tick(&self, now_ns: u64) {
        if now_ns < self.next_expiry_ns.load(Relaxed) {
            return;
        }
        if let Ok(mut inner) = self.inner.try_lock() {
            let timeout_ns = inner.limits.timeout_ns;
            let next = if timeout_ns == 0 { u64::MAX } else { now_ns.saturating_add(timeout_ns) };
            self.next_expiry_ns.store(next, Relaxed);
            self.remove_expired(&mut inner, now_ns);
        }
    }

    /// Stores a neighbour's address.
    pub(super) fn insert(&self, ip: u32, mac: [u8; 6], now_ns: u64) {
        let mut inner = self.lock();
        if !inner.entries.contains_key(&ip) {
            self.make_room(&mut inner, now_ns);
        }
        inner.entries.insert(ip, NeighbourEntry::new(Some(mac), now_ns));
        self.changed(&mut inner, ip);
    }

    /// Removes a neighbour's address; the entry stays.
    pub(super) fn delete(&self, ip: u32, now_ns: u64) {
        let mut inner = self.lock();
        inner.entries.insert(ip, NeighbourEntry::new(None, now_ns));
        self.changed(&mut inner, ip);
    }

    /// Removes all entries.
    pub(super) fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        inner.log.clear();
        // More changes than the log holds: queriers read the whole table.
        self.version.fetch_add(LOG as u64 + 1, Relaxed);
        self.clears.fetch_add(1, Relaxed);
    }

    /// Calls `each` for every neighbour that changed since version `seen`. If the log does not reach back to
    /// it, calls `each` with `None` and then for all neighbours. Returns the current version.
    pub(super) fn changes_since(
        &self,
        seen: u64,
        now_ns: u64,
        poll_ns: u64,
        mut each: impl FnMut(Option<(u32, Option<Known>)>),
    ) -> u64 {
        let inner = self.lock();
        let version = self.version();
        let timeout_ns = inner.limits.timeout_ns;
        let state = |ip: u32| inner.entries.get(&ip)?.known(now_ns, timeout_ns, poll_ns);
        let behind = version.wrapping_sub(seen);
        match usize::try_from(behind).ok().and_then(|behind| inner.log.len().checked_sub(behind)) {
            Some(from) => inner.log.range(from..).for_each(|ip| each(Some((*ip, state(*ip))))),
            None => {
                each(None);
                inner.entries.keys().for_each(|ip| each(Some((*ip, state(*ip)))));
            }
        }
        version
    }

    /// A line for each entry, oldest first, as Click writes it.
    pub(super) fn text(&self, now_ns: u64) -> String {
        let inner = self.lock();
        let mut entries: Vec<(&u32, &NeighbourEntry)> = inner.entries.iter().collect();
        entries.sort_by_key(|(ip, entry)| (entry.live_at_ns, **ip));
        let line = |(ip, entry): &(&u32, &NeighbourEntry)| {
            let is_known = entry.mac_at(now_ns, inner.limits.timeout_ns).is_some();
            let mac = ether_text(entry.mac.unwrap_or([0xff; 6]));
            let age = time_text(now_ns.saturating_sub(entry.live_at_ns));
            format!("{} {} {mac} {age}", Ipv4Addr::from(**ip), u8::from(is_known))
        };
        entries.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        self.lock().entries.len()
    }

    /// Stores `IP ETH`, as written to a handler.
    pub(super) fn insert_written(&self, value: &str, now_ns: u64) -> Result<(), String> {
        mapping(value).map(|(ip, mac)| self.insert(ip, mac, now_ns))
    }

    /// Removes the address of `IP`, as written to a handler.
    pub(super) fn delete_written(&self, value: &str, now_ns: u64) -> Result<(), String> {
        written(value, parse::ip4).map(|ip| self.delete(ip.into(), now_ns))
    }
}

/// `IP ETH`.
fn mapping(value: &str) -> Result<(u32, [u8; 6]), String> {
    let text = Spanned::derived(value, Span::NONE);
    match split_words(&text).as_slice() {
        [ip, mac] => Ok((written(ip.as_str(), parse::ip4)?.into(), written(mac.as_str(), parse::ether)?)),
        _ => Err("expected an IP address and an Ethernet address".into()),
    }
}
