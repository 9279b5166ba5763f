//! Every view on every place that a parse found, and on one that it did not.

use packet::view::{Arp, Ethernet, Icmp, Icmp6, Ipv4, Ipv6, Tcp, Udp, VlanTag, ipv6, nd, tcp, vlan};
use packet::{Access, Layers};

/// Each setter writes what its getter then reads, or refuses and changes nothing.
macro_rules! round_trips {
    ($data:expr, $view:expr, $seed:expr; $($get:ident / $set:ident: $type:ty = $mask:expr),* $(,)?) => { $(
        let mut bytes = $data.to_vec();
        let value = <$type>::try_from($seed as u64 & $mask as u64).unwrap_or_default();
        let could_read = $view.$get(&bytes).is_some();
        assert_eq!($view.$set(&mut bytes, value), could_read);
        if could_read {
            assert_eq!($view.$get(&bytes), Some(value), stringify!($get));
        } else {
            assert_eq!(bytes, $data);
        }
    )* };
}

/// Exercises the views; the answers are compared with an oracle elsewhere.
pub fn walk(data: &[u8], layers: &Layers) {
    let anywhere = data.last().map_or(0, |byte| usize::from(*byte));
    for at in [layers.net.unwrap_or(0), layers.trans.unwrap_or(0), anywhere, usize::MAX] {
        let end = if at == anywhere { data.len().saturating_sub(anywhere % 7) } else { layers.end };
        link(data, at);
        network(data, at, end);
        transport(data, at, end);
        setters(data, at);
    }
}

fn link(data: &[u8], at: usize) {
    if let Ok(facts) = Ethernet::at(at).check(data) {
        assert_eq!(Ethernet::at(at).src(data), Some(facts.src));
        assert_eq!(Ethernet::at(at).dst(data), Some(facts.dst));
        let mut bytes = data.to_vec();
        assert!(Ethernet::at(at).write(&mut bytes, facts));
        assert_eq!(bytes, data);
    }
    if let Ok(stack) = vlan::walk(data, at, 0x88a8) {
        assert!(stack.count >= 1 && stack.payload == at + 4 * stack.count);
        assert_eq!(VlanTag::at(at).tci(data), Some(stack.tci[0]));
        assert_eq!(VlanTag::at(at).id(data), Some(stack.tci[0] & 0xfff));
    }
    if let Ok(facts) = Arp::at(at).check(data) {
        let mut bytes = data.to_vec();
        assert!(Arp::at(at).write(&mut bytes, facts));
        assert_eq!(bytes, data);
    }
}

fn network(data: &[u8], at: usize, end: usize) {
    if let Ok(facts) = Ipv4::at(at).check(data) {
        assert!(facts.payload <= facts.end && facts.end <= data.len());
        assert_eq!(facts.header(), &data[at..facts.payload]);
        let sum_is_good = packet::checksum::verify_ipv4_header(data, at, facts.header_len)
            == packet::checksum::Validity::Good;
        assert_eq!(facts.check_sum().is_ok(), sum_is_good);
        let options = facts.options();
        let mut behind = 0;
        for option in options.iter().flatten() {
            assert!(option.at >= behind && option.at + option.data.len() < options.bytes().len());
            behind = option.at + 1;
        }
    }
    if let Ok(facts) = Ipv6::at(at).check(data) {
        assert!(facts.payload <= facts.end && facts.end <= data.len());
        assert_eq!(Ipv6::at(at).src(data), Some(facts.src));
        assert_eq!(Ipv6::at(at).flow_label(data), Some(facts.flow_label));
    }
    for first in [0, 43, 44, 51, 60, 135] {
        if let Ok(seen) = ipv6::extension::walk(data, at, end, first) {
            assert!(!seen.headers().is_empty() && seen.headers().len() <= 8);
            assert!(seen.payload <= end.min(data.len()));
            let sum: usize = seen.headers().iter().map(|header| header.len).sum();
            assert_eq!(at + sum, seen.payload);
        }
    }
}

fn transport(data: &[u8], at: usize, end: usize) {
    if let Ok(facts) = Tcp::at(at).check(data, end) {
        assert!(facts.payload <= end.min(data.len()));
        assert_eq!(Tcp::at(at).seq(data), Some(facts.seq));
        assert!(facts.options.iter().count() <= 40);
        for option in facts.options.iter().flatten() {
            let _ = tcp::TcpOption::from(option);
        }
    }
    if let Ok(facts) = Udp::at(at).check(data, end) {
        assert!(facts.payload <= facts.end && facts.end <= end.min(data.len()));
    }
    if let Ok(inner) = Icmp::at(at).embedded(data, end) {
        assert!(inner.trans.is_none_or(|trans| trans + inner.payload_bytes <= end.min(data.len())));
    }
    if let Ok(inner) = Icmp6::at(at).embedded(data, end) {
        assert!(inner.trans.is_none_or(|trans| trans + inner.payload_bytes <= end.min(data.len())));
    }
    if let Ok(neighbor) = nd::Neighbor::check(data, at, end) {
        let mut bytes = data.to_vec();
        let src = neighbor.target;
        if neighbor.write(&mut bytes, at, src, src) {
            assert_eq!(nd::Neighbor::check(&bytes, at, at + neighbor.message_bytes()), Ok(neighbor));
        }
    }
}

fn setters(data: &[u8], at: usize) {
    let seed = data
        .iter()
        .fold(0x1234_5678_9abc_def1u64, |seed, byte| (seed ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    round_trips!(data, Ipv4::at(at), seed; version / set_version: u8 = 0xf, dscp / set_dscp: u8 = 0x3f,
        total_len / set_total_len: u16 = 0xffff, fragment_units / set_fragment_units: u16 = 0x1fff,
        ttl / set_ttl: u8 = 0xff);
    round_trips!(data, Ipv6::at(at), seed; traffic_class / set_traffic_class: u8 = 0xff,
        flow_label / set_flow_label: u32 = 0xf_ffff, hop_limit / set_hop_limit: u8 = 0xff);
    round_trips!(data, Tcp::at(at), seed; src_port / set_src_port: u16 = 0xffff, seq / set_seq: u32 = u32::MAX,
        header_words / set_header_words: u8 = 0xf, flags / set_flags: u8 = 0xff);
    round_trips!(data, Udp::at(at), seed; len / set_len: u16 = 0xffff, checksum / set_checksum: u16 = 0xffff);
    round_trips!(data, Icmp::at(at), seed; kind / set_kind: u8 = 0xff, mtu / set_mtu: u16 = 0xffff);
    round_trips!(data, VlanTag::at(at), seed; pcp / set_pcp: u8 = 7, id / set_id: u16 = 0xfff);
    round_trips!(data, Arp::at(at), seed; op / set_op: u16 = 0xffff);
    if let Some(dst) = Ipv6::at(at).dst(data) {
        let mut bytes = data.to_vec();
        assert!(Ipv6::at(at).set_dst(&mut bytes, dst) && bytes == data);
        assert_eq!(Access::get::<16>(data, at + 24), Some(dst.octets()));
    }
}
