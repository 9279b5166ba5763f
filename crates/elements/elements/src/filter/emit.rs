//! Decision graphs to programs.
//!
//! A node becomes a block, or a few if it has more than two arms. A field is read at the node that tests it:
//! a path through a diagram reads each field once.

use super::formula::Var;
use super::graph::{Graph, Node, To};
use ir::expr::load;
use ir::{BlockId, Builder, Expr, Term, Value};
use packet::field::{self, Base};

/// Ends the builder's current block with a graph. `there` is the number of bytes from each base that are
/// known to be in the packet; `leaf` returns the block of a decision, and is called once for each.
pub fn emit(
    f: &mut Builder,
    graph: &Graph,
    there: [u16; 4],
    mut leaf: impl FnMut(&mut Builder, u32) -> BlockId,
) {
    let leaves: Vec<(u32, BlockId)> =
        graph.leaves().into_iter().map(|decision| (decision, leaf(f, decision))).collect();
    let blocks: Vec<BlockId> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(at, _)| if graph.root == To::Node(at) { f.here() } else { f.block() })
        .collect();
    let known = reached(graph, there);
    let block = |to: To| {
        let found = match to {
            To::Node(node) => blocks.get(node).copied(),
            To::Leaf(decision) => leaves.iter().find(|(known, _)| *known == decision).map(|leaf| leaf.1),
        };
        // A graph names only nodes and leaves that exist.
        found.unwrap_or(BlockId(u32::MAX))
    };
    if let To::Leaf(_) = graph.root {
        f.jump(block(graph.root));
    }
    for ((node, at), there) in graph.nodes.iter().zip(&blocks).zip(&known) {
        f.at(*at);
        emit_node(f, node, there, block);
    }
}

/// The bytes that are known to be in the packet at each node, on all paths to it.
fn reached(graph: &Graph, there: [u16; 4]) -> Vec<[u16; 4]> {
    let mut known: Vec<Option<[u16; 4]>> = vec![None; graph.nodes.len()];
    if let To::Node(root) = graph.root {
        known[root] = Some(there);
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let here = known[at].unwrap_or_default();
        for (first, _, to) in node.spans() {
            let mut next = here;
            if let (Var::Reach(base, bytes), 1) = (node.var, first) {
                next[base as usize] = next[base as usize].max(bytes);
            }
            if let To::Node(to) = to {
                let merged = match known[to] {
                    None => next,
                    Some(other) => std::array::from_fn(|base| next[base].min(other[base])),
                };
                known[to] = Some(merged);
            }
        }
    }
    known.into_iter().map(Option::unwrap_or_default).collect()
}

/// Ends the current block with a node; `block` returns the block of a node or leaf.
fn emit_node(f: &mut Builder, node: &Node, there: &[u16; 4], block: impl Fn(To) -> BlockId) {
    match node.var {
        Var::Reach(base, bytes) => {
            let side = |wanted: u64| {
                let to = node.spans().find(|(first, last, _)| (*first..=*last).contains(&wanted));
                to.map_or(BlockId(u32::MAX), |(_, _, to)| block(to))
            };
            let (then, els) = (side(1), side(0));
            if there[base as usize] >= bytes {
                return f.jump(then);
            }
            if base == Base::Trans && there[Base::Trans as usize] == 0 {
                f.leave_if(load(field::IP_FRAG), els);
            }
            f.end(Term::Need { base, bytes, then, els });
        }
        Var::Field(field) => {
            let value = f.eval(load(field));
            let arms: Vec<(u64, u64, BlockId)> =
                node.spans().map(|(first, last, to)| (first, last, block(to))).collect();
            decide(f, value, arms, field.max_value());
        }
    }
}

/// An interval test as a value.
fn within(value: Value, first: u64, last: u64, max: u64) -> Expr {
    match (first, last) {
        _ if first == last => value.equals(first),
        (0, _) => value.at_most(last),
        _ if last >= max => value.at_least(first),
        _ => value.within(first, last),
    }
}

/// Values that most packets have if a rule tests for them: TCP, UDP.
const FREQUENT: [u64; 2] = [6, 17];
/// Most arms that are tested one after the other; longer lists are halved first.
const MAX_CUT_ARMS: usize = 9;

/// Ends the current block with a jump to the block whose interval the value lies in.
fn decide(f: &mut Builder, value: Value, mut arms: Vec<(u64, u64, BlockId)>, max: u64) {
    loop {
        match arms.as_slice() {
            [] => return,
            [(_, _, only)] => return f.jump(*only),
            [(_, 0, zero), (_, _, other)] => return f.branch_to(value, *other, *zero),
            [(_, last, low), (_, _, high)] => return f.branch_to(value.at_most(*last), *low, *high),
            _ => {}
        }
        // A range between two with the same target is tested first: those two become one range.
        let between = |at: &usize| arms[at - 1].2 == arms[at + 1].2;
        let frequent = |at: &usize| !FREQUENT.contains(&arms[*at].0);
        let cut = (1..arms.len() - 1).filter(between).min_by_key(frequent);
        let cut = cut.filter(|_| arms.len() <= MAX_CUT_ARMS);
        if let Some(at) = cut {
            let (first, last, to) = arms[at];
            let inside = within(value, first, last, max);
            if arms.len() == 3 {
                return f.branch_to(inside, to, arms[0].2);
            }
            f.leave_if(inside, to);
            arms[at - 1].1 = arms[at + 1].1;
            arms.drain(at..=at + 1);
            continue;
        }
        let high = arms.split_off(arms.len() / 2);
        let (below, above) = f.branch(value.less_than(high[0].0));
        f.at(below);
        decide(f, value, arms, max);
        f.at(above);
        return decide(f, value, high, max);
    }
}
