//! Declarations and connections.

use diag::Span;

use super::parser::{Nesting, Parser};
use crate::ast::{Arrow, Chain, Class, ElementKind, ElementRef, Ident, Ports};
use crate::token::Kind;

/// The largest port number; a larger one is reported as an error. Click's elements have some dozens of ports
/// at most.
const MAX_PORT: u32 = 65_535;

impl Parser<'_> {
    /// `None` when no part of the chain could be parsed.
    pub(super) fn chain(&mut self) -> Option<Chain> {
        let mut chain = Chain { stages: Vec::new(), arrows: Vec::new() };
        let mut good = true;
        while good {
            let stage;
            (stage, good) = self.stage(chain.stages.is_empty());
            if stage.is_empty() {
                // Reported. An arrow without an element behind it is dropped.
                chain.arrows.pop();
                break;
            }
            chain.stages.push(stage);
            let token = self.peek();
            match token.kind {
                _ if !good => {}
                Kind::Arrow | Kind::DoubleArrow => {
                    self.take();
                    let many = token.kind == Kind::DoubleArrow;
                    chain.arrows.push(Arrow { many, span: self.span(token) });
                }
                Kind::End
                | Kind::Ident
                | Kind::Sign(b';' | b'{' | b'}' | b'[' | b')')
                | Kind::Bars
                | Kind::ElementClass
                | Kind::Require
                | Kind::Provide
                | Kind::Define => break,
                _ => {
                    self.unexpected("`->`, `;` or another element");
                    good = false;
                }
            }
        }
        if !good {
            self.recover();
        }
        // A single name before an error (`x : Queue`) was meant as part of another statement.
        let useful = good || !chain.arrows.is_empty();
        (useful && !chain.stages.is_empty()).then_some(chain)
    }

    /// Comma-separated elements, and whether all of them could be parsed.
    fn stage(&mut self, first: bool) -> (Vec<ElementRef>, bool) {
        let mut stage = Vec::new();
        loop {
            match self.element(first, stage.is_empty()) {
                Some(element) => stage.push(element),
                None => return (stage, false),
            }
            let Some(comma) = self.accept(Kind::Sign(b',')) else {
                return (stage, true);
            };
            if matches!(self.peek().kind, Kind::Arrow | Kind::DoubleArrow | Kind::Sign(b';')) {
                // Click accepts it.
                self.diags.warning(self.lexer.span(comma), "`,` without an element after it");
                return (stage, true);
            }
        }
    }

    fn element(&mut self, first_stage: bool, first_of_stage: bool) -> Option<ElementRef> {
        let start = self.peek().start;
        let mut inputs = self.ports();
        let mut outputs = None;
        let token = self.peek();
        let element = match token.kind {
            Kind::Ident => {
                self.take();
                let name = self.ident(token);
                let class = match self.accept(Kind::Colons) {
                    Some(_) => Some(self.class("an element class")?),
                    None => None,
                };
                let config = self.accept(Kind::Sign(b'(')).map(|open| self.config(open));
                ElementKind::Named { name, class, config }
            }
            Kind::Sign(b'{') => {
                let compound = self.compound()?;
                let config = self.accept(Kind::Sign(b'(')).map(|open| self.config(open));
                ElementKind::Compound { compound, config }
            }
            Kind::Sign(b'(') => self.group()?,
            kind => {
                if !self.implicit(kind, first_stage, first_of_stage, inputs.is_some()) {
                    self.no_element(first_stage);
                    return None;
                }
                if first_stage {
                    // `[1] -> a`: the port belongs to `input`, as an output of it.
                    std::mem::swap(&mut inputs, &mut outputs);
                }
                ElementKind::Implicit
            }
        };
        if !matches!(element, ElementKind::Implicit) {
            outputs = self.ports();
        }
        let span = self.span_from(start);
        Some(ElementRef { span, inputs, element, outputs })
    }

    /// Whether an omitted element stands for `input` (before the first arrow) or `output` (after the last),
    /// by the rules of `lib/lexer.cc`.
    fn implicit(&self, next: Kind, first_stage: bool, first_of_stage: bool, ports: bool) -> bool {
        !self.nesting.is_empty()
            && match next {
                Kind::Arrow | Kind::DoubleArrow => first_stage && (ports || first_of_stage),
                Kind::Sign(b',') => ports,
                Kind::Colons => false,
                _ => !first_stage && (ports || first_of_stage),
            }
    }

    fn no_element(&mut self, first_stage: bool) {
        let token = self.peek();
        let arrow = matches!(token.kind, Kind::Arrow | Kind::DoubleArrow);
        if arrow && first_stage && self.nesting.is_empty() {
            self.diags
                .error(self.lexer.span(token), "no element before the arrow")
                .help("only inside `{ }` or `( )` may a chain start at the input");
        } else {
            self.unexpected("an element");
        }
    }

    /// A class: its name or a compound. `wanted` describes it in the error.
    pub(super) fn class(&mut self, wanted: &str) -> Option<Class> {
        if self.peek().kind == Kind::Sign(b'{') {
            return self.compound().map(Class::Compound);
        }
        self.name(wanted).map(Class::Named)
    }

    /// A name. Another token is reported, and skipped up to the next statement.
    pub(super) fn name(&mut self, wanted: &str) -> Option<Ident> {
        let Some(token) = self.accept(Kind::Ident) else {
            self.unexpected(wanted);
            self.recover();
            return None;
        };
        Some(self.ident(token))
    }

    fn group(&mut self) -> Option<ElementKind> {
        let open = self.take();
        let span = self.span(open);
        if !self.enter(Nesting::Group, span) {
            return None;
        }
        let statements = self.statements();
        self.nesting.pop();
        if self.accept(Kind::Sign(b')')).is_none() {
            self.unclosed(span, "`)`");
        }
        Some(ElementKind::Group(statements))
    }

    pub(super) fn unclosed(&mut self, open: Span, wanted: &str) {
        self.not_found(wanted).with_note(open, format!("{wanted} is missing for this one"));
    }

    /// Parses `[0, 1, 4-6]`, if present.
    fn ports(&mut self) -> Option<Ports> {
        let open = self.accept(Kind::Sign(b'['))?;
        let mut ports = Ports { span: self.span(open), list: Vec::new(), entries: Vec::new(), open: false };
        loop {
            if self.peek().kind == Kind::Sign(b']') {
                // `[]` and `[0,]`: as many ports as the other side has.
                if ports.list.is_empty() {
                    ports.list.push(0);
                }
                ports.open = true;
                break;
            }
            let start = self.peek().start;
            let Some(first) = self.port_number() else {
                break;
            };
            let mut last = first;
            if self.accept(Kind::Sign(b'-')).is_some() {
                last = self.port_number().unwrap_or(first);
            }
            if last < first {
                let span = self.span_from(open.start);
                self.diags
                    .error(span, format!("port range {first}-{last} is empty"))
                    .help(format!("write {last}-{first}"));
            } else if ports.list.len() > MAX_PORT as usize {
                let span = self.span_from(open.start);
                self.diags.error(span, format!("more than {MAX_PORT} ports"));
            } else {
                ports.list.extend(first..=last);
                ports.entries.push((first, last, self.span_from(start)));
            }
            if self.accept(Kind::Sign(b',')).is_none() {
                break;
            }
        }
        if self.accept(Kind::Sign(b']')).is_none() {
            if !ports.list.is_empty() {
                self.unexpected("`]`");
            }
            while !matches!(
                self.peek().kind,
                Kind::Sign(b']' | b';' | b'{' | b'}' | b'(' | b')')
                    | Kind::End
                    | Kind::Arrow
                    | Kind::DoubleArrow
            ) {
                self.take();
            }
            self.accept(Kind::Sign(b']'));
        }
        if ports.list.is_empty() {
            // Reported. The port is unknown; 0 keeps the rest of the chain usable.
            ports.list.push(0);
        }
        ports.span = self.span_from(open.start);
        Some(ports)
    }

    fn port_number(&mut self) -> Option<u32> {
        let token = self.peek();
        let text = self.lexer.slice(token).to_owned();
        let number = crate::config::integer_literal(&text).and_then(|n| u32::try_from(n).ok());
        match number {
            Some(number) if token.kind == Kind::Ident => {
                self.take();
                if number > MAX_PORT {
                    self.diags.error(self.lexer.span(token), format!("port {number} is beyond {MAX_PORT}"));
                    return Some(0);
                }
                Some(number)
            }
            _ => {
                self.unexpected("a port number");
                None
            }
        }
    }
}
