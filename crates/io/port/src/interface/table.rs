//! The neighbours of an L3 interface, with the states of RFC 4861 section 7.3.2, simplified and the same for
//! ARP.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | incomplete | its address is requested: 3 times, a second apart | unreachable |
//! | reachable | it replied within the last 15 to 45 s | probe, or removed where no NF subscribes to it |
//! | stale | it sent its address without a request | probe after 5 s |
//! | probe | requests are sent to its address: 3 times, a second apart | unreachable |
//! | unreachable | it does not reply; one request every 10 s with subscribers | removed without subscribers |
//! | permanent | an operator entered it | |
//!
//! RFC 4861 probes a stale neighbour when a packet is sent to it. The host does not see the packets that NFs
//! send, so a subscriber counts as a sender. A neighbour that an operator pinned counts as subscribed.
//!
//! Times are nanoseconds of the clock of the worker that runs the housekeeping.

use super::wanted::{Counts, Wanted};
use packet::MacAddr;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;
/// Time between requests (RFC 4861, RETRANS_TIMER), and their number (MAX_MULTICAST_SOLICIT,
/// MAX_UNICAST_SOLICIT).
const RETRANS_NS: u64 = SECOND_NS;
const TRIES: u8 = 3;
/// How long a reply is valid (REACHABLE_TIME), before it is randomized.
const REACHABLE_NS: u64 = 30 * SECOND_NS;
/// How long a stale neighbour may be used before it is probed (DELAY_FIRST_PROBE_TIME).
const DELAY_NS: u64 = 5 * SECOND_NS;
/// Time between requests to an unreachable neighbour.
const RETRY_NS: u64 = 10 * SECOND_NS;
/// The largest number of neighbours of an interface.
pub const CAPACITY: usize = 4096;
/// Rate limit of an interface's requests: so many in a burst, and the time that each takes: 200 a second.
const BURST: u64 = 100;
const COST_NS: u64 = SECOND_NS / 200;
/// Time until a request is retried that could not be queued.
const LATER_NS: u64 = 10_000_000;
/// The largest number of neighbours that are processed in a turn.
const PER_TURN: usize = 64;

/// The state of a neighbour as subscribers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Its hardware address.
    Known(MacAddr),
    /// It does not reply.
    Unreachable,
    /// It is not in the table.
    Gone,
}

/// Why a neighbour cannot be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// It is an address of the interface itself.
    #[error("that is the interface's own address")]
    Own,
    /// No neighbour can have such an address.
    #[error("no neighbour of the interface has such an address")]
    NotOnLink,
    /// The table is full of subscribed neighbours.
    #[error("the table is full")]
    Full,
}

/// A request to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The neighbour.
    pub ip: IpAddr,
    /// Its last known hardware address. Without one, the request is sent to all stations.
    pub to: Option<MacAddr>,
}

/// The content of a message from a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The neighbour.
    pub ip: IpAddr,
    /// Its hardware address, if the message contains it.
    pub mac: Option<MacAddr>,
    /// Whether the message is a reply to a request of ours.
    pub answers: bool,
    /// Whether it replaces a known address that differs. ARP always does (RFC 826).
    pub overrides: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NeighbourState {
    Incomplete { tries: u8 },
    Reachable,
    Stale,
    Probe { tries: u8 },
    Unreachable,
    Permanent,
}

