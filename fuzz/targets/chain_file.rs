//! Chain files, any text as one: TOML, the words of links, the NFs' texts, loops.
#![no_main]

// args: -max_len=4096
libfuzzer_sys::fuzz_target!(|data: &[u8]| chain::fuzz_chain(data, &runtime::KnownClasses));
