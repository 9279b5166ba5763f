//! Programs before and after.

pub(crate) mod random;
mod values;
