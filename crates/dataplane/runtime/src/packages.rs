//! The packages that `require` may name: parts of Click that exist here, under Click's names.

use diag::{Diagnostics, Spanned, did_you_mean};

/// Click's packages and provisions, FastClick's among them. A missing class of theirs is reported where it is
/// used.
const KNOWN: &[&str] = &[
    "analysis",
    "app",
    "aqm",
    "batch",
    "click",
    "dpdk",
    "etherswitch",
    "ethernet",
    "fastclick",
    "icmp",
    "int64",
    "ip",
    "ip6",
    "local",
    "multithread",
    "nanotimestamp",
    "pcap",
    "simple",
    "smpclick",
    "standard",
    "tcpudp",
    "threads",
    "umultithread",
    "userlevel",
    "vlan",
];

/// Reports required packages that do not exist here.
pub fn check(required: &[Spanned], diags: &mut Diagnostics) {
    for package in required.iter().filter(|package| !KNOWN.contains(&package.as_str())) {
        let help = match package.as_str() {
            "linuxmodule" | "bsdmodule" | "ns" => {
                "the configuration is for another driver of Click".to_string()
            }
            name => did_you_mean(name, KNOWN.iter().copied())
                .unwrap_or_else(|| format!("those that are here: {}", KNOWN.join(", "))),
        };
        diags.error(package.span, format!("there is no package `{package}`")).help(help);
    }
}
