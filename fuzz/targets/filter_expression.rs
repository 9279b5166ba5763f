//! The expression language of IPFilter and IPClassifier on any text.
#![no_main]

// args: -max_len=512
libfuzzer_sys::fuzz_target!(|data: &[u8]| elements::filter::fuzz_expression(data));
