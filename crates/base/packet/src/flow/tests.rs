//! Keys of frames, and the hashes against their references.

use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;
use crate::parse;

fn key(src: &str, dst: &str, protocol: u8, src_port: u16, dst_port: u16) -> FlowKey {
    FlowKey { src: src.parse().unwrap(), dst: dst.parse().unwrap(), protocol, src_port, dst_port }
}

/// What a NIC hashes: addresses, then ports if the protocol has them.
fn rss_input(key: &FlowKey) -> Vec<u8> {
    let octets = |addr| match addr {
        IpAddr::V4(addr) => addr.octets().to_vec(),
        IpAddr::V6(addr) => addr.octets().to_vec(),
    };
    let mut input = [octets(key.src), octets(key.dst)].concat();
    if protocol::has_ports(key.protocol) {
        input.extend([key.src_port.to_be_bytes(), key.dst_port.to_be_bytes()].concat());
    }
    input
}

#[test]
fn toeplitz_passes_the_verification_suite_of_the_specification() {
    // Microsoft, "Verifying the RSS hash calculation".
    let rss_key = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
        0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
        0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];
    let tcp = key("66.9.149.187", "161.142.100.80", 6, 2794, 1766);
    assert_eq!(toeplitz(&rss_key, &rss_input(&tcp)), 0x51cc_c178);
    let ip = key("66.9.149.187", "161.142.100.80", 1, 0, 0);
    assert_eq!(toeplitz(&rss_key, &rss_input(&ip)), 0x323e_8fc2);
    let v6 = key("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 6, 2794, 1766);
    assert_eq!(toeplitz(&rss_key, &rss_input(&v6)), 0x4020_7d3d);
}

fn any_key() -> impl Strategy<Value = FlowKey> {
    let addrs = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(src, dst)| (IpAddr::V4(src), IpAddr::V4(dst))),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(src, dst)| (IpAddr::V6(src), IpAddr::V6(dst))),
    ];
    (addrs, proptest::sample::select(vec![1u8, 6, 17, 50, 132]), any::<(u16, u16)>()).prop_map(
        |((src, dst), protocol, (src_port, dst_port))| FlowKey { src, dst, protocol, src_port, dst_port },
    )
}

proptest! {
    #[test]
    fn rss_hash_is_what_a_nic_computes(key in any_key()) {
        prop_assert_eq!(key.rss_hash(), toeplitz(&SYMMETRIC_KEY, &rss_input(&key)));
    }

    #[test]
    fn both_directions_hash_alike(key in any_key(), seed in any::<u64>()) {
        prop_assert_eq!(key.rss_hash(), key.reversed().rss_hash());
        prop_assert_eq!(key.table_hash(seed), key.reversed().table_hash(seed));
        prop_assert_eq!(key.reversed().reversed(), key);
    }
}

#[test]
fn table_hash_spreads_neighbouring_flows_over_low_and_high_bits() {
    // 65,536 flows that differ in few bits, into 65,536 buckets: a random function leaves 1/e empty.
    for shift in [0, 48] {
        let mut buckets = vec![0u32; 1 << 16];
        for index in 0..1u32 << 16 {
            let src = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | index >> 8));
            let flow = FlowKey { src, ..key("10.0.0.1", "192.0.2.1", 17, 1024 + (index & 0xff) as u16, 53) };
            buckets[(flow.table_hash(7) >> shift) as usize & 0xffff] += 1;
        }
        let empty = buckets.iter().filter(|count| **count == 0).count();
        assert!((23_000..25_500).contains(&empty), "{empty} of 65536 empty at shift {shift}");
        assert!(buckets.iter().all(|count| *count < 14), "a bucket overflows at shift {shift}");
    }
}

#[test]
fn table_hash_covers_every_part_of_the_key() {
    let base = key("10.0.0.1", "10.0.0.2", 6, 1, 2);
    let others = [
        key("10.0.0.1", "10.0.0.2", 6, 2, 1),
        key("10.0.0.1", "10.0.0.2", 17, 1, 2),
        key("10.0.0.3", "10.0.0.2", 6, 1, 2),
        key("10.0.0.1", "10.0.0.3", 6, 1, 2),
        key("::a00:1", "::a00:2", 6, 1, 2),
    ];
    for other in others {
        assert_ne!(base.table_hash(0), other.table_hash(0), "{other:?}");
    }
    assert_ne!(base.table_hash(0), base.table_hash(1));
}

#[test]
fn icmp_queries_share_a_key_with_their_replies_and_fragments_with_each_other() {
    let frame = |kind: u8, off: u16, proto: u8| {
        let mut ip = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip[6..8].copy_from_slice(&off.to_be_bytes());
        ip.extend([kind, 0, 0, 0, 0xab, 0xcd, 0, 1]);
        let layers = parse::raw_ip(&ip);
        FlowKey::of(&ip, &layers).unwrap()
    };
    assert_eq!((frame(8, 0, 1).src_port, frame(8, 0, 1).dst_port), (0xabcd, 0xabcd));
    assert_eq!(frame(8, 0, 1), frame(0, 0, 1));
    assert_eq!(frame(3, 0, 1).src_port, 0, "an error carries no identifier");
    assert_eq!(frame(8, 0x2000, 17), frame(99, 0x0001, 17), "first and last fragment");
    assert_ne!(frame(8, 0, 17), frame(8, 0x2000, 17));
}
