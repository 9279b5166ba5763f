//! Header views, the bounded parse and checksums on any frame, against etherparse.
#![no_main]

#[path = "../../crates/base/packet/tests/harness/mod.rs"]
mod harness;

// args: -max_len=512
libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::packet_views(data));
