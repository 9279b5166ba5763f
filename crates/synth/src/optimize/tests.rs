//! Programs before and after.

mod random;
