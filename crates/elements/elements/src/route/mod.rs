//! IPv4 route lookup: one table, under the names of Click's lookup elements.
//!
//! - [`mod@line`]: a route and a command as they are written
//! - [`hops`]: next hops and their records
//! - [`table`]: routes, and the lookup that programs do
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
