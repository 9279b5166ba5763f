//! The instances of an NF in the whole graph.
//!
//! The NF's elements are replaced by its interfaces, one `Steer`, and the instances. An instance is a `ProcessNF`, or a
//! copy of the NF's elements whose device elements pass packets on. The interfaces merge the packets that the instances
//! send.

use super::instances::name;
use super::nf::Nf;
use super::wires::{idle_outputs, pass_on, process_of};
use crate::model::{Instances, ProcessNf};
use click::config::quote;
use click::{Connection, Element, ElementId, Graph};
use diag::Span;

/// An interface, in one direction.
struct Side {
    name: String,
    /// The element that represents the interface.
    element: ElementId,
    /// Its elements in the NF's own configuration.
    own: Vec<ElementId>,
}

/// Replaces an NF's elements by its instances. Returns the instances that run in processes of their own.
pub(super) fn replace_with_instances(nf: &mut Nf, spread: &Instances) -> Vec<ProcessNf> {
    let own = std::mem::take(&mut nf.graph);
    let mut build = Build { graph: Graph::default(), span: nf.span };
    build.graph.packages.clone_from(&own.packages);
    build.graph.incomplete = own.incomplete;
    let (mut inputs, mut outputs) = (vec![], vec![]);
    for interface in &mut nf.interfaces {
        let mut side = |ids: &mut Vec<ElementId>, what: &str| {
            let first = own.element(*ids.first()?)?;
            let name = format!("{what}-{}", interface.name);
            let element = build.graph.add(Element { name, ..first.clone() });
            let own = std::mem::replace(ids, vec![element]);
            Some(Side { name: interface.name.clone(), element, own })
        };
        inputs.extend(side(&mut interface.ingress, "from"));
        outputs.extend(side(&mut interface.egress, "to"));
    }
    let (count, gives_back) = (spread.instances, !nf.mode.is_here() && !spread.stays);
    let mut config = format!("{}, {count}", quote(&nf.name));
    inputs.iter().for_each(|side| config += &format!(", {}", spread.policy(&side.name).name()));
    config += if spread.stays { ", STAY true" } else { "" };
    let steer = build.generated("steer".into(), "Steer", &config);
    for (at, side) in inputs.iter().enumerate() {
        build.wire((side.element, 0), (steer, at));
    }
    let mut processes = vec![];
    for instance in 0..count {
        let called = name("", instance);
        let to = |input: usize| (steer, input * count + instance);
        if !nf.mode.is_here() {
            let config = format!(
                "{}, OF {}, NUMBER {instance}, OUTPUTS {}",
                quote(&name(&nf.name, instance)),
                quote(&nf.name),
                outputs.len()
            );
            let process = build.generated(format!("{called}/process"), "ProcessNF", &config);
            for input in 0..inputs.len() {
                build.wire(to(input), (process, input));
                if gives_back {
                    build.wire((process, outputs.len() + input), (steer, inputs.len() + input));
                }
            }
            for (output, side) in outputs.iter().enumerate() {
                build.wire((process, output), (side.element, 0));
            }
            let names = |sides: &[Side]| sides.iter().map(|side| side.name.clone()).collect();
            let body = own.clone();
            processes.push(process_of(nf, name(&nf.name, instance), body, names(&inputs), names(&outputs)));
            continue;
        }
        let start = build.graph.append(&own, |element| format!("{called}/{element}"));
        let moved = |id: &ElementId| ElementId(start + id.0);
        for (input, side) in inputs.iter().enumerate() {
            for id in &side.own {
                pass_on(&mut build.graph, moved(id), "Null");
                build.wire(to(input), (moved(id), 0));
            }
        }
        for side in &outputs {
            for id in &side.own {
                pass_on(
                    &mut build.graph,
                    moved(id),
                    if nf.pulling.contains(id) { "Unqueue" } else { "Null" },
                );
                idle_outputs(&mut build.graph, moved(id));
                build.wire((moved(id), 0), (side.element, 0));
            }
        }
    }
    nf.pulling.clear();
    nf.graph = build.graph;
    processes
}

struct Build {
    graph: Graph,
    span: Span,
}

impl Build {
    fn generated(&mut self, name: String, class: &str, config: &str) -> ElementId {
        self.graph.add_derived(name, class, config, self.span)
    }

    fn wire(&mut self, from: (ElementId, usize), to: (ElementId, usize)) {
        let ((from, from_port), (to, to_port), span) = (from, to, self.span);
        let (from_port, to_port) = (from_port as u32, to_port as u32);
        self.graph.connections.push(Connection { from, from_port, to, to_port, span });
    }
}
