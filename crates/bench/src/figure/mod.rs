//! What an experiment found, in a form that is drawn, printed and compared.
//!
//! A [`Figure`] is a plot's data with all that a reader needs to judge it: what was measured on which ports, the command
//! that prints it, the spread of every point, what could not be measured and why, and what the experiment expects of its
//! result. A [`Report`] is several of them, with the machine. Nothing here measures.

mod model;

pub use model::{Axis, Expectation, Figure, Origin, Point, Report, Scale, Series, Skipped};
