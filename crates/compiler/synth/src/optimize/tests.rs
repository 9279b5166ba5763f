//! Tests of programs before and after optimising.

pub(crate) mod random;
mod values;
