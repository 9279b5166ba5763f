//! The packet IR: what a transparent element does to one packet, defined once.
//!
//! A [`Program`] is a directed acyclic graph of blocks over 64-bit values. It reads and writes header
//! fields, annotations, its own state cells and records of lookup tables, and ends each path with an
//! *exit*: emit to a port, drop with a reason, or hand to the element's slow path. From this one
//! definition come the reference meaning ([`eval`]), the machine code (crate `codegen`) and, later,
//! the traffic classes of a whole chain.
//!
//! - [`program`]: the data structure
//! - [`builder`]: how elements write programs
//! - [`expr`]: expressions, evaluated by the builder
//! - [`text`]: printer and parser of the text form
//! - [`verify`]: the invariants that every program must hold
//! - [`verified`]: programs that hold them
//! - [`eval`]: the reference evaluator
//! - [`analysis`]: what is known of a program without running it
//! - [`table`]: what a lookup table offers to a program

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
pub use fuzz::fuzz_text;
pub use program::{BinOp, Block, BlockId, Inst, Program, Term, Value};
pub use table::{CacheValidity, Created, Lasting, Table, TableSize, Tables};
pub use verified::Verified;
