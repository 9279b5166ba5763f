//! The order in which the nodes of a graph process a burst, and whose packets can meet.
//!
//! A node comes before those behind it, so that packets whose ways part and meet again are all there when
//! the node at which they meet runs ([`crate::waiting`]). The nodes of a loop are side by side: what is behind
//! the loop runs when all packets have left it. Elements that send to one port take turns, as one element would; those
//! that print share what they print to.

use crate::graph::Node;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Above so many nodes, all packets count as ones that can meet: the sets of nodes would take too much
/// memory.
const MOST_WITH_SETS: usize = 4_096;

/// The order of a graph's nodes.
#[derive(Default)]
pub(crate) struct NodeOrder {
    ranks: Vec<u32>,
    /// For each node, the set of nodes that its packets can reach, itself among them: a bit each.
    reached: Vec<u64>,
    words: usize,
}

impl NodeOrder {
    /// The order of these nodes by the wires on which packets are pushed.
    pub fn of(nodes: &[Node]) -> NodeOrder {
        let order = first_to_last(nodes);
        let mut ranks = vec![0; nodes.len()];
        order.iter().zip(0..).for_each(|(node, rank)| ranks[*node] = rank);
        let ends = same_ends(nodes);
        for group in &ends {
            // Nothing is behind them: any place is right that is behind all that leads there.
            let last = group.iter().map(|node| ranks[*node]).max().unwrap_or(0);
            group.iter().for_each(|node| ranks[*node] = last);
        }
        let words = if nodes.len() <= MOST_WITH_SETS { nodes.len().div_ceil(64) } else { 0 };
        let mut reached = vec![0; nodes.len() * words];
        if words > 0 {
            (0..nodes.len()).for_each(|node| reached[node * words + node / 64] |= 1 << (node % 64));
            for group in ends.iter().chain(&printers(nodes)) {
                let meet = group.iter().flat_map(|node| group.iter().map(move |other| (node, other)));
                meet.for_each(|(node, other)| reached[node * words + other / 64] |= 1 << (other % 64));
            }
            // In a loop once is not enough.
            let mut grew = true;
            while grew {
                grew = false;
                order.iter().rev().for_each(|node| grew |= reach(nodes, *node, &mut reached, words));
            }
        }
        NodeOrder { ranks, reached, words }
    }

    /// The place of a node.
    #[inline(always)]
    pub fn rank(&self, node: usize) -> u32 {
        self.ranks[node]
    }

    /// Whether packets that enter a node can reach another one. False of more nodes than sets are kept of.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        self.reached.get(from * self.words + to / 64).is_some_and(|word| word & 1 << (to % 64) != 0)
    }

    /// Whether packets that enter one node and packets that enter another one can meet.
    pub fn can_meet(&self, one: usize, other: usize) -> bool {
        let set = |node: usize| &self.reached[node * self.words..(node + 1) * self.words];
        self.words == 0 || set(one).iter().zip(set(other)).any(|(one, other)| one & other != 0)
    }
}

/// The elements that send to one port or file, where several do: their packets meet there.
fn same_ends(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut ends: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.outputs.is_empty()) {
        let name = node.config.split(',').next().unwrap_or_default().trim();
        if !name.is_empty() {
            ends.entry((node.class.name, name)).or_default().push(at);
        }
    }
    ends.into_values().filter(|group| group.len() > 1).collect()
}

/// The elements that print lines about packets: these meet where they are printed, in the order of their packets.
fn printers(nodes: &[Node]) -> Option<Vec<usize>> {
    let prints = |node: &Node| node.element.as_ref().is_some_and(|element| element.prints());
    let printers: Vec<usize> = (0..nodes.len()).filter(|at| prints(&nodes[*at])).collect();
    (printers.len() > 1).then_some(printers)
}

/// The nodes behind a node, output by output.
fn behind(node: &Node) -> impl DoubleEndedIterator<Item = usize> {
    node.outputs.iter().flatten().map(|end| end.node)
}

/// The most loops inside one another that are looked at.
const MOST_NESTED: usize = 32;

