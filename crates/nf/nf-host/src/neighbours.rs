//! The neighbours that an NF process requested, and the answers that it received.
//!
//! The tables of its L3 interfaces ([`port::interface`]) resolve neighbours. This module records the requests
//! and the pending answers. An answer has the state of the table at the time when it is sent, so a slow
//! process may miss states in between, but never the last one. The number of neighbours that an NF may
//! request, and of searches that it starts in a second, is bounded. Further requests are refused and counted.

use crate::instance::Instance;
use nf::message::{Change, MOST_CHANGES, MOST_NEIGHBOURS, NeighbourState, NextHop, ToNf};
use port::interface::{Interface, Report};
use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Searches that an NF may start at once, and in a second. An L3 interface may send more requests than that,
/// so that other NFs get a share.
const BURST: u32 = 128;
const PER_S: u32 = 50;
/// Refusals that may wait to be sent; an NF that still needs the neighbour has to request it again.
const MOST_REFUSALS: usize = 4 * MOST_CHANGES;

/// The requests of one process.
#[derive(Debug)]
pub(super) struct Wishes {
    wanted: HashSet<NextHop>,
    /// Neighbours with a pending answer.
    due: BTreeSet<NextHop>,
    refused: BTreeSet<NextHop>,
    /// Neighbours whose state was sent to the process.
    sent: HashSet<NextHop>,
    /// Searches that may be started now, and the time of the last increase.
    credit: u32,
    credit_since: Instant,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes {
            wanted: HashSet::new(),
            due: BTreeSet::new(),
            refused: BTreeSet::new(),
            sent: HashSet::new(),
            credit: BURST,
            credit_since: Instant::now(),
        }
    }
}

fn l3_interface(instance: &Instance, interface: u16) -> Option<&Arc<Interface>> {
    instance.l3_interfaces.get(usize::from(interface))?.as_ref()
}

impl Wishes {
    /// Handles a request for neighbours.
    pub fn resolve(&mut self, instance: &Instance, hops: &[NextHop]) {
        let earned = self.credit_since.elapsed().as_millis() as u64 * u64::from(PER_S) / 1000;
        if earned > 0 {
            self.credit = u64::from(self.credit).saturating_add(earned).min(BURST.into()) as u32;
            self.credit_since = Instant::now();
        }
        for hop in hops.iter().take(MOST_CHANGES) {
            if self.wanted.contains(hop) || self.subscribe(instance, *hop) {
                self.due.insert(*hop);
                self.refused.remove(hop);
            } else {
                instance.neighbours[1].fetch_add(1, Relaxed);
                if self.refused.len() < MOST_REFUSALS {
                    self.refused.insert(*hop);
                }
            }
        }
        instance.neighbours[1].fetch_add(hops.len().saturating_sub(MOST_CHANGES) as u64, Relaxed);
        instance.neighbours[0].store(self.wanted.len() as u64, Relaxed);
    }

    /// Subscribes to a neighbour; whether that was possible.
    fn subscribe(&mut self, instance: &Instance, hop: NextHop) -> bool {
        let Some(interface) = l3_interface(instance, hop.interface) else { return false };
        // A neighbour in the table needs no search.
        let cost = u32::from(!interface.has(hop.address));
        if self.wanted.len() >= MOST_NEIGHBOURS || self.credit < cost {
            return false;
        }
        if interface.subscribe(hop.address).is_err() {
            return false;
        }
        self.credit -= cost;
        self.wanted.insert(hop)
    }

    /// Removes neighbours that the process does not need any more.
    pub fn forget(&mut self, instance: &Instance, hops: &[NextHop]) {
        for hop in hops.iter().take(MOST_CHANGES) {
            self.due.remove(hop);
            self.refused.remove(hop);
            self.sent.remove(hop);
            if let (true, Some(interface)) = (self.wanted.remove(hop), l3_interface(instance, hop.interface))
            {
                interface.unsubscribe(hop.address);
            }
        }
        instance.neighbours[0].store(self.wanted.len() as u64, Relaxed);
    }

    /// Removes all requests: the process has ended.
    pub fn clear(&mut self, instance: &Instance) {
        for hop in self.wanted.drain() {
            if let Some(interface) = l3_interface(instance, hop.interface) {
                interface.unsubscribe(hop.address);
            }
        }
        *self = Wishes::default();
        instance.neighbours[0].store(0, Relaxed);
    }

