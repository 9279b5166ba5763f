//! Tests of the walk against the evaluator.

mod harness;
mod random;
