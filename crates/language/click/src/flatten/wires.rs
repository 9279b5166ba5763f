//! Converts wires between nodes to connections between elements, by following wires through pseudoelements.

use std::collections::{HashMap, HashSet};

use super::expand::{Expander, Node, NodeIndex};
use crate::{Connection, Port};

/// The largest number of connections between elements.
const MAX_CONNECTIONS: usize = 1 << 21;
/// The limit of steps from wire to wire through pseudoelements, for all connections together.
const MAX_STEPS: usize = 1 << 24;

impl Expander<'_> {
    /// The connections between elements, and the ports whose wires end at an error.
    pub(super) fn connections(&mut self) -> (Vec<Connection>, Vec<Port>) {
        let mut next: HashMap<(NodeIndex, u32), Vec<usize>> = HashMap::new();
        let mut fed: HashSet<(NodeIndex, u32)> = HashSet::new();
        for (i, wire) in self.wires.iter().enumerate() {
            next.entry(wire.from).or_default().push(i);
            fed.insert(wire.to);
        }
        if !self.overflow {
            self.check_passes(&next, &fed);
        }
        let mut connections = Vec::new();
        let mut lost = Vec::new();
        let mut seen = HashSet::new();
        let mut steps_left = MAX_STEPS;
        for wire in &self.wires {
            let from = match self.nodes.get(wire.from.0) {
                Some(&Node::Element(from)) => Some(from),
                Some(Node::Pass(_)) if fed.contains(&wire.from) => continue,
                // The node has an error: ports wired to it count as connected.
                _ => None,
            };
            let mut open = vec![(wire.to, wire.ends.1)];
            let mut visited = HashSet::new();
            let mut arrives = false;
            while let Some((place, input)) = open.pop() {
                steps_left = steps_left.saturating_sub(1);
                match (self.nodes.get(place.0), from) {
                    (Some(&Node::Element(to)), Some(from)) => {
                        arrives = true;
                        let connection = Connection {
                            from,
                            from_port: wire.from.1,
                            to,
                            to_port: place.1,
                            span: wire.span,
                            ends: (wire.ends.0, input),
                        };
                        if seen.insert((connection.from_port(), connection.to_port())) {
                            connections.push(connection);
                        }
                    }
                    (Some(&Node::Element(to)), None) => {
                        lost.push(Port { element: to, output: false, port: place.1 });
                    }
                    (Some(Node::Pass(_)), _) if visited.insert(place) => {
                        let targets = next.get(&place).into_iter().flatten().rev();
                        open.extend(
                            targets.filter_map(|&i| self.wires.get(i)).map(|wire| (wire.to, wire.ends.1)),
                        );
                    }
                    _ => {}
                }
            }
            if let Some(element) = from.filter(|_| !arrives) {
                lost.push(Port { element, output: true, port: wire.from.1 });
            }
            if connections.len() > MAX_CONNECTIONS || steps_left == 0 {
                let message = format!("the configuration expands to more than {MAX_CONNECTIONS} connections");
                self.diags.error(wire.span, message);
                break;
            }
        }
        (connections, lost)
    }

    /// Reports ports of compounds and groups that are connected on one side only.
    fn check_passes(
        &mut self,
        next: &HashMap<(NodeIndex, u32), Vec<usize>>,
        fed: &HashSet<(NodeIndex, u32)>,
    ) {
        let pass = |place: NodeIndex| match self.nodes.get(place) {
            Some(Node::Pass(pass)) => Some(pass),
            _ => None,
        };
        let mut mistakes = Vec::new();
        let mut reported = HashSet::new();
        for wire in &self.wires {
            let ends = [
                ("input", wire.to, next.contains_key(&wire.to)),
                ("output", wire.from, fed.contains(&wire.from)),
            ];
            for (side, place, is_connected) in ends {
                let Some(pass) = pass(place.0) else { continue };
                if is_connected || !reported.insert(place) {
                    continue;
                }
                // A wire from outside names a port of its side; one from inside names a port of the other
                // side.
                mistakes.push(match pass.side == side {
                    true => (
                        if side == "input" { wire.ends.1 } else { wire.ends.0 },
                        pass,
                        format!("{} has no {side} {}", pass.name, place.1),
                    ),
                    false => {
                        let message = format!("{} {} {} is not connected", pass.name, pass.side, place.1);
                        (pass.span, pass, message)
                    }
                });
            }
        }
        for (span, pass, message) in mistakes {
            let entry = self.diags.error(span, message);
            if span != pass.span {
                entry.with_note(pass.span, "declared here");
            }
        }
    }
}
