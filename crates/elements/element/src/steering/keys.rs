//! Hashes of the frame fields that choose an instance.

use packet::access::Access;
use packet::view::{icmp, icmp6, protocol};
use packet::{FlowKey, Layers, parse};
use std::net::{IpAddr, Ipv6Addr};

/// The same in every run and on every worker. It differs from the seed of upstream switches by flow hash, so
/// that the packets of one of their outputs are spread again.
const SEED: u64 = 0x7374_6565_7220_6974;

/// The hash of the flow, equal for both directions and for ICMP errors about it. Frames without IP are hashed
/// by their Ethernet addresses and type.
#[inline]
pub fn flow<A: Access + ?Sized>(frame: &A) -> u64 {
    let layers = parse::frame(frame, 0);
    flow_key(frame, &layers)
        .unwrap_or_else(|| {
            let kind = frame.u16(12).unwrap_or(0);
            FlowKey { src: mac(frame, 6), dst: mac(frame, 0), protocol: 0, src_port: kind, dst_port: kind }
        })
        .table_hash(SEED)
}

/// The hash of the source or destination address. Frames without IP are hashed by their Ethernet address.
#[inline]
pub fn address<A: Access + ?Sized>(frame: &A, source: bool) -> u64 {
    let address = match FlowKey::of(frame, &parse::frame(frame, 0)) {
        Some(key) if source => key.src,
        Some(key) => key.dst,
        None => mac(frame, if source { 6 } else { 0 }),
    };
    FlowKey { src: address, dst: address, protocol: 0, src_port: 0, dst_port: 0 }.table_hash(SEED)
}

fn mac<A: Access + ?Sized>(frame: &A, at: usize) -> IpAddr {
    let bytes = (at..at + 6).map(|at| u128::from(frame.u8(at).unwrap_or(0)));
    IpAddr::V6(Ipv6Addr::from_bits(bytes.fold(0, |number, byte| number << 8 | byte)))
}

/// The flow of a packet: for an ICMP error, the one that it is about.
#[inline]
pub(super) fn flow_key<A: Access + ?Sized>(frame: &A, layers: &Layers) -> Option<FlowKey> {
    quoted_flow(frame, layers).or_else(|| FlowKey::of(frame, layers))
}

/// The flow that an ICMP error is about: the flow's owner must get the error.
#[inline]
pub(super) fn quoted_flow<A: Access + ?Sized>(frame: &A, layers: &Layers) -> Option<FlowKey> {
    let (is_error, kind): (fn(u8) -> bool, u16) = match layers.ip_proto? {
        protocol::ICMP => (icmp::is_error, 0x0800),
        protocol::ICMP6 => (icmp6::is_error, 0x86dd),
        _ => return None,
    };
    let at = layers.trans.filter(|_| !layers.is_fragment)?;
    if !is_error(frame.u8(at)?) {
        return None;
    }
    let inside = at.checked_add(icmp::HEADER_BYTES)?;
    FlowKey::of(frame, &parse::network(frame, inside, kind))
}
