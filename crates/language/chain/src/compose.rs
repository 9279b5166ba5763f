//! One flat configuration of all NFs.
//!
//! A device element that is linked to a port gets that port as its device. An element that is linked to
//! another NF or to a virtual device keeps its name and becomes an element that passes packets on: `Null`, or
//! `Unqueue` where it pulled the packets that it sent. An idle element becomes `Idle` or `Discard`.
//!
//! An NF that runs in a process of its own is one element, `ProcessNF`, with such device elements around it.
//! Its own configuration is stored separately.

use super::device::{self, Nfs};
use super::instances;
use super::l3_interface;
use super::nf::{Nf, with_device};
use super::replicate::replace_with_instances;
use super::source_texts::folder_of;
use super::spec::{ExecutionMode, opposite_output};
use super::wires::{idle_outputs, pass_on, process_of};
use super::wiring::Wiring;
use crate::model::{Chain, ChainFile, End, Link, NfInfo, ProcessNf};
use click::config::quote;
use click::{ElementId, Graph};
use std::path::{Path, PathBuf};

/// Composes the NFs of a chain. If the chain has errors, all interfaces without a link are idle: otherwise an
/// error in one link would be reported again at every element behind it.
pub(super) fn compose(
    declared: ChainFile,
    nfs: Vec<Nf>,
    wiring: Wiring,
    sound: bool,
    folder: PathBuf,
) -> Chain {
    let mut graph = Graph::default();
    let mut infos = vec![];
    // The elements by which an interface receives or sends, by their numbers in the whole graph.
    let mut places: Vec<LinkPlace> = vec![];
    let mut processes = vec![];
    for (number, mut nf) in nfs.into_iter().enumerate() {
        if let Some(several) = nf.declared.instances.take().filter(|_| sound) {
            processes.extend(replace_with_instances(&mut nf, &several));
        } else if !nf.mode.is_here() {
            let process = stand_in(&mut nf);
            processes.push(process);
        }
        let start = graph.append(&nf.graph, |element| instances::element_name(&nf.name, element));
        let moved = |id: ElementId| ElementId(start + id.0);
        graph.packages.append(&mut nf.graph.packages);
        graph.incomplete |= nf.graph.incomplete;
        for (at, interface) in nf.interfaces.iter().enumerate() {
            let end = End::Nf(number, at);
            let is_idle =
                !sound || nf.program().is_some() || nf.idle.iter().any(|idle| idle.text == interface.name);
            let place = |id: &ElementId, sends: bool| LinkPlace {
                end,
                sends,
                element: moved(*id),
                pulls: nf.pulling.contains(id),
                is_idle,
            };
            places.extend(interface.ingress.iter().map(|id| place(id, false)));
            places.extend(interface.egress.iter().map(|id| place(id, true)));
        }
        let of_nf: Vec<&LinkPlace> = places.iter().filter(|place| place.element.0 >= start).collect();
        for place in of_nf {
            settle(&mut graph, place, &declared, &wiring, sound);
        }
        let (elements, mode) = (start..graph.elements.len(), nf.mode);
        let interfaces = nf.interfaces.into_iter().map(|interface| interface.name).collect();
        infos.push(NfInfo { name: nf.declared.name, file: nf.file, elements, interfaces, mode });
    }
    for link in &wiring.links {
        let from = places.iter().filter(|place| place.sends && place.end == link.from);
        for (from, to) in from.flat_map(|from| {
            let to = places.iter().filter(|place| !place.sends && place.end == link.to);
            to.map(move |to| (from.element, to.element))
        }) {
            graph.connect((from, 0), (to, 0), link.span);
        }
    }
    for process in &mut processes {
        let Some(nf) = infos.iter().position(|info| info.name == instances::family(&process.name)) else {
            continue;
        };
        let interface = |name: &String| {
            let at = infos[nf].interfaces.iter().position(|interface| interface == name)?;
            l3_interface::of_interface(End::Nf(nf, at), &wiring.links, &declared.ports, &declared.devices)
        };
        process.l3_interfaces = process.outputs.iter().map(interface).collect();
    }
    if sound {
        let elements = |end: End, sends: bool| {
            let those = places.iter().filter(|place| place.sends == sends && place.end == end);
            those.map(|place| place.element).collect()
        };
        let name = |end: End| match end {
            End::Nf(nf, _) => infos.get(nf).map_or(String::new(), |info| info.name.clone()),
            End::Port(_) | End::Device(_) => String::new(),
        };
        let observes = |end: End| {
            processes.iter().any(|nf| nf.terms.observes() && instances::family(&nf.name) == name(end))
        };
        let discards: Vec<bool> =
            graph.elements.iter().map(|element| element.class.as_str() == "Discard").collect();
        let behind = |end: End| {
            let End::Nf(number, at) = end else { return None };
            let info = infos.get(number)?;
            let process = processes.iter().find(|nf| nf.terms.observes() && nf.name == info.name)?;
            let input = process.inputs.iter().position(|name| *name == info.interfaces[at])?;
            let output = &process.outputs[opposite_output(&process.inputs, &process.outputs, input)?];
            let at = info.interfaces.iter().position(|name| name == output)?;
            let place = places.iter().find(|place| place.sends && place.end == End::Nf(number, at))?;
            discards[place.element.0].then_some(place.element)
        };
        let nfs = Nfs { elements: &elements, name: &name, observes: &observes, behind: &behind };
        device::build(&mut graph, &declared.ports, &declared.devices, &wiring.links, &nfs);
    }
    Chain {
        graph,
        ports: declared.ports,
        devices: declared.devices,
        run: declared.run,
        folder,
        nfs: infos,
        processes,
        links: wiring.links,
        entries: wiring.entries,
    }
}

