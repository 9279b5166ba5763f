//! IPv6 addresses in annotations and headers, as two halves of 8 bytes.

use ir::{Builder, Expr};
use packet::anno::{Anno, DST_IP6};
use packet::field::{Base, Field};
use shm::Packet;
use std::net::Ipv6Addr;

/// The high half of the destination annotation.
pub const HIGH: Anno = Anno { offset: DST_IP6.offset, len: 8 };
/// The low half.
pub const LOW: Anno = Anno { offset: DST_IP6.offset + 8, len: 8 };

/// The halves of an address.
pub fn halves(address: Ipv6Addr) -> (u64, u64) {
    let bits = u128::from(address);
    ((bits >> 64) as u64, bits as u64)
}

/// The fields of an address in a packet.
pub const fn fields(base: Base, offset: u16) -> (Field, Field) {
    (Field::bytes(base, offset, 8), Field::bytes(base, offset + 8, 8))
}

/// Sets the destination annotation.
pub fn store(f: &mut Builder, high: impl Into<Expr>, low: impl Into<Expr>) {
    f.store_anno(HIGH, high);
    f.store_anno(LOW, low);
}

/// The destination annotation of a packet.
pub fn destination(packet: &Packet) -> Ipv6Addr {
    let half = |anno: Anno| u128::from(anno.load(&packet.anno));
    Ipv6Addr::from(half(HIGH) << 64 | half(LOW))
}

/// Sets the destination annotation of a packet.
pub fn set_destination(packet: &mut Packet, address: Ipv6Addr) {
    let (high, low) = halves(address);
    HIGH.store(&mut packet.anno, high);
    LOW.store(&mut packet.anno, low);
}
