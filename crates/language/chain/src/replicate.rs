//! The instances of an NF in the whole graph.
//!
//! The NF's elements are replaced by its interfaces, one `Steer`, and the instances. An instance is a
//! `ProcessNF`, or a copy of the NF's elements whose device elements pass packets on. The interfaces merge
//! the packets that the instances send.

use super::instances::name;
use super::nf::Nf;
use super::wires::{idle_outputs, pass_on, process_of};
use crate::model::{Instances, ProcessNf};
use click::config::quote;
use click::{Element, ElementId, Graph};

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
    let span = nf.span;
    let mut graph = Graph { packages: own.packages.clone(), incomplete: own.incomplete, ..Graph::default() };
    let (mut inputs, mut outputs) = (vec![], vec![]);
    for interface in &mut nf.interfaces {
        let mut side = |ids: &mut Vec<ElementId>, what: &str| {
            let first = own.element(*ids.first()?)?;
            let name = format!("{what}-{}", interface.name);
            let element = graph.add(Element { name, ..first.clone() });
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
    let steer = graph.add_derived("steer".into(), "Steer", &config, span);
    for (at, side) in inputs.iter().enumerate() {
        graph.connect((side.element, 0), (steer, at), span);
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
            let process = graph.add_derived(format!("{called}/process"), "ProcessNF", &config, span);
            for input in 0..inputs.len() {
                graph.connect(to(input), (process, input), span);
                if gives_back {
                    graph.connect((process, outputs.len() + input), (steer, inputs.len() + input), span);
                }
            }
            for (output, side) in outputs.iter().enumerate() {
                graph.connect((process, output), (side.element, 0), span);
            }
            let names = |sides: &[Side]| sides.iter().map(|side| side.name.clone()).collect();
            let body = own.clone();
            processes.push(process_of(nf, name(&nf.name, instance), body, names(&inputs), names(&outputs)));
            continue;
        }
        let start = graph.append(&own, |element| format!("{called}/{element}"));
        let moved = |id: &ElementId| ElementId(start + id.0);
        for (input, side) in inputs.iter().enumerate() {
            for id in &side.own {
                pass_on(&mut graph, moved(id), "Null");
                graph.connect(to(input), (moved(id), 0), span);
            }
        }
        for side in &outputs {
            for id in &side.own {
                pass_on(&mut graph, moved(id), if nf.pulling.contains(id) { "Unqueue" } else { "Null" });
                idle_outputs(&mut graph, moved(id));
                graph.connect((moved(id), 0), (side.element, 0), span);
            }
        }
    }
    nf.pulling.clear();
    nf.graph = graph;
    processes
}
