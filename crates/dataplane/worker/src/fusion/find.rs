//! Finding fused regions in a graph.
//!
//! A *part* of a region is one input of an element. An element that packets enter by several inputs is
//! several parts, which share its state: the way back through a rewriter is another way, and no loop. Packets
//! that leave an element by an output that is unusual for their input
//! ([`element::Transparent::usual_outputs`]) leave the region, and the next elements process them one by one.
//!
//! Where packets enter in the middle, behind an element without a program or by a wire that closes a loop,
//! nothing is known about them. So that they do not meet those of which the program knows more, they have
//! parts of their own: an input is at most two parts.

use crate::graph::{End, Lowered, Node};
use chain::FusedElements;
use element::StateScope;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Where a part's output leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leads {
    /// To another part of the region.
    Inside(usize),
    /// Out of the region, or nowhere.
    Outside,
    /// To an element of the region, but few packets of this input take it: they leave the region.
    Seldom,
    /// Back to a part that is before it: packets leave the region and enter it again.
    Loop,
}

/// A part of a fused region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionPart {
    /// The element.
    pub node: usize,
    /// Its input.
    pub input: usize,
    /// Where each of its outputs leads.
    pub leads: Vec<Leads>,
}

/// A fused region: its parts in the order of their elements and inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionLayout {
    /// The parts.
    pub parts: Vec<RegionPart>,
    /// The parts at which packets enter, in order.
    pub entries: Vec<usize>,
}

/// The fused regions among the wanted elements.
pub fn find(nodes: &[Node], wanted: &FusedElements, workers: usize) -> Vec<RegionLayout> {
    let can: Vec<bool> =
        nodes.iter().enumerate().map(|(at, node)| wanted.has(at) && can_be_part(node, workers)).collect();
    // The nodes before each, with the inputs that they feed.
    let mut before: Vec<Vec<(usize, usize)>> = vec![vec![]; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|end| before[end.node].push((at, end.port)));
    }
    let mut seen = vec![false; nodes.len()];
    let mut regions: Vec<RegionLayout> = vec![];
    for start in 0..nodes.len() {
        if !can[start] || std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let (mut all, mut open) = (vec![], vec![start]);
        while let Some(at) = open.pop() {
            all.push(at);
            let ahead = nodes[at].outputs.iter().flatten().map(|end| end.node);
            let near = ahead.chain(before[at].iter().map(|(from, _)| *from)).filter(|next| can[*next]);
            open.extend(near.filter(|next| !std::mem::replace(&mut seen[*next], true)).collect::<Vec<_>>());
        }
        // A single element gains nothing.
        if all.len() > 1 {
            regions.push(layout(nodes, &before, &all.into_iter().collect()));
        }
    }
    regions.retain(|region| region.parts.iter().any(|part| part.node != region.parts[0].node));
    regions
}

/// Whether a node can be part of a fused region: it has a program, it is pushed into, and no single one of
/// several workers owns its state.
fn can_be_part(node: &Node, workers: usize) -> bool {
    let has_inputs = node.lowered.as_ref().is_some_and(|lowered| !lowered.program.entries.is_empty());
    let is_pushed = node.is_in_passage || node.inputs.iter().all(Option::is_none) && !node.answers_pull;
    has_inputs && is_pushed && (workers < 2 || node.class.state != StateScope::OneWorker)
}

/// Whether a node can send packets at all.
fn can_send(node: &Node) -> bool {
    node.class.name != "Idle"
}

/// An input of an element: its node and number.
type NodeInput = (usize, usize);

/// The parts of a region that has these elements: the inputs that packets reach from outside by usual
/// outputs.
fn layout(nodes: &[Node], before: &[Vec<(usize, usize)>], inside: &BTreeSet<usize>) -> RegionLayout {
    let is_source = |from: usize| !inside.contains(&from) && can_send(&nodes[from]);
    let feeds = inside.iter().flat_map(|to| before[*to].iter().map(|(from, input)| (*from, (*to, *input))));
    let fed: BTreeSet<NodeInput> = feeds.filter(|(from, _)| is_source(*from)).map(|(_, to)| to).collect();
    let mut graph = UsualWires { nodes, inside, next: BTreeMap::new() };
    fed.iter().for_each(|place| graph.add(*place));
    let (first, mut later) = graph.split(&fed);
    let mut parts = vec![];
    let (mut entries, loops) = graph.add_parts(&first, &mut parts);
    later.extend(loops.difference(&first));
    // Loops among the parts of later entries may make more entries.
    loop {
        let before = (parts.len(), later.len());
        let (new, loops) = graph.add_parts(&later, &mut parts);
        later.extend(loops.difference(&first));
        if later.len() == before.1 {
            entries.extend(new);
            break;
        }
        parts.truncate(before.0);
    }
    number(parts, &entries)
}

