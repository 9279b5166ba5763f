//! ICMP errors: the packet inside them is translated, too, so that the receiver recognizes its own packet
//! (RFC 5508, section 4).

use crate::mappings::Mappings;
use crate::{MALFORMED, NO_MAPPING, NOT_FOR_US};
use millrace_nfs::rewrite::{End, end, port_at};
use nf::Packet;
use packet::checksum::ICMP_CHECK;
use packet::view::{Icmp, ipv4::Ipv4Facts, protocol};
use packet::{Access, view::icmp};

/// Translates an error, outward or inward; else the number of a drop reason.
///
/// The packet inside was sent in the other direction: an error from the outside is about a packet whose
/// source is the outside address; one from the inside about a packet whose destination is the inside host.
pub fn translate(
    packet: &mut Packet,
    net: usize,
    ip: &Ipv4Facts,
    mappings: &mut Mappings,
    outward: bool,
) -> Result<(), usize> {
    let embedded = Icmp::at(ip.payload).embedded(packet, ip.end).map_err(|_| MALFORMED)?;
    let (about, Some(trans)) = (embedded.ip, embedded.trans) else { return Err(NO_MAPPING) };
    let side = if outward { End::Destination } else { End::Source };
    let at = port_at(about.protocol, side).ok_or(NO_MAPPING)?;
    if about.protocol == protocol::ICMP && !icmp::has_id(packet.u8(trans).ok_or(MALFORMED)?) {
        return Err(NO_MAPPING);
    }
    // An error contains at least eight bytes of the header; a port is in the first six.
    if embedded.payload_bytes < at + 2 {
        return Err(MALFORMED);
    }
    let port = packet.u16(trans + at).ok_or(MALFORMED)?;
    let (to, own) = if outward {
        let outside = mappings.known(about.protocol, (about.dst, port)).ok_or(NO_MAPPING)?;
        ((mappings.external(), outside), mappings.external())
    } else {
        if ip.dst != mappings.external() || about.src != mappings.external() {
            return Err(NOT_FOR_US);
        }
        let inside = mappings.inward(about.protocol, port, None).ok_or(NO_MAPPING)?;
        (inside, inside.0)
    };
    let changed = end(packet, embedded.net, &about, side, (to.0, Some(to.1)), true).ok_or(MALFORMED)?;
    let check = packet.u16(ip.payload + ICMP_CHECK).ok_or(MALFORMED)?;
    if !packet.put_u16(ip.payload + ICMP_CHECK, changed.apply_icmp(check)) {
        return Err(MALFORMED);
    }
    // The address of an inside host that sends an error is replaced by the outside address, too.
    let side = if outward { End::Source } else { End::Destination };
    end(packet, net, ip, side, (own, None), false).map(drop).ok_or(MALFORMED)
}
