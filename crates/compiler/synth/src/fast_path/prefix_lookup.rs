//! The lookups that a fast path is made for.

use ir::program::Matching;
use ir::{Program, Term};

/// Fewer lookups are not worth the tests in front of them.
pub(super) const LEAST_LOOKUPS: usize = 2;

/// Whether a block's end looks an address up in a table of prefixes.
pub(super) fn is_prefix_lookup(program: &Program, term: &Term) -> bool {
    match term {
        Term::Lookup { table, args: None, .. } => {
            program.tables.get(usize::from(*table)).is_some_and(|decl| decl.matching == Matching::Prefixes4)
        }
        _ => false,
    }
}
