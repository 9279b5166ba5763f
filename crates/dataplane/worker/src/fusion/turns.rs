//! Where packets would turn back.
//!
//! Seen from an element that chooses between outputs, and from where ways join in front of it: packets that leave by
//! an output come back by some of the joining wires, if at all. If packets of no other output come back by such a wire,
//! a packet that came by it and leaves by that output turns back, as long as others come by wires that the output does
//! not lead to. In a ring packets come back by the wires of other outputs, too, and nothing is said of them.

use super::usual_wires::{NodeInput, usual_outputs};
use crate::graph::{End, Node};
use std::collections::{BTreeMap, BTreeSet};

/// A wire: the input by which packets entered its first element, and the output by which they left it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Wire {
    pub from: NodeInput,
    pub port: usize,
}

/// An input of an element, for packets that came by a certain way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub to: NodeInput,
    /// The wire by which packets came, as far as the next choice, where that says which of them turn back.
    via: Option<Wire>,
}

impl Place {
    /// An input as packets enter it from outside.
    pub fn entered(to: NodeInput) -> Place {
        Place { to, via: None }
    }
}

/// Which packets turn back, and where.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Turns {
    /// The inputs whose elements choose between outputs that lead out of the region, near or far.
    choosing: BTreeSet<NodeInput>,
    /// For a wire and the input of an element that chooses, the output by which packets turn back.
    back: BTreeSet<(Wire, NodeInput, usize)>,
    /// These wires.
    wires: BTreeSet<Wire>,
}

impl Turns {
    /// The turns in a graph of elements, whether they have programs or not.
    pub fn of(nodes: &[Node]) -> Turns {
        let ways = Ways::of(nodes);
        let mut has_loop = false;
        chain::closing_edges(&ways.next, 0..ways.inputs.len(), |_, _, _| has_loop = true);
        let mut turns = Turns::default();
        if !has_loop {
            return turns;
        }
        let choosing = ways.choosing(nodes);
        turns.choosing = choosing.iter().map(|at| ways.inputs[*at]).collect();
        let search = Search { ways: &ways, choosing };
        for chooser in &search.choosing {
            for ((from, port), output) in search.turns_at(*chooser) {
                let wire = Wire { from: ways.inputs[from], port };
                turns.wires.insert(wire);
                turns.back.insert((wire, ways.inputs[*chooser], output));
            }
        }
        turns
    }

    /// Whether packets of a place turn back by an output.
    pub fn turn_back(&self, place: Place, port: usize) -> bool {
        place.via.is_some_and(|wire| self.back.contains(&(wire, place.to, port)))
    }

    /// Where packets of a place come by a wire to an input.
    pub fn behind(&self, place: Place, wire: Wire, to: NodeInput) -> Place {
        let kept = place.via.filter(|_| !self.choosing.contains(&place.to));
        Place { to, via: if self.wires.contains(&wire) { Some(wire) } else { kept } }
    }
}

/// Where packets usually go from each input.
struct Ways {
    /// The inputs that packets reach, in order. An element without inputs has one.
    inputs: Vec<NodeInput>,
    /// For each of them, where its element's outputs lead.
    next: Vec<Vec<Option<usize>>>,
    /// The wires that lead to each.
    before: Vec<Vec<Numbered>>,
}

/// A wire in the numbers of [`Ways`].
type Numbered = (usize, usize);

impl Ways {
    fn of(nodes: &[Node]) -> Ways {
        // Where a packet goes that is pulled.
        let pulls = nodes.iter().enumerate().flat_map(|(at, node)| {
            let inputs = node.inputs.iter().enumerate();
            inputs.filter_map(move |(input, end)| end.map(|end| ((end.node, end.port), (at, input))))
        });
        let pulls: BTreeMap<(usize, usize), NodeInput> = pulls.collect();
        let ahead = |(at, input): NodeInput| -> Vec<Option<NodeInput>> {
            let usual = usual_outputs(&nodes[at], input);
            let to = |(port, end): (usize, &Option<End>)| {
                let pushed = end.map(|end| (end.node, end.port));
                pushed.or_else(|| pulls.get(&(at, port)).copied()).filter(|_| usual[port])
            };
            nodes[at].outputs.iter().enumerate().map(to).collect()
        };
        let fed = nodes.iter().flat_map(|node| &node.outputs).flatten().map(|end| end.node);
        let fed: BTreeSet<usize> = fed.chain(pulls.values().map(|(node, _)| *node)).collect();
        let mut open: Vec<NodeInput> =
            (0..nodes.len()).filter(|at| !fed.contains(at)).map(|at| (at, 0)).collect();
        let mut reached = BTreeMap::new();
        while let Some(input) = open.pop() {
            if !reached.contains_key(&input) {
                let ends = ahead(input);
                open.extend(ends.iter().flatten());
                reached.insert(input, ends);
            }
        }
        let (inputs, ends): (Vec<NodeInput>, Vec<_>) = reached.into_iter().unzip();
        let number = |end: NodeInput| inputs.binary_search(&end).unwrap_or(0);
        let numbers = |ends: &Vec<Option<NodeInput>>| ends.iter().map(|end| end.map(number)).collect();
        let next: Vec<Vec<Option<usize>>> = ends.iter().map(numbers).collect();
        let mut before = vec![vec![]; inputs.len()];
        for (from, next) in next.iter().enumerate() {
            for (port, to) in next.iter().enumerate() {
                to.iter().for_each(|to| before[*to].push((from, port)));
            }
        }
        Ways { inputs, next, before }
    }

