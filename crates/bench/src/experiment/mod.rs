//! Experiments: what is measured together, and the figures that come of it.
//!
//! - [`peers`]: Millrace beside other systems, on the same ports.

pub mod peers;
