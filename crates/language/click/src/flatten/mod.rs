//! Makes a [`Graph`] of an [`Ast`]: resolves names and element classes, expands compound elements, groups and
//! variables.
//!
//! Two passes, as in Click: [`template`] reads each scope once, in text order, and resolves names. An element
//! class is visible from its closing brace to the end of the surrounding scope. [`expand`] then instantiates
//! the templates, replaces variables, and joins connections through the `input` and `output` pseudoelements.
//!
//! Differences from Click, all towards earlier errors: an unknown class is reported once, at its first use;
//! the size of the expansion is limited (by the constants in [`expand`]).

mod arguments;
mod class;
mod connect;
mod elements;
mod expand;
mod template;
mod wires;

use diag::{Diagnostics, Spanned};

use crate::ast::Ast;
use crate::{Classes, Graph};

/// Expands a configuration. `defines` are variables of the command line, with the locations of their values;
/// they override the file's own. Errors are recorded in `diags`; the graph contains the parts without errors.
pub fn flatten(
    ast: &Ast,
    classes: &dyn Classes,
    defines: &[(String, Spanned)],
    diags: &mut Diagnostics,
) -> Graph {
    let resolved = template::resolve(ast, classes, diags);
    let given: usize = defines.iter().map(|(_, value)| value.text.len()).sum();
    let graph = expand::expand(&resolved, defines, ast.text_bytes() + given, diags);
    Graph { incomplete: !ast.valid, text: ast.text.clone(), ..graph }
}
