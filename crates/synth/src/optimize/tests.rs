//! Programs before and after.

mod golden;
mod random;
mod values;
