//! The expression language of `IPFilter` and `IPClassifier`: tcpdump-like tests of one packet.
//!
//! - `ast`: what an expression says; `text`: its canonical text
//! - `words`: the words of the language and what each can mean
//! - `lex`: text to words
//! - `parse`: words to an expression, by Click's grammar
//! - `test`, `check`: qualifiers and a value to one test
//! - `eval`: what an expression means, on the bytes of a packet
//!
//! Nothing here knows how an expression is run: `eval` is the oracle that the lowering is held to.
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
