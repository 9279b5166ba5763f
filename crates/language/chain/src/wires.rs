//! Elements that take the places of others in a graph, and what stands for processes: for `compose` and `spread`.

use super::nf::Nf;
use crate::model::{Body, ProcessNf};
use click::{ElementId, Graph};
use diag::Spanned;

/// The process of an NF, or of one of its instances, with the elements that it would be here.
pub(super) fn process_of(
    nf: &Nf,
    name: String,
    graph: Graph,
    inputs: Vec<String>,
    outputs: Vec<String>,
) -> ProcessNf {
    let body = nf.program.clone().unwrap_or(Body::Click(graph));
    ProcessNf { name, span: nf.span, body, inputs, outputs, stations: vec![], terms: nf.terms.clone() }
}

/// Makes an element one of a class without arguments, which passes packets on or has none.
pub(crate) fn pass_on(graph: &mut Graph, id: ElementId, class: &str) {
    if let Some(element) = graph.elements.get_mut(id.0) {
        element.class = Spanned::derived(class, element.class.span);
        element.config = Spanned::derived("", element.config.span);
    }
}

/// What a `ToDevice` could not send leaves by its outputs; what replaces it sends everything, so an
/// `Idle` takes that side.
pub(super) fn idle_outputs(graph: &mut Graph, id: ElementId) {
    let is_wired = graph.connections.iter().any(|wire| wire.from == id);
    let Some(element) = graph.element(id).filter(|_| is_wired) else { return };
    let (name, span) = (format!("{}@unsent", element.name), element.span);
    let idle = graph.add_derived(name, "Idle", "", span);
    for wire in graph.connections.iter_mut().filter(|wire| wire.from == id) {
        wire.from = idle;
    }
}
