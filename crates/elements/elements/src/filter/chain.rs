//! Rules as a chain of tests, whose size is linear in the rules.
//!
//! Each atom becomes one node. Its two successors are known when it is made, so that nothing is copied. Then
//! edges are threaded: if all paths to a node decide the next node's test, the edge skips that node (Click's
//! classifiers do the same).

use super::formula::{Formula, Var};
use super::graph::{Graph, Node, To};
use ir::analysis::interval::IntervalSet;
use std::collections::BTreeMap;

/// Most nodes that all edges together skip: bounds the time of threading.
const MAX_SKIPS: usize = 1_000_000;
/// Most intervals of a fact; a fact with more is dropped.
const MAX_INTERVALS: usize = 8;

/// The first-match decision over rules as a chain.
pub fn chain(rules: &[(Formula, u32)], default: u32) -> Graph {
    let mut nodes = vec![];
    let root = rules.iter().rev().fold(To::Leaf(default), |rest, (formula, decision)| {
        place(&mut nodes, formula, To::Leaf(*decision), rest)
    });
    // The nodes were made from the last test to the first.
    threaded(Graph::turned(nodes, root)).pruned()
}

fn place(nodes: &mut Vec<Node>, formula: &Formula, yes: To, no: To) -> To {
    if yes == no {
        return yes;
    }
    match formula {
        Formula::Const(true) => yes,
        Formula::Const(false) => no,
        Formula::Atom(var, set) => {
            let arms = Node::split(*var, set, yes, no);
            match arms.as_slice() {
                [only] => only.to,
                _ => {
                    nodes.push(Node { var: *var, arms });
                    To::Node(nodes.len() - 1)
                }
            }
        }
        Formula::Not(inner) => place(nodes, inner, no, yes),
        Formula::All(parts) => parts.iter().rev().fold(yes, |yes, part| place(nodes, part, yes, no)),
        Formula::Any(parts) => parts.iter().rev().fold(no, |no, part| place(nodes, part, yes, no)),
        Formula::If(parts) => {
            let [condition, first, second] = parts.as_ref();
            let first = place(nodes, first, yes, no);
            let second = place(nodes, second, yes, no);
            place(nodes, condition, first, second)
        }
    }
}

/// The values that each variable can still have on a path.
#[derive(Clone, Default, PartialEq)]
struct Facts(BTreeMap<Var, IntervalSet>);

impl Facts {
    /// The facts after a variable turned out to lie in a set.
    fn with(&self, var: Var, set: &IntervalSet) -> Facts {
        let mut facts = self.clone();
        let known = facts.0.remove(&var).unwrap_or_else(|| IntervalSet::range(0, var.largest()));
        let now = known.intersection(set);
        if now.intervals().len() <= MAX_INTERVALS {
            facts.0.insert(var, now);
        }
        facts
    }

    /// The values that a variable can still have.
    fn values(&self, var: Var) -> Option<IntervalSet> {
        if let Some(known) = self.0.get(&var) {
            return Some(known.clone());
        }
        // A header that has many bytes also has fewer.
        let Var::Reach(base, bytes) = var else { return None };
        self.0.iter().find_map(|(other, values)| match *other {
            Var::Reach(of, far) if of == base && far >= bytes && *values == IntervalSet::one(1) => {
                Some(IntervalSet::one(1))
            }
            Var::Reach(of, near) if of == base && near <= bytes && *values == IntervalSet::one(0) => {
                Some(IntervalSet::one(0))
            }
            _ => None,
        })
    }

    /// Keeps what holds on both of two paths.
    fn meet(&mut self, other: &Facts) {
        self.0.retain(|var, values| {
            let Some(theirs) = other.0.get(var) else { return false };
            *values = values.union(theirs);
            values.intervals().len() <= MAX_INTERVALS
        });
    }
}

/// The successor of a node for all values of a set, if there is only one.
fn only_way(node: &Node, values: &IntervalSet) -> Option<To> {
    let mut ways = node
        .spans()
        .filter(|(first, last, _)| !values.intersection(&IntervalSet::range(*first, *last)).is_empty())
        .map(|(_, _, to)| to);
    let first = ways.next()?;
    ways.all(|way| way == first).then_some(first)
}

fn threaded(mut graph: Graph) -> Graph {
    let mut known: Vec<Option<Facts>> = vec![None; graph.nodes.len()];
    let mut skips = 0;
    if let To::Node(root) = graph.root {
        known[root] = Some(Facts::default());
    }
    for at in 0..graph.nodes.len() {
        let Some(facts) = known[at].take() else { continue };
        let node = graph.nodes[at].clone();
        // Several arms may lead to one place, where one of them is known to hold.
        let mut ways: BTreeMap<To, IntervalSet> = BTreeMap::new();
        for (first, last, to) in node.spans() {
            let set = ways.entry(to).or_default();
            *set = set.union(&IntervalSet::range(first, last));
        }
        // All arms are redirected at once: one may lead now where another led before.
        let mut led_on: BTreeMap<To, To> = BTreeMap::new();
        for (old, set) in ways {
            let facts = facts.with(node.var, &set);
            let mut to = old;
            while let To::Node(next) = to
                && skips < MAX_SKIPS
            {
                skips += 1;
                let next = &graph.nodes[next];
                match facts.values(next.var).and_then(|values| only_way(next, &values)) {
                    Some(way) => to = way,
                    None => break,
                }
            }
            led_on.insert(old, to);
            if let To::Node(next) = to {
                match &mut known[next] {
                    Some(there) => there.meet(&facts),
                    none => *none = Some(facts),
                }
            }
        }
        let arms = &mut graph.nodes[at].arms;
        arms.iter_mut().for_each(|arm| arm.to = led_on.get(&arm.to).copied().unwrap_or(arm.to));
        Node::join(arms);
    }
    skip_decided(graph)
}

/// Removes nodes whose arms all lead to one place.
fn skip_decided(mut graph: Graph) -> Graph {
    let mut target: Vec<Option<To>> = vec![None; graph.nodes.len()];
    let follow = |target: &[Option<To>], to: To| match to {
        To::Node(node) => target[node].unwrap_or(to),
        leaf => leaf,
    };
    for at in (0..graph.nodes.len()).rev() {
        let node = &mut graph.nodes[at];
        node.arms.iter_mut().for_each(|arm| arm.to = follow(&target, arm.to));
        Node::join(&mut node.arms);
        if let [only] = node.arms.as_slice() {
            target[at] = Some(only.to);
        }
    }
    graph.root = follow(&target, graph.root);
    graph
}
