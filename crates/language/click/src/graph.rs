//! The flat element graph: a configuration after the expansion of compound elements.

use std::collections::HashMap;

use diag::{Span, Spanned};

/// Index of an element in [`Graph::elements`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ElementId(pub usize);

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its flat name: `compound/inner/name`, or `Class@3` if it was declared without a name.
    pub name: String,
    /// Its class; the class is known.
    pub class: Spanned,
    /// Its configuration string, after the replacement of variables.
    pub config: Spanned,
    /// The location of its declaration.
    pub span: Span,
}

/// A connection between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The element that sends.
    pub from: ElementId,
    /// Its output port.
    pub from_port: u32,
    /// The element that receives.
    pub to: ElementId,
    /// Its input port.
    pub to_port: u32,
    /// Its location in the text.
    pub span: Span,
    /// Where its output and its input are named; the whole connection where no text names them.
    pub ends: (Span, Span),
}

/// A port of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// The element.
    pub element: ElementId,
    /// Whether it is an output.
    pub output: bool,
    /// Its number.
    pub port: u32,
}

impl Port {
    pub(crate) fn side(self) -> &'static str {
        if self.output { "output" } else { "input" }
    }
}

impl Connection {
    /// The output that packets leave by.
    pub fn from_port(&self) -> Port {
        Port { element: self.from, output: true, port: self.from_port }
    }

    /// The input that packets enter.
    pub fn to_port(&self) -> Port {
        Port { element: self.to, output: false, port: self.to_port }
    }
}

/// A flat configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The elements, those of a compound next to each other.
    pub elements: Vec<Element>,
    /// The connections, each once.
    pub connections: Vec<Connection>,
    /// The packages that the configuration requires (`require(package ...)`).
    pub packages: Vec<Spanned>,
    /// Ports without a connection because of an error that was reported.
    pub unconnected: Vec<Port>,
    /// Names of no class and no element, each reported once; their elements are missing.
    pub unknown: Vec<String>,
    /// Whether errors in the text removed statements: elements may appear unconnected.
    pub incomplete: bool,
    /// The text that it was read from.
    pub text: String,
    /// Whether it is composed of configurations ([`Graph::append`]), whose names begin their elements' names.
    pub is_composed: bool,
}

impl Graph {
    /// The element behind an id of this graph.
    pub fn element(&self, id: ElementId) -> Option<&Element> {
        self.elements.get(id.0)
    }

    pub(crate) fn name(&self, id: ElementId) -> &str {
        self.element(id).map_or("?", |element| element.name.as_str())
    }

    pub(crate) fn span(&self, id: ElementId) -> Span {
        self.element(id).map_or(Span::NONE, |element| element.span)
    }

    /// Adds an element.
    pub fn add(&mut self, element: Element) -> ElementId {
        self.elements.push(element);
        ElementId(self.elements.len() - 1)
    }

    /// Adds an element that no text declares; `span` is the declaration that required it.
    pub fn add_derived(&mut self, name: String, class: &str, config: &str, span: Span) -> ElementId {
        let text = |text: &str| Spanned::derived(text, span);
        self.add(Element { name, class: text(class), config: text(config), span })
    }

    /// Connects an output to an input, each an element and a port.
    pub fn connect(&mut self, from: (ElementId, usize), to: (ElementId, usize), span: Span) {
        let (from_port, to_port) = (from.1 as u32, to.1 as u32);
        self.connections.push(Connection {
            from: from.0,
            from_port,
            to: to.0,
            to_port,
            span,
            ends: (span, span),
        });
    }

    /// Adds the elements of another graph and their connections, with other names. Returns the number of the
    /// first of these elements. `name` puts the name of the configuration and a slash in front.
    pub fn append(&mut self, other: &Graph, name: impl Fn(&str) -> String) -> usize {
        let start = self.elements.len();
        self.is_composed = true;
        let moved = |id: ElementId| ElementId(start + id.0);
        let named = |element: &Element| Element { name: name(&element.name), ..element.clone() };
        self.elements.extend(other.elements.iter().map(named));
        let wired = |wire: &Connection| Connection { from: moved(wire.from), to: moved(wire.to), ..*wire };
        self.connections.extend(other.connections.iter().map(wired));
        let open = |port: &Port| Port { element: moved(port.element), ..*port };
        self.unconnected.extend(other.unconnected.iter().map(open));
        start
    }

    /// The name of the configuration that an element is from; empty in a graph of one configuration.
    pub fn configuration(&self, id: ElementId) -> &str {
        let name = self.element(id).filter(|_| self.is_composed).map_or("", |element| element.name.as_str());
        name.split_once('/').map_or(name, |(configuration, _)| configuration)
    }

    /// All ids in order.
    pub fn ids(&self) -> impl Iterator<Item = ElementId> + use<> {
        (0..self.elements.len()).map(ElementId)
    }

    /// An index of the elements by name.
    pub fn index(&self) -> NameIndex<'_> {
        let names = self.elements.iter().enumerate();
        NameIndex { ids: names.map(|(i, element)| (element.name.as_str(), ElementId(i))).collect() }
    }
}

/// Elements by name.
#[derive(Clone, Debug)]
pub struct NameIndex<'a> {
    ids: HashMap<&'a str, ElementId>,
}

impl NameIndex<'_> {
    /// The element that `name` refers to in the arguments of the element `context`: the one in the innermost
    /// surrounding compound.
    pub fn find(&self, name: &str, context: &str) -> Option<ElementId> {
        scopes(context).find_map(|scope| self.ids.get(format!("{scope}{name}").as_str()).copied())
    }
}

/// The scopes around an element of this flat name, the innermost first: each compound element that contains
/// it, with a slash (`a/b/`, `a/`), and the file (an empty text).
pub fn scopes(element: &str) -> impl Iterator<Item = &str> {
    let ends = element.rmatch_indices('/').map(|(slash, _)| slash + 1).chain([0]);
    ends.filter_map(|end| element.get(..end))
}

/// The numbers of inputs and outputs that wires between `count` nodes use, for each node. The ends of a wire
/// are a node and its port each.
pub(crate) fn ports_used(
    count: usize,
    wires: impl Iterator<Item = ((usize, u32), (usize, u32))>,
) -> Vec<(u32, u32)> {
    let mut used = vec![(0, 0); count];
    for ((from, output), (to, input)) in wires {
        if let Some((_, outputs)) = used.get_mut(from) {
            *outputs = output.saturating_add(1).max(*outputs);
        }
        if let Some((inputs, _)) = used.get_mut(to) {
            *inputs = input.saturating_add(1).max(*inputs);
        }
    }
    used
}
