//! Element classes, and the templates of compound ones.

use diag::{Span, Spanned};

use crate::ast::{Formal, Ident};

/// Index into [`Resolved::classes`].
pub(super) type ClassId = usize;

/// Index into [`Template::nodes`].
pub(super) type NodeId = usize;

/// The `input` and `output` of a compound body are its first two nodes.
pub(super) const INPUT: NodeId = 0;
pub(super) const OUTPUT: NodeId = 1;

#[derive(Debug)]
pub(super) enum Class {
    /// A class that exists outside the configuration.
    Primitive(String),
    Compound(Template),
    /// An unknown class, which was reported. Its elements are omitted.
    Unknown,
}

/// One body of a compound element, or the file itself, with names resolved.
#[derive(Debug)]
pub(super) struct Template {
    /// Its name for messages; empty for a compound without a name.
    pub(super) name: String,
    /// The location of its definition.
    pub(super) span: Span,
    /// The number of compounds that contain it; 0 for the file.
    pub(super) depth: usize,
    pub(super) formals: Vec<Formal>,
    pub(super) defines: Vec<(Ident, Spanned)>,
    pub(super) nodes: Vec<Node>,
    pub(super) wires: Vec<Wire>,
    /// The numbers of used ports of its `input` and `output`.
    pub(super) ports: (u32, u32),
    /// The definition to try if this one does not fit.
    pub(super) overload: Option<ClassId>,
}

/// An element of a template.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Element {
        class: ClassId,
        /// The name of the class as written in the element's declaration.
        class_name: Spanned,
        config: Spanned,
    },
    /// An `input` or `output`: packets that enter by a port leave by the port of the same number.
    Pass,
}

/// A connection between ports of two nodes: of a template, or of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) from: (NodeId, u32),
    pub(super) to: (NodeId, u32),
    pub(super) span: Span,
    /// Where the output and the input are named.
    pub(super) ends: (Span, Span),
}

/// A configuration with names resolved.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) classes: Vec<Class>,
    pub(super) root: Template,
    pub(super) packages: Vec<Spanned>,
    /// Names without a definition that were reported.
    pub(super) unknown: Vec<String>,
}

impl Template {
    pub(super) fn new(name: String, span: Span, depth: usize) -> Template {
        Template {
            name,
            span,
            depth,
            formals: Vec::new(),
            defines: Vec::new(),
            nodes: Vec::new(),
            wires: Vec::new(),
            ports: (0, 0),
            overload: None,
        }
    }

    pub(super) fn printable_name(&self) -> &str {
        if self.name.is_empty() { "<anonymous>" } else { &self.name }
    }

    /// The signature for messages: `Name($a, KEY $b) with 1 input and 2 outputs`.
    pub(super) fn signature(&self) -> String {
        let formals: Vec<String> = self
            .formals
            .iter()
            .map(|formal| match &formal.keyword {
                Some(keyword) => format!("{} ${}", keyword.name, formal.name.name),
                None => format!("${}", formal.name.name),
            })
            .collect();
        let formals = match formals.as_slice() {
            [] => String::new(),
            formals => format!("({})", formals.join(", ")),
        };
        format!("{}{formals} has {}", self.printable_name(), port_counts(self.ports))
    }
}

pub(super) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn port_counts((inputs, outputs): (u32, u32)) -> String {
    let inputs = plural(inputs as usize, "input");
    format!("{inputs} and {}", plural(outputs as usize, "output"))
}
