//! The neighbours of a station, with the states of RFC 4861 section 7.3.2, simplified and the same for ARP.
//!
//! | state | meaning | then |
//! |---|---|---|
//! | incomplete | it was asked for: 3 times, a second apart | unreachable |
//! | reachable | it answered within the last 30 s, give or take half | probe, or forgotten where nobody wants it |
//! | stale | it said its address without being asked | probe after 5 s |
//! | probe | it is asked at its address: 3 times, a second apart | unreachable |
//! | unreachable | it does not answer: asked once every 10 s while somebody wants it | forgotten where nobody does |
//! | permanent | an operator said it | |
//!
//! RFC 4861 probes a stale neighbour when a packet is sent to it. Nobody here sees what NFs send: whoever subscribes
//! counts as one who sends.
//!
//! Times are nanoseconds of the worker that does the housekeeping.

use super::wanted::{Counts, Wanted};
use packet::MacAddr;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;
/// Time between questions (RFC 4861, RETRANS_TIMER), and how many there are (MAX_MULTICAST_SOLICIT,
/// MAX_UNICAST_SOLICIT).
const RETRANS_NS: u64 = SECOND_NS;
const TRIES: u8 = 3;
/// How long an answer holds (REACHABLE_TIME), before it is varied.
const REACHABLE_NS: u64 = 30 * SECOND_NS;
/// How long a stale neighbour may be used before it is probed (DELAY_FIRST_PROBE_TIME).
const DELAY_NS: u64 = 5 * SECOND_NS;
/// How often one that does not answer is asked.
const RETRY_NS: u64 = 10 * SECOND_NS;
/// Neighbours of a station.
pub const CAPACITY: usize = 4096;
/// Questions of a station: so many at once, and so many a second.
const BURST: u64 = 100;
const PER_S: u64 = 200;
/// How long a question waits that found no room.
const LATER_NS: u64 = 10_000_000;
/// Neighbours that are looked after in a turn.
const PER_TURN: usize = 64;

/// What subscribers are to know of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Its hardware address.
    Known(MacAddr),
    /// It does not answer.
    Unreachable,
    /// Nobody looks for it.
    Gone,
}

/// Why nobody looks for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// It is the station itself.
    #[error("that is the station's own address")]
    Own,
    /// No neighbour has such an address.
    #[error("no neighbour of the station has such an address")]
    NotOnLink,
    /// There is no room.
    #[error("the table is full")]
    Full,
}

/// A question that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The neighbour.
    pub ip: IpAddr,
    /// Where it was the last time; everybody is asked without.
    pub to: Option<MacAddr>,
}

/// Something that was heard of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The neighbour.
    pub ip: IpAddr,
    /// Its hardware address, as far as the message says.
    pub mac: Option<MacAddr>,
    /// Whether it answers a question of ours.
    pub answers: bool,
    /// Whether it replaces another address that was known. ARP always does (RFC 826).
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
    /// There in all states but incomplete and unreachable.
    mac: Option<MacAddr>,
    due_ns: u64,
    /// When it was last heard of.
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

/// The table.
#[derive(Debug)]
pub struct NeighbourTable {
    entries: HashMap<IpAddr, NeighbourEntry>,
    /// When something is to be done about whom.
    due: BTreeSet<(u64, IpAddr)>,
    changed: BTreeSet<IpAddr>,
    wanted: Arc<Wanted>,
    counts: Counts,
    unresolved: usize,
    now_ns: u64,
    /// Questions that may be sent at once, in nanoseconds of their time.
    credit_ns: u64,
    failures: u64,
    evicted: u64,
}

