//! Chains of NFs made at random, with answers to what leaves, run element by element and fused: no
//! difference.
#![no_main]

// args: -max_len=1024
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    runtime::fuzz::fuzz_both_ways(data);
});
