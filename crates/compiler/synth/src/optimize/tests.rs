//! Programs before and after.

mod golden;
pub(crate) mod random;
mod values;
