//! The C library for network functions. What it offers is said in `include/millrace.h`, which is written by hand:
//! units, ownership and errors of each function stand there and not here.
//!
//! - `options`: what an NF says of itself
//! - `link`: its way to the host
//! - `neighbour`: next hops
//! - `packet`: packets in C's hands, and the burst functions
//! - `taken`: which packets the NF has: C can copy a packet, the library still gives each back once
//! - `callbacks`: `millrace_run`
//! - `handlers`: values that operators read and write
//! - `error`: codes, and the text of the last mistake
//!
//! Invariants: a pointer that is NULL, a packet that was given away and a number out of range are errors, never a
//! crash. What is left to C is what C alone can know: that a pointer which is not NULL points to what it says.
//!
//! Arguments are `Option<&T>` where C has a pointer to one object: the two have the same representation, and NULL is
//! `None`.

mod callbacks;
mod error;
mod handlers;
mod link;
mod neighbour;
mod options;
mod packet;
mod taken;
#[cfg(test)]
mod tests;