    /// Records changes at an L3 interface.
    pub fn changed(&mut self, instance: &Instance, changed: &Arc<Interface>, events: &[IpAddr]) {
        let is_changed = |interface: &Option<Arc<Interface>>| {
            interface.as_ref().is_some_and(|interface| Arc::ptr_eq(interface, changed))
        };
        for (interface, _) in
            instance.l3_interfaces.iter().enumerate().filter(|(_, interface)| is_changed(interface))
        {
            let hops =
                events.iter().map(|address| NextHop { interface: interface as u16, address: *address });
            self.due.extend(hops.filter(|hop| self.wanted.contains(hop)));
        }
    }

    /// Sends the pending answers, until `say` reports that the socket accepts no more.
    pub fn tell(&mut self, instance: &Instance, mut say: impl FnMut(&ToNf) -> bool) {
        while !self.due.is_empty() || !self.refused.is_empty() {
            let refused: Vec<NextHop> = self.refused.iter().copied().take(MOST_CHANGES).collect();
            let due: Vec<NextHop> = self.due.iter().copied().take(MOST_CHANGES - refused.len()).collect();
            let mut changes: Vec<Change> =
                refused.iter().map(|hop| Change { hop: *hop, state: NeighbourState::Refused }).collect();
            for hop in &due {
                let state = match l3_interface(instance, hop.interface).and_then(|of| of.report(hop.address))
                {
                    Some(Report::Known(mac)) => NeighbourState::Known(mac.to_string()),
                    Some(Report::Unreachable) => NeighbourState::Unreachable,
                    // The state that was sent is not valid any more.
                    Some(Report::Gone) | None if self.sent.contains(hop) => NeighbourState::Gone,
                    // The search is in progress; its result will be a change.
                    Some(Report::Gone) | None => continue,
                };
                changes.push(Change { hop: *hop, state });
            }
            let told: Vec<(NextHop, bool)> =
                changes.iter().map(|change| (change.hop, change.state == NeighbourState::Gone)).collect();
            if !changes.is_empty() && !say(&ToNf::Neighbours { changes }) {
                return;
            }
            self.refused.retain(|hop| !refused.contains(hop));
            self.due.retain(|hop| !due.contains(hop));
            for (hop, is_gone) in told {
                if is_gone {
                    // The process will request the neighbour again if it needs it.
                    self.forget(instance, &[hop]);
                } else if self.wanted.contains(&hop) {
                    self.sent.insert(hop);
                }
            }
            instance.neighbours[0].store(self.wanted.len() as u64, Relaxed);
        }
    }

    /// Whether answers are pending.
    pub fn is_behind(&self) -> bool {
        !self.due.is_empty() || !self.refused.is_empty()
    }
}

