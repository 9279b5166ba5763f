//! Warns of loops inside a configuration that packets may never leave.
//!
//! Many configurations have loops, and most are left soon: a router sends ICMP errors through its own route
//! table, and a TTL counts down. A loop is endless for a packet in two cases:
//!
//! - Nothing on it changes the packet or a decision: a packet that went round once goes round again.
//! - All elements on it send every packet by one output, whatever they change.
//!
//! A program shows which elements these are (one of the element's own, or the one for packets that pass a
//! queue); its slow paths, and an element without a program, do what the element's other facts leave them:
//! send packets by the only output if there are no drop reasons, unchanged if it writes no packets. All other
//! elements are taken to let every packet out some time, so that nothing is reported that may be meant.

use crate::services::Wires;
use chain::closing_edges;
use click::{Connection, ElementId, Graph};
use diag::{Diagnostics, Span};
use element::Shape;
use ir::{Inst, Program, Term};
use std::collections::{BTreeSet, HashMap};
use worker::graph::{End, Node};

/// A wire of a loop: the element and output that it leaves, and the element and input that it enters.
type Wire = (ElementId, usize, ElementId, usize);

/// Reports each loop once, at its first wire in the text.
pub(crate) fn warn(graph: &Graph, nodes: &[Node], wires: &Wires, diags: &mut Diagnostics) {
    // A place is an input of an element.
    let mut places: Vec<(usize, usize)> = vec![];
    for (node, wires) in wires.before.iter().enumerate() {
        let inputs: BTreeSet<usize> = wires.iter().map(|(input, _)| *input).collect();
        places.extend(inputs.into_iter().map(|input| (node, input)));
    }
    let mut seen: BTreeSet<BTreeSet<Wire>> = BTreeSet::new();
    for passes in [Passes::Unchanged, Passes::OneWay] {
        for ring in rings(nodes, wires, &places, passes) {
            if seen.insert(ring.iter().copied().collect()) {
                report(graph, &ring, diags);
            }
        }
    }
}

/// The loops of elements that pass all packets in this way.
fn rings(nodes: &[Node], wires: &Wires, places: &[(usize, usize)], passes: Passes) -> Vec<Vec<Wire>> {
    let numbers: HashMap<(usize, usize), usize> =
        places.iter().enumerate().map(|(number, place)| (*place, number)).collect();
    let mut next: Vec<Vec<Option<usize>>> = vec![];
    // The output by which each of these edges leaves.
    let mut outputs: Vec<Vec<usize>> = vec![];
    for &(node, input) in places {
        let same = outputs_of(&nodes[node], input, passes);
        let leaves = wires.after[node].iter().filter(|(output, _)| same.contains(output));
        let edge = |(output, end): &(usize, End)| (numbers.get(&(end.node, end.port)).copied(), *output);
        let (edges, ports) = leaves.map(edge).unzip();
        next.push(edges);
        outputs.push(ports);
    }
    let mut rings = vec![];
    closing_edges(&next, 0..places.len(), |path, edge, back| {
        let from = path.iter().position(|(at, _)| *at == back).unwrap_or(0);
        let wire = |(at, (place, followed)): (usize, &(usize, usize))| {
            // The last one's edge closes the loop; of the others it is the one that was followed last.
            let edge = if at + 1 == path.len() { edge } else { followed - 1 };
            let (to, input) = places[next[*place][edge]?];
            Some((ElementId(places[*place].0), outputs[*place][edge], ElementId(to), input))
        };
        rings.push(path.iter().enumerate().skip(from).filter_map(wire).collect());
    });
    rings
}

/// How elements pass packets on, such that a loop of them is endless.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// The packets are not changed, nor is what decides about their outputs.
    Unchanged,
    /// All packets leave by one output.
    OneWay,
}

