//! An NF's table of neighbours: next hops, whose Ethernet addresses the host resolves.
//!
//! A lookup on the packet path reads a table of this process: no system call, no lock, no clock. A neighbour
//! that is not in the table is requested. Requests are sent between batches, and the host's answers are
//! received then, too. The table is bounded: neighbours that were not looked up are replaced, and are removed
//! after a time.

use crate::message::{
    Change, FromNf, InterfaceFacts, MOST_CHANGES, MOST_NEIGHBOURS, NeighbourState, NextHop,
};
use packet::MacAddr;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use table::flow::{FlowConfig, FlowTable, RecordId};

/// Words of a key: interface and family, and the address.
const KEY_WORDS: usize = 3;
/// How long requests wait for further ones, to send few messages: the host treats more than a thousand a
/// second as a flood.
const GATHER: Duration = Duration::from_millis(5);
/// How long a neighbour stays in the table without a lookup.
const UNUSED: Duration = Duration::from_secs(60);
/// The shortest time after which the host is asked again: it drops refusals that it has no room for.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a refusal is valid.
const REFUSED: Duration = Duration::from_secs(1);
/// Entries that are inspected to find one to replace.
const HAND_STEPS: usize = 32;

/// The state of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour {
    /// Its Ethernet address.
    Known(MacAddr),
    /// The host resolves it. The host answers after 3 seconds at most.
    Resolving,
    /// It does not answer, or it cannot be a neighbour.
    Unreachable,
}

#[derive(Clone, Copy, Debug)]
struct NeighbourEntry {
    hop: NextHop,
    state: Neighbour,
    /// Whether it was looked up since the last sweep.
    used: bool,
    /// Whether it was still being resolved at the last check for unanswered requests.
    waited: bool,
}

/// The table of neighbours.
#[derive(Debug)]
pub struct Neighbours {
    l3_interfaces: Vec<Option<InterfaceFacts>>,
    index: Option<FlowTable<KEY_WORDS>>,
    /// By the record numbers of the index.
    entries: Vec<Option<NeighbourEntry>>,
    wishes: Vec<NextHop>,
    forgotten: Vec<NextHop>,
    /// Refused neighbours, oldest first, each with the time until which the refusal is valid.
    refused: VecDeque<(Instant, NextHop)>,
    resolving: usize,
    changes: u64,
    /// Where the search for an entry to replace continues.
    hand: usize,
    sent_at: Option<Instant>,
    swept_at: Instant,
    asked_again_at: Instant,
}

fn key(hop: NextHop) -> [u64; KEY_WORDS] {
    let (family, bits) = match hop.address {
        IpAddr::V4(address) => (0, u128::from(address.to_bits())),
        IpAddr::V6(address) => (1, address.to_bits()),
    };
    [u64::from(hop.interface) << 1 | family, (bits >> 64) as u64, bits as u64]
}

impl Neighbours {
    /// The table of an NF with these L3 interfaces.
    pub fn new(l3_interfaces: Vec<Option<InterfaceFacts>>) -> Neighbours {
        let config = FlowConfig {
            record_bytes: 1,
            capacity: MOST_NEIGHBOURS as u32,
            initial_keys: 2 * MOST_NEIGHBOURS as u32,
            // A peer that chooses addresses must not be able to cause collisions.
            seed: RandomState::new().hash_one(0),
            ..FlowConfig::default()
        };
        // Without memory for the table every neighbour is unreachable.
        let index = l3_interfaces.iter().any(Option::is_some).then(|| FlowTable::new(&config).ok()).flatten();
        let entries = if index.is_some() { vec![None; MOST_NEIGHBOURS + 1] } else { vec![] };
        Neighbours {
            l3_interfaces,
            index,
            entries,
            wishes: Vec::with_capacity(MOST_NEIGHBOURS),
            forgotten: vec![],
            refused: VecDeque::new(),
            resolving: 0,
            changes: 0,
            hand: 0,
            sent_at: None,
            swept_at: Instant::now(),
            asked_again_at: Instant::now(),
        }
    }

    /// The L3 interface of an interface.
    pub fn l3_interface(&self, interface: usize) -> Option<&InterfaceFacts> {
        self.l3_interfaces.get(interface)?.as_ref()
    }