/// The L3 interfaces of some instances, each once.
pub(super) fn l3_interfaces<'a>(instances: impl Iterator<Item = &'a Arc<Instance>>) -> Vec<Arc<Interface>> {
    let mut all: Vec<Arc<Interface>> = vec![];
    for interface in instances.flat_map(|instance| instance.l3_interfaces.iter().flatten()) {
        if !all.iter().any(|known| Arc::ptr_eq(known, interface)) {
            all.push(Arc::clone(interface));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::NfSpec;
    use packet::MacAddr;
    use port::interface::Address;
    use port::interface::table::Fact;

    const SECOND_NS: u64 = 1_000_000_000;
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn instance() -> (Instance, Arc<Interface>) {
        let own = Address::read("10.0.0.1/8").expect("an address");
        let interface = Arc::new(Interface::new("lan", vec![own]));
        interface.add_request_queue();
        let instance = Instance::new(NfSpec::default(), 0, 0, Arc::default());
        (instance.beside(vec![None, Some(Arc::clone(&interface))]), interface)
    }

    fn hop(number: u32) -> NextHop {
        NextHop { interface: 1, address: IpAddr::from((0x0a00_0002 + number).to_be_bytes()) }
    }

    /// Sends all pending answers.
    fn all(wishes: &mut Wishes, instance: &Instance) -> Vec<Change> {
        let mut all = vec![];
        wishes.tell(instance, |message| {
            let ToNf::Neighbours { changes } = message else { panic!("{message:?}") };
            assert!(changes.len() <= MOST_CHANGES);
            all.extend(changes.clone());
            true
        });
        assert!(!wishes.is_behind());
        all
    }

    fn counts(instance: &Instance) -> [u64; 2] {
        instance.neighbours.each_ref().map(|count| count.load(Relaxed))
    }

    /// Applies the changes of the L3 interface and sends the answers.
    fn interface_changes(
        wishes: &mut Wishes,
        instance: &Instance,
        interface: &Arc<Interface>,
    ) -> Vec<Change> {
        let events = interface.take_events();
        wishes.changed(instance, interface, &events);
        all(wishes, instance)
    }

    #[test]
    fn a_process_is_told_until_it_forgets() {
        let ((instance, interface), mut wishes) = (instance(), Wishes::default());
        wishes.resolve(&instance, &[hop(1), hop(2)]);
        assert!(all(&mut wishes, &instance).is_empty() && interface.is_resolving());
        interface.turn(SECOND_NS);
        let fact = Fact { ip: hop(1).address, mac: Some(MAC), answers: true, overrides: true };
        interface.hear(fact);
        interface.turn(SECOND_NS);
        let known = Change { hop: hop(1), state: NeighbourState::Known(MAC.to_string()) };
        assert_eq!(interface_changes(&mut wishes, &instance, &interface), vec![known.clone()]);
        // A repeated request is answered again; the other neighbour does not answer.
        wishes.resolve(&instance, &[hop(1)]);
        assert_eq!(all(&mut wishes, &instance), [known]);
        (2..5).for_each(|second| interface.turn(second * SECOND_NS));
        let lost = Change { hop: hop(2), state: NeighbourState::Unreachable };
        assert_eq!(interface_changes(&mut wishes, &instance, &interface), [lost]);
        // An operator deletes the entry: the process has to request it again.
        assert!(interface.delete(hop(1).address));
        let gone = Change { hop: hop(1), state: NeighbourState::Gone };
        assert_eq!(
            (interface_changes(&mut wishes, &instance, &interface), counts(&instance)),
            (vec![gone], [1, 0])
        );
        wishes.resolve(&instance, &[hop(1)]);
        wishes.forget(&instance, &[hop(1), hop(2), hop(3)]);
        assert_eq!((counts(&instance), wishes.wanted.len(), wishes.sent.len()), ([0, 0], 0, 0));
        interface.turn(100 * SECOND_NS);
        assert_eq!(interface.report(hop(2).address), Some(Report::Gone), "nobody wants it any more");
    }

    #[test]
    fn a_process_that_does_not_listen_hears_the_last_state() {
        let ((instance, interface), mut wishes) = (instance(), Wishes::default());
        wishes.resolve(&instance, &[hop(1)]);
        for last in 1..=3 {
            let mac = Some(MacAddr([2, 0, 0, 0, 0, last]));
            interface.hear(Fact { ip: hop(1).address, mac, answers: true, overrides: true });
            interface.turn(SECOND_NS);
            wishes.changed(&instance, &interface, &interface.take_events());
            wishes.tell(&instance, |_| false);
            assert!(wishes.is_behind());
        }
        let state = NeighbourState::Known("02:00:00:00:00:03".into());
        assert_eq!(all(&mut wishes, &instance), [Change { hop: hop(1), state }]);
    }

    #[test]
    fn what_is_too_much_or_no_neighbour_is_refused() {
        let ((instance, interface), mut wishes) = (instance(), Wishes::default());
        let odd = [
            NextHop { interface: 0, ..hop(1) },
            NextHop { interface: 7, ..hop(1) },
            NextHop { interface: 1, address: "192.0.2.1".parse().expect("an address") },
            NextHop { interface: 1, address: "10.0.0.1".parse().expect("an address") },
        ];
        wishes.resolve(&instance, &odd);
        let refused = all(&mut wishes, &instance);
        assert!(refused.len() == 4 && refused.iter().all(|change| change.state == NeighbourState::Refused));
        assert_eq!(counts(&instance), [0, 4]);
        // A flood: the number of searches and of answers is bounded.
        let many: Vec<NextHop> = (0..5000).map(hop).collect();
        let began = Instant::now();
        for some in many.chunks(MOST_CHANGES) {
            wishes.resolve(&instance, some);
        }
        let most = u64::from(BURST) + began.elapsed().as_millis() as u64 * u64::from(PER_S) / 1000 + 1;
        let [wanted, refused] = counts(&instance);
        assert!((u64::from(BURST)..=most).contains(&wanted), "{wanted}");
        assert_eq!(wanted + refused, 5004);
        assert_eq!(all(&mut wishes, &instance).len(), MOST_REFUSALS);
        // Neighbours that another NF requested need no search, but their number is bounded, too.
        for hop in &many {
            let _ = interface.subscribe(hop.address);
        }
        many.chunks(MOST_CHANGES).for_each(|some| wishes.resolve(&instance, some));
        assert_eq!(counts(&instance)[0], MOST_NEIGHBOURS as u64);
        // More requests than a message may contain.
        let before = counts(&instance)[1];
        wishes.resolve(&instance, &many);
        assert_eq!(counts(&instance)[1] - before, (many.len() - MOST_CHANGES) as u64);
        // The next process starts without requests.
        wishes.clear(&instance);
        assert_eq!((counts(&instance)[0], wishes.is_behind()), (0, false));
    }
}
