//! Replaces elements of a graph, for `compose` and `replicate`, and describes the processes that elements
//! represent.

use super::nf::Nf;
use crate::model::{Body, ProcessNf};
use click::{ElementId, Graph};
use diag::Spanned;

/// The process of an NF or of one of its instances; `graph` contains the elements that it runs.
pub(super) fn process_of(
    nf: &Nf,
    name: String,
    graph: Graph,
    inputs: Vec<String>,
    outputs: Vec<String>,
) -> ProcessNf {
    let body = nf.program().cloned().unwrap_or(Body::Click(graph));
    ProcessNf { name, span: nf.span, body, inputs, outputs, l3_interfaces: vec![], terms: nf.terms.clone() }
}

/// Replaces the class of an element by one without arguments, such as `Null`, `Discard` or `Idle`.
pub(crate) fn pass_on(graph: &mut Graph, id: ElementId, class: &str) {
    if let Some(element) = graph.elements.get_mut(id.0) {
        element.class = Spanned::derived(class, element.class.span);
        element.config = Spanned::derived("", element.config.span);
    }
}

/// A `ToDevice` has outputs for packets that it could not send. Its replacement sends all packets, so an
/// `Idle` feeds the inputs that these outputs led to.
pub(super) fn idle_outputs(graph: &mut Graph, id: ElementId) {
    let is_wired = graph.connections.iter().any(|wire| wire.from == id);
    let Some(element) = graph.element(id).filter(|_| is_wired) else { return };
    let (name, span) = (format!("{}@unsent", element.name), element.span);
    let idle = graph.add_derived(name, "Idle", "", span);
    for wire in graph.connections.iter_mut().filter(|wire| wire.from == id) {
        wire.from = idle;
    }
}
