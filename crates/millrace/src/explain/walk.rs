//! The path of a packet through a graph: element by element, or with fused regions as one program.
//!
//! The evaluator runs the programs; the traffic class of the packet gives the reasons for the result. Opaque
//! elements and slow paths are not run: the path continues behind an opaque element only if its element class
//! is known to pass packets on.

use super::packet::Held;
use crate::synth::classes::{Group, Walked};
use click::ElementId;
use ir::eval::{EvalState, Exit};
use ir::{Table, Tables};
use runtime::Assembly;
use serde::Serialize;
use std::collections::VecDeque;
use synth::classes::concrete::Concrete;
use synth::classes::show::{Show, value_text};
use synth::classes::{Class, Classes, Options, expr};
use worker::graph::{Node, RegionEntry};

/// More hops than a chain without a loop has.
const MOST_HOPS: usize = 1_000;
/// The time of the burst: one second after the start.
const NOW_NS: u64 = 1_000_000_000;

/// A step of the packet: an element, or a fused region.
#[derive(Debug, Serialize)]
pub struct Hop {
    /// The element, or the fused region.
    pub at: String,
    /// In a fused region, the number of the packet's traffic class, from 1.
    pub class: Option<usize>,
    /// The number of traffic classes of the fused region; 0 for an element.
    pub of: usize,
    /// The decisions: the element, and the condition that held.
    pub decided: Vec<(String, String)>,
    /// The writes, as `field = value`.
    pub wrote: Vec<String>,
    /// Where the packet continued, or why it did not.
    pub went: String,
}

/// The end of a packet's path. A path with copies has several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PacketOutcome {
    /// `sent`, `dropped` or `unknown`.
    pub ends: &'static str,
    /// The element at the end.
    pub at: String,
    /// The port, the drop reason, or why the path is not followed further.
    pub why: String,
    /// The packet's bytes at the end; empty if it was dropped.
    #[serde(serialize_with = "as_hex")]
    pub bytes: Vec<u8>,
}

fn as_hex<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&crate::text::hex(bytes, ""))
}

/// The path of a packet.
#[derive(Debug, Default, Serialize)]
pub struct Walk {
    pub hops: Vec<Hop>,
    pub outcomes: Vec<PacketOutcome>,
}

/// The tables of a program, which belong to the elements of its nodes.
struct PartTables<'a> {
    nodes: &'a mut [Node],
    /// For each table of the program, the node and the number of the table in its element.
    of: Vec<(usize, usize)>,
}

impl Tables for PartTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        let (node, table) = *self.of.get(index)?;
        self.nodes.get_mut(node)?.element.as_mut()?.table(table)
    }
}

/// A packet that has arrived at an input.
struct Stop {
    node: usize,
    input: usize,
    held: Held,
}

/// Walks a packet through a chain without earlier state.
pub struct Walker<'a> {
    graph: &'a click::Graph,
    assembly: Assembly,
    /// The cells of each node, and of each fused region.
    cells: (Vec<Vec<u64>>, Vec<Vec<u64>>),
    /// The traffic classes of each fused region; empty if the chain was assembled without fused regions.
    fused: Vec<Walked>,
    open: VecDeque<Stop>,
    walk: Walk,
}

