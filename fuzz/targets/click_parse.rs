//! Lexer, parser and formatter of the Click language on any text.
#![no_main]

// args: -max_len=4096
libfuzzer_sys::fuzz_target!(|data: &[u8]| click::fuzz_parse(data));
