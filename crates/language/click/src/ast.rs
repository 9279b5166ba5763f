//! The syntax tree of a Click file.
//!
//! The tree is purely syntactic: [`crate::flatten`], which has the list of classes, decides whether `x` in `a
//! -> x` is an element or an element class. Every node has its span.

use std::collections::BTreeSet;

use diag::{SourceId, Span, Spanned};

use crate::token::Token;

/// One parsed file.
#[derive(Debug)]
pub struct Ast {
    /// The source of the text.
    pub source: SourceId,
    /// The statements in order.
    pub statements: Vec<Statement>,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    /// Whether the file was parsed without an error; [`crate::format()`] leaves other files unchanged.
    pub(crate) valid: bool,
}

impl Ast {
    /// The names of all variables in the text and its libraries, defined or not; `None` when errors may hide
    /// some.
    pub fn variables(&self) -> Option<BTreeSet<&str>> {
        let mut names = BTreeSet::new();
        self.add_variables(&mut names).then_some(names)
    }

    /// The size of the text and of its libraries in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len() + self.libraries().map(Ast::text_bytes).sum::<usize>()
    }

    fn libraries(&self) -> impl Iterator<Item = &Ast> {
        let requirements = self.statements.iter().filter_map(|statement| match &statement.kind {
            StatementKind::Require(requirements) => Some(requirements),
            _ => None,
        });
        requirements.flatten().filter_map(|requirement| match requirement {
            Requirement::Library(_, library) => library.as_deref(),
            _ => None,
        })
    }

    fn add_variables<'a>(&'a self, names: &mut BTreeSet<&'a str>) -> bool {
        for (at, _) in self.text.match_indices('$') {
            let rest = self.text.get(at + 1..).unwrap_or("");
            let rest = rest.strip_prefix('{').unwrap_or(rest).trim_start();
            let len = rest.bytes().take_while(|byte| crate::scan::is_variable(*byte)).count();
            names.extend(rest.get(..len).filter(|name| !name.is_empty()));
        }
        self.libraries().fold(self.valid, |valid, library| library.add_variables(names) && valid)
    }
}

/// A name in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name; variables and keywords without their signs.
    pub name: String,
    /// Its location.
    pub span: Span,
}

impl Ident {
    /// The name with its location.
    pub(crate) fn spanned(&self) -> Spanned {
        Spanned::verbatim(self.name.clone(), self.span)
    }
}

/// One statement.
#[derive(Debug)]
pub struct Statement {
    /// From its first to its last token, the `;` excluded.
    pub span: Span,
    /// Its content.
    pub kind: StatementKind,
}

/// The content of a statement.
#[derive(Debug)]
pub enum StatementKind {
    /// Declarations and connections: `a, b :: Class(config)`, `a [1] -> [0] b => c, d`.
    Chain(Chain),
    /// `elementclass Name { ... }` or `elementclass Name Other`.
    ElementClass {
        /// The new name.
        name: Ident,
        /// The class that it names.
        class: Class,
    },
    /// `define($variable value, ...)`: the configuration string.
    Define(Spanned),
    /// `require(package x, library y)`.
    Require(Vec<Requirement>),
    /// `provide(...)`: the configuration string; accepted and ignored, as Click does.
    Provide(Spanned),
}

/// One requirement of a `require` statement.
#[derive(Debug)]
pub enum Requirement {
    /// `require(package name)` or `require(name)`.
    Package(Spanned),
    /// `require(library file)` and the statements of the file. `None` when the file was not loaded (an error
    /// was recorded) or had been loaded before.
    Library(Spanned, Option<Box<Ast>>),
    /// `require(compact_config)`: accepted and ignored; it makes Click save memory.
    CompactConfig(Span),
}

/// Stages of elements, joined by arrows; one arrow fewer than stages.
#[derive(Debug)]
pub struct Chain {
    /// Comma-separated elements between arrows; never empty.
    pub stages: Vec<Vec<ElementRef>>,
    /// The arrows between stages.
    pub arrows: Vec<Arrow>,
}

/// `->` or `=>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Whether it is `=>`, which connects many ports to many.
    pub many: bool,
    /// Its location.
    pub span: Span,
}

/// An element in a chain, with the ports written on its two sides.
#[derive(Debug)]
pub struct ElementRef {
    /// From its input ports to its output ports.
    pub span: Span,
    /// `[...]` before the element.
    pub inputs: Option<Ports>,
    /// The element.
    pub element: ElementKind,
    /// `[...]` after the element.
    pub outputs: Option<Ports>,
}

/// The kinds of elements in a chain.
#[derive(Debug)]
pub enum ElementKind {
    /// `name`, `Class(config)`, `name :: Class(config)`.
    Named {
        /// The name, of an element or of a class.
        name: Ident,
        /// The class after `::`.
        class: Option<Class>,
        /// The configuration string.
        config: Option<Spanned>,
    },
    /// `{ ... }(config)`: an element of a class without a name.
    Compound {
        /// The class.
        compound: Compound,
        /// The configuration string.
        config: Option<Spanned>,
    },
    /// `( ... )`: statements with an `input` and an `output`, in the surrounding scope.
    Group(Vec<Statement>),
    /// An element omitted before the first or after the last arrow: the `input` or `output` of the
    /// surrounding compound or group.
    Implicit,
}

/// A reference to an element class.
#[derive(Debug)]
pub enum Class {
    /// A class by its name.
    Named(Ident),
    /// Written in place.
    Compound(Compound),
}

/// `{ $a, KEY $b | ... || ... || ... }`.
#[derive(Debug)]
pub struct Compound {
    /// From brace to brace.
    pub span: Span,
    /// The alternatives separated by `||`, in order.
    pub bodies: Vec<Body>,
    /// The span of `...` at the end, which extends the class of the same name.
    pub extends: Option<Span>,
}

impl Compound {
    /// The brace that opens it.
    pub(crate) fn opening(&self) -> Span {
        Span { end: self.span.start.saturating_add(1), ..self.span }
    }
}

/// One alternative of a compound.
#[derive(Debug)]
pub struct Body {
    /// Its text.
    pub span: Span,
    /// The formal parameters before `|`.
    pub formals: Vec<Formal>,
    /// Its statements.
    pub statements: Vec<Statement>,
}

/// A formal parameter: `$name` or `KEYWORD $name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formal {
    /// The keyword; `__REST__` receives all remaining arguments.
    pub keyword: Option<Ident>,
    /// The variable, without its dollar sign.
    pub name: Ident,
}

impl Formal {
    pub(crate) fn has_keyword(&self, keyword: &str) -> bool {
        self.keyword.as_ref().is_some_and(|own| own.name == keyword)
    }
}

/// `[0, 1, 4-6]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// From bracket to bracket.
    pub span: Span,
    /// The ports, with ranges expanded.
    pub list: Vec<u32>,
    /// The first and the last port of each number and range, and where it is written.
    pub entries: Vec<(u32, u32, Span)>,
    /// Whether the list extends to the number of ports of the other side (`[0,]`, `[]`).
    pub open: bool,
}
