//! Resolves the elements of each connection statement, and the ports that its arrows connect.

use diag::{Span, Spanned};

use super::class::{Class, NodeId, NodeKind};
use super::connect::{End, connect};
use super::template::{Resolver, Scope};
use crate::ast::{self, Chain, ElementKind, ElementRef, Ident, Statement};

/// An element of a chain: the nodes and ports that arrows into it and out of it connect to.
struct Ends {
    input: End,
    output: End,
}

impl Resolver<'_> {
    pub(super) fn chain(&mut self, chain: &Chain, scope: &mut Scope) {
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
        let (node, span) = match &element.element {
            ElementKind::Named { name, class, config } => {
                let declared = class.as_ref().or(shared.map(|shared| shared.class));
                let config = config.as_ref().or(shared.and_then(|shared| shared.config));
                (self.named(name, declared, config, scope), name.span)
            }
            ElementKind::Compound { compound, config } => {
                let class = self.compound(compound, "", scope);
                let open = compound.opening();
                let class_name = Spanned::derived("{...}", open);
                (scope.add("", true, open, class, class_name, config.as_ref()), open)
            }
            ElementKind::Group(statements) => return self.group(statements, element, scope),
            ElementKind::Implicit => {
                let node = match scope.pseudo {
                    Some((input, _)) if first_stage => input,
                    Some((_, output)) => output,
                    // The parser makes implicit elements only inside compounds and groups.
                    None => scope.push("input".into(), element.span, NodeKind::Pass),
                };
                (node, element.span)
            }
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
                ast::Class::Named(class) => (self.class(class), class.spanned()),
                ast::Class::Compound(compound) => {
                    (self.compound(compound, "", scope), Spanned::derived("{...}", compound.opening()))
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
                    Some(node) => entry.with_note(node.span, "first declared here"),
                    None => entry.help("`input` and `output` are the ends of the compound element"),
                };
                return other;
            }
            self.check_name(name);
            return scope.add(&name.name, false, name.span, id, class_name, config);
        }
        if let Some(id) = as_class {
            return scope.add(&name.name, true, name.span, id, name.spanned(), config);
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
            self.add_class(Class::Unknown)
        };
        scope.add(&name.name, true, name.span, class, name.spanned(), config)
    }

    fn undeclared(&mut self, name: &Ident, scope: &Scope) {
        let pseudo = matches!(name.name.as_str(), "input" | "output");
        let help = if pseudo {
            Some(format!("`{}` has a meaning inside `{{ }}` and `( )` only", name.name))
        } else {
            self.instead_of(&name.name, scope.by_name.keys())
        };
        // An undeclared name is reported once for each scope; unknown classes are recorded in another list.
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
        // A group without written ports connects all its ports.
        if element.inputs.is_none() {
            ends.input.ports = (0..inputs).collect();
        }
        if element.outputs.is_none() {
            ends.output.ports = (0..outputs).collect();
        }
        ends
    }
}

/// The class that `a, b :: Class(config)` declares for all its elements.
#[derive(Clone, Copy)]
struct Shared<'a> {
    class: &'a ast::Class,
    config: Option<&'a Spanned>,
}

/// `a, b :: Class(config)` alone and without ports declares all of its names.
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
