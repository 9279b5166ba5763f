//! Where packets would turn back.
//!
//! An NF with several neighbours sends few packets back to the one that they came from. What its elements say of that
//! is looked for at each element that chooses. Where several stages are in one NF, their wires have to tell:
//!
//! Seen from an element that chooses between outputs, and from where ways join in front of it: packets that leave by
//! an output come back by some of the joining wires, if at all. If packets of no other output come back by such a wire,
//! a packet that came by it and leaves by that output turns back, as long as others come by wires that the output does
//! not lead to. In a ring packets come back by the wires of other outputs, too, and nothing is said of them.

use crate::graph::{End, Lowered, Node};
use std::cell::Cell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// An input of an element: its node and number.
pub(super) type NodeInput = (usize, usize);

/// A wire: the input by which packets entered its first element, and the output by which they left it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Wire {
    pub from: NodeInput,
    pub port: usize,
}

/// An input of an element, for packets that came by a certain way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ArrivalPlace {
    pub to: NodeInput,
    /// The wire by which packets came, as far as the next place where that says which of them turn back.
    via: Option<Wire>,
}

impl ArrivalPlace {
    /// An input as packets enter it from outside.
    pub fn entered(to: NodeInput) -> ArrivalPlace {
        ArrivalPlace { to, via: None }
    }

    /// Whether it is for packets that came by one wire.
    pub fn is_by_wire(&self) -> bool {
        self.via.is_some()
    }
}

/// Which packets turn back, and where.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Turns {
    /// The inputs of elements at which packets turn back.
    places: BTreeSet<NodeInput>,
    /// For a wire and the input of an element that chooses, the output by which packets turn back.
    back: BTreeSet<(Wire, NodeInput, usize)>,
    /// These wires.
    wires: BTreeSet<Wire>,
    /// Outputs to what answers pings to an NF itself, and those by which all packets turn back.
    seldom: BTreeSet<(NodeInput, usize)>,
}

impl Turns {
    /// The turns in a graph of elements, whether they have programs or not.
    pub fn of(nodes: &[Node]) -> Turns {
        let graph = WireGraph::of(nodes);
        let mut has_loop = false;
        chain::closing_edges(&graph.next, 0..graph.inputs.len(), |_, _, _| has_loop = true);
        let mut turns = Turns::default();
        if !has_loop {
            return turns;
        }
        let search = Search {
            nodes,
            graph: &graph,
            choosing: graph.choosing(nodes),
            neighbours: graph.neighbours(nodes),
            steps: Cell::new(0),
        };
        for chooser in &search.choosing {
            if search.steps.get() > MOST_STEPS {
                return Turns::default();
            }
            let place = graph.inputs[*chooser];
            let joined: BTreeSet<Numbered> = search.joined(*chooser, false).into_iter().flatten().collect();
            let (all_turn, some_turn) = search.turns_of_nf(*chooser, &joined);
            let seldom = search.to_itself_at(*chooser, &joined).into_iter().chain(all_turn);
            turns.seldom.extend(seldom.map(|output| (place, output)));
            for ((from, port), output) in search.turns_at(*chooser, joined).into_iter().chain(some_turn) {
                let wire = Wire { from: graph.inputs[from], port };
                turns.wires.insert(wire);
                turns.places.insert(place);
                turns.back.insert((wire, place, output));
            }
        }
        turns
    }

    /// Whether few packets of a place leave by an output: they turn back, or are for an NF itself.
    pub fn are_few(&self, place: ArrivalPlace, port: usize) -> bool {
        self.seldom.contains(&(place.to, port))
            || place.via.is_some_and(|wire| self.back.contains(&(wire, place.to, port)))
    }

    /// Where packets of a place come by a wire to an input.
    pub fn behind(&self, place: ArrivalPlace, wire: Wire, to: NodeInput) -> ArrivalPlace {
        let kept = place.via.filter(|_| !self.places.contains(&place.to));
        ArrivalPlace { to, via: if self.wires.contains(&wire) { Some(wire) } else { kept } }
    }
}

/// Where packets usually go from each input.
struct WireGraph {
    /// The inputs that packets reach, in order. An element without inputs has one.
    inputs: Vec<NodeInput>,
    /// For each of them, where its element's outputs lead.
    next: Vec<Vec<Option<usize>>>,
    /// The wires that lead to each.
    before: Vec<Vec<Numbered>>,
}

/// A wire in the numbers of [`WireGraph`].
type Numbered = (usize, usize);

