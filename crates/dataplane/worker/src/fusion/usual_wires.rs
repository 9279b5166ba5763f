//! Where packets usually go in a region, and which inputs are several parts.
//!
//! A router asks one table for packets of both directions. A chain of routers with answers thus seems to be full
//! of loops, though no packet takes one: what comes from outside leaves inside, and the other way round. So where
//! ways join in front of an element that chooses, it is a part for each wire by which packets come, and so is what is
//! between: the [`Turns`]. A packet that leaves by an output behind which packets come back by the same wire turns
//! back. Few do, and they leave the region.

use super::find::{Leads, RegionPart};
use super::turns::{Place, Turns, Wire};
use crate::graph::{End, Lowered, Node};
use std::collections::{BTreeMap, BTreeSet};

/// An input of an element: its node and number.
pub(super) type NodeInput = (usize, usize);

/// Where packets at an input usually go, for each output of its element.
pub(super) struct UsualWires<'a> {
    nodes: &'a [Node],
    inside: &'a BTreeSet<usize>,
    next: BTreeMap<Place, Vec<Option<Place>>>,
    turns: &'a Turns,
}

/// What packets from some entries reach, as a graph of numbers.
struct Reached {
    places: Vec<Place>,
    /// For each place, where its outputs lead.
    next: Vec<Vec<Option<usize>>>,
    entries: Vec<usize>,
}

impl<'a> UsualWires<'a> {
    /// The ways of packets that enter by these inputs.
    pub fn of(
        nodes: &'a [Node],
        inside: &'a BTreeSet<usize>,
        turns: &'a Turns,
        fed: &BTreeSet<NodeInput>,
    ) -> UsualWires<'a> {
        let mut wires = UsualWires { nodes, inside, turns, next: BTreeMap::new() };
        fed.iter().for_each(|to| wires.add(Place::entered(*to)));
        wires
    }

    /// Adds an input and all that packets reach from there.
    fn add(&mut self, place: Place) {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if !self.next.contains_key(&place) {
                let next = self.next_of(place);
                open.extend(next.iter().flatten());
                self.next.insert(place, next);
            }
        }
    }

    fn next_of(&self, place: Place) -> Vec<Option<Place>> {
        let (at, input) = place.to;
        let node = &self.nodes[at];
        let next = |(port, (end, usual)): (usize, (&Option<End>, bool))| {
            let end = end.filter(|end| usual && self.inside.contains(&end.node))?;
            let wire = Wire { from: place.to, port };
            (!self.turns.turn_back(place, port)).then(|| self.turns.behind(place, wire, (end.node, end.port)))
        };
        node.outputs.iter().zip(usual_outputs(node, input)).enumerate().map(next).collect()
    }

    /// The places that packets from these inputs reach, with them.
    fn reached<'e>(&self, entries: impl Iterator<Item = &'e NodeInput> + Clone) -> Reached {
        let mut reached = BTreeSet::new();
        let mut open: Vec<Place> = entries.clone().map(|to| Place::entered(*to)).collect();
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.next[&place].iter().flatten());
            }
        }
        let places: Vec<Place> = reached.into_iter().collect();
        let number = |place: Place| places.binary_search(&place).unwrap_or(0);
        let numbers = |place: &Place| self.next[place].iter().map(|next| next.map(number)).collect();
        let next = places.iter().map(numbers).collect();
        let entries = entries.map(|to| number(Place::entered(*to))).collect();
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
            let mut open = vec![Place::entered(*from)];
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
        entries.iter().for_each(|to| self.add(Place::entered(*to)));
        let reached = self.reached(entries.iter());
        let first = parts.len();
        let (mut cut, mut loops) = (BTreeSet::new(), BTreeSet::new());
        chain::closing_edges(&reached.next, reached.entries.iter().copied(), |path, port, to| {
            cut.extend(path.last().map(|(from, _)| (*from, port)));
            loops.insert(reached.places[to].to);
        });
        for (at, place) in reached.places.iter().enumerate() {
            let (node, input) = place.to;
            let leads = |(port, to): (usize, &Option<usize>)| match to {
                Some(_) if cut.contains(&(at, port)) => Leads::Loop,
                Some(to) => Leads::Inside(first + to),
                None => match self.nodes[node].outputs[port] {
                    Some(end) if self.inside.contains(&end.node) => Leads::Seldom,
                    _ => Leads::Outside,
                },
            };
            let leads = reached.next[at].iter().enumerate().map(leads).collect();
            parts.push(RegionPart { node, input, leads });
        }
        (reached.entries.iter().map(|entry| first + entry).collect(), loops)
    }
}

/// For each output of a node, whether packets of an input usually leave by it: its program can send them
/// there, and the element does not call it unusual.
pub(super) fn usual_outputs(node: &Node, input: usize) -> Vec<bool> {
    let mut all = vec![true; node.outputs.len()];
    // An element with one input may be exchanged for one whose program uses other outputs.
    if let Some(Lowered { program, .. }) = &node.lowered
        && program.entries.len() > 1
    {
        let outputs = program.outputs_of(input);
        all.iter_mut().enumerate().for_each(|(port, usual)| *usual = outputs.contains(&port));
    }
    let named = node.element.as_ref().and_then(|element| element.usual_outputs(input));
    if let Some(named) = named {
        all.iter_mut().enumerate().for_each(|(port, usual)| *usual &= named.contains(&port));
    }
    all
}
