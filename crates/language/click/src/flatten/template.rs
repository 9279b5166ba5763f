//! The first pass: reads each scope once, in text order.

use std::collections::{HashMap, HashSet};

use diag::{Diagnostics, Span, Spanned, did_you_mean};

use super::arguments::check_formals;
use super::class::{Class, ClassId, INPUT, Node, NodeId, NodeKind, OUTPUT, Resolved, Template, Wire};
use crate::Classes;
use crate::ast::{self, Ast, Body, Compound, Ident, Requirement};
use crate::ast::{Statement, StatementKind};
use crate::config::{split_args, split_words};

pub(super) fn resolve(ast: &Ast, classes: &dyn Classes, diags: &mut Diagnostics) -> Resolved {
    let span = ast.statements.first().map_or(Span::new(ast.source, 0, 0), |first| first.span);
    let mut resolver = Resolver {
        known: classes,
        classes: Vec::new(),
        scopes: vec![HashMap::new()],
        primitives: HashMap::new(),
        reported: HashSet::new(),
        packages: Vec::new(),
        diags,
    };
    let mut scope = Scope::new(Template::new(String::new(), span, 0));
    resolver.statements(&ast.statements, &mut scope);
    let root = scope.finish();
    let name = |reported: String| reported.rsplit('\0').next().map(str::to_owned).unwrap_or(reported);
    let mut unknown: Vec<String> = resolver.reported.into_iter().map(name).collect();
    unknown.sort();
    Resolved { classes: resolver.classes, root, packages: resolver.packages, unknown }
}

pub(super) struct Resolver<'a> {
    pub(super) known: &'a dyn Classes,
    pub(super) classes: Vec<Class>,
    /// The classes that the configuration defines; the innermost scope is last.
    scopes: Vec<HashMap<String, ClassId>>,
    primitives: HashMap<String, ClassId>,
    /// The unknown classes that were reported.
    pub(super) reported: HashSet<String>,
    packages: Vec<Spanned>,
    pub(super) diags: &'a mut Diagnostics,
}

/// A template being read.
pub(super) struct Scope {
    pub(super) template: Template,
    pub(super) by_name: HashMap<String, NodeId>,
    /// Nodes without a declared name.
    anonymous: Vec<NodeId>,
    /// The counter of Click's numbers for anonymous elements.
    pub(super) numbered: usize,
    /// The nodes of `input` and `output` in this scope: those of the compound, or of the surrounding group.
    pub(super) pseudo: Option<(NodeId, NodeId)>,
}

impl Scope {
    fn new(template: Template) -> Scope {
        Scope { template, by_name: HashMap::new(), anonymous: Vec::new(), numbered: 0, pseudo: None }
    }

    pub(super) fn push(&mut self, name: String, span: Span, kind: NodeKind) -> NodeId {
        self.template.nodes.push(Node { name, span, kind });
        self.template.nodes.len() - 1
    }