/// The outputs by which packets of an input may leave in this way.
fn outputs_of(node: &Node, input: usize, passes: Passes) -> BTreeSet<usize> {
    let shape = Shape { inputs: node.inputs.len(), outputs: node.outputs.len() };
    let Some(element) = &node.element else { return BTreeSet::new() };
    // What its Rust code does.
    let is_one_way = shape.outputs == 1 && element.reasons().is_empty();
    let code = Code { is_one_way, changes: element.writes() };
    if let Some(lowered) = &node.lowered {
        return of_program(&lowered.program, input, passes, code);
    }
    match element.lower_passing(shape) {
        Some(Ok(program)) => of_program(&program, input, passes, code),
        Some(Err(_)) => BTreeSet::new(),
        None => {
            let passes = code.is_one_way && (passes == Passes::OneWay || !code.changes);
            passes.then_some(0).into_iter().collect()
        }
    }
}

/// What the Rust code of an element may do with a packet.
#[derive(Clone, Copy)]
struct Code {
    /// It has only one way for it.
    is_one_way: bool,
    changes: bool,
}

fn of_program(program: &Program, input: usize, passes: Passes, code: Code) -> BTreeSet<usize> {
    let outputs = program.outputs_of(input);
    let has = |is: fn(&Term) -> bool| program.blocks.iter().any(|block| is(&block.term));
    let is_slow = has(|term| matches!(term, Term::Slow(_)));
    let drops = has(|term| matches!(term, Term::Drop(_)));
    let is_one_way = outputs.len() == 1 && !drops && (!is_slow || code.is_one_way);
    let does = match passes {
        Passes::OneWay => is_one_way,
        // What an element counts decides nothing where there is one way.
        Passes::Unchanged => {
            let changes = changes(program) || is_slow && code.changes;
            !changes && (is_one_way || !is_slow && !looks_at_own_counts(program))
        }
    };
    if does { outputs } else { BTreeSet::new() }
}

fn insts(program: &Program) -> impl Iterator<Item = &Inst> {
    program.blocks.iter().flat_map(|block| &block.insts).map(|(_, inst)| inst)
}

/// Whether a program reads state cells that it writes itself.
fn looks_at_own_counts(program: &Program) -> bool {
    let (mut stored, mut loaded) = (BTreeSet::new(), BTreeSet::new());
    for inst in insts(program) {
        match inst {
            Inst::CellLoad(cell) => drop(loaded.insert(*cell)),
            Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) => drop(stored.insert(*cell)),
            _ => {}
        }
    }
    !stored.is_disjoint(&loaded)
}

/// Whether a program writes a packet, an annotation or a table, moves a header, or looks at the time.
fn changes(program: &Program) -> bool {
    // What has no result acts; cells are looked at apart.
    let is_cell = |inst: &Inst| matches!(inst, Inst::CellStore(..) | Inst::CellAdd(..));
    insts(program).any(|inst| matches!(inst, Inst::Now) || !inst.has_result() && !is_cell(inst))
}

fn report(graph: &Graph, ring: &[Wire], diags: &mut Diagnostics) {
    let span = |(from, output, to, input): &Wire| {
        let is_it = |wire: &&Connection| {
            (wire.from, wire.from_port as usize, wire.to, wire.to_port as usize)
                == (*from, *output, *to, *input)
        };
        graph.connections.iter().find(is_it).map_or(Span::NONE, |wire| wire.span)
    };
    let name = |id: ElementId| graph.element(id).map_or("", |element| element.name.as_str());
    let Some((last, first)) = ring.last().zip(ring.iter().map(span).min_by_key(|span| span.start)) else {
        return;
    };
    let mut path = name(last.2).to_string();
    for (_, output, to, input) in ring {
        let output = if *output > 0 { format!("[{output}]") } else { String::new() };
        let input = if *input > 0 { format!("[{input}]") } else { String::new() };
        path += &format!("{output} -> {input}{}", name(*to));
    }
    let mut entry = diags.warning(first, format!("packets may go round here for ever: {path}"));
    for wire in ring.iter().map(span).filter(|span| *span != first) {
        entry = entry.with_note(wire, "goes on here");
    }
    entry.help(
        "nothing on the loop lets a packet out that went round once; packets that are in a loop too long are \
         dropped. Take one of these wires out, or put a check on the loop that counts down, as DecIPTTL does",
    );
}
