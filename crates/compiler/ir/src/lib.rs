//! The packet IR: what a transparent element does to one packet, defined once.
//!
//! A [`Program`] is a directed acyclic graph of blocks over 64-bit values. It reads and writes header
//! fields, annotations, its own state cells and records of lookup tables, and ends each path with an
//! *exit*: emit to a port, drop with a reason, or the element's slow path. The reference evaluator
//! ([`eval`]), the machine code (crate `codegen`) and the traffic classes of a whole chain (crate
//! `synth`) are all derived from this one definition.
//!
//! - [`program`]: the data structure
//! - [`builder`]: how elements write programs
//! - [`expr`]: expressions, evaluated by the builder
//! - [`text`]: printer and parser of the text form
//! - [`verify`]: the invariants of every program
//! - [`verified`]: programs that the verifier has accepted
//! - [`eval`]: the reference evaluator
//! - [`analysis`]: facts about a program, derived without running it
//! - [`table`]: the interface of lookup tables

pub mod analysis;
pub mod builder;
pub mod eval;
pub mod expr;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
pub mod program;
pub mod table;
pub mod text;
pub mod verified;
pub mod verify;

pub use builder::Builder;
pub use expr::Expr;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{RandomStart, Records, fuzz_text};
pub use program::{BinOp, Block, BlockId, Inst, Program, Term, Value};
pub use table::{
    CacheValidity, Created, FoundEarlier, HeldRecord, Holder, Lasting, MERGED_WITHIN_NS, Merge, Room, Table,
    TableSize, Tables,
};
pub use verified::Verified;
