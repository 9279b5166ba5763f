//! Rewrites addresses and ports of IPv4 packets, with incremental checksums (RFC 1624).

use packet::Access;
use packet::checksum::{Delta, ICMP_CHECK, IPV4_CHECK, TCP_CHECK, UDP_CHECK};
use packet::view::ipv4::Ipv4Facts;
use packet::view::protocol;
use std::net::Ipv4Addr;

/// An end of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The source.
    Source,
    /// The destination.
    Destination,
}

/// The offset of an end's port in the transport header, and for ICMP that of the identifier, whichever end it
/// is; `None` for other protocols.
#[inline]
pub fn port_at(number: u8, end: End) -> Option<usize> {
    match (number, end) {
        (protocol::TCP | protocol::UDP, End::Source) => Some(0),
        (protocol::TCP | protocol::UDP, End::Destination) => Some(2),
        (protocol::ICMP, _) => Some(4),
        _ => None,
    }
}

/// Rewrites the address of one end of the IPv4 packet whose header begins at `net`, and whose facts are `ip`.
/// With a port it also rewrites what is at [`port_at`].
///
/// Returns the change of all words, for an enclosing checksum. `None` when a header is incomplete: the packet
/// may be half rewritten and must be dropped. A packet in an ICMP error (`embedded`) may lack its checksum.
pub fn end<A: Access + ?Sized>(
    packet: &mut A,
    net: usize,
    ip: &Ipv4Facts,
    end: End,
    to: (Ipv4Addr, Option<u16>),
    embedded: bool,
) -> Option<Delta> {
    let (address_at, old) = match end {
        End::Source => (12, ip.src),
        End::Destination => (16, ip.dst),
    };
    let address = Delta::NONE.change32(old.to_bits(), to.0.to_bits());
    let check = address.apply(ip.checksum);
    let done = packet.put_u32(net + address_at, to.0.to_bits()) && packet.put_u16(net + IPV4_CHECK, check);
    let mut all = address.change16(ip.checksum, check);
    if !done {
        return None;
    }
    let Some(port_at) = port_at(ip.protocol, end) else { return to.1.is_none().then_some(all) };
    let check_at = match ip.protocol {
        protocol::TCP => TCP_CHECK,
        protocol::UDP => UDP_CHECK,
        _ => ICMP_CHECK,
    };
    let mut changed = if ip.protocol == protocol::ICMP { Delta::NONE } else { address };
    if let Some(port) = to.1 {
        let old = packet.u16(ip.payload + port_at)?;
        changed = changed.change16(old, port);
        all = all.change16(old, port);
        if !packet.put_u16(ip.payload + port_at, port) {
            return None;
        }
    }
    match packet.u16(ip.payload + check_at) {
        Some(old) => {
            let new = match ip.protocol {
                protocol::UDP => changed.apply_udp(old),
                protocol::ICMP => changed.apply_icmp(old),
                _ => changed.apply(old),
            };
            all = all.change16(old, new);
            packet.put_u16(ip.payload + check_at, new).then_some(all)
        }
        // The first eight bytes of a TCP header do not contain the checksum.
        None => embedded.then_some(all),
    }
}
