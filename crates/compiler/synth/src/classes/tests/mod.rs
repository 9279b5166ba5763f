//! Tests of the walk against the evaluator.

mod chain;
mod forms;
mod hand;
mod harness;
mod random;
mod real;
mod updates;
