//! What an experiment found, in a form that is drawn, printed and compared.
//!
//! A [`Figure`] is a plot's data with all that a reader needs to judge it: what was measured on which ports, the command
//! that prints it, the spread of every point, what could not be measured and why, and what the experiment expects of its
//! result. A [`Report`] is several of them, with the machine. Nothing here measures.
//!
//! A figure becomes [`text()`] for a terminal, a plot with [`svg()`] and a table for other programs with [`csv()`]. A
//! report becomes a page: [`html()`], [`markdown()`]. [`write()`] makes all these files, [`read()`] reads a report again.

mod csv;
mod grid;
mod html;
mod markdown;
mod model;
mod name;
mod store;
mod svg;
mod text;
mod words;

pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use model::{Axis, Expectation, Figure, Origin, Point, Report, Scale, Series, Skipped};
pub use store::{read, write};
pub use svg::svg;
pub use text::text;

#[cfg(test)]
mod tests;