impl<'a> Walker<'a> {
    /// For a chain that has just been assembled. Its fused regions, if any, are walked as programs, with at
    /// most `max_classes` traffic classes for each kind of entry.
    pub fn new(graph: &'a click::Graph, assembly: Assembly, max_classes: usize) -> Walker<'a> {
        let (nodes, regions) = (&assembly.graphs[0], &assembly.regions[0]);
        let of_nodes = nodes.iter().map(|node| node.first_cells.clone()).collect();
        let of_regions = regions
            .iter()
            .map(|region| region.linked.program.cells.iter().map(|cell| cell.init).collect())
            .collect();
        let walked = |region| Walked::of(region, nodes, max_classes);
        let fused = regions.iter().map(walked).collect();
        let cells = (of_nodes, of_regions);
        Walker { graph, assembly, cells, fused, open: VecDeque::new(), walk: Walk::default() }
    }

    /// Walks a packet that a source emits.
    ///
    /// # Errors
    /// When a program breaks an invariant of the IR: a bug.
    pub fn walk(mut self, source: usize, held: Held) -> anyhow::Result<Walk> {
        self.leave(source, 0, held);
        while let Some(stop) = self.open.pop_front() {
            if self.walk.hops.len() >= MOST_HOPS {
                self.end(stop.node, "unknown", "it goes in circles", stop.held);
                break;
            }
            let node = &self.assembly.graphs[0][stop.node];
            let entry = node.entries.get(stop.input).copied().flatten();
            let entry = entry.filter(|entry| self.assembly.regions[0][entry.region].is_wanted());
            match entry {
                Some(entry) => self.through_region(entry, stop.held)?,
                None if node.lowered.is_some() => self.through_program(stop)?,
                None => self.through_code(stop),
            }
        }
        Ok(self.walk)
    }

    fn name(&self, node: usize) -> String {
        self.assembly.graphs[0][node].name.clone()
    }

    fn end(&mut self, node: usize, ends: &'static str, why: impl Into<String>, held: Held) {
        // The fused program may drop a packet before the elements' writes to it, so the bytes would differ.
        let bytes = if ends == "dropped" { vec![] } else { held.bytes().to_vec() };
        self.walk.outcomes.push(PacketOutcome { ends, at: self.name(node), why: why.into(), bytes });
    }

    fn wire(&self, node: usize, port: usize) -> Option<&'a click::Connection> {
        let is_it =
            |wire: &&click::Connection| (wire.from, wire.from_port as usize) == (ElementId(node), port);
        self.graph.connections.iter().find(is_it)
    }

    /// A packet that leaves an element.
    fn leave(&mut self, node: usize, port: usize, held: Held) {
        match self.wire(node, port) {
            Some(wire) => {
                self.open.push_back(Stop { node: wire.to.0, input: wire.to_port as usize, held });
            }
            None => self.end(node, "dropped", "unwired-output", held),
        }
    }

    fn where_to(&self, node: usize, port: usize) -> String {
        match self.wire(node, port) {
            Some(wire) => format!("{}[{port}] -> {}", self.name(node), self.name(wire.to.0)),
            None => format!("{}[{port}], which is not wired", self.name(node)),
        }
    }

    /// Steps through an opaque element.
    fn through_code(&mut self, stop: Stop) {
        let node = &self.assembly.graphs[0][stop.node];
        let (class, outputs) = (node.class.name, node.outputs.len());
        let (is_queue, is_passed) = (node.class.is_queue(), node.reader.is_some());
        let mut hop = |went: &str| {
            let (at, went) = (node.name.clone(), went.to_string());
            self.walk.hops.push(Hop { at, class: None, of: 0, decided: vec![], wrote: vec![], went });
        };
        match class {
            "ToDevice" | "ToDPDKDevice" => {
                let named = chain::device_name(&self.graph.elements[stop.node].config);
                let port = named.map(|name| name.text).unwrap_or_default();
                hop(&format!("sent by {port}"));
                self.end(stop.node, "sent", format!("by {port}"), stop.held);
            }
            "Tee" => {
                hop("a copy by every output");
                (0..outputs).for_each(|port| self.leave(stop.node, port, stop.held.clone()));
            }
            "Unqueue" => {
                hop("pulled and pushed on");
                self.leave(stop.node, 0, stop.held);
            }
            _ if is_queue && (is_passed || outputs == 1) => {
                hop(if is_passed { "passed at once" } else { "kept until it is pulled" });
                self.leave(stop.node, 0, stop.held);
            }
            _ => {
                let why = format!("{class} decides by its own code, which is not followed");
                hop(&why);
                self.end(stop.node, "unknown", why, stop.held);
            }
        }
    }

