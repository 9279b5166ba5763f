//! Names of DPDK devices as users write them. Needs no DPDK.

use port::{Dpdk, DpdkSpec, PortError};

#[test]
fn names_and_addresses_are_understood() {
    let spec = DpdkSpec::parse("net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap").expect("a virtual device");
    assert_eq!((spec.name(), spec.pci()), ("net_pcap0", None));
    assert_eq!(spec.to_string(), "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap");
    assert_eq!(DpdkSpec::parse("net_null0").expect("a virtual device").to_string(), "net_null0");
    for (text, address) in [("0000:3B:00.1", "0000:3b:00.1"), ("00:05.0,mprq_en=1", "0000:00:05.0")] {
        assert_eq!(DpdkSpec::parse(text).expect("a PCI device").pci(), Some(address));
        assert!(DpdkSpec::is_meant(text));
    }
}

#[test]
fn other_names_are_refused() {
    for text in ["", "eth0", "net_null\0", "0000:00:05.8", "00:5.0", &format!("net_{}", "x".repeat(90))] {
        let refused = DpdkSpec::parse(text);
        assert!(matches!(refused, Err(PortError::Spec { .. })), "{text}: {refused:?}");
    }
    assert!(!DpdkSpec::is_meant("capture.pcap") && DpdkSpec::is_meant("net_null0"));
}

#[test]
fn a_build_without_dpdk_says_so() {
    if port::dpdk::BUILT_WITH_DPDK {
        eprintln!("SKIP: built with DPDK (MILLRACE_WITHOUT_DPDK=1 builds without)");
        return;
    }
    let refused = Dpdk::start(&Default::default(), shm::RegionOptions::slots(64)).err().expect("no DPDK");
    assert_eq!(refused.to_string(), "built without DPDK: install libdpdk-dev and rebuild");
}
