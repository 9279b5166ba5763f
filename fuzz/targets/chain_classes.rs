//! Chains of all classes that need no device, socket or kernel, made at random: no difference between execution modes.
#![no_main]

// args: -max_len=1024
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    runtime::fuzz::fuzz_classes(data);
});
