//! Finds DPDK with pkg-config and compiles the shim over it.
//!
//! It reads the version; `c/internal.h` describes the differences between versions.
//!
//! Without DPDK the crate is built without the shim; opening a DPDK port then reports the package to install.

use std::process::Command;

/// The parts of DPDK that the shim calls. DPDK loads drivers as plug-ins.
const LIBRARIES: [&str; 5] = ["rte_eal", "rte_mempool", "rte_mbuf", "rte_ethdev", "rte_ring"];

/// The long-term releases with which the tests were run.
const TRIED: [&str; 1] = ["22.11"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo::rerun-if-env-changed=MILLRACE_WITHOUT_DPDK");
    if std::env::var_os("MILLRACE_WITHOUT_DPDK").is_some() {
        return;
    }
    let Some(flags) = pkg_config("--cflags") else {
        println!("cargo::warning=DPDK was not found: DPDK ports are left out (install libdpdk-dev)");
        return;
    };
    let version = pkg_config("--modversion").unwrap_or_default().trim().to_string();
    if !TRIED.iter().any(|tried| version == *tried || version.starts_with(&format!("{tried}."))) {
        println!("cargo::warning=DPDK {version} was not tried with Millrace; {} was", TRIED.join(", "));
    }
    let folders = pkg_config("--libs-only-L").unwrap_or_default();
    let mut shim = cc::Build::new();
    for flag in flags.split_whitespace() {
        shim.flag(flag);
    }
    // DPDK's external-memory functions are marked experimental but have not changed for years.
    shim.define("ALLOW_EXPERIMENTAL_API", None).warnings(true).opt_level(3);
    // Filling a descriptor word by word is faster than combining pairs of words in vector registers.
    shim.flag_if_supported("-fno-tree-slp-vectorize");
    for file in ["c/eal.c", "c/pool.c", "c/device.c", "c/burst.c"] {
        shim.file(file);
    }
    shim.compile("millrace_dpdk");
    for folder in folders.split_whitespace().filter_map(|flag| flag.strip_prefix("-L")) {
        println!("cargo::rustc-link-search=native={folder}");
    }
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    // Since 23.11 the log has a library of its own.
    let all = pkg_config("--libs-only-l").unwrap_or_default();
    if all.split_whitespace().any(|flag| flag == "-lrte_log") {
        println!("cargo::rustc-link-lib=dylib=rte_log");
    }
    println!("cargo::rustc-env=MILLRACE_DPDK_VERSION={version}");
    println!("cargo::rustc-cfg=dpdk");
    // For the test driver's build script, as DEP_DPDK_CFLAGS.
    println!("cargo::metadata=cflags={flags}");
}

fn pkg_config(what: &str) -> Option<String> {
    let tool = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(tool).args([what, "libdpdk"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
