//! Counts ports and resolves push and pull as Click's `lib/router.cc` does.

use std::collections::{HashMap, HashSet, VecDeque};

use diag::{Diagnostics, Span};

use super::{PortSpec, Processing};
use crate::graph::ports_used;
use crate::{Connection, ElementId, Graph, Port};

/// The ports of one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementPorts {
    /// How packets move at each input.
    pub inputs: Vec<Processing>,
    /// How packets move at each output.
    pub outputs: Vec<Processing>,
}

/// The ports of all elements, indexed by [`ElementId`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    elements: Vec<ElementPorts>,
}

impl Flow {
    /// The ports of one element; none for an unknown id.
    pub fn ports(&self, id: ElementId) -> &ElementPorts {
        static NONE: ElementPorts = ElementPorts { inputs: Vec::new(), outputs: Vec::new() };
        self.elements.get(id.0).unwrap_or(&NONE)
    }

    fn port(&mut self, port: Port) -> Option<&mut Processing> {
        let ports = self.elements.get_mut(port.element.0)?;
        let side = if port.output { &mut ports.outputs } else { &mut ports.inputs };
        side.get_mut(usize::try_from(port.port).ok()?)
    }

    fn get(&self, port: Port) -> Option<Processing> {
        let ports = self.elements.get(port.element.0)?;
        let side = if port.output { &ports.outputs } else { &ports.inputs };
        side.get(usize::try_from(port.port).ok()?).copied()
    }
}

/// The largest number of ports of a configuration; a larger one is reported as a wrong port number.
const MAX_PORTS: usize = 1 << 22;
/// Up to this many pairs of ports, an element whose flow code uses port numbers is resolved for each pair.
/// Above it, only an input and the output of the same number are taken to pass packets.
const MAX_PAIRS: usize = 1 << 16;

/// Resolves every port to push, pull or agnostic. Errors are recorded in `diags`:
/// - a connection to a port that the element does not have;
/// - a push output connected to a pull input, or the other way round, also through agnostic
///   elements;
/// - a push output or pull input connected more than once;
/// - a port without a connection (unless other errors removed statements).
pub fn resolve(graph: &Graph, spec: &dyn Fn(ElementId) -> PortSpec, diags: &mut Diagnostics) -> Flow {
    let specs: Vec<PortSpec> = graph.ids().map(spec).collect();
    let mut resolver = Resolver { graph, specs, flow: Flow::default(), origins: HashMap::new(), diags };
    resolver.count_ports();
    let connections = resolver.in_range();
    resolver.propagate(&connections);
    resolver.check_complete(&connections);
    resolver.flow
}

struct Resolver<'a> {
    graph: &'a Graph,
    specs: Vec<PortSpec>,
    flow: Flow,
    /// For each resolved agnostic port, the push or pull port that determined it.
    origins: HashMap<Port, Port>,
    diags: &'a mut Diagnostics,
}

impl<'a> Resolver<'a> {
    fn count_ports(&mut self) {
        let wires = self.graph.connections.iter();
        let wires = wires.map(|wire| ((wire.from.0, wire.from_port), (wire.to.0, wire.to_port)));
        let used = ports_used(self.graph.elements.len(), wires);
        let mut ports_left = MAX_PORTS;
        for ((id, spec), (inputs, outputs)) in self.graph.ids().zip(&self.specs).zip(used) {
            let (inputs, outputs) = spec.counts(inputs, outputs);
            match ports_left.checked_sub(inputs as usize + outputs as usize) {
                Some(left) => ports_left = left,
                None => {
                    let message = format!("the configuration uses more than {MAX_PORTS} ports");
                    self.diags.error(self.graph.span(id), message);
                    break;
                }
            }
            self.flow.elements.push(ElementPorts {
                inputs: spec.processing(false, inputs),
                outputs: spec.processing(true, outputs),
            });
        }
    }

