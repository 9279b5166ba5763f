//! Elements whose result depends on the order of packets, as that of a `RoundRobinSwitch` does.
//!
//! A program handles packets in stages: those that wait for a lookup, or for an element's own code, run behind
//! others that arrived later. Tables see packets in the order of their arrival all the same
//! ([`codegen::pass_in_order`]), cells do not. So an element that chooses by what it wrote to its cells is not in the
//! middle of a region behind such elements: packets leave the region in front of it, are put in order again, and enter
//! a region there. The same where packets of a burst come from several elements: those that leave a region, pass an
//! element without a program, and come back, run behind all others of the burst.

use super::senders::can_send;
use crate::graph::Node;
use std::collections::{BTreeMap, BTreeSet};
use synth::optimize::{Known, optimize_with};

/// The nodes in front of which packets have to be put in order again, among those that can be parts of regions.
/// `before` has the nodes before each, with the inputs that they feed.
pub(super) fn find(nodes: &[Node], can: &[bool], before: &[Vec<(usize, usize)>]) -> BTreeSet<usize> {
    let behind = |node: &usize| is_behind_others(nodes, can, before, *node);
    (0..nodes.len()).filter(|at| can[*at] && depends_on_order(&nodes[*at])).filter(behind).collect()
}

/// Whether packets may reach a node, through elements that can be parts of a region with it, in another order than that
/// of their arrival.
fn is_behind_others(nodes: &[Node], can: &[bool], before: &[Vec<(usize, usize)>], node: usize) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![node]);
    // Wires by which packets of a burst come in, from elements that have others at the same time.
    let (mut entering, mut sources) = (0, 0);
    while let Some(at) = open.pop() {
        for &(from, _) in &before[at] {
            match can[from] {
                true if changes_order(&nodes[from]) => return true,
                true if seen.insert(from) => open.push(from),
                true => {}
                // Its packets are bursts of their own.
                false if nodes[from].has_task && nodes[from].passed.is_none() => sources += 1,
                // Errors and answers make no state.
                false => entering += usize::from(can_send(&nodes[from])),
            }
        }
    }
    entering > 0 && entering + sources > 1
}

/// Whether packets may leave an element's program in another order than they came.
fn changes_order(node: &Node) -> bool {
    let program = node.lowered.as_ref().map(|lowered| &lowered.program);
    program.is_some_and(|program| !program.tables.is_empty() || !program.slow.is_empty())
}

/// Whether a program reads what it wrote to its cells for packets before. What is only done once a handler has changed
/// a cell does not count.
fn depends_on_order(node: &Node) -> bool {
    let Some(program) = node.lowered.as_ref().map(|lowered| &*lowered.program) else { return false };
    let ignores_order = node.element.as_ref().is_some_and(|element| element.ignores_order());
    let written = program.written_cells();
    if ignores_order || !program.reads_cells(&written) {
        return false;
    }
    let fixed = (0..).zip(&node.first_cells).zip(&written).filter(|(_, written)| !**written);
    let cells: BTreeMap<u16, u64> = fixed.map(|((cell, value), _)| (cell, *value)).collect();
    let now = optimize_with(program, &Known { cells, ..Known::default() });
    now.map_or(true, |(now, _)| now.reads_cells(&written))
}
