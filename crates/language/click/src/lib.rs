//! The Click configuration language, as click(5) and Click's `lib/lexer.cc` define it.
//!
//! A text passes four steps. Each of them records its errors in one [`diag::Diagnostics`] and continues as
//! far as it can:
//!
//! 1. [`parse`] (or [`parse_with`], for `require(library ...)`) makes an [`ast::Ast`];
//! 2. [`flatten`] expands compound elements, groups and variables into a [`Graph`];
//! 3. [`flow::resolve`] counts ports and resolves each to push or pull;
//! 4. each element reads its arguments with [`config::Args`].
//!
//! [`filter`] is the language of `IPFilter` and `IPClassifier`, a language of its own inside arguments.
//! [`text_file`] reads the texts, within bounds. [`format()`] prints an [`ast::Ast`] in the standard layout, and
//! [`unparse()`] a [`Graph`].
//!
//! Invariants: no input makes this crate panic, overflow the stack or use unbounded memory; every error has a
//! location. The crate contains no element classes: the caller passes the names of classes and their port
//! codes ([`Classes`], [`flow::PortSpec`]).
//!
//! ```
//! use diag::{Diagnostics, SourceMap};
//! let mut map = SourceMap::new();
//! let mut diags = Diagnostics::new();
//! let id = map.add("router.click", "InfiniteSource -> q :: Queue(10) -> Unqueue -> Discard;");
//! let ast = click::parse(&mut map, id, &mut diags);
//! let graph = click::flatten(&ast, &click::AnyClass, &[], &mut diags);
//! let names: Vec<&str> = graph.elements.iter().map(|e| e.name.as_str()).collect();
//! assert_eq!(names, ["InfiniteSource@1", "q", "Unqueue@3", "Discard@4"]);
//! assert!(diags.is_empty());
//! ```

pub mod ast;
mod classes;
pub mod config;
pub mod filter;
mod flatten;
pub mod flow;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod graph;
mod parse;
mod scan;
pub mod text_file;
mod token;
mod unparse;

pub use classes::{AnyClass, Classes, PortCodes};
pub use flatten::flatten;
pub use format::format;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_parse;
pub use graph::{Connection, Element, ElementId, Graph, NameIndex, Port, scopes};
pub use parse::{Libraries, LibraryFiles, parse, parse_with};
pub use unparse::{unparse, unparse_ports};
