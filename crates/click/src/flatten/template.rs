//! First pass: each scope read once, in text order.

use std::collections::{HashMap, HashSet};

use diag::{Diagnostics, Span, Spanned, did_you_mean};

use super::Classes;
use super::arguments::check_formals;
use super::class::{Class, ClassId, INPUT, Node, NodeId, NodeKind, OUTPUT, Resolved, Template, Wire};
use super::connect::{End, connect};
use crate::ast::{self, Ast, Body, Chain, Compound, ElementKind, ElementRef, Ident, Requirement};
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
    Resolved { classes: resolver.classes, root, packages: resolver.packages }
}

struct Resolver<'a> {
    known: &'a dyn Classes,
    classes: Vec<Class>,
    /// Classes that the configuration defines, innermost scope last.
    scopes: Vec<HashMap<String, ClassId>>,
    primitives: HashMap<String, ClassId>,
    /// Unknown classes that were reported.
    reported: HashSet<String>,
    packages: Vec<Spanned>,
    diags: &'a mut Diagnostics,
}

/// A template being read.
struct Scope {
    template: Template,
    by_name: HashMap<String, NodeId>,
    /// Nodes without a name of their own.
    anonymous: Vec<NodeId>,
    /// What Click's numbers for anonymous elements count.
    numbered: usize,
    /// What `input` and `output` mean here: the compound's, or those of the group around.
    pseudo: Option<(NodeId, NodeId)>,
}

/// An element of a chain: what arrows into it and out of it connect to.
struct Ends {
    input: End,
    output: End,
}

impl Scope {
    fn new(template: Template) -> Scope {
        Scope { template, by_name: HashMap::new(), anonymous: Vec::new(), numbered: 0, pseudo: None }
    }

    fn push(&mut self, name: String, span: Span, kind: NodeKind) -> NodeId {
        self.template.nodes.push(Node { name, span, kind });
        self.template.nodes.len() - 1
    }

    fn anonymous_name(&self, class: &str) -> String {
        format!("{class}@{}", self.numbered + 1)
    }

