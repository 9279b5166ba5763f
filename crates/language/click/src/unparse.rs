//! A flat graph as text, as Click's handlers write it: the whole configuration, and the ports of an element.

use crate::flow::{ElementPorts, Flow, PortSpec, Processing};
use crate::{Connection, ElementId, Graph};
use std::fmt::Write;

/// The graph as a configuration in the Click language: requirements, declarations, connections. Parsed again,
/// it is the same graph.
pub fn unparse(graph: &Graph) -> String {
    let mut text = String::new();
    for package in &graph.packages {
        let _ = writeln!(text, "require(package {});", package.as_str());
    }
    for element in &graph.elements {
        let config = element.config.as_str();
        let config = if config.is_empty() { String::new() } else { format!("({config})") };
        let _ = writeln!(text, "{} :: {}{config};", element.name, element.class.as_str());
    }
    for chain in chains(graph) {
        for (at, wire) in chain.iter().enumerate() {
            if at == 0 {
                text += graph.name(wire.from);
            }
            // Behind an element that a chain passes through, the output's number follows the name.
            let output = if wire.from_port > 0 { format!(" [{}]", wire.from_port) } else { String::new() };
            let input = if wire.to_port > 0 { format!("[{}] ", wire.to_port) } else { String::new() };
            let line = if at == 0 { " " } else { "\n    " };
            let _ = write!(text, "{output}{line}-> {input}{}", graph.name(wire.to));
        }
        text += ";\n";
    }
    text
}

/// The connections as chains, each connection once. A chain goes on at an element's first connection that no
/// chain has yet.
fn chains(graph: &Graph) -> Vec<Vec<&Connection>> {
    let mut after: Vec<Vec<usize>> = vec![vec![]; graph.elements.len()];
    let mut inputs = vec![0_usize; graph.elements.len()];
    for (at, wire) in graph.connections.iter().enumerate() {
        if let (Some(after), Some(inputs)) = (after.get_mut(wire.from.0), inputs.get_mut(wire.to.0)) {
            after.push(at);
            *inputs += 1;
        }
    }
    after.iter_mut().for_each(|wires| wires.reverse());
    // Chains start where nothing arrives; what is left are loops.
    let (starts, rest): (Vec<usize>, Vec<usize>) =
        (0..graph.elements.len()).partition(|at| inputs.get(*at) == Some(&0));
    let mut chains = vec![];
    for start in starts.into_iter().chain(rest) {
        while after.get(start).is_some_and(|wires| !wires.is_empty()) {
            let (mut chain, mut at) = (vec![], start);
            while let Some(wire) = after.get_mut(at).and_then(Vec::pop) {
                let Some(wire) = graph.connections.get(wire) else { break };
                chain.push(wire);
                at = wire.to.0;
            }
            chains.push(chain);
        }
    }
    chains
}

/// The ports of each element, a line each: how packets move (with a tilde at agnostic ports), a dash for the
/// packets that Click would count there, and the ports at the other end.
pub fn unparse_ports(graph: &Graph, flow: &Flow, spec: &dyn Fn(ElementId) -> PortSpec) -> Vec<String> {
    let mut wires: Vec<Vec<&Connection>> = vec![vec![]; graph.elements.len()];
    for wire in &graph.connections {
        let ends = if wire.from == wire.to { vec![wire.from] } else { vec![wire.from, wire.to] };
        ends.into_iter().for_each(|end| wires.get_mut(end.0).into_iter().for_each(|wires| wires.push(wire)));
    }
    let shown =
        |(id, wires): (ElementId, &Vec<&Connection>)| ports(graph, id, flow.ports(id), &spec(id), wires);
    graph.ids().zip(&wires).map(shown).collect()
}

