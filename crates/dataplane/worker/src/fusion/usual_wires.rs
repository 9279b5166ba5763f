//! Where packets usually go in a region, and which inputs are several parts.
//!
//! A router asks one table for packets of both directions. A chain of routers with answers thus seems to be full
//! of loops, though no packet takes one: what comes from outside leaves inside, and the other way round. So where
//! ways join in front of an element that chooses, it is a part for each wire by which packets come, and so is what is
//! between: the [`Turns`]. A packet that leaves by an output behind which packets come back by the same wire turns
//! back. Few do, and they leave the region.

use super::layout::{Leads, RegionPart};
use super::turns::{ArrivalPlace, NodeInput, Turns, Wire, usual_outputs};
use crate::graph::{End, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Where packets at an input usually go, for each output of its element.
pub(super) struct UsualWires<'a> {
    nodes: &'a [Node],
    inside: &'a BTreeSet<usize>,
    in_order: &'a BTreeSet<usize>,
    next: BTreeMap<ArrivalPlace, Vec<Option<ArrivalPlace>>>,
    turns: &'a Turns,
}

/// What packets from some entries reach, as a graph of numbers.
struct Reached {
    places: Vec<ArrivalPlace>,
    /// For each place, where its outputs lead.
    next: Vec<Vec<Option<usize>>>,
    entries: Vec<usize>,
}

impl<'a> UsualWires<'a> {
    /// The ways of packets that enter by these inputs.
    pub fn of(
        nodes: &'a [Node],
        (inside, in_order): (&'a BTreeSet<usize>, &'a BTreeSet<usize>),
        turns: &'a Turns,
        fed: &BTreeSet<NodeInput>,
    ) -> UsualWires<'a> {
        let mut wires = UsualWires { nodes, inside, in_order, turns, next: BTreeMap::new() };
        fed.iter().for_each(|to| wires.add(ArrivalPlace::entered(*to)));
        wires
    }

    /// Whether packets stay in the region on the way to an input.
    fn leads_inside(&self, end: End) -> bool {
        self.inside.contains(&end.node) && !self.in_order.contains(&end.node)
    }

    /// Adds an input and all that packets reach from there.
    fn add(&mut self, place: ArrivalPlace) {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if !self.next.contains_key(&place) {
                let next = self.next_of(place);
                open.extend(next.iter().flatten());
                self.next.insert(place, next);
            }
        }
    }

    fn next_of(&self, place: ArrivalPlace) -> Vec<Option<ArrivalPlace>> {
        let (at, input) = place.to;
        let node = &self.nodes[at];
        let next = |(port, (end, usual)): (usize, (&Option<End>, bool))| {
            let end = end.filter(|end| usual && self.leads_inside(*end))?;
            let wire = Wire { from: place.to, port };
            (!self.turns.are_few(place, port)).then(|| self.turns.behind(place, wire, (end.node, end.port)))
        };
        node.outputs.iter().zip(usual_outputs(node, input)).enumerate().map(next).collect()
    }

    /// The places that packets from these inputs reach, with them.
    fn reached<'e>(&self, entries: impl Iterator<Item = &'e NodeInput> + Clone) -> Reached {
        let mut reached = BTreeSet::new();
        let mut open: Vec<ArrivalPlace> = entries.clone().map(|to| ArrivalPlace::entered(*to)).collect();
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.next[&place].iter().flatten());
            }
        }
        let places: Vec<ArrivalPlace> = reached.into_iter().collect();
        let number = |place: ArrivalPlace| places.binary_search(&place).unwrap_or(0);
        let numbers = |place: &ArrivalPlace| self.next[place].iter().map(|next| next.map(number)).collect();
        let next = places.iter().map(numbers).collect();
        let entries = entries.map(|to| number(ArrivalPlace::entered(*to))).collect();
        Reached { places, next, entries }
    }

    /// The inputs at which packets enter: those to which no other of them leads, and those that join the way
    /// of others. Of some that lead to each other, the first of `sources` is of the former, or the first of all.
    pub fn split(
        &self,
        fed: &BTreeSet<NodeInput>,
        sources: &BTreeSet<NodeInput>,
    ) -> (BTreeSet<NodeInput>, BTreeSet<NodeInput>) {
        let (mut seen, mut later) = (BTreeSet::new(), BTreeSet::new());
        for from in sources.iter().chain(fed) {
            if later.contains(from) {
                continue;
            }
            let mut open = vec![ArrivalPlace::entered(*from)];
            while let Some(place) = open.pop() {
                if seen.insert(place) {
                    let ahead = self.next[&place].iter().flatten();
                    let joined = ahead.clone().map(|place| place.to);
                    later.extend(joined.filter(|to| to != from && fed.contains(to)));
                    open.extend(ahead);
                }
            }
        }
        (fed.difference(&later).copied().collect(), later)
    }

    /// Appends parts for all that packets from some entries reach. Returns the entries' parts, and the inputs
    /// that are behind a wire that closes a loop.
    pub fn add_parts(
        &mut self,
        entries: &BTreeSet<NodeInput>,
        parts: &mut Vec<RegionPart>,
    ) -> (Vec<usize>, BTreeSet<NodeInput>) {
        // Nobody may have entered by the wire that closes a loop.
        entries.iter().for_each(|to| self.add(ArrivalPlace::entered(*to)));
        let reached = self.reached(entries.iter());
        let first = parts.len();
        let (mut cut, mut loops) = (BTreeMap::new(), BTreeSet::new());
        chain::closing_edges(&reached.next, reached.entries.iter().copied(), |path, port, to| {
            let start = path.iter().position(|(at, _)| *at == to).unwrap_or(0);
            // Packets that come to an input of both ways once more, by the same wire, have turned back somewhere.
            let turned = path[start..].iter().any(|(at, _)| reached.places[*at].is_by_wire());
            let leads = if turned { Leads::Seldom } else { Leads::Loop };
            cut.extend(path.last().map(|(from, _)| ((*from, port), leads)));
            if !turned {
                loops.insert(reached.places[to].to);
            }
        });
        for (at, place) in reached.places.iter().enumerate() {
            let (node, input) = place.to;
            let leads = |(port, to): (usize, &Option<usize>)| match (cut.get(&(at, port)), to) {
                (Some(leads), _) => *leads,
                (None, Some(to)) => Leads::Inside(first + to),
                (None, None) => match self.nodes[node].outputs[port] {
                    Some(end) if self.leads_inside(end) => Leads::Seldom,
                    _ => Leads::Outside,
                },
            };
            let leads = reached.next[at].iter().enumerate().map(leads).collect();
            parts.push(RegionPart { node, input, leads });
        }
        (reached.entries.iter().map(|entry| first + entry).collect(), loops)
    }
}
