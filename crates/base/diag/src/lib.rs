//! Source spans and collected diagnostics for every text a user writes: Click files, chain
//! files, IR text, element arguments.
//!
//! Three pieces work together:
//! - a [`SourceMap`] owns the texts; a [`Span`] is a byte range in one of them;
//! - a [`Spanned`] is a text that remembers where it came from, also after variables were
//!   substituted into it, so that the parser of an argument can point at the right characters;
//! - [`Diagnostics`] collects every mistake (the user sees all of them at once) and renders
//!   them with file, line, column and the text underlined.
//!
//! Invariants: nothing here panics on any span, text or range, even one that belongs to another
//! map or lies outside its text. A message states the fact; the help states the remedy.
//!
//! What it does not do: decide whether a mistake is fatal, print anything, or read files.
//!
//! ```
//! use diag::{Diagnostics, SourceMap, Span};
//! let mut map = SourceMap::new();
//! let id = map.add("nat.click", "q :: Queu(100);\n");
//! let mut diags = Diagnostics::new();
//! diags
//!     .error(Span::new(id, 5, 9), "unknown element class `Queu`")
//!     .label("no such class")
//!     .help("did you mean `Queue`?");
//! assert!(diags.has_errors());
//! assert_eq!(
//!     diags.render_short(&map),
//!     "nat.click:1:6: error: unknown element class `Queu`; did you mean `Queue`?\n"
//! );
//! ```

mod caught;
mod diagnostic;
mod render;
mod source_map;
mod spanned;
mod suggest;

pub use caught::caught;
pub use diagnostic::{Diagnostic, DiagnosticBuilder, Diagnostics, Severity};
pub use source_map::{Position, SourceId, SourceMap, Span};
pub use spanned::Spanned;
pub use suggest::{did_you_mean, suggest};