    /// Steps through a transparent element by its program.
    fn through_program(&mut self, stop: Stop) -> anyhow::Result<()> {
        let Stop { node, input, mut held } = stop;
        let nodes = &mut self.assembly.graphs[0];
        let name = nodes[node].name.clone();
        let Some(lowered) = &nodes[node].lowered else { return Ok(()) };
        let program = std::sync::Arc::clone(&lowered.program);
        let from_port = held.packet.mac == held.packet.data()
            && [held.packet.net, held.packet.trans] == [shm::descriptor::NO_HEADER; 2];
        let names = [name];
        let origins = vec![0; program.blocks.len()];
        let settled = nodes[node].first_cells.clone();
        let options = Options {
            entries: Some(&[input]),
            origins: &origins,
            frames: from_port,
            settled_cells: Some(&settled),
            max_paths: 2_000,
            ..Options::default()
        };
        let classes = Classes::of(&program, &options);
        let of: Vec<(usize, usize)> = (0..program.tables.len()).map(|table| (node, table)).collect();
        let mut tables = PartTables { nodes, of };
        let cells = &mut self.cells.0[node];
        let why = classes
            .classes
            .iter()
            .find_map(|class| why(class, &classes, &program, &names, &held, cells, &mut tables));
        let mut state = EvalState { cells, tables: &mut tables, now_ns: NOW_NS };
        let exit = ir::eval::run(&program, input, &mut held.packet, held.buffer.as_mut_slice(), &mut state)?;
        let (Exit::Emit(own) | Exit::Drop(own) | Exit::Slow(own)) = exit;
        self.step(None, exit, (node, own.into()), why, held);
        Ok(())
    }

    /// Records the step by a program that ended with `exit`, which is an exit of an element: its node, and
    /// the exit's number there. Continues behind it. `region`: the number of the fused region whose program
    /// it was, and of its classes.
    fn step(
        &mut self,
        region: Option<(usize, usize)>,
        exit: Exit,
        (node, own): (usize, usize),
        why: Option<Why>,
        held: Held,
    ) {
        let Node { name, class, lowered, .. } = &self.assembly.graphs[0][node];
        let text = |texts: fn(&ir::Program) -> &[String]| {
            let texts = lowered.as_ref().map(|lowered| texts(&lowered.program));
            texts.and_then(|texts| texts.get(own)).cloned().unwrap_or_default()
        };
        let (at, of) = match region {
            Some((number, classes)) => (format!("fused region {number}"), classes),
            None => (name.clone(), 0),
        };
        let (went, end) = match exit {
            Exit::Emit(_) => (self.where_to(node, own), None),
            Exit::Drop(_) => {
                let reason = text(|program| &program.reasons);
                let by = region.map_or(String::new(), |_| format!(" by {name}"));
                (format!("dropped{by}: {reason}"), Some(("dropped", reason)))
            }
            Exit::Slow(_) => {
                let path = text(|program| &program.slow);
                let unknown =
                    format!("{} goes on by its own code, which is not followed ({path})", class.name);
                let whose = region.map_or(String::new(), |_| format!("{name}."));
                (format!("slow path {whose}{path}"), Some(("unknown", unknown)))
            }
        };
        let why = why.filter(|why| why.exit == exit);
        let (number, decided, wrote) =
            why.map_or_else(Default::default, |why| (why.class, why.decided, why.wrote));
        self.walk.hops.push(Hop { at, class: number, of, decided, wrote, went });
        match end {
            Some((ends, why)) => self.end(node, ends, why, held),
            None => self.leave(node, own, held),
        }
    }

