//! Synthesis: the programs of a stretch of elements become one program.
//!
//! Source: Katsikas et al., "SNF: synthesizing high performance NFV service chains", PeerJ CS 2016.

pub mod classes;
