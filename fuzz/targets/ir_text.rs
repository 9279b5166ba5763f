//! Packet programs, any text as one: parser, printer, verifier and, for what verifies, the evaluator.
#![no_main]

// args: -max_len=4096
libfuzzer_sys::fuzz_target!(|data: &[u8]| ir::fuzz_text(data));
