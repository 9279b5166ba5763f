//! Parses a text to an [`Ast`].
//!
//! Recursive descent with bounded depth. A statement with an error is reported and skipped up to the next
//! `;`, closing brace or new line that can start a statement, so that all errors of a file are reported at
//! once. Names are resolved by [`crate::flatten`], not here.

mod chain;
mod compound;
mod libraries;
mod parser;
mod require;

use diag::{Diagnostics, SourceId, SourceMap};

use libraries::NoLibraries;
pub use libraries::{Libraries, LibraryFiles};

use crate::ast::Ast;

/// Parses one text. `require(library ...)` is refused; see [`parse_with`].
pub fn parse(map: &mut SourceMap, source: SourceId, diags: &mut Diagnostics) -> Ast {
    parse_with(map, source, &mut NoLibraries, diags)
}

/// Parses one text and the libraries it requires.
pub fn parse_with(
    map: &mut SourceMap,
    source: SourceId,
    libraries: &mut dyn Libraries,
    diags: &mut Diagnostics,
) -> Ast {
    let mut loaded = vec![map.name(source).to_owned()];
    parser::parse_file(map, source, libraries, &mut loaded, 0, diags)
}