/// The nodes, each before all that it leads to, and those of a loop side by side: a weak topological order (Bourdoncle
/// 1993).
fn first_to_last(nodes: &[Node]) -> Vec<usize> {
    let mut before = vec![vec![]; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        behind(node).for_each(|next| before[next].push(at));
    }
    // From the sources first: a wire that leads back should be one that packets pass late.
    let (sources, others): (Vec<usize>, Vec<usize>) =
        (0..nodes.len()).partition(|node| before[*node].is_empty());
    let wires = Wires { nodes, before, steps: steps(nodes, &sources) };
    let mut order = Vec::with_capacity(nodes.len());
    arrange(&wires, &[sources, others].concat(), 0, &mut order);
    order
}

/// A graph, for the order of its nodes.
struct Wires<'a> {
    nodes: &'a [Node],
    /// For each node, those that lead to it.
    before: Vec<Vec<usize>>,
    /// For each node, the first source whose packets reach it, and after how many nodes.
    steps: Vec<(usize, usize)>,
}

/// See [`Wires::steps`].
fn steps(nodes: &[Node], sources: &[usize]) -> Vec<(usize, usize)> {
    let mut steps = vec![(usize::MAX, usize::MAX); nodes.len()];
    for (number, source) in sources.iter().enumerate() {
        steps[*source] = (number, 0);
        let mut reached = VecDeque::from([*source]);
        while let Some(node) = reached.pop_front() {
            let far = (number, steps[node].1 + 1);
            for next in behind(&nodes[node]) {
                if steps[next].0 == usize::MAX {
                    steps[next] = far;
                    reached.push_back(next);
                }
            }
        }
    }
    steps
}

/// Appends these nodes, those from which packets come first.
fn arrange(wires: &Wires<'_>, members: &[usize], depth: usize, order: &mut Vec<usize>) {
    // Components of nodes that lead to each other (Kosaraju and Sharir).
    let last_first = last_first(wires.nodes, members);
    let mut left: BTreeMap<usize, usize> =
        last_first.iter().rev().enumerate().map(|(place, node)| (*node, place)).collect();
    for &start in last_first.iter().rev() {
        // What leads to this node and comes behind it is in a loop with it.
        let (mut open, mut component) = (vec![start], vec![]);
        while let Some(node) = open.pop() {
            if let Some(place) = left.remove(&node) {
                component.push((place, node));
                open.extend(wires.before[node].iter().filter(|from| left.contains_key(from)));
            }
        }
        // Where chains lead both ways, packets may enter a loop at several nodes, and leave it before they have gone
        // round: those come first that packets reach first.
        component.sort_unstable_by_key(|(place, node)| (wires.steps[*node], *place));
        let component: Vec<usize> = component.into_iter().map(|(_, node)| node).collect();
        match component.split_first() {
            // Without the wires that lead back to the first one, what is inside the loop has an order, too.
            Some((first, rest)) if depth < MOST_NESTED && !rest.is_empty() => {
                order.push(*first);
                arrange(wires, rest, depth + 1, order);
            }
            _ => order.extend(component),
        }
    }
}

