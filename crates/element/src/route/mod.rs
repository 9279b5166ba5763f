//! IPv4 route lookup: one table, under the names of Click's lookup elements.
//!
//! - [`line`]: a route and a command as they are written
//! - [`table`]: routes and next hops, and the lookup that programs do
//! - [`lookup`]: the element
//! - [`class`]: its classes

pub mod class;
pub mod line;
pub mod lookup;
pub mod table;

#[cfg(test)]
mod tests;

pub use class::CLASSES;
