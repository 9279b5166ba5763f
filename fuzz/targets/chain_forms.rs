//! Chains of elements made at random, run element by element and fused: no difference.
#![no_main]

// args: -max_len=1024
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    runtime::fuzz::fuzz_forms(data);
});
