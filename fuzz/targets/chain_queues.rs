//! Chains of elements made at random with queues that packets pass, and in which they wait: no difference.
#![no_main]

// args: -max_len=1024
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    runtime::fuzz::fuzz_queues(data);
});