/// Replaces an NF's configuration by the element that represents its process, and returns the configuration.
fn stand_in(nf: &mut Nf) -> ProcessNf {
    let span = nf.span;
    let mut graph = Graph::default();
    let mut add = |name: String, class: &str, config: &str| graph.add_derived(name, class, config, span);
    let process = add("process".into(), "ProcessNF", &quote(&nf.name));
    let (mut inputs, mut outputs, mut wires) = (vec![], vec![], vec![]);
    // An observer's packets continue to the next element, although the observer itself sends none.
    let only_sees = nf.terms.observes() && nf.interfaces.iter().all(|interface| interface.egress.is_empty());
    for interface in &mut nf.interfaces {
        let config = quote(&interface.name);
        if !interface.ingress.is_empty() {
            let element = add(format!("from-{}", interface.name), "FromDevice", &config);
            wires.push(((element, 0), (process, inputs.len())));
            inputs.push(interface.name.clone());
            interface.ingress = vec![element];
        }
        if only_sees || !interface.egress.is_empty() {
            let (class, config) = if only_sees { ("Discard", "") } else { ("ToDevice", config.as_str()) };
            let element = add(format!("to-{}", interface.name), class, config);
            wires.push(((process, outputs.len()), (element, 0)));
            outputs.push(interface.name.clone());
            interface.egress = vec![element];
        }
    }
    wires.into_iter().for_each(|(from, to)| graph.connect(from, to, span));
    nf.pulling.clear();
    let graph = std::mem::replace(&mut nf.graph, graph);
    process_of(nf, nf.name.clone(), graph, inputs, outputs)
}

/// A device element and its interface.
struct LinkPlace {
    end: End,
    sends: bool,
    element: ElementId,
    pulls: bool,
    is_idle: bool,
}

/// Changes a device element as its link requires.
fn settle(graph: &mut Graph, place: &LinkPlace, declared: &ChainFile, wiring: &Wiring, sound: bool) {
    let mine = |link: &&Link| if place.sends { link.from == place.end } else { link.to == place.end };
    let link = wiring.links.iter().find(mine);
    // If the chain has errors, devices have no elements.
    let link =
        link.filter(|link| sound || ![link.from, link.to].iter().any(|end| matches!(end, End::Device(_))));
    let other = link.map(|link| (if place.sends { link.to } else { link.from }, link.span));
    let class = match other {
        // Packets of a port with addresses pass the port's own elements.
        Some((End::Port(port), span))
            if declared.ports.get(port).is_none_or(|port| port.l3_interface.is_none()) =>
        {
            let port = declared.ports.get(port).map_or("", |port| port.name.as_str());
            if let Some(element) = graph.elements.get_mut(place.element.0) {
                element.config = with_device(&element.config, port, span);
            }
            return;
        }
        Some(_) if place.sends && place.pulls => "Unqueue",
        Some(_) => "Null",
        None if place.is_idle && place.sends => "Discard",
        None if place.is_idle => "Idle",
        None => return,
    };
    pass_on(graph, place.element, class);
    if place.sends {
        idle_outputs(graph, place.element);
    }
}

/// A Click file as a chain.
pub(super) fn alone(graph: Graph, path: &Path) -> Chain {
    let name = path.file_stem().map_or("nf".into(), |stem| stem.to_string_lossy().into_owned());
    let elements = 0..graph.elements.len();
    let info = NfInfo {
        name,
        file: path.to_path_buf(),
        elements,
        interfaces: vec![],
        mode: ExecutionMode::default(),
    };
    Chain { graph, folder: folder_of(path), nfs: vec![info], ..Chain::default() }
}
