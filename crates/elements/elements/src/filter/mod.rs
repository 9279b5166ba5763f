//! `Classifier`, `IPClassifier`, `IPFilter`: sort packets by their contents.
//!
//! - [`expr`]: the expression language (`click::filter`)
//! - `formula`: expressions over the field table
//! - `diagram`, `chain`: from formulas to decision `graph`s
//! - `boxes`, `acl`: from long lists of rules to tables
//! - `emit`, `filter_plan`: from graphs and tables to programs
//! - `listing`: rules as Click lists them
//! - `policies`: several expressions over frames at once
//! - `sorter`: the element

use element::class::Class;

pub mod acl;
mod boxes;
mod chain;
pub mod classbench;
mod classifier;
mod diagram;
mod emit;
mod filter_plan;
mod formula;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod graph;
mod ip_classifier;
mod ip_filter;
mod listing;
pub mod policies;
mod sorter;

pub use click::filter as expr;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_expression;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&classifier::CLASS, &ip_classifier::CLASS, &ip_filter::CLASS];

#[cfg(test)]
mod tests;
