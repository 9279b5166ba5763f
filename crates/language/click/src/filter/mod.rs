//! The expression language of `IPFilter` and `IPClassifier`: tcpdump-like tests of one packet.
//!
//! - `ast`: the syntax tree of an expression; `text`: its canonical text
//! - `words`: the words of the language and their meanings
//! - `lex`: splits a text into words
//! - `parse`: parses words to an expression, by Click's grammar
//! - `test`, `check`: make one test of qualifiers and a value
//! - `eval`: evaluates an expression on the bytes of a packet
//!
//! How an expression is compiled is not part of this module: tests compare the compiled expression with `eval`.
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
pub mod eval;
mod lex;
pub mod parse;
mod test;
mod text;
mod words;

pub use ast::{
    Carrier, Compare, Direction, Expr, HeaderField, Layer, PortProtocol, Relation, Six, Test, Values,
};
pub use eval::Headers;
pub use parse::{Pattern, parse};
pub use words::ICMP_TYPES;
