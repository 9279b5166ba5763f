//! The second pass: makes elements of templates, replaces variables by their values, and joins connections
//! through the `input` and `output` of compounds and groups.

use std::collections::HashMap;
use std::rc::Rc;

use diag::{Diagnostics, Span, Spanned};

use super::arguments::assign;
use super::class::{Class, ClassId, INPUT, NodeKind, OUTPUT, Resolved, Template, Wire};
use super::class::{plural, port_counts};
use crate::config::{self, Variables, split_args};
use crate::graph::ports_used;
use crate::{Element, ElementId, Graph};

/// A configuration expands to at most this many elements, pseudoelements included.
const MAX_ELEMENTS: usize = 1 << 18;
/// The size limit of all names and configuration strings together.
const MAX_BYTES: usize = 1 << 27;
/// The nesting limit of compounds, which bounds the recursion here.
const MAX_DEPTH: usize = 150;

pub(super) fn expand(
    resolved: &Resolved,
    defines: &[(String, Spanned)],
    text_bytes: usize,
    diags: &mut Diagnostics,
) -> Graph {
    let mut root = Scope { depth: 0, parent: None, values: HashMap::new() };
    for (name, value) in &resolved.root.defines {
        root.values.insert(name.name.clone(), value.clone());
    }
    for (name, value) in defines {
        root.values.insert(name.clone(), value.clone());
    }
    let mut expander = Expander {
        classes: &resolved.classes,
        diags,
        elements: Vec::new(),
        nodes: Vec::new(),
        wires: Vec::new(),
        names: HashMap::new(),
        config_bytes: config::limit_bytes(text_bytes),
        bytes_left: MAX_BYTES,
        depth: 0,
        overflow: false,
    };
    expander.instantiate(&resolved.root, "", &Rc::new(root), None);
    let (connections, lost) = expander.connections();
    Graph {
        elements: expander.elements,
        connections,
        packages: resolved.packages.clone(),
        text: String::new(),
        unconnected: lost,
        unknown: resolved.unknown.clone(),
        incomplete: false,
        is_composed: false,
    }
}

/// The variables of one instance of a template.
struct Scope {
    /// Lexical depth of the template.
    depth: usize,
    parent: Option<Rc<Scope>>,
    values: HashMap<String, Spanned>,
}

impl Variables for Scope {
    fn value(&self, name: &str) -> Option<&Spanned> {
        let scopes = std::iter::successors(Some(self), |scope| scope.parent.as_deref());
        scopes.into_iter().find_map(|scope| scope.values.get(name))
    }
}

/// Index into [`Expander::nodes`].
pub(super) type NodeIndex = usize;

pub(super) enum Node {
    Element(ElementId),
    /// One side of a compound or group: packets that enter by a port leave by the port of the same number.
    Pass(Pass),
    /// An element that could not be made. Its connections are dropped.
    Dead,
}

#[derive(Clone)]
pub(super) struct Pass {
    /// The name of the compound or group.
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) side: &'static str,
}

pub(super) struct Expander<'a> {
    classes: &'a [Class],
    pub(super) diags: &'a mut Diagnostics,
    elements: Vec<Element>,
    pub(super) nodes: Vec<Node>,
    pub(super) wires: Vec<Wire>,
    /// The flat names in use, with the locations of their declarations.
    names: HashMap<String, Span>,
    /// The size limit of one configuration string.
    config_bytes: usize,
    bytes_left: usize,
    depth: usize,
    pub(super) overflow: bool,
}

