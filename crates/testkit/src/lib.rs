//! What tests share. Nothing that ships depends on it, and it depends on no crate of ours: so every crate's
//! tests may use it, those of the lowest one too.
//!
//! - [`workspace`]: where the repository is, and what crates it has
//! - [`replay`]: seeds and regressions of fuzz targets
//! - [`cycles`]: the time stamp counter
//! - [`data`]: rule sets and captures that others made
//! - [`golden`]: files that are held to what is made of them now
//! - [`lines`]: lines of code
//! - [`names`]: the names that code defines
//! - [`order`]: which way dependencies point, between crates and between the modules of a crate

pub mod cycles;
pub mod data;
pub mod golden;
pub mod lines;
pub mod names;
pub mod order;
pub mod replay;
pub mod workspace;