fn ports(
    graph: &Graph,
    id: ElementId,
    ports: &ElementPorts,
    spec: &PortSpec,
    wires: &[&Connection],
) -> String {
    let mut text = String::new();
    for (output, side) in [(false, &ports.inputs), (true, &ports.outputs)] {
        let what = if output { "output" } else { "input" };
        let _ = writeln!(text, "{} {what}{}", side.len(), if side.len() == 1 { "" } else { "s" });
        let codes = spec.processing(output, side.len() as u32);
        let mut others: Vec<Vec<String>> = vec![vec![]; side.len()];
        for wire in wires {
            let (own, other) = match output {
                true => (wire.from_port(), wire.to_port()),
                false => (wire.to_port(), wire.from_port()),
            };
            let name = graph.name(other.element);
            let shown =
                if output { format!("[{}] {name}", other.port) } else { format!("{name} [{}]", other.port) };
            if let Some(others) = others.get_mut(own.port as usize).filter(|_| own.element == id) {
                others.push(shown);
            }
        }
        for ((port, processing), others) in side.iter().enumerate().zip(others) {
            let tilde = if codes.get(port) == Some(&Processing::Agnostic) { "~" } else { "" };
            // As in Click, what nothing decides is push.
            let kind = if *processing == Processing::Pull { "pull" } else { "push" };
            let _ = writeln!(text, "{kind}{tilde}\t-\t{}", others.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classes, flow};
    use diag::{Diagnostics, SourceMap};

    struct Plain;

    impl Classes for Plain {
        fn is_known(&self, name: &str) -> bool {
            self.names().iter().any(|known| known == name)
        }
        fn names(&self) -> Vec<String> {
            ["Source", "Sink", "Queue", "Unqueue", "Tee"].map(str::to_string).to_vec()
        }
    }

    fn graph(text: &str) -> Graph {
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let source = map.add("a.click", text);
        let ast = crate::parse(&mut map, source, &mut diags);
        let graph = crate::flatten(&ast, &Plain, &[], &mut diags);
        assert!(!diags.has_errors(), "{}", diags.render(&map, false));
        graph
    }

    fn names(graph: &Graph) -> Vec<(String, String, String)> {
        let parts = |element: &crate::Element| {
            (element.name.clone(), element.class.text.clone(), element.config.text.clone())
        };
        graph.elements.iter().map(parts).collect()
    }

    fn wires(graph: &Graph) -> Vec<(ElementId, u32, ElementId, u32)> {
        let ends = |wire: &Connection| (wire.from, wire.from_port, wire.to, wire.to_port);
        let mut wires: Vec<_> = graph.connections.iter().map(ends).collect();
        wires.sort();
        wires
    }

    const TEXT: &str = "require(package ip);
elementclass C { $n | input -> q :: Queue($n) -> [1]output; input[1] -> [0]output; }
Source -> c :: C(10) -> Sink; c[1] -> Unqueue -> t :: Tee(2) -> [1]c; t[1] -> t2 :: Tee -> t2;";

    #[test]
    fn a_flat_text_is_the_same_graph() {
        let first = graph(TEXT);
        let text = unparse(&first);
        let again = graph(&text);
        assert_eq!(names(&first), names(&again), "{text}");
        assert_eq!(wires(&first), wires(&again), "{text}");
        assert_eq!(unparse(&again), text);
        assert!(text.starts_with("require(package ip);\nSource@1 :: Source;\nc/q :: Queue(10);\n"), "{text}");
        assert!(text.contains("Source@1 -> c/q\n    -> Unqueue@"), "{text}");
    }

    #[test]
    fn ports_are_listed_as_in_click() {
        let graph =
            graph("a :: Source -> q :: Queue -> u :: Unqueue -> d :: Sink; b :: Source -> q; t :: Tee -> t");
        let spec = |id: ElementId| match graph.name(id) {
            "a" | "b" => PortSpec::new("0/1", "h/h", "x/x").unwrap(),
            "q" => PortSpec::new("1/1", "h/l", "x/x").unwrap(),
            "u" => PortSpec::new("1/1", "l/h", "x/x").unwrap(),
            _ => PortSpec::new("-/-", "a/a", "x/x").unwrap(),
        };
        let flow = flow::resolve(&graph, &spec, &mut Diagnostics::new());
        let ports = unparse_ports(&graph, &flow, &spec);
        let shown = |name: &str| ports[graph.index().find(name, "").unwrap().0].as_str();
        assert_eq!(shown("q"), "1 input\npush\t-\ta [0], b [0]\n1 output\npull\t-\t[0] u\n");
        assert_eq!(shown("u"), "1 input\npull\t-\tq [0]\n1 output\npush\t-\t[0] d\n");
        assert_eq!(shown("d"), "1 input\npush~\t-\tu [0]\n0 outputs\n");
        assert_eq!(shown("t"), "1 input\npush~\t-\tt [0]\n1 output\npush~\t-\t[0] t\n");
    }
}