    /// The inputs whose elements have several outputs from which packets get out, to a port.
    fn choosing(&self, nodes: &[Node]) -> BTreeSet<usize> {
        let mut gets_out = vec![false; self.inputs.len()];
        let is_end = |at: &usize| {
            let node = &nodes[self.inputs[*at].0];
            node.outputs.is_empty() && node.lowered.is_none()
        };
        let mut open: Vec<usize> = (0..self.inputs.len()).filter(is_end).collect();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut gets_out[at], true) {
                open.extend(self.before[at].iter().map(|(from, _)| from));
            }
        }
        let chooses = |at: &usize| self.next[*at].iter().flatten().filter(|to| gets_out[**to]).count() > 1;
        (0..self.inputs.len()).filter(chooses).collect()
    }
}

struct Search<'a> {
    ways: &'a Ways,
    choosing: BTreeSet<usize>,
}

impl Search<'_> {
    /// The wires by which packets come to an input where ways join, the nearest one that leads here without a choice.
    fn joined(&self, mut at: usize) -> Option<Vec<Numbered>> {
        // No way is longer than there are inputs.
        for _ in 0..self.ways.inputs.len() {
            match self.ways.before[at][..] {
                [] => return None,
                [(from, _)] => at = from,
                _ => return Some(self.ways.before[at].clone()),
            }
            if self.choosing.contains(&at) {
                return None;
            }
        }
        None
    }

    /// The turns of packets at an element that chooses: by which wire they came, and the output.
    fn turns_at(&self, chooser: usize) -> Vec<(Numbered, usize)> {
        let Some(joined) = self.joined(chooser) else { return vec![] };
        let mut wires: BTreeSet<Numbered> = joined.into_iter().collect();
        let mut fixed: BTreeSet<Numbered> = BTreeSet::new();
        loop {
            let mut back: BTreeMap<Numbered, Vec<usize>> = BTreeMap::new();
            for (output, to) in self.ways.next[chooser].iter().enumerate() {
                let Some(to) = to else { continue };
                let come_back = self.come_back(*to, &wires);
                // By an output behind which all packets come back, they go on.
                if come_back.len() < wires.len() {
                    come_back.into_iter().for_each(|wire| back.entry(wire).or_default().push(output));
                }
            }
            // A wire by which packets of several outputs come back does not say where they came from; the wires that
            // join before it may.
            let unclear = back.iter().find(|(wire, outputs)| outputs.len() > 1 && !fixed.contains(*wire));
            let Some((wire, _)) = unclear else {
                let is_clear = |(_, outputs): &(Numbered, Vec<usize>)| outputs.len() == 1;
                return back.into_iter().filter(is_clear).map(|(wire, outputs)| (wire, outputs[0])).collect();
            };
            let wire = *wire;
            // Once only: what joins before may be a loop.
            fixed.insert(wire);
            if let Some(further) = self.joined_before(wire.0) {
                wires.remove(&wire);
                wires.extend(further);
            }
        }
    }

    /// The wires that join before a place, if no choice is between.
    fn joined_before(&self, at: usize) -> Option<Vec<Numbered>> {
        if self.choosing.contains(&at) { None } else { self.joined(at) }
    }

    /// By which of the wires packets from a place come, without coming by another one of them before.
    fn come_back(&self, from: usize, wires: &BTreeSet<Numbered>) -> BTreeSet<Numbered> {
        let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![from], BTreeSet::new());
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            for (port, to) in self.ways.next[at].iter().enumerate() {
                match to {
                    Some(_) if wires.contains(&(at, port)) => drop(found.insert((at, port))),
                    Some(to) => open.push(*to),
                    None => {}
                }
            }
        }
        found
    }
}