    /// Gives anonymous elements names that nobody else has.
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
    fn statements(&mut self, statements: &[Statement], scope: &mut Scope) {
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
                    .note(other.span, "first defined here");
                continue;
            }
            let value = arg.slice(first.text.len()..arg.text.len()).trim();
            let ident = Ident { name: name.to_owned(), span: first.span };
            template.defines.push((ident, value));
        }
    }

    /// The class of this name in scope.
    fn lookup(&mut self, name: &str) -> Option<ClassId> {
        if let Some(&id) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(id);
        }
        if let Some(&id) = self.primitives.get(name) {
            return Some(id);
        }
        self.known.is_known(name).then(|| self.primitive(name, Class::Primitive(name.to_owned())))
    }

    fn primitive(&mut self, name: &str, class: Class) -> ClassId {
        self.classes.push(class);
        let id = self.classes.len() - 1;
        self.primitives.insert(name.to_owned(), id);
        id
    }

    /// The class of this name; reports one that is not known.
    fn class(&mut self, name: &Ident) -> ClassId {
        match self.lookup(&name.name) {
            Some(id) => id,
            None => {
                if self.reported.insert(name.name.clone()) {
                    let help = did_you_mean(&name.name, self.class_names().iter());
                    self.diags
                        .error(name.span, format!("unknown element class `{}`", name.name))
                        .maybe_help(help);
                }
                self.classes.push(Class::Unknown);
                self.classes.len() - 1
            }
        }
    }

    fn class_names(&self) -> Vec<String> {
        let mut names = self.known.names();
        names.extend(self.scopes.iter().flat_map(|scope| scope.keys().cloned()));
        // A map has no order of its own; equally good suggestions must not vary.
        names.sort();
        names
    }

    fn compound(&mut self, compound: &Compound, name: &str, outside: &Scope) -> ClassId {
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
        // Each definition knows the next one to try.
        let mut next = extended;
        for mut template in templates.into_iter().rev() {
            template.overload = next;
            self.classes.push(Class::Compound(template));
            next = Some(self.classes.len() - 1);
        }
        next.unwrap_or_else(|| {
            self.classes.push(Class::Unknown);
            self.classes.len() - 1
        })
    }

    fn body(&mut self, body: &Body, compound: &Compound, name: &str, depth: usize) -> Template {
        check_formals(&body.formals, self.diags);
        let span = body
            .formals
            .first()
            .map_or(Span { end: compound.span.start.saturating_add(1), ..compound.span }, |first| {
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
        let (inputs, outputs) = self.pseudo_ports(&mut scope.template, INPUT, OUTPUT, &printable, span);
        scope.template.inputs = inputs;
        scope.template.outputs = outputs;
        scope.finish()
    }

    /// Checks how `input` and `output` are used; returns how many ports they have.
    fn pseudo_ports(
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
            if wire.to == input {
                misused(wire, "input", "an element to send to", "before");
            } else if wire.from == output {
                misused(wire, "output", "an element to receive from", "after");
            }
            wire.to != input && wire.from != output
        });
        let from_input = template.wires.iter().filter(|wire| wire.from == input);
        let inputs: HashSet<u32> = from_input.map(|wire| wire.from_port).collect();
        let to_output = template.wires.iter().filter(|wire| wire.to == output);
        let outputs: HashSet<u32> = to_output.map(|wire| wire.to_port).collect();
        let mut count = |ports: &HashSet<u32>, side: &str| {
            let count = ports.iter().max().map_or(0, |&max| max.saturating_add(1));
            for missing in (0..count).filter(|port| !ports.contains(port)).take(8) {
                self.diags.error(span, format!("{name} has no {side} {missing}, but a later one"));
            }
            count
        };
        (count(&inputs, "input"), count(&outputs, "output"))
    }

    fn chain(&mut self, chain: &Chain, scope: &mut Scope) {
        let mut before: Option<Vec<Ends>> = None;
        let last = chain.stages.len().saturating_sub(1);
        for (i, stage) in chain.stages.iter().enumerate() {
            let shared = (chain.stages.len() == 1).then(|| shared_class(stage)).flatten();
            let elements: Vec<Ends> =
                stage.iter().map(|element| self.element(element, shared, i == 0, scope)).collect();
            let arrow = i.checked_sub(1).and_then(|i| chain.arrows.get(i));
            if let (Some(before), Some(&arrow)) = (&before, arrow) {
                let outputs: Vec<End> = before.iter().map(|end| end.output.clone()).collect();
                let inputs: Vec<End> = elements.iter().map(|end| end.input.clone()).collect();
                let wires = connect(&outputs, &inputs, arrow, self.diags);
                scope.template.wires.extend(wires);
            }
            for (end, side, at) in elements.iter().flat_map(|element| {
                let start = (i == 0).then_some((&element.input, "input", "start"));
                let end = (i == last).then_some((&element.output, "output", "end"));
                start.into_iter().chain(end)
            }) {
                if let Some(span) = end.written {
                    self.diags.error(span, format!("{side} port at the {at} of a chain connects nothing"));
                }
            }
            before = Some(elements);
        }
    }

    fn element(
        &mut self,
        element: &ElementRef,
        shared: Option<Shared<'_>>,
        first_stage: bool,
        scope: &mut Scope,
    ) -> Ends {
        let node = match &element.element {
            ElementKind::Named { name, class, config } => {
                let declared = class.as_ref().or(shared.map(|shared| shared.class));
                let config = config.as_ref().or(shared.and_then(|shared| shared.config));
                self.named(name, declared, config, scope)
            }
            ElementKind::Compound { compound, config } => {
                let class = self.compound(compound, "", scope);
                let open = Span { end: compound.span.start.saturating_add(1), ..compound.span };
                let class_name = Spanned::derived("{...}", open);
                let name = scope.anonymous_name("");
                self.add(name, true, open, class, class_name, config.as_ref(), scope)
            }
            ElementKind::Group(statements) => return self.group(statements, element, scope),
            ElementKind::Implicit => match scope.pseudo {
                Some((input, _)) if first_stage => input,
                Some((_, output)) => output,
                // The parser makes implicit elements inside compounds and groups only.
                None => scope.push("input".into(), element.span, NodeKind::Pass),
            },
        };
        let span = match &element.element {
            ElementKind::Named { name, .. } => name.span,
            ElementKind::Compound { compound, .. } => {
                Span { end: compound.span.start.saturating_add(1), ..compound.span }
            }
            _ => element.span,
        };
        Ends {
            input: End::new(node, span, element.inputs.as_ref()),
            output: End::new(node, span, element.outputs.as_ref()),
        }
    }

    /// `name`, `Class(config)` or `name :: Class(config)`.
    fn named(
        &mut self,
        name: &Ident,
        class: Option<&ast::Class>,
        config: Option<&Spanned>,
        scope: &mut Scope,
    ) -> NodeId {
        let as_class = self.lookup(&name.name);
        if let Some(class) = class {
            let (id, class_name) = match class {
                ast::Class::Named(class) => {
                    (self.class(class), Spanned::verbatim(class.name.clone(), class.span))
                }
                ast::Class::Compound(compound) => {
                    let open = Span { end: compound.span.start.saturating_add(1), ..compound.span };
                    (self.compound(compound, "", scope), Spanned::derived("{...}", open))
                }
            };
            if as_class.is_some() {
                self.diags
                    .error(name.span, format!("class `{}` used as the name of an element", name.name))
                    .help("choose another name for the element");
            }
            if let Some(&other) = scope.by_name.get(&name.name) {
                let entry = self.diags.error(name.span, format!("redeclaration of element `{}`", name.name));
                match scope
                    .template
                    .nodes
                    .get(other)
                    .filter(|_| scope.pseudo.is_none_or(|p| other != p.0 && other != p.1))
                {
                    Some(node) => entry.note(node.span, "first declared here"),
                    None => entry.help("`input` and `output` are the ends of the compound element"),
                };
                return other;
            }
            self.check_name(name);
            return self.add(name.name.clone(), false, name.span, id, class_name, config, scope);
        }
        if let Some(id) = as_class {
            let anonymous = scope.anonymous_name(&name.name);
            let class_name = Spanned::verbatim(name.name.clone(), name.span);
            return self.add(anonymous, true, name.span, id, class_name, config, scope);
        }
        if let Some(&node) = scope.by_name.get(&name.name) {
            if let Some(config) = config {
                self.diags
                    .error(config.span, format!("arguments for `{}`, which is already declared", name.name))
                    .help("write the arguments where the element is declared");
            }
            return node;
        }
        let class = if config.is_some() {
            self.class(name)
        } else {
            self.undeclared(name, scope);
            self.classes.push(Class::Unknown);
            self.classes.len() - 1
        };
        let anonymous = scope.anonymous_name(&name.name);
        let class_name = Spanned::verbatim(name.name.clone(), name.span);
        self.add(anonymous, true, name.span, class, class_name, config, scope)
    }

    fn undeclared(&mut self, name: &Ident, scope: &Scope) {
        let pseudo = matches!(name.name.as_str(), "input" | "output");
        let help = if pseudo {
            Some(format!("`{}` has a meaning inside `{{ }}` and `( )` only", name.name))
        } else {
            let mut known = self.class_names();
            known.extend(scope.by_name.keys().cloned());
            known.sort();
            did_you_mean(&name.name, known.iter())
        };
        // One report for each name and scope is enough; classes have their own list.
        if self.reported.insert(format!("{}\0{}", scope.template.span.start, name.name)) {
            let upper = name.name.starts_with(|c: char| c.is_ascii_uppercase());
            let what = if upper { "unknown element class" } else { "undeclared element" };
            self.diags.error(name.span, format!("{what} `{}`", name.name)).maybe_help(help);
        }
    }

    fn check_name(&mut self, name: &Ident) {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if name.name.split('/').any(digits) {
            self.diags
                .error(name.span, format!("element name `{}` consists of digits", name.name))
                .help("a name, and each of its parts between slashes, needs a letter");
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one node")]
    fn add(
        &mut self,
        name: String,
        anonymous: bool,
        span: Span,
        class: ClassId,
        class_name: Spanned,
        config: Option<&Spanned>,
        scope: &mut Scope,
    ) -> NodeId {
        let config = config.cloned().unwrap_or_else(|| Spanned::derived("", class_name.span.after()));
        let kind = NodeKind::Element { class, class_name, config };
        let id = scope.push(name.clone(), span, kind);
        scope.numbered += 1;
        if anonymous {
            scope.anonymous.push(id);
        } else {
            scope.by_name.insert(name, id);
        }
        id
    }

    fn group(&mut self, statements: &[Statement], element: &ElementRef, scope: &mut Scope) -> Ends {
        let open = Span { end: element.span.start.saturating_add(1), ..element.span };
        // Click counts a group as three elements.
        scope.numbered += 3;
        let input = scope.push("input".into(), open, NodeKind::Pass);
        let output = scope.push("output".into(), open, NodeKind::Pass);
        let outer_pseudo = scope.pseudo.replace((input, output));
        let outer_input = scope.by_name.insert("input".into(), input);
        let outer_output = scope.by_name.insert("output".into(), output);
        self.statements(statements, scope);
        scope.pseudo = outer_pseudo;
        for (name, outer) in [("input", outer_input), ("output", outer_output)] {
            match outer {
                Some(node) => scope.by_name.insert(name.into(), node),
                None => scope.by_name.remove(name),
            };
        }
        let (inputs, outputs) = self.pseudo_ports(&mut scope.template, input, output, "the group", open);
        let mut ends = Ends {
            input: End::new(input, open, element.inputs.as_ref()),
            output: End::new(output, open, element.outputs.as_ref()),
        };
        // Without ports written, all ports of a group are meant.
        if element.inputs.is_none() {
            ends.input.ports = (0..inputs).collect();
        }
        if element.outputs.is_none() {
            ends.output.ports = (0..outputs).collect();
        }
        ends
    }
}

/// The class that `a, b :: Class(config)` gives to all its elements.
#[derive(Clone, Copy)]
struct Shared<'a> {
    class: &'a ast::Class,
    config: Option<&'a Spanned>,
}

/// `a, b :: Class(config)` standing alone, without ports, declares all of its names.
fn shared_class(stage: &[ElementRef]) -> Option<Shared<'_>> {
    let (last, others) = stage.split_last()?;
    let no_ports = stage.iter().all(|element| element.inputs.is_none() && element.outputs.is_none());
    let bare = |element: &ElementRef| {
        matches!(element.element, ElementKind::Named { class: None, config: None, .. })
    };
    match &last.element {
        ElementKind::Named { class: Some(class), config, .. }
            if !others.is_empty() && no_ports && others.iter().all(bare) =>
        {
            Some(Shared { class, config: config.as_ref() })
        }
        _ => None,
    }
}