/// These nodes, each behind all of them that it leads to, but for loops.
fn last_first(nodes: &[Node], members: &[usize]) -> Vec<usize> {
    let mut unseen: BTreeSet<usize> = members.iter().copied().collect();
    let mut order = Vec::with_capacity(members.len());
    // From the first one, but the last outputs first: of two ways, the one of the first output comes first.
    for &start in members {
        if !unseen.remove(&start) {
            continue;
        }
        let mut path = vec![(start, behind(&nodes[start]).rev())];
        while let Some((node, rest)) = path.last_mut() {
            match rest.find(|next| unseen.remove(next)) {
                Some(next) => path.push((next, behind(&nodes[next]).rev())),
                None => {
                    order.push(*node);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Adds to a node's set those of the nodes behind it. Returns whether it grew.
fn reach(nodes: &[Node], node: usize, reached: &mut [u64], words: usize) -> bool {
    let mut grew = false;
    for next in behind(&nodes[node]).filter(|next| *next != node) {
        for word in 0..words {
            let (to, from) = (node * words + word, next * words + word);
            let both = reached[to] | reached[from];
            grew |= std::mem::replace(&mut reached[to], both) != both;
        }
    }
    grew
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::NodeCounters;
    use crate::graph::{End, Pulled};
    use element::{Class, PortCodes, StateScope};
    use std::sync::Arc;

    static CLASS: Class = Class {
        name: "Test",
        summary: "",
        page: "",
        codes: PortCodes::new("-/-", "h/h"),
        state: StateScope::PerWorker,
        make: |_| None,
    };

    /// Nodes whose outputs lead to these nodes.
    fn wired(outputs: &[&[usize]]) -> Vec<Node> {
        let node = |to: &&[usize]| Node {
            name: String::new(),
            nf: 0,
            class: &CLASS,
            config: String::new(),
            element: None,
            lowered: None,
            first_cells: vec![],
            cells: 0..0,
            entries: vec![],
            outputs: to.iter().map(|node| Some(End { node: *node, port: 0 })).collect(),
            inputs: vec![],
            answers_pull: false,
            reader: None,
            passed: None,
            rests: false,
            is_in_passage: false,
            has_task: false,
            is_from_port: false,
            pulled: Pulled::of(false),
            elsewhere: false,
            is_hooked: false,
            steering: None,
            counters: Arc::new(NodeCounters::default()),
        };
        outputs.iter().map(node).collect()
    }

    fn sorted(order: &NodeOrder, nodes: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..nodes).collect();
        all.sort_by_key(|node| order.rank(*node));
        all
    }

    #[test]
    fn a_node_is_behind_all_that_leads_to_it() {
        // 3 → 1 and 4; 1 → 0; 4 → 2 → 0; 0 → 5.
        let nodes = wired(&[&[5], &[0], &[0], &[1, 4], &[2], &[]]);
        let order = NodeOrder::of(&nodes);
        assert_eq!(sorted(&order, 6), [3, 1, 4, 2, 0, 5]);
        assert!(order.can_meet(1, 4) && order.can_meet(3, 3));
        let apart = NodeOrder::of(&wired(&[&[1, 2], &[3], &[4], &[], &[]]));
        assert!(!apart.can_meet(1, 2) && !apart.can_meet(3, 4) && apart.can_meet(0, 4));
    }

    #[test]
    fn what_is_behind_a_loop_is_behind_all_of_it() {
        // 4 → 0 → 1 → 2; 1 → 3 → 0.
        for outputs in [&[&[1][..], &[2, 3], &[], &[0], &[0]], &[&[1][..], &[3, 2], &[], &[0], &[0]]] {
            let order = NodeOrder::of(&wired(outputs));
            assert_eq!(sorted(&order, 5), [4, 0, 1, 3, 2]);
            assert!(order.can_meet(3, 2));
        }
    }

    #[test]
    fn branches_inside_a_loop_come_before_where_they_meet() {
        // 0 → 1 and 2 → 3 → 4; back 6 → 4 → 3 → 5 → 1 and 2.
        for outputs in [
            &[&[1, 2][..], &[3], &[3], &[4, 5], &[3, 7], &[1, 2], &[4], &[]],
            &[&[2, 1][..], &[3], &[3], &[5, 4], &[7, 3], &[2, 1], &[4], &[]],
        ] {
            let order = NodeOrder::of(&wired(outputs));
            let ranks: Vec<u32> = (0..8).map(|node| order.rank(node)).collect();
            assert!(ranks[1].max(ranks[2]) < ranks[3] && ranks[3] < ranks[4], "{ranks:?}");
        }
    }

    #[test]
    fn loops_inside_a_loop_are_left_before_what_is_behind_them() {
        // 0 → 1 → 2 → 3 → 1, 2 → 4 → 5 → 1: what is answered behind 4 comes back, and 3 is an inner loop.
        for outputs in
            [&[&[1][..], &[2], &[4, 3], &[2], &[5], &[1]], &[&[1][..], &[2], &[3, 4], &[2], &[5], &[1]]]
        {
            assert_eq!(sorted(&NodeOrder::of(&wired(outputs)), 6), [0, 1, 2, 3, 4, 5]);
        }
    }
}