    /// The connections between ports that exist.
    fn in_range(&mut self) -> Vec<&'a Connection> {
        let mut good = Vec::new();
        let mut reported = HashSet::new();
        for connection in &self.graph.connections {
            let mut exists = true;
            let ends =
                [(connection.from_port(), connection.ends.0), (connection.to_port(), connection.ends.1)];
            for (port, span) in ends {
                if self.flow.get(port).is_none() {
                    exists = false;
                    if reported.insert(port) {
                        self.no_port(port, span);
                    }
                }
            }
            if exists {
                good.push(connection);
            }
        }
        good
    }

    fn no_port(&mut self, port: Port, span: Span) {
        let Some(element) = self.graph.element(port.element) else {
            return;
        };
        let message = format!("`{}` has no {} {}", element.name, port.side(), port.port);
        let has = self.specs.get(port.element.0).map(|spec| spec.describe(port.output));
        self.diags
            .error(span, message)
            .with_note(element.span, "declared here")
            .maybe_help(has.map(|has| format!("{} has {has}", element.class)));
    }

    /// The ports of a connection are of the same type, and so are agnostic inputs and outputs of an element
    /// that packets pass between. A breadth-first search from all push and pull ports resolves the agnostic
    /// ones.
    fn propagate(&mut self, connections: &[&Connection]) {
        let mut linked: HashMap<Port, Vec<Port>> = HashMap::new();
        let mut link = |a: Port, b: Port| {
            linked.entry(a).or_default().push(b);
            linked.entry(b).or_default().push(a);
        };
        for connection in connections {
            link(connection.from_port(), connection.to_port());
        }
        let mut passages = Vec::new();
        for (id, spec) in self.graph.ids().zip(&self.specs) {
            for passage in agnostic_passages(id, spec, self.flow.ports(id)) {
                // Linking each port to the first one of the other side links all of them.
                if let (Some(&input), Some(&output)) = (passage.0.first(), passage.1.first()) {
                    passage.0.iter().for_each(|&port| link(port, output));
                    passage.1.iter().for_each(|&port| link(port, input));
                }
                passages.push(passage);
            }
        }
        let mut open: VecDeque<Port> = VecDeque::new();
        // The order of the connections, not of a map, determines the order of messages.
        for connection in connections {
            for port in [connection.from_port(), connection.to_port()] {
                if self.flow.get(port).is_some_and(|p| p != Processing::Agnostic) {
                    open.push_back(port);
                }
            }
        }
        while let Some(port) = open.pop_front() {
            let Some(processing) = self.flow.get(port) else {
                continue;
            };
            for &other in linked.get(&port).into_iter().flatten() {
                if let Some(agnostic @ Processing::Agnostic) = self.flow.port(other) {
                    *agnostic = processing;
                    let origin = self.origins.get(&port).copied().unwrap_or(port);
                    self.origins.insert(other, origin);
                    open.push_back(other);
                }
            }
        }
        for connection in connections {
            self.check_connection(connection);
        }
        for (inputs, outputs) in &passages {
            self.check_passage(inputs, outputs);
        }
    }

    fn check_connection(&mut self, connection: &Connection) {
        let (from, to) = (connection.from_port(), connection.to_port());
        let (Some(from_is), Some(to_is)) = (self.flow.get(from), self.flow.get(to)) else {
            return;
        };
        if from_is == to_is {
            return;
        }
        let message = format!(
            "{} output {} of `{}` connected to {} input {} of `{}`",
            from_is.name(),
            from.port,
            self.graph.name(from.element),
            to_is.name(),
            to.port,
            self.graph.name(to.element),
        );
        let help = match from_is {
            Processing::Push => "put a Queue between them",
            _ => "put an Unqueue between them",
        };
        let mut entry = self.diags.error(connection.span, message).help(help);
        for (port, is) in [(from, from_is), (to, to_is)] {
            let why = self.origins.get(&port).map_or(String::new(), |origin| {
                let name = self.graph.name(origin.element);
                format!(", because {} {} of `{name}` is", origin.side(), origin.port)
            });
            let name = self.graph.name(port.element);
            let note = format!("{} {} of `{name}` is {}{why}", port.side(), port.port, is.name());
            entry = entry.with_note(self.graph.span(port.element), note);
        }
    }

    fn check_passage(&mut self, inputs: &[Port], outputs: &[Port]) {
        let Some((&input, input_is)) = inputs.first().and_then(|input| Some((input, self.flow.get(*input)?)))
        else {
            return;
        };
        let differs = |port: &&Port| self.flow.get(**port).is_some_and(|is| is != input_is);
        let Some(&other) = outputs.iter().find(differs) else {
            return;
        };
        let other_is = self.flow.get(other).unwrap_or(Processing::Agnostic);
        let message = format!(
            "agnostic `{}` in mixed context: {} input {}, {} output {}",
            self.graph.name(input.element),
            input_is.name(),
            input.port,
            other_is.name(),
            other.port,
        );
        self.diags.error(self.graph.span(input.element), message).help(match input_is {
            Processing::Push => "put a Queue before or after it",
            _ => "put an Unqueue before or after it",
        });
    }

    /// Checks that every port is connected, and that each push output and pull input is connected once.
    fn check_complete(&mut self, connections: &[&Connection]) {
        let mut first: HashMap<Port, Span> = HashMap::new();
        let mut connected: HashSet<Port> = self.graph.unconnected.iter().copied().collect();
        for connection in &self.graph.connections {
            connected.extend([connection.from_port(), connection.to_port()]);
        }
        let mut reused = HashSet::new();
        for connection in connections {
            let ends =
                [(connection.from_port(), connection.ends.0), (connection.to_port(), connection.ends.1)];
            for (port, span) in ends {
                let Some(&before) = first.get(&port) else {
                    first.insert(port, span);
                    continue;
                };
                let is = self.flow.get(port);
                let calls = match is {
                    Some(Processing::Push) => port.output,
                    Some(Processing::Pull) => !port.output,
                    _ => false,
                };
                if calls && reused.insert(port) {
                    let processing = is.map_or("", Processing::name);
                    let side = port.side();
                    let name = self.graph.name(port.element);
                    let message = format!("{processing} {side} {} of `{name}` is connected twice", port.port);
                    let help = if port.output {
                        "put a Tee after it to send every packet to both"
                    } else {
                        "put a scheduler such as RoundRobinSched before it"
                    };
                    let error = self.diags.error(span, message);
                    error.with_note(before, "first connected here").help(help);
                }
            }
        }
        if self.graph.incomplete {
            return;
        }
        for id in self.graph.ids() {
            let ports = self.flow.ports(id).clone();
            for (output, count) in [(false, ports.inputs.len()), (true, ports.outputs.len())] {
                let ports = 0..u32::try_from(count).unwrap_or(u32::MAX);
                let unused: Vec<Port> = ports
                    .map(|port| Port { element: id, output, port })
                    .filter(|port| !connected.contains(port))
                    .collect();
                self.unused(&unused);
            }
        }
    }

    /// Reports the unconnected ports of one side of an element.
    fn unused(&mut self, ports: &[Port]) {
        let Some(first) = ports.first() else {
            return;
        };
        let (side, name) = (first.side(), self.graph.name(first.element));
        let numbers: Vec<String> = ports.iter().take(8).map(|p| p.port.to_string()).collect();
        let numbers = match ports.len() {
            1 => format!("{side} {} of `{name}` is", numbers.concat()),
            2..=8 => format!("{side}s {} of `{name}` are", numbers.join(", ")),
            more => format!("{more} {side}s of `{name}`, from {side} {} on, are", first.port),
        };
        let help = if first.output { "Discard" } else { "Idle" };
        self.diags
            .error(self.graph.span(first.element), format!("{numbers} not connected"))
            .help(format!("connect every {side}, to {help} if need be"));
    }
}

