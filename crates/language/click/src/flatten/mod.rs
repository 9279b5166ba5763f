//! From [`Ast`] to [`Graph`]: names, element classes, compound elements, groups, variables.
//!
//! Two passes, as in Click: [`template`] reads each scope once, in text order, and resolves
//! names (an element class holds from its closing brace to the end of the scope around);
//! [`expand`] then instantiates the templates, replaces variables, and runs connections through
//! the `input` and `output` pseudoelements.
//!
//! Differences from Click, all towards earlier errors: an unknown class is reported once, at its
//! first use; expansion is bounded (see the constants in [`expand`]).

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

/// Expands a configuration. `defines` are variables from outside (a command line) with where their values
/// are written; they override the file's own. Mistakes go to `diags`; the graph holds what could be understood.
pub fn flatten(
    ast: &Ast,
    classes: &dyn Classes,
    defines: &[(String, Spanned)],
    diags: &mut Diagnostics,
) -> Graph {
    let resolved = template::resolve(ast, classes, diags);
    let given: usize = defines.iter().map(|(_, value)| value.text.len()).sum();
    let graph = expand::expand(&resolved, defines, ast.text_bytes() + given, diags);
    Graph { incomplete: !ast.valid, ..graph }
}
