//! An NF that writes anything into the rings, descriptors and slots that it shares with its host.
#![no_main]

#[path = "../../crates/memory/shm/tests/peer/mod.rs"]
mod peer;

// args: -max_len=2048
libfuzzer_sys::fuzz_target!(|data: &[u8]| peer::hostile_peer(data));
