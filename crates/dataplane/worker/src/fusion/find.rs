//! Finding fused regions in a graph.
//!
//! A *part* of a region is one input of an element. An element that packets enter by several inputs is
//! several parts, which share its state: the way back through a rewriter is another way, and no loop. Packets
//! that leave an element by an output that is unusual for their input
//! ([`element::Transparent::usual_outputs`]) leave the region, and the next elements process them one by one.
//!
//! In front of an element that needs packets in the order of their arrival, packets leave the region, too, and enter it
//! again ([`super::in_order`]).
//!
//! Where packets enter in the middle, behind an element without a program or by a wire that closes a loop,
//! nothing is known about them. So that they do not meet those of which the program knows more, they have
//! parts of their own. An input that packets of both ways share, as that of a routing table, is a part for
//! each wire that leads there ([`super::usual_wires`]).

use super::in_order;
use super::layout::{Leads, RegionLayout, RegionPart};
use super::senders::can_send;
use super::turns::{NodeInput, Turns};
use super::usual_wires::UsualWires;
use crate::graph::Node;
use chain::FusedElements;
use element::StateScope;
use std::collections::BTreeSet;

/// The fused regions among the wanted elements.
pub fn find(nodes: &[Node], wanted: &FusedElements, workers: usize) -> Vec<RegionLayout> {
    let can: Vec<bool> =
        nodes.iter().enumerate().map(|(at, node)| wanted.has(at) && can_be_part(node, workers)).collect();
    // The nodes before each, with the inputs that they feed.
    let mut before: Vec<Vec<(usize, usize)>> = vec![vec![]; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|end| before[end.node].push((at, end.port)));
    }
    let turns = Turns::of(nodes);
    let in_order = in_order::find(nodes, &can, &before);
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
            let ahead = ahead.filter(|next| !in_order.contains(next));
            let back = before[at].iter().map(|(from, _)| *from).filter(|_| !in_order.contains(&at));
            let near = ahead.chain(back).filter(|next| can[*next]);
            open.extend(near.filter(|next| !std::mem::replace(&mut seen[*next], true)).collect::<Vec<_>>());
        }
        // A single element gains nothing.
        if all.len() > 1 {
            regions.push(layout(nodes, &before, (&turns, &in_order), &all.into_iter().collect()));
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

/// The parts of a region that has these elements: the inputs that packets reach from outside by usual
/// outputs.
fn layout(
    nodes: &[Node],
    before: &[Vec<(usize, usize)>],
    (turns, in_order): (&Turns, &BTreeSet<usize>),
    inside: &BTreeSet<usize>,
) -> RegionLayout {
    let is_source = |(from, to): (usize, NodeInput)| match inside.contains(&from) {
        true => in_order.contains(&to.0),
        false => can_send(&nodes[from]),
    };
    let feeds = inside.iter().flat_map(|to| before[*to].iter().map(|(from, input)| (*from, (*to, *input))));
    let feeds: Vec<(usize, NodeInput)> = feeds.filter(|feed| is_source(*feed)).collect();
    let fed: BTreeSet<NodeInput> = feeds.iter().map(|(_, to)| *to).collect();
    // Most packets enter where they begin.
    let begin = feeds.iter().filter(|(from, _)| nodes[*from].inputs.is_empty());
    let sources: BTreeSet<NodeInput> = begin.map(|(_, to)| *to).collect();
    let mut graph = UsualWires::of(nodes, (inside, in_order), turns, &fed);
    let (first, mut later) = graph.split(&fed, &sources);
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
    let is_from_port = |from: &(usize, usize), input: usize| {
        from.1 != input || nodes[from.0].is_from_port || nodes[from.0].class.name == "Idle"
    };
    let mut layout = number(parts, &entries);
    layout.from_ports = (0..)
        .zip(&layout.entries)
        .filter(|(_, part)| {
            let RegionPart { node, input, .. } = layout.parts[**part];
            let is_pushed = nodes[node].inputs.iter().all(Option::is_none);
            is_pushed && before[node].iter().all(|from| is_from_port(from, input))
        })
        .map(|(entry, _)| entry)
        .collect();
    layout
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
    let parts = order.iter().map(|at| parts[*at].clone()).collect();
    RegionLayout { parts, entries, from_ports: BTreeSet::new() }
}