    /// How often the state of a neighbour changed since the start.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the host is resolving a neighbour.
    pub fn is_resolving(&self) -> bool {
        self.resolving > 0
    }

    fn find(&self, hop: NextHop) -> Option<RecordId> {
        self.index.as_ref()?.find(&key(hop))
    }

    /// The state of a neighbour; one that is not in the table is requested.
    #[inline]
    pub fn look(&mut self, interface: usize, address: IpAddr) -> Neighbour {
        let Ok(number) = u16::try_from(interface) else { return Neighbour::Unreachable };
        let hop = NextHop { interface: number, address };
        let found =
            self.find(hop).and_then(|record| self.entries.get_mut(record.number() as usize)?.as_mut());
        match found {
            Some(entry) => {
                entry.used = true;
                entry.state
            }
            None => self.wish(hop),
        }
    }

    #[cold]
    fn wish(&mut self, hop: NextHop) -> Neighbour {
        if self.l3_interface(hop.interface.into()).is_none() || self.index.is_none() {
            return Neighbour::Unreachable;
        }
        // If the table or the list of requests is full, the next lookup tries again.
        if self.wishes.len() < MOST_NEIGHBOURS
            && self.has_room()
            && let Some(Ok(record)) = self.index.as_mut().map(|index| index.insert(&key(hop)))
            && let Some(place) = self.entries.get_mut(record.number() as usize)
        {
            *place = Some(NeighbourEntry { hop, state: Neighbour::Resolving, used: true, waited: false });
            self.resolving += 1;
            self.wishes.push(hop);
        }
        Neighbour::Resolving
    }

    /// Whether there is room for one more entry, if necessary by replacing one that was not looked up for a
    /// while.
    fn has_room(&mut self) -> bool {
        if self.index.as_ref().is_some_and(|index| index.len() < MOST_NEIGHBOURS) {
            return true;
        }
        for _ in 0..HAND_STEPS {
            self.hand = (self.hand + 1) % self.entries.len().max(1);
            let Some(Some(entry)) = self.entries.get_mut(self.hand) else { continue };
            // A known neighbour gets a second chance; one that never answered does not.
            if std::mem::take(&mut entry.used) && matches!(entry.state, Neighbour::Known(_)) {
                continue;
            }
            let hop = entry.hop;
            self.forget(hop);
            return true;
        }
        false
    }

    /// Removes an entry, and has the host notified.
    fn forget(&mut self, hop: NextHop) {
        if self.remove(hop) {
            // A request that was not sent need not be withdrawn.
            match self.wishes.iter().position(|wish| *wish == hop) {
                Some(at) => drop(self.wishes.swap_remove(at)),
                None => self.forgotten.push(hop),
            }
        }
    }

    fn remove(&mut self, hop: NextHop) -> bool {
        let Some(record) = self.find(hop) else { return false };
        let entry = self.entries.get_mut(record.number() as usize).and_then(Option::take);
        self.resolving -= usize::from(entry.is_some_and(|entry| entry.state == Neighbour::Resolving));
        self.index.as_mut().is_some_and(|index| index.remove(record))
    }

    /// Repeats the requests that have had no answer yet.
    fn ask_again(&mut self) {
        let Neighbours { entries, wishes, .. } = self;
        for entry in entries.iter_mut().flatten() {
            let waits = entry.state == Neighbour::Resolving;
            if std::mem::replace(&mut entry.waited, waits) && waits && !wishes.contains(&entry.hop) {
                wishes.push(entry.hop);
            }
        }
    }

    /// Applies the host's answers.
    pub fn learn(&mut self, changes: Vec<Change>) {
        for Change { hop, state } in changes {
            // The entry was removed meanwhile.
            let Some(record) = self.find(hop) else { continue };
            let state = match state {
                NeighbourState::Known(mac) => mac.parse().map_or(Neighbour::Unreachable, Neighbour::Known),
                NeighbourState::Unreachable => Neighbour::Unreachable,
                NeighbourState::Refused => {
                    self.refused.push_back((Instant::now() + REFUSED, hop));
                    Neighbour::Unreachable
                }
                NeighbourState::Gone => {
                    self.remove(hop);
                    self.changes += 1;
                    continue;
                }
            };
            if let Some(Some(entry)) = self.entries.get_mut(record.number() as usize) {
                let was_resolving = std::mem::replace(&mut entry.state, state) == Neighbour::Resolving;
                self.resolving -= usize::from(was_resolving);
                self.changes += 1;
            }
        }
    }

