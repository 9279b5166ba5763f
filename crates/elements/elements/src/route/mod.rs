//! IPv4 route lookup: one table, under the names of Click's lookup elements.
//!
//! - [`mod@line`]: the texts of routes and commands
//! - [`hops`]: next hops and their records
//! - [`table`]: routes, and their lookup by programs
//! - [`lookup`]: the element
//! - [`class`]: its classes

pub mod class;
pub mod hops;
pub mod line;
pub mod lookup;
pub mod table;

#[cfg(test)]
mod tests;

pub use class::CLASSES;
