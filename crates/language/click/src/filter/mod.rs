//! The expression language of `IPFilter` and `IPClassifier`: tcpdump-like tests of one packet.
//!
//! - `ast`: the syntax tree of an expression; `text`: its canonical text
//! - `words`: the words of the language and their meanings
//! - `lex`: splits a text into words
//! - `parse`: parses words to an expression, by Click's grammar
//! - `test`, `check`: make one test of qualifiers and a value
//! - `testing`: evaluates an expression on the bytes of a packet, for tests and fuzzing
//!
//! How an expression is compiled is not part of this module: tests compare the compiled expression with
//! `testing`.
//!
//! The grammar, with Click's precedences:
//!
//! ```text
//! expression  ::=  or  |  or ? expression : expression
//! or          ::=  and { (or | "||") and }
//! and         ::=  factor { [and | "&&"] factor }
//! factor      ::=  (not | !) factor  |  ( expression )  |  true  |  false  |  test
//! test        ::=  qualifiers [ "[" POS ":" LEN "]" ] [ & MASK ] [ RELATION ] [ VALUE ]
//! ```

pub mod ast;
mod check;
mod lex;
pub mod parse;
mod test;
#[cfg(any(test, feature = "fuzzing"))]
pub mod testing;
mod text;
mod words;

pub use ast::{
    Carrier, Compare, Direction, Expr, HeaderField, Layer, PortProtocol, Relation, Six, Test, Values,
};
pub use parse::{Pattern, parse};
#[cfg(any(test, feature = "fuzzing"))]
pub use testing::Headers;
pub use words::ICMP_TYPES;
