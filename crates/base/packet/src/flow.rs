//! Flow keys and symmetric flow hashes.
//!
//! Both directions of a flow have the same hash, so that both reach the same core. There are two hashes:
//!
//! - [`FlowKey::rss_hash`] chooses a queue. It is the Toeplitz hash with the key 0x6d5a repeated (Woo and
//!   Park, "Scalable TCP session monitoring with symmetric receive-side scaling"). A NIC with
//!   [`SYMMETRIC_KEY`] computes the same bits, so software and hardware queues agree. With a key of period
//!   16, only the XOR of all 16-bit words matters, so this hash has 16 bits of entropy and anybody can aim at
//!   a queue.
//! - [`FlowKey::table_hash`] places an entry in a table: 64 bits, seeded.
//!
//! Translation changes the key: a NAT must ensure that both directions of a translated flow reach one core.

mod steering;
mod toeplitz;

use std::net::{IpAddr, Ipv4Addr};

pub use steering::{MOST_INSTANCES, SteeringPolicy};
pub use toeplitz::{SYMMETRIC_KEY, symmetric, toeplitz};

use crate::view::ipv6::Ipv6;
use crate::view::{icmp, icmp6, protocol};
use crate::{Access, Layers};

/// The key of a flow in one direction: addresses, protocol and ports.
///
/// Ports are zero for protocols without ports, for truncated headers, and for all fragments including the
/// first, so that all fragments of a datagram have one key. ICMP and ICMPv6 messages with an identifier have
/// it as both ports, so that request and reply belong to one flow. ICMP errors have zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl FlowKey {
    /// The key of a parsed packet; `None` if it is not IP.
    #[inline]
    pub fn of<A: Access + ?Sized>(packet: &A, layers: &Layers) -> Option<FlowKey> {
        let net = layers.net?;
        let protocol = layers.ip_proto?;
        let (src, dst) = if layers.is_ipv4() {
            // One read for both: the field `ip.pair`.
            let pair = packet.u64(net.checked_add(12)?)?;
            let (src, dst) = (Ipv4Addr::from_bits((pair >> 32) as u32), Ipv4Addr::from_bits(pair as u32));
            (IpAddr::V4(src), IpAddr::V4(dst))
        } else {
            (IpAddr::V6(Ipv6::at(net).src(packet)?), IpAddr::V6(Ipv6::at(net).dst(packet)?))
        };
        let (src_port, dst_port) = ports(packet, layers, protocol).unwrap_or((0, 0));
        Some(FlowKey { src, dst, protocol, src_port, dst_port })
    }

    /// The key of the other direction.
    #[inline]
    #[must_use]
    pub const fn reversed(self) -> FlowKey {
        let FlowKey { src, dst, protocol, src_port, dst_port } = self;
        FlowKey { src: dst, dst: src, protocol, src_port: dst_port, dst_port: src_port }
    }

    /// The hash that chooses a queue: see the module. Equal for both directions.
    ///
    /// Like a NIC's hash, it covers addresses, and ports if the protocol has them. It covers neither the
    /// protocol nor an ICMP identifier.
    #[inline]
    pub fn rss_hash(&self) -> u32 {
        let words = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => u128::from(src.to_bits() ^ dst.to_bits()),
            (src, dst) => v6_bits(src) ^ v6_bits(dst),
        };
        let words = (words >> 64) as u64 ^ words as u64;
        let words = (words >> 32) as u32 ^ words as u32;
        let ports = if protocol::has_ports(self.protocol) { self.src_port ^ self.dst_port } else { 0 };
        toeplitz::symmetric((words >> 16) as u16 ^ words as u16 ^ ports)
    }

    /// [`FlowKey::rss_hash`], which for ICMP messages also covers the identifier: chooses a worker in software. Equal for
    /// both directions.
    #[inline]
    pub fn steering_hash(&self) -> u32 {
        let has_id = matches!(self.protocol, protocol::ICMP | protocol::ICMP6);
        // Hashes are linear: the identifier is one more word.
        self.rss_hash() ^ if has_id { toeplitz::symmetric(self.src_port) } else { 0 }
    }

    /// A 64-bit hash for tables, equal for both directions and different for different seeds.
    ///
    /// Not a cryptographic hash: an outsider who knows the seed can make collisions.
    #[inline]
    pub fn table_hash(&self, seed: u64) -> u64 {
        // Both directions have the same order of ends. Each port stays with its address, so that (a:1, b:2)
        // and (a:2, b:1) differ.
        let ends = ((self.src, self.src_port), (self.dst, self.dst_port));
        let (low, high) = if ends.0 <= ends.1 { ends } else { (ends.1, ends.0) };
        let ports = u64::from(low.1) << 32 | u64::from(high.1) << 8 | u64::from(self.protocol);
        let hash = mix(seed ^ 0x9e37_79b9_7f4a_7c15, ports);
        match (low.0, high.0) {
            (IpAddr::V4(low), IpAddr::V4(high)) => {
                mix(hash, u64::from(low.to_bits()) << 32 | u64::from(high.to_bits()))
            }
            (low, high) => [v6_bits(low), v6_bits(high)]
                .into_iter()
                .fold(hash, |hash, addr| mix(mix(hash, (addr >> 64) as u64), addr as u64)),
        }
    }
}

/// Folded multiplication, as in wyhash: the XOR of both halves of the product carries high bits to low ones.
#[inline]
const fn mix(hash: u64, word: u64) -> u64 {
    let product = ((hash ^ word) as u128) * 0xd6e8_feb8_6659_fd93_u128;
    let folded = (product >> 64) as u64 ^ product as u64;
    folded.rotate_left(23) ^ hash.wrapping_mul(0xa076_1d64_78bd_642f)
}

#[inline]
fn v6_bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits().into(),
        IpAddr::V6(addr) => addr.to_bits(),
    }
}

#[inline]
fn ports<A: Access + ?Sized>(packet: &A, layers: &Layers, protocol: u8) -> Option<(u16, u16)> {
    let trans = layers.trans.filter(|_| !layers.is_fragment)?;
    if protocol::has_ports(protocol) && layers.trans_bytes() >= 4 {
        let both = packet.u32(trans)?;
        return Some(((both >> 16) as u16, both as u16));
    }
    let has_id = match protocol {
        protocol::ICMP => icmp::has_id,
        protocol::ICMP6 => icmp6::has_id,
        _ => return None,
    };
    if layers.trans_bytes() < icmp::HEADER_BYTES {
        return None;
    }
    let message = packet.u64(trans)?;
    let id = (message >> 16) as u16;
    has_id((message >> 56) as u8).then_some((id, id))
}

#[cfg(test)]
mod tests;