impl Expander<'_> {
    /// Makes the elements of one instance. `ends` are the nodes of its `input` and `output`.
    fn instantiate(
        &mut self,
        template: &Template,
        prefix: &str,
        scope: &Rc<Scope>,
        ends: Option<(NodeIndex, NodeIndex)>,
    ) {
        // The node that receives each node's incoming wires, and the node that its outgoing wires start at.
        let mut places: Vec<(NodeIndex, NodeIndex)> = Vec::with_capacity(template.nodes.len());
        let wires = template.wires.iter().map(|wire| (wire.from, wire.to));
        let used = ports_used(template.nodes.len(), wires);
        for (id, node) in template.nodes.iter().enumerate() {
            let place = match (&node.kind, ends, id) {
                (NodeKind::Pass, Some((input, _)), INPUT) => (input, input),
                (NodeKind::Pass, Some((_, output)), OUTPUT) => (output, output),
                (NodeKind::Pass, ..) => {
                    let side = if node.name == "input" { "input" } else { "output" };
                    let name = "the group".to_owned();
                    let place = self.push(Node::Pass(Pass { name, span: node.span, side }));
                    (place, place)
                }
                (NodeKind::Element { class, class_name, config }, ..) => {
                    let name = format!("{prefix}{}", node.name);
                    let instance = Instance {
                        name,
                        span: node.span,
                        class: *class,
                        class_name,
                        ports: used.get(id).copied().unwrap_or_default(),
                    };
                    self.element(instance, config, scope)
                }
            };
            places.push(place);
            if self.overflow {
                return;
            }
        }
        for wire in &template.wires {
            if let (Some(from), Some(to)) = (places.get(wire.from.0), places.get(wire.to.0)) {
                let (from, to) = ((from.1, wire.from.1), (to.0, wire.to.1));
                self.wires.push(Wire { from, to, ..*wire });
            }
        }
    }

    fn push(&mut self, node: Node) -> NodeIndex {
        self.nodes.push(node);
        if self.nodes.len() > MAX_ELEMENTS {
            self.overflow(Span::NONE, format!("more than {MAX_ELEMENTS} elements"));
        }
        self.nodes.len() - 1
    }

    fn overflow(&mut self, span: Span, what: String) {
        if !self.overflow {
            self.diags.error(span, format!("the configuration expands to {what}"));
        }
        self.overflow = true;
    }

    /// Counts the bytes of elements and ends the expansion at a limit, so that no text exhausts memory.
    fn spend(&mut self, bytes: usize, span: Span) {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => self.bytes_left = left,
            None => self.overflow(span, format!("more than {MAX_BYTES} bytes")),
        }
    }

    fn dead(&mut self) -> (NodeIndex, NodeIndex) {
        let place = self.push(Node::Dead);
        (place, place)
    }

    /// Makes one element, or all of a compound one.
    fn element(
        &mut self,
        instance: Instance<'_>,
        config: &Spanned,
        scope: &Rc<Scope>,
    ) -> (NodeIndex, NodeIndex) {
        let Some(config) = config::expand(config, scope.as_ref(), self.config_bytes) else {
            let limit = self.config_bytes;
            self.diags.error(config.span, format!("the arguments expand to more than {limit} bytes"));
            self.spend(limit, instance.span);
            return self.dead();
        };
        let bytes = instance.name.len() + config.text.len() + 64;
        self.spend(bytes, instance.span);
        if let Some(first) = self.names.insert(instance.name.clone(), instance.span) {
            let message = format!("two elements are called `{}`", instance.name);
            self.diags.error(instance.span, message).with_note(first, "the other one");
            return self.dead();
        }
        let mut class = instance.class;
        if let Some(Class::Compound(_)) = self.classes.get(class) {
            match self.choose(&instance, &config) {
                Some(chosen) => class = chosen,
                None => return self.dead(),
            }
        }
        match self.classes.get(class) {
            Some(Class::Primitive(name)) => {
                let written = instance.class_name;
                let class = if written.text == *name {
                    written.clone()
                } else {
                    // The name is a synonym, or the class that an extension ends at.
                    Spanned::derived(name.clone(), written.span)
                };
                let id = ElementId(self.elements.len());
                let span = instance.span;
                self.elements.push(Element { name: instance.name, class, config, span });
                let place = self.push(Node::Element(id));
                (place, place)
            }
            Some(Class::Compound(template)) => self.compound(template, instance, &config, scope),
            Some(Class::Unknown) | None => self.dead(),
        }
    }

    fn compound(
        &mut self,
        template: &Template,
        instance: Instance<'_>,
        config: &Spanned,
        scope: &Rc<Scope>,
    ) -> (NodeIndex, NodeIndex) {
        if self.depth >= MAX_DEPTH {
            self.overflow(instance.span, format!("more than {MAX_DEPTH} levels of compounds"));
            return self.dead();
        }
        let args = split_args(config);
        let place = instance.place(config);
        let Ok(values) = assign(template, &args, place) else {
            return self.dead();
        };
        // The scope around the definition, which is also around this instance.
        let mut parent = Some(scope.clone());
        while let Some(outer) = parent.as_ref().filter(|outer| outer.depth >= template.depth) {
            parent = outer.parent.clone();
        }
        let mut inner = Scope { depth: template.depth, parent, values: HashMap::new() };
        for (formal, value) in template.formals.iter().zip(values) {
            inner.values.insert(formal.name.name.clone(), value);
        }
        for (name, value) in &template.defines {
            // In the order of the parameters, so that a definition may use the outer variable of the same
            // name.
            if let Some(value) = config::expand(value, &inner, self.config_bytes) {
                inner.values.insert(name.name.clone(), value);
            }
        }
        let (name, span) = (&instance.name, instance.span);
        let input = self.push(Node::Pass(Pass { name: format!("`{name}`"), span, side: "input" }));
        let output = self.push(Node::Pass(Pass { name: format!("`{name}`"), span, side: "output" }));
        self.depth += 1;
        self.instantiate(template, &format!("{name}/"), &Rc::new(inner), Some((input, output)));
        self.depth -= 1;
        (input, output)
    }

    /// The first definition that fits. If none does, the last one whose arguments fit: an error about its
    /// ports is more useful than a refusal.
    fn choose(&mut self, instance: &Instance<'_>, config: &Spanned) -> Option<ClassId> {
        let args = split_args(config);
        let place = instance.place(config);
        let mut tried = Vec::new();
        let mut closest = None;
        let mut next = Some(instance.class);
        while let Some(id) = next {
            let Some(Class::Compound(template)) = self.classes.get(id) else {
                // `...` extends a class of the outer scope, which receives the remaining arguments.
                return Some(id);
            };
            let fits = assign(template, &args, place).is_ok();
            if fits && instance.ports == template.ports {
                return Some(id);
            }
            if fits {
                closest = Some(id);
            }
            tried.push(template);
            next = template.overload;
        }
        match (tried.as_slice(), closest) {
            ([_], Some(_)) => {}
            ([only], None) => {
                if let Err((span, message)) = assign(only, &args, place) {
                    let note = format!("defined here: {}", only.signature());
                    self.diags.error(span, message).with_note(only.span, note);
                }
            }
            _ => {
                let name = tried.first().map_or("", |first| first.printable_name());
                let (taken, ports) = (plural(args.len(), "argument"), port_counts(instance.ports));
                let message = format!("no definition of `{name}` takes {taken} and has {ports}");
                let mut entry = self.diags.error(place, message);
                for candidate in tried.iter().take(8) {
                    entry = entry.with_note(candidate.span, format!("candidate: {}", candidate.signature()));
                }
            }
        }
        closest
    }
}

/// An element to make.
struct Instance<'a> {
    name: String,
    span: Span,
    class: ClassId,
    class_name: &'a Spanned,
    /// The numbers of inputs and outputs that the configuration uses.
    ports: (u32, u32),
}

impl Instance<'_> {
    /// The location of an error in the arguments as a whole.
    fn place(&self, config: &Spanned) -> Span {
        if config.text.is_empty() { self.class_name.span } else { config.span }
    }
}
