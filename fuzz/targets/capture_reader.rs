//! The readers of pcap and pcapng on any file.
#![no_main]

// args: -max_len=4096
libfuzzer_sys::fuzz_target!(|data: &[u8]| port::capture::fuzz_reader(data));