    /// Whether requests wait for [`Neighbours::attend`].
    #[inline]
    pub fn has_wishes(&self) -> bool {
        !self.wishes.is_empty()
    }

    /// The work between batches: sends requests to the host, and removes entries that were not looked up.
    /// `say` sends a message, and returns whether the host's socket accepted it.
    pub fn attend(&mut self, mut say: impl FnMut(&FromNf) -> bool) {
        if self.index.is_none() {
            return;
        }
        let now = Instant::now();
        while let Some((_, hop)) = self.refused.pop_front_if(|(until, _)| *until <= now) {
            // The host stores no request that it refused.
            self.remove(hop);
            self.changes += 1;
        }
        if now.duration_since(self.swept_at) >= UNUSED {
            self.swept_at = now;
            let unused = |entry: &mut Option<NeighbourEntry>| {
                let entry = entry.as_mut()?;
                (!std::mem::take(&mut entry.used)).then_some(entry.hop)
            };
            let unused: Vec<NextHop> = self.entries.iter_mut().filter_map(unused).collect();
            unused.into_iter().for_each(|hop| self.forget(hop));
        }
        if now.duration_since(self.asked_again_at) >= ANSWER {
            self.asked_again_at = now;
            self.ask_again();
        }
        let is_early = self.sent_at.is_some_and(|sent| now.duration_since(sent) < GATHER);
        if is_early || (self.wishes.is_empty() && self.forgotten.is_empty()) {
            return;
        }
        self.sent_at = Some(now);
        let front = |hops: &Vec<NextHop>| hops.iter().copied().take(MOST_CHANGES).collect::<Vec<_>>();
        // Withdrawals are sent first: they make room for requests at the host.
        let unwanted = front(&self.forgotten);
        if !unwanted.is_empty() && say(&FromNf::Forget { hops: unwanted.clone() }) {
            self.forgotten.drain(..unwanted.len());
        }
        let wanted = front(&self.wishes);
        if !wanted.is_empty() && self.forgotten.is_empty() && say(&FromNf::Resolve { hops: wanted.clone() }) {
            self.wishes.drain(..wanted.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::OwnAddress;

    fn neighbours() -> Neighbours {
        let own = OwnAddress { ip: IpAddr::from([10, 0, 0, 1]), len: 8 };
        let interface = InterfaceFacts { mac: "02:00:00:00:00:01".into(), addresses: vec![own] };
        Neighbours::new(vec![None, Some(interface)])
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::from((0x0a00_0000 + number).to_be_bytes())
    }

    fn hop(number: u32) -> NextHop {
        NextHop { interface: 1, address: ip(number) }
    }

    const MAC: &str = "02:00:00:00:00:02";

    fn known(number: u32) -> Change {
        Change { hop: hop(number), state: NeighbourState::Known(MAC.into()) }
    }

    /// All pending messages, regardless of their time.
    fn said(neighbours: &mut Neighbours) -> Vec<FromNf> {
        let mut said = vec![];
        loop {
            let before = said.len();
            neighbours.sent_at = None;
            neighbours.attend(|message| {
                said.push(message.clone());
                true
            });
            if said.len() == before {
                return said;
            }
        }
    }

    #[test]
    fn what_is_not_known_is_asked_for_once() {
        let mut neighbours = neighbours();
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Resolving);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Resolving);
        assert!(neighbours.has_wishes() && neighbours.is_resolving());
        assert_eq!(said(&mut neighbours), [FromNf::Resolve { hops: vec![hop(2)] }]);
        neighbours.learn(vec![known(2), known(3)]);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Known(MAC.parse().expect("an address")));
        assert_eq!((neighbours.changes(), neighbours.is_resolving()), (1, false));
        neighbours.learn(vec![Change { hop: hop(2), state: NeighbourState::Unreachable }]);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Unreachable);
        assert!(said(&mut neighbours).is_empty());
        // A removed neighbour is requested again.
        neighbours.learn(vec![Change { hop: hop(2), state: NeighbourState::Gone }]);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Resolving);
        // An IPv6 address with the same bits, and interfaces without addresses.
        assert_eq!(neighbours.look(1, "::a00:2".parse().expect("an address")), Neighbour::Resolving);
        for interface in [0, 2, 1 << 17] {
            assert_eq!(neighbours.look(interface, ip(2)), Neighbour::Unreachable);
        }
        // An answer without a valid Ethernet address counts as unreachable.
        let odd = Change { hop: hop(2), state: NeighbourState::Known("here".into()) };
        neighbours.learn(vec![odd]);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Unreachable);
    }

    #[test]
    fn a_host_that_does_not_listen_hears_later() {
        let mut neighbours = neighbours();
        neighbours.look(1, ip(2));
        neighbours.attend(|_| false);
        assert!(neighbours.has_wishes());
        assert_eq!(said(&mut neighbours).len(), 1);
        // Requests are collected for a moment.
        neighbours.sent_at = Some(Instant::now());
        neighbours.look(1, ip(3));
        neighbours.attend(|_| unreachable!("it is too early"));
    }

    #[test]
    fn what_is_never_answered_is_asked_again() {
        let mut neighbours = neighbours();
        for number in 2..4 {
            neighbours.look(1, ip(number));
        }
        said(&mut neighbours);
        neighbours.learn(vec![known(3)]);
        let pass = |neighbours: &mut Neighbours| {
            let past = Instant::now().checked_sub(ANSWER);
            neighbours.asked_again_at = past.expect("the machine is not that young");
            said(neighbours)
        };
        assert!(pass(&mut neighbours).is_empty(), "it has its time");
        for _ in 0..2 {
            assert_eq!(pass(&mut neighbours), [FromNf::Resolve { hops: vec![hop(2)] }]);
        }
    }

    #[test]
    fn a_refusal_holds_for_a_while() {
        let mut neighbours = neighbours();
        neighbours.look(1, ip(2));
        said(&mut neighbours);
        neighbours.learn(vec![Change { hop: hop(2), state: NeighbourState::Refused }]);
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Unreachable);
        assert!(said(&mut neighbours).is_empty());
        neighbours.refused[0].0 = Instant::now();
        assert!(said(&mut neighbours).is_empty());
        assert_eq!(neighbours.look(1, ip(2)), Neighbour::Resolving);
    }

    #[test]
    fn whoever_is_used_stays_and_others_make_room() {
        let mut neighbours = neighbours();
        for number in 0..10 {
            neighbours.look(1, ip(number));
        }
        said(&mut neighbours);
        neighbours.learn((0..10).map(known).collect());
        // A scan of addresses that do not exist.
        let mut told = vec![];
        for number in 10..20_000 {
            neighbours.look(1, ip(number));
            (0..10).for_each(|number| {
                assert!(matches!(neighbours.look(1, ip(number)), Neighbour::Known(_)));
            });
            if number % 50 == 0 {
                told.extend(said(&mut neighbours));
            }
        }
        told.extend(said(&mut neighbours));
        // The host's requests are those of this table.
        let mut there: std::collections::HashSet<NextHop> = (0..10).map(hop).collect();
        for message in &told {
            match message {
                FromNf::Resolve { hops } => {
                    assert!(hops.len() <= MOST_CHANGES);
                    there.extend(hops);
                }
                FromNf::Forget { hops } => hops.iter().for_each(|hop| assert!(there.remove(hop))),
                other => unreachable!("{other:?}"),
            }
            assert!(there.len() <= MOST_NEIGHBOURS + 10);
        }
        assert_eq!(there.len(), MOST_NEIGHBOURS);
        assert_eq!(there.len(), neighbours.entries.iter().flatten().count());
        // After a time without lookups all entries are removed.
        for _ in 0..2 {
            neighbours.swept_at = Instant::now().checked_sub(UNUSED).expect("the machine is not that young");
            said(&mut neighbours);
        }
        assert_eq!((neighbours.entries.iter().flatten().count(), neighbours.resolving), (0, 0));
    }
}
