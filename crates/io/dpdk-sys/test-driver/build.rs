//! Compiles the driver with the flags that `dpdk-sys` found; without DPDK there is no driver.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    let Ok(flags) = std::env::var("DEP_DPDK_CFLAGS") else { return };
    let mut driver = cc::Build::new();
    for flag in flags.split_whitespace() {
        driver.flag(flag);
    }
    // rte_eth_dev_conf_get() is marked experimental.
    driver.define("ALLOW_EXPERIMENTAL_API", None);
    driver.warnings(true).opt_level(3).file("c/driver.c").compile("millrace_dpdk_test_driver");
    println!("cargo::rustc-link-lib=dylib=rte_kvargs");
    println!("cargo::rustc-cfg=dpdk");
}