impl WireGraph {
    fn of(nodes: &[Node]) -> WireGraph {
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
            if let Entry::Vacant(vacant) = reached.entry(input) {
                open.extend(vacant.insert(ahead(input)).iter().flatten());
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
        WireGraph { inputs, next, before }
    }

    /// Whether packets of an input get out there, to a port.
    fn is_end(&self, nodes: &[Node], at: usize) -> bool {
        let node = &nodes[self.inputs[at].0];
        node.outputs.is_empty() && node.lowered.is_none()
    }

    /// The neighbours of each NF; `None` stands for a port.
    fn neighbours(&self, nodes: &[Node]) -> BTreeMap<usize, BTreeSet<Option<Neighbour>>> {
        let mut all: BTreeMap<usize, BTreeSet<Option<Neighbour>>> = BTreeMap::new();
        for at in 0..self.inputs.len() {
            let nf = nodes[self.inputs[at].0].nf;
            let of = |at: &usize| nodes[self.inputs[*at].0].nf;
            let others = self.next[at]
                .iter()
                .flatten()
                .map(of)
                .chain(self.before[at].iter().map(|(from, _)| of(from)));
            let others: Vec<Option<Neighbour>> = others.filter(|other| *other != nf).map(Some).collect();
            let is_port = self.before[at].is_empty() || self.is_end(nodes, at);
            all.entry(nf).or_default().extend(others.into_iter().chain(is_port.then_some(None)));
        }
        all
    }

    /// The inputs whose elements have several outputs from which packets get out, to a port.
    fn choosing(&self, nodes: &[Node]) -> BTreeSet<usize> {
        let mut gets_out = vec![false; self.inputs.len()];
        let mut open: Vec<usize> = (0..self.inputs.len()).filter(|at| self.is_end(nodes, *at)).collect();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut gets_out[at], true) {
                open.extend(self.before[at].iter().map(|(from, _)| from));
            }
        }
        let chooses = |at: &usize| self.next[*at].iter().flatten().filter(|to| gets_out[**to]).count() > 1;
        (0..self.inputs.len()).filter(chooses).collect()
    }
}

/// The most inputs that are looked at in the search for turns: some tenths of a second. Behind that, nothing turns back.
const MOST_STEPS: usize = 20_000_000;

struct Search<'a> {
    nodes: &'a [Node],
    graph: &'a WireGraph,
    choosing: BTreeSet<usize>,
    /// The other NFs and ports that packets of each NF come from and leave to.
    neighbours: BTreeMap<usize, BTreeSet<Option<Neighbour>>>,
    /// The inputs that were looked at.
    steps: Cell<usize>,
}

/// Another NF, by its number.
type Neighbour = usize;

/// The only neighbour of these; `None` stands for a port.
fn only(found: &BTreeSet<Option<Neighbour>>) -> Option<Neighbour> {
    if found.len() == 1 { found.first().copied().flatten() } else { None }
}

/// What becomes of packets behind an output.
#[derive(Default)]
struct Behind {
    /// The wires by which they come back.
    come_back: BTreeSet<Numbered>,
    /// Whether some get out, to a port.
    gets_out: bool,
    /// All inputs that they reach.
    inputs: Vec<usize>,
}

