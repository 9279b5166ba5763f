//! The text form of programs: printer and parser.
//!
//! A line is one statement, words are separated by spaces, `#` starts a comment. The printer's output
//! parses back to the same program. Names of reasons, cells, tables and slow paths contain no spaces.
//! A line `from_ports 0 2` behind the entries names those whose packets come from ports.
//!
//! ```text
//! program DecIPTTL outputs 1
//! reason ttl-expired
//! entries b0
//! b0:
//!   need net 20 b1 b2
//! b1:
//!   v0 = load ip.ttl
//!   ...
//! ```

mod parse;
mod print;

#[cfg(test)]
mod tests;

pub use parse::{TextError, parse};
pub use print::field as field_name;

/// The text form of a program.
pub fn print(program: &crate::Program) -> String {
    print::program(program)
}
