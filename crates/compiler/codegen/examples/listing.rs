//! The assembly of a packet program: `millrace check --programs X | … | cargo run -p millrace-codegen
//! --example listing`, IR text on standard input.

use std::io::Read;

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input is text");
    let program = ir::text::parse(&text).expect("IR text");
    let program = ir::Verified::new(program).expect("a valid program");
    let mut builder = codegen::CodeBuilder::new().expect("this machine");
    builder.keep_listing(codegen::Listed::Assembly);
    builder.add(&program.into()).expect("compiles");
    println!("{}", builder.listing());
}
