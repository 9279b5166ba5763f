//! Machine code for packet programs, run in stages over batches.
//!
//! A program is cut into *regions* at its lookups ([`lookup_region`]). Each region becomes one native
//! function that loops over an index list of packets ([`lower`]) and sorts them into *exit lists*:
//! ports, drop reasons, slow paths, and pending lookups. Between regions, Rust does the lookups of the
//! whole list at once ([`stage`]), so that their cache misses overlap. Small tables of prefixes are walked by
//! the function itself; rows of lookups by one key are one walk there ([`lookup_row`]).
//!
//! - [`abi`]: the interface between machine code and Rust
//! - [`intrinsic`]: Rust functions that machine code calls for rare work
//! - [`code`]: compiling, and owning the executable memory
//!
//! The evaluator of crate `ir` is the oracle: [`stage::Engine`] runs either.

pub mod abi;
pub mod code;
mod intrinsic;
pub mod lookup_region;
pub mod lookup_row;
mod lower;
pub mod stage;

pub use cranelift_codegen::VERSION as CRANELIFT_VERSION;

pub use code::{Code, CodeBuilder, CodegenError, Compiled, Listed, ProgramId, functions_size};

pub use stage::{Engine, Precedence, Scratch, SlotBuffer, pass, pass_in_order, resume, run};