impl NeighbourState {
    fn name(self) -> &'static str {
        match self {
            NeighbourState::Incomplete { .. } => "incomplete",
            NeighbourState::Reachable => "reachable",
            NeighbourState::Stale => "stale",
            NeighbourState::Probe { .. } => "probe",
            NeighbourState::Unreachable => "unreachable",
            NeighbourState::Permanent => "permanent",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct NeighbourEntry {
    state: NeighbourState,
    /// Known in all states but incomplete and unreachable.
    mac: Option<MacAddr>,
    due_ns: u64,
    /// The time of its last message.
    heard_ns: u64,
    subscribers: u32,
    pinned: bool,
}

impl NeighbourEntry {
    fn report(&self) -> Option<Report> {
        match (self.state, self.mac) {
            (NeighbourState::Unreachable, _) => Some(Report::Unreachable),
            (_, Some(mac)) => Some(Report::Known(mac)),
            (_, None) => None,
        }
    }

    fn is_wanted(&self) -> bool {
        self.subscribers > 0 || self.pinned
    }
}

/// The neighbours of one interface.
#[derive(Debug, Default)]
pub struct NeighbourTable {
    entries: HashMap<IpAddr, NeighbourEntry>,
    /// The neighbours by the time of their next step.
    due: BTreeSet<(u64, IpAddr)>,
    changed: BTreeSet<IpAddr>,
    wanted: Arc<Wanted>,
    counts: Counts,
    unresolved: usize,
    now_ns: u64,
    /// The requests that were sent in the present burst, as the nanoseconds that they take at the permitted
    /// rate.
    spent_ns: u64,
    failures: u64,
    evicted: u64,
}

impl NeighbourTable {
    pub(super) fn new(wanted: Arc<Wanted>) -> NeighbourTable {
        NeighbourTable { wanted, ..NeighbourTable::default() }
    }

    /// The number of neighbours.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn unresolved(&self) -> usize {
        self.unresolved
    }

    pub(super) fn has_events(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn take_events(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.entries.contains_key(&ip)
    }

    pub(super) fn report(&self, ip: IpAddr) -> Option<Report> {
        self.entries.get(&ip).map_or(Some(Report::Gone), NeighbourEntry::report)
    }

    /// How many neighbours did not reply, and how many were evicted for others.
    pub fn failures(&self) -> (u64, u64) {
        (self.failures, self.evicted)
    }

    /// Changes an entry and the data derived from it.
    fn change(&mut self, ip: IpAddr, change: impl FnOnce(&mut NeighbourEntry)) {
        let Some(entry) = self.entries.get_mut(&ip) else { return };
        let before = *entry;
        change(entry);
        let after = *entry;
        if before.due_ns != after.due_ns {
            self.due.remove(&(before.due_ns, ip));
            self.due.insert((after.due_ns, ip));
        }
        let unresolved = |entry: &NeighbourEntry| usize::from(entry.report().is_none());
        self.unresolved = self.unresolved + unresolved(&after) - unresolved(&before);
        if before.report() != after.report() && after.subscribers > 0 {
            self.changed.insert(ip);
        }
    }

    /// Removes an entry without subscribers.
    fn remove(&mut self, ip: IpAddr) {
        let Some(entry) = self.entries.remove(&ip) else { return };
        self.due.remove(&(entry.due_ns, ip));
        self.counts.remove(&self.wanted, ip);
        self.unresolved -= usize::from(entry.report().is_none());
        self.changed.remove(&ip);
    }

    /// Adds an entry if there is none. A new entry, or an unreachable one without subscribers, is requested
    /// at once.
    fn entry(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        let now_ns = self.now_ns;
        if self.entries.contains_key(&ip) {
            self.change(ip, |entry| {
                if !entry.is_wanted() && entry.state == NeighbourState::Unreachable {
                    (entry.state, entry.due_ns) = (NeighbourState::Incomplete { tries: 0 }, now_ns);
                }
            });
            return Ok(());
        }
        if self.entries.len() >= CAPACITY {
            let is_unwanted =
                |entry: &NeighbourEntry| !entry.is_wanted() && entry.state != NeighbourState::Permanent;
            let unwanted = self.entries.iter().filter(|(_, entry)| is_unwanted(entry));
            let oldest = unwanted.min_by_key(|(_, entry)| entry.heard_ns).map(|(ip, _)| *ip);
            self.remove(oldest.ok_or(Refusal::Full)?);
            self.evicted += 1;
        }
        let state = NeighbourState::Incomplete { tries: 0 };
        let entry = NeighbourEntry {
            state,
            mac: None,
            due_ns: now_ns,
            heard_ns: now_ns,
            subscribers: 0,
            pinned: false,
        };
        self.entries.insert(ip, entry);
        self.due.insert((now_ns, ip));
        self.counts.add(&self.wanted, ip);
        self.unresolved += 1;
        Ok(())
    }

    pub(super) fn subscribe(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        self.entry(ip)?;
        self.change(ip, |entry| entry.subscribers += 1);
        Ok(())
    }

    /// Decrements the subscribers. The entry stays until its next step, so that a new subscriber may find it.
    pub(super) fn unsubscribe(&mut self, ip: IpAddr) {
        self.change(ip, |entry| entry.subscribers = entry.subscribers.saturating_sub(1));
    }

    pub(super) fn pin(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        self.entry(ip)?;
        self.change(ip, |entry| entry.pinned = true);
        Ok(())
    }

    pub(super) fn insert(&mut self, ip: IpAddr, mac: MacAddr) -> Result<(), Refusal> {
        self.entry(ip)?;
        let now_ns = self.now_ns;
        self.change(ip, |entry| {
            (entry.state, entry.mac) = (NeighbourState::Permanent, Some(mac));
            (entry.due_ns, entry.heard_ns) = (u64::MAX, now_ns);
        });
        Ok(())
    }

    /// Deletes the state of a neighbour and returns whether it was there. With subscribers the entry stays,
    /// and its address is requested again.
    pub fn delete(&mut self, ip: IpAddr) -> bool {
        let now_ns = self.now_ns;
        let Some(entry) = self.entries.get(&ip) else { return false };
        if entry.subscribers == 0 {
            self.remove(ip);
            return true;
        }
        self.change(ip, |entry| {
            (entry.state, entry.mac) = (NeighbourState::Incomplete { tries: 0 }, None);
            (entry.pinned, entry.due_ns) = (false, now_ns);
        });
        true
    }

    /// Deletes every entry, as [`NeighbourTable::delete`] does.
    pub fn clear(&mut self) {
        let all: Vec<IpAddr> = self.entries.keys().copied().collect();
        for ip in all {
            self.delete(ip);
        }
    }

    /// The end of a reply's validity. It is randomized by half, so that neighbours that were requested
    /// together do not expire together (RFC 4861, MIN_RANDOM_FACTOR and MAX_RANDOM_FACTOR).
    fn reachable_until(ip: IpAddr, now_ns: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (ip, now_ns).hash(&mut hasher);
        now_ns + REACHABLE_NS / 2 + hasher.finish() % REACHABLE_NS
    }

    /// Updates an entry from a message (RFC 826, and RFC 4861 sections 7.2.3 and 7.2.5).
    pub(super) fn hear(&mut self, fact: Fact, now_ns: u64) {
        let until_ns = NeighbourTable::reachable_until(fact.ip, now_ns);
        self.change(fact.ip, |entry| {
            let is_other = fact.mac.is_some_and(|mac| entry.mac != Some(mac));
            if entry.state == NeighbourState::Permanent {
                return;
            }
            if is_other && entry.mac.is_some() && !fact.overrides {
                // Another station sends the same IP address: the known one is probed.
                if entry.state == NeighbourState::Reachable {
                    (entry.state, entry.due_ns) = (NeighbourState::Probe { tries: 0 }, now_ns);
                }
                return;
            }
            let Some(mac) = fact.mac.or(entry.mac) else { return };
            (entry.mac, entry.heard_ns) = (Some(mac), now_ns);
            if fact.answers {
                (entry.state, entry.due_ns) = (NeighbourState::Reachable, until_ns);
            } else if is_other || entry.state == NeighbourState::Unreachable {
                (entry.state, entry.due_ns) = (NeighbourState::Stale, now_ns + DELAY_NS);
            }
        });
    }

    /// Processes the entries whose time has come. `ask` queues a request and returns whether there was room
    /// for it.
    pub(super) fn turn(&mut self, now_ns: u64, ask: &mut dyn FnMut(Ask) -> bool) {
        let passed_ns = now_ns.saturating_sub(self.now_ns);
        self.spent_ns = self.spent_ns.saturating_sub(passed_ns);
        self.now_ns = self.now_ns.max(now_ns);
        for _ in 0..PER_TURN {
            let Some(&(due_ns, ip)) = self.due.first() else { break };
            if due_ns > now_ns {
                break;
            }
            let Some(entry) = self.entries.get(&ip).copied() else {
                self.due.remove(&(due_ns, ip));
                continue;
            };
            if !entry.is_wanted() {
                self.remove(ip);
                continue;
            }
            let tries = match entry.state {
                NeighbourState::Incomplete { tries } | NeighbourState::Probe { tries } => tries,
                NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Unreachable
                | NeighbourState::Permanent => 0,
            };
            if tries >= TRIES {
                self.failures += 1;
                self.change(ip, |entry| {
                    (entry.state, entry.mac) = (NeighbourState::Unreachable, None);
                    entry.due_ns = now_ns + RETRY_NS;
                });
                continue;
            }
            if self.spent_ns + COST_NS > BURST * COST_NS || !ask(Ask { ip, to: entry.mac }) {
                self.change(ip, |entry| entry.due_ns = now_ns + LATER_NS);
                continue;
            }
            self.spent_ns += COST_NS;
            self.change(ip, |entry| {
                let (state, wait_ns) = match entry.state {
                    NeighbourState::Incomplete { .. } => {
                        (NeighbourState::Incomplete { tries: tries + 1 }, RETRANS_NS)
                    }
                    NeighbourState::Unreachable => (NeighbourState::Unreachable, RETRY_NS),
                    _ => (NeighbourState::Probe { tries: tries + 1 }, RETRANS_NS),
                };
                (entry.state, entry.due_ns) = (state, now_ns + wait_ns);
            });
        }
    }

    /// A line for each entry, by address: its state, hardware address, seconds since its last message,
    /// subscribers.
    pub fn text(&self) -> String {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(ip, _)| **ip);
        let mut text = String::new();
        for (ip, entry) in entries {
            let mac = entry.mac.map_or("-".into(), |mac| mac.to_string());
            let age_s = self.now_ns.saturating_sub(entry.heard_ns) / SECOND_NS;
            let _ = writeln!(text, "{ip} {} {mac} {age_s} {}", entry.state.name(), entry.subscribers);
        }
        text.truncate(text.trim_end().len());
        text
    }
}
