//! The results of an experiment, as data that can be drawn, printed and compared.
//!
//! A [`Figure`] is the data of a plot with what a reader needs to judge it: what was measured on which ports,
//! the command that repeats it, the spread of every point, what could not be measured and why, and what the
//! experiment expects of its result. A [`Report`] is several figures and the machine. Nothing here measures.
//!
//! A figure can be rendered as [`text()`] for a terminal, as a plot by [`svg()`], and as a table for other
//! programs by [`csv()`]. A report can be rendered as a page: [`html()`], [`markdown()`]. [`write()`] writes
//! all these files; [`read()`] reads a report. [`Saved`] keeps the experiments of a report that is not whole
//! yet.

mod csv;
mod grid;
mod html;
mod markdown;
mod model;
mod name;
mod saved;
mod store;
mod svg;
mod text;
pub(crate) mod words;

pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use model::{Axis, Expectation, Figure, Origin, Point, Report, Scale, Series, Skipped};
pub use saved::Saved;
pub use store::{read, write};
pub use svg::svg;
pub use text::{paragraph, text};

#[cfg(test)]
mod tests;
