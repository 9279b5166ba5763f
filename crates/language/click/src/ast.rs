//! What a Click file says, before names mean anything.
//!
//! The tree is purely syntactic: whether `x` in `a -> x` is an element or an element class is
//! decided by [`crate::flatten`], which knows the classes. Every node has its span.

use std::collections::BTreeSet;

use diag::{SourceId, Span, Spanned};

use crate::token::Token;

/// One parsed file.
#[derive(Debug)]
pub struct Ast {
    /// Where the text stands.
    pub source: SourceId,
    /// The statements in order.
    pub statements: Vec<Statement>,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    /// Whether the file parsed without an error; [`crate::format()`] leaves other files alone.
    pub(crate) valid: bool,
}

impl Ast {
    /// The variables that the text and the libraries in it name, whether they have a definition or not;
    /// `None` when mistakes may hide some.
    pub fn variables(&self) -> Option<BTreeSet<&str>> {
        let mut names = BTreeSet::new();
        self.add_variables(&mut names).then_some(names)
    }

    /// Bytes of the text and of the libraries in it.
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

/// A name as it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name; variables and keywords without their signs.
    pub name: String,
    /// Where.
    pub span: Span,
}

impl Ident {
    /// The name with its place.
    pub(crate) fn spanned(&self) -> Spanned {
        Spanned::verbatim(self.name.clone(), self.span)
    }
}

/// One statement.
#[derive(Debug)]
pub struct Statement {
    /// From its first to its last token, the `;` excluded.
    pub span: Span,
    /// What it says.
    pub kind: StatementKind,
}

/// What a statement says.
#[derive(Debug)]
pub enum StatementKind {
    /// Declarations and connections: `a, b :: Class(config)`, `a [1] -> [0] b => c, d`.
    Chain(Chain),
    /// `elementclass Name { ... }` or `elementclass Name Other`.
    ElementClass {
        /// The new name.
        name: Ident,
        /// What it stands for.
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
    /// `require(library file)`: the file's statements stand here. `None` when it was not
    /// loaded (an error was recorded) or had been loaded before.
    Library(Spanned, Option<Box<Ast>>),
    /// `require(compact_config)`: accepted; it only tells Click to save memory.
    CompactConfig(Span),
}

/// Stages of elements, joined by arrows; there is one arrow less than stages.
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
    /// Where.
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

/// What can stand in a chain.
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
    /// `( ... )`: statements with an `input` and an `output`, in the scope they stand in.
    Group(Vec<Statement>),
    /// Nothing before the first or after the last arrow: the `input` or `output` of the
    /// compound or group around.
    Implicit,
}

/// An element class where it is used.
#[derive(Debug)]
pub enum Class {
    /// By name.
    Named(Ident),
    /// Spelled out.
    Compound(Compound),
}

/// `{ $a, KEY $b | ... || ... || ... }`.
#[derive(Debug)]
pub struct Compound {
    /// From brace to brace.
    pub span: Span,
    /// The alternatives separated by `||`, in order.
    pub bodies: Vec<Body>,
    /// The place of `...` at the end: the class of the same name is extended.
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
    /// The keyword; `__REST__` takes all arguments that are left.
    pub keyword: Option<Ident>,
    /// The variable, without its dollar sign.
    pub name: Ident,
}

/// `[0, 1, 4-6]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// From bracket to bracket.
    pub span: Span,
    /// The ports, ranges written out.
    pub list: Vec<u32>,
    /// Whether the list goes on as far as the other side of the connection (`[0,]`, `[]`).
    pub open: bool,
}
