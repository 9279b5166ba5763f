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

use std::collections::BTreeSet;

use diag::{Diagnostics, Spanned};

use crate::Graph;
use crate::ast::Ast;

/// The element classes that exist outside the configuration.
pub trait Classes {
    /// Whether there is a class of this name.
    fn is_known(&self, name: &str) -> bool;

    /// Their names, for suggestions.
    fn names(&self) -> Vec<String>;

    /// What to use in place of a class that is known elsewhere under that name.
    fn instead_of(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

impl Classes for BTreeSet<String> {
    fn is_known(&self, name: &str) -> bool {
        self.contains(name)
    }

    fn names(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }
}

impl Classes for &[&str] {
    fn is_known(&self, name: &str) -> bool {
        self.contains(&name)
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}

/// Takes every name that starts with an upper-case letter for a class: for tools that look at
/// the shape of a configuration only.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass;

impl Classes for AnyClass {
    fn is_known(&self, name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

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
