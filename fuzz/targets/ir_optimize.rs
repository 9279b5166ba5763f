//! Packet programs, any text as one: what the optimiser makes of a program does what the program did.
#![no_main]

// args: -max_len=4096
libfuzzer_sys::fuzz_target!(|data: &[u8]| synth::fuzz_optimize(data));