/// Sorts parts, so that those of an element are side by side.
fn number(mut parts: Vec<RegionPart>, entries: &[usize]) -> RegionLayout {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| (parts[*at].node, parts[*at].input, *at));
    let mut places = vec![0; parts.len()];
    order.iter().enumerate().for_each(|(place, at)| places[*at] = place);
    for leads in parts.iter_mut().flat_map(|part| &mut part.leads) {
        if let Leads::Inside(part) = leads {
            *part = places[*part];
        }
    }
    let mut entries: Vec<usize> = entries.iter().map(|at| places[*at]).collect();
    entries.sort_unstable();
    RegionLayout { parts: order.iter().map(|at| parts[*at].clone()).collect(), entries }
}

fn within(end: Option<End>, inside: &BTreeSet<usize>) -> Option<NodeInput> {
    end.map(|end| (end.node, end.port)).filter(|(to, _)| inside.contains(to))
}

/// Where packets at an input usually go, for each output of its element.
struct UsualWires<'a> {
    nodes: &'a [Node],
    inside: &'a BTreeSet<usize>,
    next: BTreeMap<NodeInput, Vec<Option<NodeInput>>>,
}

impl UsualWires<'_> {
    /// Adds an input and all that packets reach from there.
    fn add(&mut self, place: NodeInput) {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if let Entry::Vacant(vacant) = self.next.entry(place) {
                let (node, input) = (&self.nodes[place.0], place.1);
                let usual = node.outputs.iter().zip(usual_outputs(node, input));
                let ends = usual.map(|(end, usual)| within(*end, self.inside).filter(|_| usual));
                open.extend(vacant.insert(ends.collect()).iter().flatten());
            }
        }
    }

    /// The inputs that packets from these reach, with them.
    fn reach(&self, from: impl IntoIterator<Item = NodeInput>) -> BTreeSet<NodeInput> {
        let (mut reached, mut open) = (BTreeSet::new(), from.into_iter().collect::<Vec<_>>());
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.next[&place].iter().flatten());
            }
        }
        reached
    }

    /// The inputs at which packets enter: those to which no other of them leads, and those that join the way
    /// of others. Of some that lead to each other, the first is of the former.
    fn split(&self, fed: &BTreeSet<NodeInput>) -> (BTreeSet<NodeInput>, BTreeSet<NodeInput>) {
        let (mut seen, mut later) = (BTreeSet::new(), BTreeSet::new());
        for from in fed {
            if later.contains(from) {
                continue;
            }
            let mut open = vec![*from];
            while let Some(place) = open.pop() {
                if seen.insert(place) {
                    let ahead = self.next[&place].iter().flatten();
                    later.extend(ahead.clone().filter(|to| *to != from && fed.contains(to)));
                    open.extend(ahead);
                }
            }
        }
        (fed.difference(&later).copied().collect(), later)
    }

    /// Appends parts for all that packets from some entries reach. Returns the entries' parts, and the inputs
    /// that are behind a wire that closes a loop.
    fn add_parts(
        &self,
        entries: &BTreeSet<NodeInput>,
        parts: &mut Vec<RegionPart>,
    ) -> (Vec<usize>, BTreeSet<NodeInput>) {
        let reached: Vec<NodeInput> = self.reach(entries.iter().copied()).into_iter().collect();
        let first = parts.len();
        let number = |place: &NodeInput| reached.binary_search(place).unwrap_or(0);
        let ahead = |place: &NodeInput| self.next[place].iter().map(|end| end.as_ref().map(number)).collect();
        let next: Vec<Vec<Option<usize>>> = reached.iter().map(ahead).collect();
        let (mut cut, mut loops) = (BTreeSet::new(), BTreeSet::new());
        chain::closing_edges(&next, entries.iter().map(number), |path, port, to| {
            cut.extend(path.last().map(|(from, _)| (*from, port)));
            loops.insert(reached[to]);
        });
        for (at, &(node, input)) in reached.iter().enumerate() {
            let leads = |(port, to): (usize, &Option<usize>)| match to {
                Some(_) if cut.contains(&(at, port)) => Leads::Loop,
                Some(to) => Leads::Inside(first + to),
                None if within(self.nodes[node].outputs[port], self.inside).is_some() => Leads::Seldom,
                None => Leads::Outside,
            };
            let leads = next[at].iter().enumerate().map(leads).collect();
            parts.push(RegionPart { node, input, leads });
        }
        (entries.iter().map(|entry| first + number(entry)).collect(), loops)
    }
}

/// For each output of a node, whether packets of an input usually leave by it: its program can send them
/// there, and the element does not call it unusual.
fn usual_outputs(node: &Node, input: usize) -> Vec<bool> {
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