    /// Steps through a fused region by its program.
    fn through_region(&mut self, entry: RegionEntry, mut held: Held) -> anyhow::Result<()> {
        let region = &self.assembly.regions[0][entry.region];
        let (linked, parts) = (std::sync::Arc::clone(&region.linked), region.parts.clone());
        let program = std::sync::Arc::clone(&region.compiled.program);
        let of = linked.tables.iter().map(|(part, table)| (parts[*part], *table)).collect();
        let mut tables = PartTables { nodes: &mut self.assembly.graphs[0], of };
        let cells = &mut self.cells.1[entry.region];
        let walked = &self.fused[entry.region];
        let of_entry = |(_, (group, class)): &(usize, (&Group, &Class))| {
            group.entries.get(class.entry) == Some(&entry.input)
        };
        let why = walked.classes().enumerate().filter(of_entry).find_map(|(at, (group, class))| {
            let why = why(class, &group.classes, &group.program, &walked.names, &held, cells, &mut tables)?;
            Some(Why { class: Some(at + 1), ..why })
        });
        let mut state = EvalState { cells, tables: &mut tables, now_ns: NOW_NS };
        let buffer = held.buffer.as_mut_slice();
        let exit = ir::eval::run(&program, entry.input, &mut held.packet, buffer, &mut state)?;
        let (part, own) = match exit {
            Exit::Emit(output) => linked.outputs[usize::from(output)],
            Exit::Drop(reason) => linked.reasons[usize::from(reason)],
            Exit::Slow(path) => linked.slow[usize::from(path)],
        };
        let region = Some((entry.region + 1, walked.count()));
        self.step(region, exit, (parts[part], own), why, held);
        Ok(())
    }
}

/// The reasons for the result of a program.
struct Why {
    exit: Exit,
    /// In a fused region, the number of the class, from 1.
    class: Option<usize>,
    decided: Vec<(String, String)>,
    wrote: Vec<String>,
}

/// The decisions and writes of a class for a packet; `None` if the packet is not in the class.
fn why(
    class: &Class,
    classes: &Classes,
    program: &ir::Program,
    names: &[String],
    held: &Held,
    cells: &[u64],
    tables: &mut dyn Tables,
) -> Option<Why> {
    let buffer = held.buffer.as_slice();
    let mut concrete = Concrete::new(&classes.pool, &held.packet, buffer, cells, tables, NOW_NS);
    if !concrete.passes(&class.filter) {
        return None;
    }
    let show = Show::of_class(program, names, classes, class);
    let mut decided: Vec<(String, String)> = vec![];
    for step in concrete.decided(class) {
        let mut text = show.condition(step.of, &step.set);
        // If the condition allows several values, the packet's value is added.
        if let (None, expr::Node::Atom(expr::Atom::Bits(_)), Some(value)) =
            (step.set.only(), classes.pool.node(step.of), concrete.value(step.of))
        {
            text += &format!(" (it is {})", value_text(&show.expr(step.of), value));
        }
        let name = names.get(step.origin).cloned().unwrap_or_default();
        if decided.last() != Some(&(name.clone(), text.clone())) {
            decided.push((name, text));
        }
    }
    let outcome = concrete.outcome(class)?;
    let texts = show.writes(class);
    let mut wrote = vec![];
    for (&(bit, width, value), (name, _)) in outcome.bytes.iter().zip(&texts) {
        let before = bits_of(buffer, bit, width);
        if before != Some(value) {
            let was = before.map(|before| format!(", was {}", value_text(name, before)));
            wrote.push(format!("{name} = {}{}", value_text(name, value), was.unwrap_or_default()));
        }
    }
    for (write, (name, _)) in class.end.annos.iter().zip(texts.iter().skip(class.end.bytes.len())) {
        if let Some(value) = concrete.value(write.value) {
            wrote.push(format!("{name} = {}", value_text(name, value)));
        }
    }
    let others = texts.into_iter().skip(class.end.bytes.len() + class.end.annos.len());
    wrote.extend(others.map(|(name, value)| format!("{name} = {value}")));
    Some(Why { exit: outcome.exit, class: None, decided, wrote })
}

/// The value of `width` bits of a buffer from `bit` on, most significant first; `None` outside the buffer.
fn bits_of(buffer: &[u8], bit: i64, width: u8) -> Option<u64> {
    let mut value = 0;
    for at in bit..bit + i64::from(width) {
        let byte = buffer.get(usize::try_from(at / 8).ok()?)?;
        value = value << 1 | u64::from(byte >> (7 - at % 8) & 1);
    }
    Some(value)
}
