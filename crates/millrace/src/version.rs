//! The version of the program, and what it is built with.

use std::sync::LazyLock;

/// The version, the commit if it is known, DPDK and features, for `--version`.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = option_env!("MILLRACE_BUILD_COMMIT").map(|commit| format!(" (commit {commit})"));
        let features: &[&str] = if cfg!(feature = "cadical") { &["cadical"] } else { &[] };
        let kind = if cfg!(debug_assertions) { "debug" } else { "release" };
        format!(
            "{}{}\nDPDK: {}\nCranelift: {}\nfeatures: {}\nbuild: {kind}, {}",
            env!("CARGO_PKG_VERSION"),
            commit.unwrap_or_default(),
            port::dpdk::DPDK_VERSION.unwrap_or("built without; install libdpdk-dev and rebuild"),
            codegen::CRANELIFT_VERSION,
            if features.is_empty() { "none".into() } else { features.join(", ") },
            std::env::consts::ARCH,
        )
    });
    &TEXT
}
