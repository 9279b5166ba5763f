//! Tests of the walk against the evaluator.

mod chain;
mod harness;
mod random;
mod real;