impl NeighbourTable {
    pub(super) fn new(wanted: Arc<Wanted>) -> NeighbourTable {
        NeighbourTable {
            entries: HashMap::new(),
            due: BTreeSet::new(),
            changed: BTreeSet::new(),
            wanted,
            counts: Counts::default(),
            unresolved: 0,
            now_ns: 0,
            credit_ns: BURST * SECOND_NS / PER_S,
            failures: 0,
            evicted: 0,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn unresolved(&self) -> usize {
        self.unresolved
    }

    pub(super) fn has_news(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn take_news(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.entries.contains_key(&ip)
    }

    pub(super) fn report(&self, ip: IpAddr) -> Option<Report> {
        self.entries.get(&ip).map_or(Some(Report::Gone), NeighbourEntry::report)
    }

    /// How often neighbours were given up, and how many made room for others.
    pub fn failures(&self) -> (u64, u64) {
        (self.failures, self.evicted)
    }

    /// Changes an entry, with all that depends on it.
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

    /// Removes an entry that nobody subscribed to.
    fn remove(&mut self, ip: IpAddr) {
        let Some(entry) = self.entries.remove(&ip) else { return };
        self.due.remove(&(entry.due_ns, ip));
        self.counts.remove(&self.wanted, ip);
        self.unresolved -= usize::from(entry.report().is_none());
        self.changed.remove(&ip);
    }

    /// Has an entry, to be asked for at once where it is new or was given up.
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
            let unwanted = self
                .entries
                .iter()
                .filter(|(_, entry)| !entry.is_wanted() && entry.state != NeighbourState::Permanent);
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

    /// It stays for its time: who comes again soon finds it.
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

    /// Forgets what is known of a neighbour, which is looked for again where somebody wants to know; whether it was
    /// there. Whoever subscribed still does.
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

    /// Deletes every one, as [`NeighbourTable::delete`] does.
    pub fn clear(&mut self) {
        let all: Vec<IpAddr> = self.entries.keys().copied().collect();
        for ip in all {
            self.delete(ip);
        }
    }

    /// How long an answer holds: varied by half, so that neighbours that were asked together are not always
    /// (RFC 4861, MIN_RANDOM_FACTOR and MAX_RANDOM_FACTOR).
    fn reachable_until(ip: IpAddr, now_ns: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (ip, now_ns).hash(&mut hasher);
        now_ns + REACHABLE_NS / 2 + hasher.finish() % REACHABLE_NS
    }

    /// Takes in what was heard (RFC 826, and RFC 4861 sections 7.2.3 and 7.2.5).
    pub(super) fn hear(&mut self, fact: Fact, now_ns: u64) {
        let until_ns = NeighbourTable::reachable_until(fact.ip, now_ns);
        self.change(fact.ip, |entry| {
            let is_other = fact.mac.is_some_and(|mac| entry.mac != Some(mac));
            if entry.state == NeighbourState::Permanent {
                return;
            }
            if is_other && entry.mac.is_some() && !fact.overrides {
                // Somebody else says so, too: whom we know is asked whether he is still there.
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

    /// Does what is due. `ask` sends a question, and says whether there was room for it.
    pub(super) fn turn(&mut self, now_ns: u64, ask: &mut dyn FnMut(Ask) -> bool) {
        let passed_ns = now_ns.saturating_sub(self.now_ns);
        self.credit_ns = (self.credit_ns + passed_ns).min(BURST * SECOND_NS / PER_S);
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
            let (tries, to) = match entry.state {
                NeighbourState::Incomplete { tries } => (tries, None),
                NeighbourState::Probe { tries } => (tries, entry.mac),
                NeighbourState::Reachable | NeighbourState::Stale => (0, entry.mac),
                NeighbourState::Unreachable => (0, None),
                NeighbourState::Permanent => (0, None),
            };
            if tries >= TRIES {
                self.failures += 1;
                self.change(ip, |entry| {
                    (entry.state, entry.mac) = (NeighbourState::Unreachable, None);
                    entry.due_ns = now_ns + RETRY_NS;
                });
                continue;
            }
            let cost_ns = SECOND_NS / PER_S;
            if self.credit_ns < cost_ns || !ask(Ask { ip, to }) {
                self.change(ip, |entry| entry.due_ns = now_ns + LATER_NS);
                continue;
            }
            self.credit_ns -= cost_ns;
            self.change(ip, |entry| {
                let (state, wait_ns) = match entry.state {
                    NeighbourState::Incomplete { tries } => {
                        (NeighbourState::Incomplete { tries: tries + 1 }, RETRANS_NS)
                    }
                    NeighbourState::Unreachable => (NeighbourState::Unreachable, RETRY_NS),
                    _ => (NeighbourState::Probe { tries: tries + 1 }, RETRANS_NS),
                };
                (entry.state, entry.due_ns) = (state, now_ns + wait_ns);
            });
        }
    }

    /// A line for each entry, by address: its state, hardware address, seconds since it was heard of, subscribers.
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