    /// Adds an element of that name, or an anonymous one that is named after its class.
    pub(super) fn add(
        &mut self,
        name: &str,
        anonymous: bool,
        span: Span,
        class: ClassId,
        class_name: Spanned,
        config: Option<&Spanned>,
    ) -> NodeId {
        let config = config.cloned().unwrap_or_else(|| Spanned::derived("", class_name.span.after()));
        let kind = NodeKind::Element { class, class_name, config };
        self.numbered += 1;
        if anonymous {
            let id = self.push(format!("{name}@{}", self.numbered), span, kind);
            self.anonymous.push(id);
            return id;
        }
        let id = self.push(name.to_owned(), span, kind);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Gives each anonymous element a unique name.
    fn finish(mut self) -> Template {
        for &id in &self.anonymous {
            let Some(node) = self.template.nodes.get_mut(id) else {
                continue;
            };
            while self.by_name.contains_key(&node.name) {
                let (class, number) = node.name.rsplit_once('@').unwrap_or((&node.name, "0"));
                let next = number.parse::<u64>().unwrap_or(0).saturating_add(1);
                node.name = format!("{class}@{next}");
            }
            self.by_name.insert(node.name.clone(), id);
        }
        self.template
    }
}

impl Resolver<'_> {
    pub(super) fn statements(&mut self, statements: &[Statement], scope: &mut Scope) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Chain(chain) => self.chain(chain, scope),
                StatementKind::ElementClass { name, class } => {
                    let id = match class {
                        ast::Class::Named(other) => self.class(other),
                        ast::Class::Compound(compound) => self.compound(compound, &name.name, scope),
                    };
                    if let Some(classes) = self.scopes.last_mut() {
                        classes.insert(name.name.clone(), id);
                    }
                }
                StatementKind::Define(config) => self.define(config, scope),
                StatementKind::Require(requirements) => {
                    for requirement in requirements {
                        match requirement {
                            Requirement::Package(name) => self.packages.push(name.clone()),
                            Requirement::Library(_, Some(library)) => {
                                self.statements(&library.statements, scope);
                            }
                            Requirement::Library(_, None) | Requirement::CompactConfig(_) => {}
                        }
                    }
                }
                StatementKind::Provide(_) => {}
            }
        }
    }

    fn define(&mut self, config: &Spanned, scope: &mut Scope) {
        for arg in split_args(config) {
            let words = split_words(&arg);
            let Some(first) = words.first() else {
                continue;
            };
            let name = first.text.strip_prefix('$').unwrap_or("");
            let good = !name.is_empty() && name.bytes().all(crate::scan::is_variable);
            if !good {
                self.diags
                    .error(first.span, format!("`{first}` is not a variable"))
                    .help("write `define($name value, ...)`");
                continue;
            }
            let template = &mut scope.template;
            let formals = template.formals.iter().map(|formal| &formal.name);
            let defined = template.defines.iter().map(|(name, _)| name);
            if let Some(other) = formals.chain(defined).find(|other| other.name == name) {
                self.diags
                    .error(first.span, format!("`${name}` is defined twice"))
                    .with_note(other.span, "first defined here");
                continue;
            }
            let value = arg.slice(first.text.len()..arg.text.len()).trim();
            let ident = Ident { name: name.to_owned(), span: first.span };
            template.defines.push((ident, value));
        }
    }

    /// The class of this name in scope.
    pub(super) fn lookup(&mut self, name: &str) -> Option<ClassId> {
        if let Some(&id) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(id);
        }
        if let Some(&id) = self.primitives.get(name) {
            return Some(id);
        }
        self.known.is_known(name).then(|| self.primitive(name, Class::Primitive(name.to_owned())))
    }

    pub(super) fn add_class(&mut self, class: Class) -> ClassId {
        self.classes.push(class);
        self.classes.len() - 1
    }

    fn primitive(&mut self, name: &str, class: Class) -> ClassId {
        let id = self.add_class(class);
        self.primitives.insert(name.to_owned(), id);
        id
    }

    /// The class of this name; reports an unknown one.
    pub(super) fn class(&mut self, name: &Ident) -> ClassId {
        match self.lookup(&name.name) {
            Some(id) => id,
            None => {
                if self.reported.insert(name.name.clone()) {
                    let help = self.instead_of(&name.name, []);
                    self.diags
                        .error(name.span, format!("unknown element class `{}`", name.name))
                        .maybe_help(help);
                }
                self.add_class(Class::Unknown)
            }
        }
    }

    /// The class, or one of these elements, to suggest in place of an unknown name.
    pub(super) fn instead_of<'e>(
        &self,
        name: &str,
        elements: impl IntoIterator<Item = &'e String>,
    ) -> Option<String> {
        let mut names = self.known.names();
        names.extend(self.scopes.iter().flat_map(HashMap::keys).cloned());
        names.extend(elements.into_iter().cloned());
        // The order of a map varies; the choice among equally good suggestions must not.
        names.sort();
        self.known.instead_of(name).or_else(|| did_you_mean(name, names.iter()))
    }

    pub(super) fn compound(&mut self, compound: &Compound, name: &str, outside: &Scope) -> ClassId {
        let extended = compound.extends.and_then(|span| {
            let found = self.lookup(name);
            if found.is_none() {
                let message = if name.is_empty() {
                    "`...` in a compound element without a name extends nothing".to_owned()
                } else {
                    format!("cannot extend unknown element class `{name}`")
                };
                self.diags.error(span, message);
            }
            found
        });
        let depth = outside.template.depth + 1;
        let templates: Vec<Template> =
            compound.bodies.iter().map(|body| self.body(body, compound, name, depth)).collect();
        // Each definition refers to the next one to try.
        let mut next = extended;
        for mut template in templates.into_iter().rev() {
            template.overload = next;
            next = Some(self.add_class(Class::Compound(template)));
        }
        next.unwrap_or_else(|| self.add_class(Class::Unknown))
    }

    fn body(&mut self, body: &Body, compound: &Compound, name: &str, depth: usize) -> Template {
        check_formals(&body.formals, self.diags);
        let span = body.formals.first().map_or(compound.opening(), |first| {
            first.keyword.as_ref().map_or(first.name.span, |keyword| keyword.span)
        });
        let mut scope = Scope::new(Template::new(name.to_owned(), span, depth));
        scope.template.formals = body.formals.clone();
        let input = scope.push("input".into(), span, NodeKind::Pass);
        let output = scope.push("output".into(), span, NodeKind::Pass);
        scope.by_name.insert("input".into(), input);
        scope.by_name.insert("output".into(), output);
        scope.pseudo = Some((INPUT, OUTPUT));
        self.scopes.push(HashMap::new());
        self.statements(&body.statements, &mut scope);
        self.scopes.pop();
        let printable = format!("`{}`", scope.template.printable_name());
        scope.template.ports = self.pseudo_ports(&mut scope.template, INPUT, OUTPUT, &printable, span);
        scope.finish()
    }

    /// Checks the uses of `input` and `output`; returns their numbers of ports.
    pub(super) fn pseudo_ports(
        &mut self,
        template: &mut Template,
        input: NodeId,
        output: NodeId,
        name: &str,
        span: Span,
    ) -> (u32, u32) {
        let mut misused = |wire: &Wire, what: &str, wrong: &str, side: &str| {
            self.diags
                .error(wire.span, format!("`{what}` is used as {wrong}"))
                .help(format!("`{what}` stands {side} an arrow only"));
        };
        template.wires.retain(|wire| {
            if wire.to.0 == input {
                misused(wire, "input", "an element to send to", "before");
            } else if wire.from.0 == output {
                misused(wire, "output", "an element to receive from", "after");
            }
            wire.to.0 != input && wire.from.0 != output
        });
        let from_input = template.wires.iter().filter(|wire| wire.from.0 == input);
        let inputs: HashSet<u32> = from_input.map(|wire| wire.from.1).collect();
        let to_output = template.wires.iter().filter(|wire| wire.to.0 == output);
        let outputs: HashSet<u32> = to_output.map(|wire| wire.to.1).collect();
        let mut count = |ports: &HashSet<u32>, side: &str| {
            let count = ports.iter().max().map_or(0, |&max| max.saturating_add(1));
            for missing in (0..count).filter(|port| !ports.contains(port)).take(8) {
                self.diags.error(span, format!("{name} has no {side} {missing}, but a later one"));
            }
            count
        };
        (count(&inputs, "input"), count(&outputs, "output"))
    }
}