/// Sets of agnostic inputs and outputs of one element between which packets pass: each input of
/// a set with each of its outputs.
fn agnostic_passages(id: ElementId, spec: &PortSpec, ports: &ElementPorts) -> Vec<(Vec<Port>, Vec<Port>)> {
    let agnostic = |ports: &[Processing], output| -> Vec<Port> {
        (0u32..)
            .zip(ports)
            .filter(|(_, processing)| **processing == Processing::Agnostic)
            .map(|(port, _)| Port { element: id, output, port })
            .collect()
    };
    let inputs = agnostic(&ports.inputs, false);
    let outputs = agnostic(&ports.outputs, true);
    let mut passages = Vec::new();
    if !spec.tells_ports_apart() {
        // Few distinct codes: ports with the same code are treated as one class.
        for input_class in group(inputs, |port| spec.class(false, port)) {
            for output_class in group(outputs.clone(), |port| spec.class(true, port)) {
                let pair = input_class.first().zip(output_class.first());
                if pair.is_some_and(|(input, output)| spec.flows(input.port, output.port)) {
                    passages.push((input_class.clone(), output_class));
                }
            }
        }
        return passages;
    }
    let pairwise = inputs.len().saturating_mul(outputs.len()) <= MAX_PAIRS;
    for &input in &inputs {
        let candidates = if pairwise {
            outputs.as_slice()
        } else {
            let same = outputs.binary_search_by_key(&input.port, |output| output.port);
            same.ok().and_then(|at| outputs.get(at..=at)).unwrap_or_default()
        };
        for &output in candidates {
            if spec.flows(input.port, output.port) {
                passages.push((vec![input], vec![output]));
            }
        }
    }
    passages
}

/// Groups ports by class, in order.
fn group(ports: Vec<Port>, class: impl Fn(u32) -> usize) -> Vec<Vec<Port>> {
    let mut classes: Vec<(usize, Vec<Port>)> = Vec::new();
    for port in ports {
        let of_port = class(port.port);
        match classes.iter_mut().find(|(class, _)| *class == of_port) {
            Some((_, ports)) => ports.push(port),
            None => classes.push((of_port, vec![port])),
        }
    }
    classes.into_iter().map(|(_, ports)| ports).collect()
}