impl Search<'_> {
    /// The wires by which packets come to an input where ways join, the nearest one that leads here; without a choice
    /// between, unless `over_choices`.
    fn joined(&self, mut at: usize, over_choices: bool) -> Option<Vec<Numbered>> {
        // No way is longer than there are inputs.
        for _ in 0..self.graph.inputs.len() {
            match self.graph.before[at][..] {
                [] => return None,
                [(from, _)] => at = from,
                _ => return Some(self.graph.before[at].clone()),
            }
            if !over_choices && self.choosing.contains(&at) {
                return None;
            }
        }
        None
    }

    /// The outputs of an element that chooses behind which its NF answers pings to itself: the answers come back to
    /// where ways join before it, and nothing else gets out.
    fn to_itself_at(&self, chooser: usize, joined: &BTreeSet<Numbered>) -> Vec<usize> {
        if joined.is_empty() {
            return vec![];
        }
        let node = |at: usize| &self.nodes[self.graph.inputs[at].0];
        let answers = |(output, to): (usize, &Option<usize>)| {
            let behind = self.behind((*to)?, joined);
            let answers = behind.inputs.iter().any(|at| node(*at).class.name == "ICMPPingResponder");
            let is_inside = behind.inputs.iter().all(|at| node(*at).nf == node(chooser).nf);
            (answers && is_inside && !behind.gets_out && !behind.come_back.is_empty()).then_some(output)
        };
        self.graph.next[chooser].iter().enumerate().filter_map(answers).collect()
    }

    /// The turns at an element that chooses, by the neighbours of its NF: the outputs behind which all packets leave to
    /// the NF that they came from, and those behind which the packets of a wire do.
    fn turns_of_nf(
        &self,
        chooser: usize,
        joined: &BTreeSet<Numbered>,
    ) -> (Vec<usize>, Vec<(Numbered, usize)>) {
        let nf = self.nodes[self.graph.inputs[chooser].0].nf;
        if self.neighbours.get(&nf).is_none_or(|all| all.len() < 2) {
            return (vec![], vec![]);
        }
        let from: Vec<(Numbered, Option<Neighbour>)> =
            joined.iter().map(|wire| (*wire, self.only_from(wire.0, nf))).collect();
        let of_all = self.only_from(chooser, nf);
        let (mut all, mut some) = (vec![], vec![]);
        for (output, to) in self.graph.next[chooser].iter().enumerate() {
            let Some(left) = to.and_then(|to| self.only_to(to, joined, nf)) else { continue };
            if of_all == Some(left) {
                all.push(output);
            }
            some.extend(from.iter().filter(|(_, from)| *from == Some(left)).map(|(wire, _)| (*wire, output)));
        }
        (all, some)
    }

    /// The neighbour that all packets at an input of an NF came from, if it is an NF, and one.
    fn only_from(&self, at: usize, nf: usize) -> Option<Neighbour> {
        let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![at], BTreeSet::new());
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            self.steps.set(self.steps.get() + 1);
            if self.graph.before[at].is_empty() {
                found.insert(None);
            }
            for (from, _) in &self.graph.before[at] {
                match self.nodes[self.graph.inputs[*from].0].nf {
                    other if other == nf => open.push(*from),
                    other => drop(found.insert(Some(other))),
                }
            }
        }
        only(&found)
    }

    /// The neighbour to which all packets from an input of an NF leave, if it is an NF, and one; not of packets that come
    /// by one of the wires.
    fn only_to(&self, at: usize, wires: &BTreeSet<Numbered>, nf: usize) -> Option<Neighbour> {
        let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![at], BTreeSet::new());
        while let Some(at) = open.pop() {
            let of = self.nodes[self.graph.inputs[at].0].nf;
            if of != nf {
                found.insert(Some(of));
            } else if seen.insert(at) {
                self.steps.set(self.steps.get() + 1);
                if self.graph.is_end(self.nodes, at) {
                    found.insert(None);
                }
                let next = self.graph.next[at].iter().enumerate();
                open.extend(next.filter(|(port, _)| !wires.contains(&(at, *port))).filter_map(|(_, to)| *to));
            }
        }
        only(&found)
    }

    /// The turns of packets at an element that chooses: by which wire they came, and the output. Wires that do not say
    /// where packets came from are replaced by those that join before them, once each; `wires` are the nearest that join.
    fn turns_at(&self, chooser: usize, mut wires: BTreeSet<Numbered>) -> Vec<(Numbered, usize)> {
        if wires.is_empty() {
            return vec![];
        }
        let mut fixed: BTreeSet<Numbered> = BTreeSet::new();
        loop {
            let mut back: BTreeMap<Numbered, Vec<usize>> = BTreeMap::new();
            for (output, to) in self.graph.next[chooser].iter().enumerate() {
                let Some(to) = to else { continue };
                let come_back = self.behind(*to, &wires).come_back;
                // By an output behind which all packets come back, they go on.
                if come_back.len() < wires.len() {
                    come_back.into_iter().for_each(|wire| back.entry(wire).or_default().push(output));
                }
            }
            let is_unclear =
                |(wire, outputs): &(&Numbered, &Vec<usize>)| outputs.len() > 1 && !fixed.contains(*wire);
            let unclear: Vec<Numbered> = back.iter().filter(is_unclear).map(|(wire, _)| *wire).collect();
            if unclear.is_empty() || self.steps.get() > MOST_STEPS {
                let is_clear = |(_, outputs): &(Numbered, Vec<usize>)| outputs.len() == 1;
                return back.into_iter().filter(is_clear).map(|(wire, outputs)| (wire, outputs[0])).collect();
            }
            for wire in unclear {
                fixed.insert(wire);
                if let Some(further) = self.joined(wire.0, true) {
                    wires.remove(&wire);
                    wires.extend(further);
                }
            }
        }
    }

    /// What becomes of packets from a place until they come by one of the wires.
    fn behind(&self, from: usize, wires: &BTreeSet<Numbered>) -> Behind {
        let mut behind = Behind::default();
        let (mut seen, mut open) = (vec![false; self.graph.inputs.len()], vec![from]);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            self.steps.set(self.steps.get() + 1);
            behind.inputs.push(at);
            behind.gets_out |= self.graph.is_end(self.nodes, at);
            for (port, to) in self.graph.next[at].iter().enumerate() {
                match to {
                    Some(_) if wires.contains(&(at, port)) => drop(behind.come_back.insert((at, port))),
                    Some(to) => open.push(*to),
                    None => {}
                }
            }
        }
        behind
    }
}

/// For each output of a node, whether packets of an input usually leave by it: its program can send them
/// there, and the element does not call it unusual.
pub(super) fn usual_outputs(node: &Node, input: usize) -> Vec<bool> {
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
