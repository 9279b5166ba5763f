//! Decision graphs, between formulas and programs.
//!
//! A node tests one variable and branches by its value; leaves are decisions, as numbers. A node comes before
//! those that it leads to.

use super::formula::Var;
use ir::analysis::interval::IntervalSet;
use std::fmt::Write as _;

/// Where an arm leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum To {
    /// To a node, by its index.
    Node(usize),
    /// To a decision.
    Leaf(u32),
}

/// A range of values, from behind the previous arm's `last` to its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arm {
    /// The last value.
    pub last: u64,
    /// Where it leads.
    pub to: To,
}

/// A node. The arms cover all values of the variable, and adjacent arms lead to different places.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The variable that it tests.
    pub var: Var,
    /// Its branches.
    pub arms: Vec<Arm>,
}

impl Node {
    /// The arms that lead to `yes` for the values of a set and to `no` for others.
    pub fn split(var: Var, set: &IntervalSet, yes: To, no: To) -> Vec<Arm> {
        let mut arms = vec![];
        let mut next = 0;
        for &(first, last) in set.intervals() {
            if first > next {
                arms.push(Arm { last: first - 1, to: no });
            }
            arms.push(Arm { last: last.min(var.largest()), to: yes });
            next = last.saturating_add(1);
        }
        if arms.last().is_none_or(|arm| arm.last < var.largest()) {
            arms.push(Arm { last: var.largest(), to: no });
        }
        arms
    }

    /// The arms with the first value of each.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64, To)> + '_ {
        let firsts = std::iter::once(0).chain(self.arms.iter().map(|arm| arm.last.saturating_add(1)));
        firsts.zip(&self.arms).map(|(first, arm)| (first, arm.last, arm.to))
    }

    /// Joins adjacent arms that lead to the same place.
    pub fn join(arms: &mut Vec<Arm>) {
        arms.dedup_by(|next, kept| {
            let same = next.to == kept.to;
            if same {
                kept.last = next.last;
            }
            same
        });
    }
}

/// A decision graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    /// The nodes, each before those that it leads to.
    pub nodes: Vec<Node>,
    /// Where it starts.
    pub root: To,
}

impl Graph {
    /// A graph from nodes whose children come before them; reverses the order.
    pub fn turned(mut nodes: Vec<Node>, root: To) -> Graph {
        let last = nodes.len().saturating_sub(1);
        let turn = |to: To| match to {
            To::Node(node) => To::Node(last - node),
            leaf => leaf,
        };
        nodes.reverse();
        nodes.iter_mut().flat_map(|node| &mut node.arms).for_each(|arm| arm.to = turn(arm.to));
        Graph { nodes, root: turn(root) }
    }

    /// The graph without unreachable nodes, in the same order.
    pub fn pruned(self) -> Graph {
        let mut number: Vec<Option<usize>> = vec![None; self.nodes.len()];
        if let To::Node(root) = self.root
            && let Some(mark) = number.get_mut(root)
        {
            *mark = Some(0);
        }
        let mut kept = 0;
        for (at, node) in self.nodes.iter().enumerate() {
            if number.get(at).copied().flatten().is_none() {
                continue;
            }
            number[at] = Some(kept);
            kept += 1;
            for arm in &node.arms {
                if let To::Node(to) = arm.to {
                    number[to] = Some(0);
                }
            }
        }
        let rename = |to: To| match to {
            To::Node(node) => To::Node(number.get(node).copied().flatten().unwrap_or(0)),
            leaf => leaf,
        };
        let root = rename(self.root);
        let reached = self.nodes.into_iter().zip(&number).filter(|(_, number)| number.is_some());
        let nodes = reached.map(|(mut node, _)| {
            node.arms.iter_mut().for_each(|arm| arm.to = rename(arm.to));
            node
        });
        Graph { nodes: nodes.collect(), root }
    }

    /// Every decision that a packet may get.
    pub fn leaves(&self) -> std::collections::BTreeSet<u32> {
        let arms = self.nodes.iter().flat_map(|node| node.arms.iter().map(|arm| arm.to));
        let leaf = |to| if let To::Leaf(leaf) = to { Some(leaf) } else { None };
        arms.chain([self.root]).filter_map(leaf).collect()
    }

    /// A line for each step, as Click's `program` handler writes it.
    pub fn describe(&self, decision: impl Fn(u32) -> String) -> String {
        let place = |to: To| match to {
            To::Node(node) => format!("step {node}"),
            To::Leaf(leaf) => decision(leaf),
        };
        if self.nodes.is_empty() {
            return format!("all->{}", place(self.root));
        }
        let mut text = String::new();
        for (at, node) in self.nodes.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{at:2} {}", if at > 0 { "\n" } else { "" }, node.var);
            for (first, last, to) in node.spans() {
                let _ = if first == last {
                    write!(text, "  {first}->{}", place(to))
                } else {
                    write!(text, "  {first}-{last}->{}", place(to))
                };
            }
        }
        text
    }
}
