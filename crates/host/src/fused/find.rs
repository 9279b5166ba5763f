//! Finding stretches in a graph.

use super::Wanted;
use crate::node::Node;
use element::StateScope;

/// An element that could be part of a stretch and is not, because it stands in a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The element.
    pub node: usize,
}

/// The stretches among the elements that are wanted, each as its nodes, and where loops were cut.
pub fn find(nodes: &[Node], wanted: &Wanted, workers: usize) -> (Vec<Vec<usize>>, Vec<Broken>) {
    let mut can: Vec<bool> =
        nodes.iter().enumerate().map(|(at, node)| wanted.is(at) && can_be_part(node, workers)).collect();
    let mut broken = vec![];
    while let Some(node) = in_a_loop(nodes, &can) {
        can[node] = false;
        broken.push(Broken { node });
    }
    let mut group: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut before: Vec<Vec<usize>> = vec![vec![]; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|end| before[end.node].push(at));
    }
    let mut stretches: Vec<Vec<usize>> = vec![];
    for start in 0..nodes.len() {
        if !can[start] || group[start].is_some() {
            continue;
        }
        let number = stretches.len();
        let (mut all, mut open) = (vec![], vec![start]);
        group[start] = Some(number);
        while let Some(at) = open.pop() {
            all.push(at);
            let ahead = nodes[at].outputs.iter().flatten().map(|end| end.node);
            for next in ahead.chain(before[at].iter().copied()) {
                if can[next] && group[next].is_none() {
                    group[next] = Some(number);
                    open.push(next);
                }
            }
        }
        all.sort_unstable();
        stretches.push(all);
    }
    // One element by itself gains nothing.
    stretches.retain(|stretch| stretch.len() > 1);
    (stretches, broken)
}

/// Whether a node can be part of a stretch: it has a program, packets are only pushed through it, and its
/// state is this worker's.
fn can_be_part(node: &Node, workers: usize) -> bool {
    let has_inputs = node.lowered.as_ref().is_some_and(|lowered| !lowered.program.entries.is_empty());
    let is_pushed = node.inputs.iter().all(Option::is_none) && !node.answers_pull;
    has_inputs && is_pushed && (workers < 2 || node.class.state != StateScope::OneWorker)
}

/// A node of a loop among those that can be parts.
fn in_a_loop(nodes: &[Node], can: &[bool]) -> Option<usize> {
    // 0: not seen, 1: on the way, 2: done.
    let mut state = vec![0u8; nodes.len()];
    for start in (0..nodes.len()).filter(|at| can[*at]) {
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        let mut stack = vec![(start, 0)];
        while let Some((at, port)) = stack.last_mut() {
            let Some(end) = nodes[*at].outputs.get(*port) else {
                state[*at] = 2;
                stack.pop();
                continue;
            };
            *port += 1;
            let Some(next) = end.map(|end| end.node).filter(|next| can[*next]) else { continue };
            match state[next] {
                0 => {
                    state[next] = 1;
                    stack.push((next, 0));
                }
                1 => return Some(next),
                _ => {}
            }
        }
    }
    None
}

/// Inputs at which packets from elsewhere enter a stretch, as node and input. `places` says which nodes are
/// its parts.
pub(super) fn entries(nodes: &[Node], places: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut entries = vec![];
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| places[*at].is_none()) {
        let _ = at;
        for end in node.outputs.iter().flatten().filter(|end| places[end.node].is_some()) {
            entries.push((end.node, end.port));
        }
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}
