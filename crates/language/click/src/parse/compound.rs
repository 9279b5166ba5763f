//! Compound elements and `elementclass`.

use diag::Span;

use super::parser::{MAX_DEPTH, Nesting, Parser};
use crate::ast::{Body, Compound, Formal, StatementKind};
use crate::token::Kind;

impl Parser<'_> {
    /// Enters a nesting level. At the limit, reports an error and skips the level.
    pub(super) fn enter(&mut self, nesting: Nesting, open: Span) -> bool {
        if self.nesting.len() < MAX_DEPTH {
            self.nesting.push(nesting);
            return true;
        }
        self.diags
            .error(open, format!("compounds and groups nest deeper than {MAX_DEPTH} levels"))
            .help("name the inner ones with `elementclass`");
        let mut depth = 1usize;
        while depth > 0 && self.peek().kind != Kind::End {
            match self.take().kind {
                Kind::Sign(b'{' | b'(') => depth += 1,
                Kind::Sign(b'}' | b')') => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// `elementclass Name { ... }` or `elementclass Name Other`.
    pub(super) fn element_class(&mut self) -> Option<StatementKind> {
        self.take();
        let name = self.name("the name of the new element class")?;
        let class = self.class("`{` or the name of an element class")?;
        Some(StatementKind::ElementClass { name, class })
    }

    /// Parses a compound; the next token is `{`.
    pub(super) fn compound(&mut self) -> Option<Compound> {
        let open = self.take();
        let open_span = self.span(open);
        if !self.enter(Nesting::Compound, open_span) {
            return None;
        }
        let mut compound = Compound { span: open_span, bodies: Vec::new(), extends: None };
        loop {
            if let Some(dots) = self.accept(Kind::Dots) {
                let span = self.span(dots);
                compound.extends = Some(span);
                if compound.bodies.is_empty() || self.peek().kind != Kind::Sign(b'}') {
                    self.diags
                        .error(span, "`...` does not stand at the end of a compound element")
                        .help("write `{ ... first definition || ... }`");
                }
            } else {
                compound.bodies.push(self.body());
            }
            if self.accept(Kind::Bars).is_none() {
                break;
            }
        }
        self.nesting.pop();
        if self.accept(Kind::Sign(b'}')).is_none() {
            self.unclosed(open_span, "`}`");
        }
        compound.span = self.span_from(open.start);
        Some(compound)
    }

    fn body(&mut self) -> Body {
        let start = self.peek().start;
        let formals = self.formals();
        let statements = self.statements();
        Body { span: self.span_from(start), formals, statements }
    }

    /// Parses `$a, KEY $b |`, if present.
    fn formals(&mut self) -> Vec<Formal> {
        let mut formals = Vec::new();
        if self.accept(Kind::Sign(b'|')).is_some() {
            return formals;
        }
        loop {
            let token = self.peek();
            let keyword = match token.kind {
                Kind::Variable => None,
                Kind::Ident if self.peek_second().kind == Kind::Variable => {
                    self.take();
                    Some(self.ident(token))
                }
                _ => {
                    if !formals.is_empty() {
                        self.unexpected("a parameter like `$name`");
                        self.skip_formals();
                    }
                    return formals;
                }
            };
            let variable = self.take();
            let name = self.ident(variable);
            formals.push(Formal { keyword, name });
            if self.accept(Kind::Sign(b'|')).is_some() {
                return formals;
            }
            if self.accept(Kind::Sign(b',')).is_none() {
                self.unexpected("`,` or `|` after the parameter");
                self.skip_formals();
                return formals;
            }
        }
    }

    /// Skips to behind the `|` that ends the parameters, after an error in them.
    fn skip_formals(&mut self) {
        while !matches!(
            self.peek().kind,
            Kind::Sign(b'|' | b'}' | b'{' | b'(' | b';') | Kind::Arrow | Kind::Colons | Kind::End
        ) {
            self.take();
        }
        self.accept(Kind::Sign(b'|'));
    }
}
