//! The C library for network functions. Its interface is documented in `include/millrace.h`, which is written
//! by hand: it states units, ownership and errors of each function, and they are not repeated here.
//!
//! - `options`: the properties of an NF
//! - `link`: its link to the host
//! - `neighbour`: next hops
//! - `packet`: packets of C callers, and the burst functions
//! - `taken`: the packets that the NF has: C can copy its struct, and the library still returns each packet
//!   once
//! - `callbacks`: `millrace_run`
//! - `handlers`: values that operators read and write
//! - `error`: codes, and the text of the last error
//!
//! Invariants: a NULL pointer, a packet that was sent or dropped and a number out of range are errors, never
//! a crash. The library cannot check that a pointer other than NULL points to an object of its type.
//!
//! Parameters are `Option<&T>` where C has a pointer to one object: the two have the same representation, and
//! NULL is `None`.

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
