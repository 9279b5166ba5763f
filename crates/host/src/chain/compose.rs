//! One flat configuration of all NFs.
//!
//! A device element that is linked to a port gets that port for a device. One that is linked to another NF
//! stays, under its name, as an element that passes packets on: `Null`, or `Unqueue` where it pulled what
//! it sent. One that is idle becomes `Idle` or `Discard`.

use super::file::ChainFile;
use super::nf::{Nf, with_device};
use super::wiring::Wiring;
use super::{Chain, End, NfInfo};
use click::{Connection, ElementId, Graph};
use diag::{Span, Spanned};
use std::path::{Path, PathBuf};

/// Composes the NFs of a chain. Where it has mistakes, interfaces without a link are idle: what is wrong with
/// one link would show again at every element behind it.
pub(super) fn compose(
    declared: ChainFile,
    nfs: Vec<Nf>,
    wiring: Wiring,
    sound: bool,
    folder: PathBuf,
) -> Chain {
    let mut graph = Graph::default();
    let mut infos = vec![];
    // Element that an end's packets come to or leave from, in the whole graph.
    let mut places: Vec<Place> = vec![];
    for (number, nf) in nfs.into_iter().enumerate() {
        let start = graph.elements.len();
        let moved = |id: ElementId| ElementId(start + id.0);
        graph.elements.extend(nf.graph.elements.into_iter().map(|mut element| {
            element.name = format!("{}/{}", nf.name, element.name);
            element
        }));
        graph.connections.extend(nf.graph.connections.iter().map(|wire| Connection {
            from: moved(wire.from),
            to: moved(wire.to),
            ..*wire
        }));
        graph.packages.extend(nf.graph.packages);
        graph
            .lost
            .extend(nf.graph.lost.iter().map(|port| click::Port { element: moved(port.element), ..*port }));
        graph.incomplete |= nf.graph.incomplete;
        for (at, interface) in nf.interfaces.iter().enumerate() {
            let end = End::Nf(number, at);
            let is_idle = !sound || nf.idle.iter().any(|idle| idle.text == interface.name);
            let place = |id: &ElementId, sends: bool| Place {
                end,
                sends,
                element: moved(*id),
                pulls: nf.pulling.contains(id),
                is_idle,
            };
            places.extend(interface.ingress.iter().map(|id| place(id, false)));
            places.extend(interface.egress.iter().map(|id| place(id, true)));
        }
        let of_nf: Vec<&Place> = places.iter().filter(|place| place.element.0 >= start).collect();
        for place in of_nf {
            settle(&mut graph, place, &declared, &wiring);
        }
        let interfaces = nf.interfaces.into_iter().map(|interface| interface.name).collect();
        let elements = start..graph.elements.len();
        infos.push(NfInfo { name: nf.name, file: nf.file, elements, interfaces });
    }
    for link in &wiring.links {
        let from = places.iter().filter(|place| place.sends && place.end == link.from);
        for (from, to) in from.flat_map(|from| {
            let to = places.iter().filter(|place| !place.sends && place.end == link.to);
            to.map(move |to| (from.element, to.element))
        }) {
            graph.connections.push(Connection { from, from_port: 0, to, to_port: 0, span: link.span });
        }
    }
    Chain {
        graph,
        ports: declared.ports,
        workers: declared.workers.or((!declared.cores.is_empty()).then_some(declared.cores.len())),
        cores: declared.cores,
        burst: declared.burst,
        folder,
        nfs: infos,
        links: wiring.links,
        entries: wiring.entries,
    }
}

/// A device element.
struct Place {
    end: End,
    sends: bool,
    element: ElementId,
    pulls: bool,
    is_idle: bool,
}

/// Makes a device element what its link asks for.
fn settle(graph: &mut Graph, place: &Place, declared: &ChainFile, wiring: &Wiring) {
    let mine = |link: &&super::Link| if place.sends { link.from == place.end } else { link.to == place.end };
    let link = wiring.links.iter().find(mine);
    let other = link.map(|link| (if place.sends { link.to } else { link.from }, link.span));
    let class = match other {
        Some((End::Port(port), span)) => {
            let port = declared.ports.get(port).map_or("", |port| port.name.as_str());
            if let Some(element) = graph.elements.get_mut(place.element.0) {
                element.config = with_device(&element.config, port, span);
            }
            return;
        }
        Some((End::Nf(..), _)) if place.sends && place.pulls => "Unqueue",
        Some((End::Nf(..), _)) => "Null",
        None if place.is_idle && place.sends => "Discard",
        None if place.is_idle => "Idle",
        None => return,
    };
    let Some(element) = graph.elements.get_mut(place.element.0) else { return };
    element.class = Spanned::derived(class, element.class.span);
    element.config = Spanned::derived("", element.config.span);
    let (name, span) = (element.name.clone(), element.span);
    if place.sends {
        idle_outputs(graph, place.element, &name, span);
    }
}

/// What a `ToDevice` could not send leaves by its outputs; what replaces it sends everything, so an
/// `Idle` takes that side.
fn idle_outputs(graph: &mut Graph, id: ElementId, name: &str, span: Span) {
    if graph.connections.iter().all(|wire| wire.from != id) {
        return;
    }
    let idle = ElementId(graph.elements.len());
    let generated = |text: &str| Spanned::derived(text, span);
    let name = format!("{name}@unsent");
    graph.elements.push(click::Element { name, class: generated("Idle"), config: generated(""), span });
    for wire in graph.connections.iter_mut().filter(|wire| wire.from == id) {
        wire.from = idle;
    }
}

/// A Click file as a chain.
pub(super) fn alone(graph: Graph, path: &Path) -> Chain {
    let name = path.file_stem().map_or("nf".into(), |stem| stem.to_string_lossy().into_owned());
    let elements = 0..graph.elements.len();
    let info = NfInfo { name, file: path.to_path_buf(), elements, interfaces: vec![] };
    Chain {
        graph,
        ports: vec![],
        workers: None,
        cores: vec![],
        burst: None,
        folder: crate::assemble::folder_of(path),
        nfs: vec![info],
        links: vec![],
        entries: vec![],
    }
}
