//! The parser's state, and statements.

use diag::{DiagnosticBuilder, Diagnostics, SourceId, SourceMap, Span, Spanned};

use super::libraries::Libraries;
use crate::ast::{Ast, Ident, Statement, StatementKind};
use crate::token::{Kind, Lexer, Token};

/// The nesting limit of compounds and groups, which also bounds the recursion of every walk over the tree.
/// (Click's own limit is 50.)
pub(crate) const MAX_DEPTH: usize = 50;

/// Parses a file. `loaded` contains the names of the files parsed so far: each library is included once.
pub(super) fn parse_file(
    map: &mut SourceMap,
    source: SourceId,
    libraries: &mut dyn Libraries,
    loaded: &mut Vec<String>,
    library_depth: usize,
    diags: &mut Diagnostics,
) -> Ast {
    let errors_before = diags.errors();
    let mut parser = Parser {
        lexer: Lexer::new(map, source),
        ahead: Vec::new(),
        last_end: 0,
        nesting: Vec::new(),
        libraries,
        loaded,
        library_depth,
        diags,
    };
    let statements = parser.statements();
    let Lexer { text, tokens, .. } = parser.lexer;
    let valid = diags.errors() == errors_before;
    Ast { source, statements, text, tokens, valid }
}

/// The construct that contains the statements being parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nesting {
    Compound,
    Group,
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    /// Tokens that were read ahead; the next one is last.
    pub(super) ahead: Vec<Token>,
    /// The offset after the last consumed token.
    pub(super) last_end: usize,
    pub(super) nesting: Vec<Nesting>,
    pub(super) libraries: &'a mut dyn Libraries,
    pub(super) loaded: &'a mut Vec<String>,
    pub(super) library_depth: usize,
    pub(super) diags: &'a mut Diagnostics,
}

impl Parser<'_> {
    pub(super) fn peek(&mut self) -> Token {
        match self.ahead.last() {
            Some(&token) => token,
            None => {
                let token = self.lexer.next(self.diags);
                self.ahead.push(token);
                token
            }
        }
    }

    /// The token after the next one.
    pub(super) fn peek_second(&mut self) -> Token {
        let first = self.take();
        let second = self.peek();
        self.ahead.push(first);
        second
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.peek();
        self.ahead.pop();
        self.last_end = token.end;
        token
    }

    /// Consumes the next token if it is of this kind.
    pub(super) fn accept(&mut self, kind: Kind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.take())
    }

    pub(super) fn span(&self, token: Token) -> Span {
        self.lexer.span(token)
    }

    /// The span from `start` to the end of the last consumed token.
    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(self.lexer.source, start, self.last_end.max(start))
    }

    pub(super) fn ident(&self, token: Token) -> Ident {
        let text = self.lexer.slice(token);
        Ident { name: text.strip_prefix('$').unwrap_or(text).to_owned(), span: self.span(token) }
    }

    /// Reports the next token as unexpected; `wanted` describes the tokens that would be valid.
    pub(super) fn unexpected(&mut self, wanted: &str) {
        let token = self.peek();
        let help = match (token.kind, self.lexer.slice(token)) {
            (Kind::Sign(b'-'), _) => Some("connections are written `a -> b`"),
            (_, "=") => Some("connections between many ports are written `a => b, c`"),
            (_, ":") => Some("declarations are written `name :: Class(arguments)`"),
            (_, "#") => Some("comments start with `//`"),
            (Kind::Variable, _) => {
                Some("variables stand in configuration strings only, as in `Queue($capacity)`")
            }
            _ => None,
        };
        self.not_found(wanted).maybe_help(help.map(str::to_owned));
    }

    /// Reports the next token in place of what is `wanted`.
    pub(super) fn not_found(&mut self, wanted: &str) -> DiagnosticBuilder<'_> {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.lexer.slice(token)),
        };
        self.diags.error(self.lexer.span(token), format!("expected {wanted}, found {found}"))
    }

    /// The configuration string after an opening parenthesis that was just consumed.
    pub(super) fn config(&mut self, open: Token) -> Spanned {
        let token = self.lexer.config(open, self.diags);
        self.last_end = token.end;
        let text = self.lexer.slice(token).to_owned();
        let config = Spanned::verbatim(text, self.span(token));
        // The lexer has reported an unclosed string.
        self.accept(Kind::Sign(b')'));
        config
    }

    /// Parses statements up to the end of the surrounding file, compound or group. Does not consume that end.
    pub(super) fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            let token = self.peek();
            let inside = self.nesting.last().copied();
            match token.kind {
                Kind::End => break,
                Kind::Sign(b';') => {
                    self.take();
                }
                Kind::Sign(b'}') | Kind::Bars if inside == Some(Nesting::Compound) => break,
                Kind::Sign(b')') if inside == Some(Nesting::Group) => break,
                // The group was not closed, which the caller reports; the brace ends a surrounding compound.
                Kind::Sign(b'}') if self.nesting.contains(&Nesting::Compound) => break,
                _ => {
                    if let Some(kind) = self.statement() {
                        let span = self.span_from(token.start);
                        statements.push(Statement { span, kind });
                    }
                }
            }
        }
        statements
    }

    pub(super) fn statement(&mut self) -> Option<StatementKind> {
        match self.peek().kind {
            Kind::Ident | Kind::Sign(b'[' | b'{' | b'(') | Kind::Arrow | Kind::DoubleArrow => {
                self.chain().map(StatementKind::Chain)
            }
            Kind::ElementClass => self.element_class(),
            Kind::Require => self.require(),
            Kind::Provide => self.keyword_config().map(StatementKind::Provide),
            Kind::Define => self.keyword_config().map(StatementKind::Define),
            _ => {
                self.unexpected("a statement");
                self.take();
                self.recover();
                None
            }
        }
    }

    /// `define(...)`, `provide(...)`, `require(...)`.
    pub(super) fn keyword_config(&mut self) -> Option<Spanned> {
        self.take();
        let Some(open) = self.accept(Kind::Sign(b'(')) else {
            self.unexpected("`(`");
            self.recover();
            return None;
        };
        Some(self.config(open))
    }

    /// Skips to a token that can start a statement.
    pub(super) fn recover(&mut self) {
        let mut braces = 0usize;
        let mut after_joint = false;
        loop {
            let token = self.peek();
            let between = self.lexer.text.get(self.last_end..token.start).unwrap_or("");
            let new_line = between.contains(['\n', '\r']);
            match token.kind {
                Kind::End => return,
                _ if braces > 0 => match token.kind {
                    Kind::Sign(b'{') => braces += 1,
                    Kind::Sign(b'}') => braces -= 1,
                    _ => {}
                },
                Kind::Sign(b';' | b'}') | Kind::Bars => return,
                Kind::Sign(b')') if self.nesting.contains(&Nesting::Group) => return,
                Kind::ElementClass | Kind::Require | Kind::Provide | Kind::Define => return,
                Kind::Ident if new_line && !after_joint => return,
                Kind::Sign(b'{') => braces += 1,
                _ => {}
            }
            after_joint = matches!(token.kind, Kind::Arrow | Kind::DoubleArrow | Kind::Sign(b','));
            self.take();
            if token.kind == Kind::Sign(b'(') && braces == 0 {
                self.config(token);
            }
        }
    }
}
