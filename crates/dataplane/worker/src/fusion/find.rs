//! Finding fused regions in a graph.

use crate::graph::Node;
use chain::FusedElements;
use element::StateScope;

/// A wire inside a fused region that would close a loop: packets on it leave the region and enter it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The element that packets come from.
    pub node: usize,
    /// Its output.
    pub port: usize,
}

/// The fused regions among the wanted elements, each as its nodes, and the wires at which loops are cut.
pub fn find(nodes: &[Node], wanted: &FusedElements, workers: usize) -> (Vec<Vec<usize>>, Vec<Cut>) {
    let can: Vec<bool> =
        nodes.iter().enumerate().map(|(at, node)| wanted.has(at) && can_be_part(node, workers)).collect();
    let mut before: Vec<Vec<usize>> = vec![vec![]; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|end| before[end.node].push(at));
    }
    let cuts = cuts(nodes, &can, &before);
    let mut seen = vec![false; nodes.len()];
    let mut regions: Vec<Vec<usize>> = vec![];
    for start in 0..nodes.len() {
        if !can[start] || std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let (mut all, mut open) = (vec![], vec![start]);
        while let Some(at) = open.pop() {
            all.push(at);
            let ahead = nodes[at].outputs.iter().flatten().map(|end| end.node);
            let near = ahead.chain(before[at].iter().copied()).filter(|next| can[*next]);
            open.extend(near.filter(|next| !std::mem::replace(&mut seen[*next], true)).collect::<Vec<_>>());
        }
        all.sort_unstable();
        regions.push(all);
    }
    // A single element gains nothing.
    regions.retain(|region| region.len() > 1);
    (regions, cuts)
}

/// Whether a node can be part of a fused region: it has a program and push ports, and no single one of
/// several workers owns its state.
fn can_be_part(node: &Node, workers: usize) -> bool {
    let has_inputs = node.lowered.as_ref().is_some_and(|lowered| !lowered.program.entries.is_empty());
    let is_pushed = node.inputs.iter().all(Option::is_none) && !node.answers_pull;
    has_inputs && is_pushed && (workers < 2 || node.class.state != StateScope::OneWorker)
}

/// The wires that close loops, found along the paths of packets from the entries.
fn cuts(nodes: &[Node], can: &[bool], before: &[Vec<usize>]) -> Vec<Cut> {
    let ahead = |node: &Node| {
        let ends = node.outputs.iter().map(|end| end.map(|end| end.node).filter(|next| can[*next]));
        ends.collect::<Vec<_>>()
    };
    let next: Vec<Vec<Option<usize>>> = nodes.iter().map(ahead).collect();
    let is_entered = |at: &usize| before[*at].iter().any(|from| !can[*from]);
    let (first, then): (Vec<usize>, Vec<usize>) =
        (0..nodes.len()).filter(|at| can[*at]).partition(is_entered);
    let mut cuts = vec![];
    chain::closing_edges(&next, first.into_iter().chain(then), |path, port, _| {
        cuts.extend(path.last().map(|(node, _)| Cut { node: *node, port }));
    });
    cuts
}

/// Inputs at which packets enter a fused region, as node and input: from outside, or by a wire that is cut.
/// `places` has an index for each node that is a part of the region.
pub(super) fn entries(nodes: &[Node], places: &[Option<usize>], cuts: &[Cut]) -> Vec<(usize, usize)> {
    let mut entries = vec![];
    for (at, node) in nodes.iter().enumerate() {
        for (port, end) in node.outputs.iter().enumerate() {
            let Some(end) = end.filter(|end| places[end.node].is_some()) else { continue };
            if places[at].is_none() || cuts.contains(&Cut { node: at, port }) {
                entries.push((end.node, end.port));
            }
        }
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}
