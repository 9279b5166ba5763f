//! Hostile packets through elements, evaluator against machine code, with all counters checked.
#![no_main]

// args: -max_len=1024
libfuzzer_sys::fuzz_target!(|data: &[u8]| elements_click::testing::fuzz_packets(data));
