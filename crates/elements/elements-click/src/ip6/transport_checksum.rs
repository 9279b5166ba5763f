//! `SetTransportChecksumIP6` and its other names: transport checksums of IPv6 packets.

use super::header::from_ip;
use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use packet::Access;
use packet::checksum::{self, ICMP_CHECK, TCP_CHECK, UDP_CHECK};
use packet::view::ipv6::extension::walk;
use packet::view::ipv6::{Ipv6, Ipv6Facts};
use packet::view::protocol::{ICMP6, TCP, UDP};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};

/// `SetTransportChecksumIP6`.
pub const CLASS: Class = Class {
    name: "SetTransportChecksumIP6",
    summary: "sets the transport checksums of IPv6 packets",
    page: "\
# SetTransportChecksumIP6()

Computes the checksum of TCP, UDP and ICMPv6 in IPv6 packets and writes it into the header. Packets of other protocols
pass unchanged. Its other names are SetTCPChecksumIP6, SetUDPChecksumIP6 and SetICMPChecksumIP6.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: the IPv6 header begins where the network header annotation says; where that is unset, with the
  packet's first byte
- **drop reasons**: `no-ip6-header`: no valid header, or the packet is shorter than it says; `bad-lengths`: no whole
  transport header; `fragment`: the checksum covers what is not there
- **difference**: the transport header is found behind extension headers, whatever the annotations say
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.opaque(|_| Some(SetChecksum)),
};

macro_rules! alias {
    ($konst:ident, $name:literal) => {
        /// Another name of the class.
        pub const $konst: Class = Class {
            name: $name,
            page: concat!(
                "# ",
                $name,
                "()\n\nAs SetTransportChecksumIP6.\n\n- **ports**: 1 input, 1 output, agnostic\n"
            ),
            ..CLASS
        };
    };
}

alias!(SET_TCP, "SetTCPChecksumIP6");
alias!(SET_UDP, "SetUDPChecksumIP6");
alias!(SET_ICMP, "SetICMPChecksumIP6");

element::reasons!(NO_IP6_HEADER = "no-ip6-header", BAD_LENGTHS = "bad-lengths", FRAGMENT = "fragment");

struct SetChecksum;

fn set_checksum(packet: &Packet) -> Result<(), usize> {
    let mut from_ip = from_ip(packet).ok_or(NO_IP6_HEADER)?;
    let bytes = PacketBytes::new(&from_ip);
    let facts = Ipv6::at(0).check(&bytes).map_err(|_| NO_IP6_HEADER)?;
    let Ipv6Facts { src, dst, payload, end, next_header, .. } = facts;
    let headers = walk(&bytes, payload, end, next_header).map_err(|_| NO_IP6_HEADER)?;
    let (protocol, at) = (headers.next_header, headers.payload);
    let (least, sum_at) = match protocol {
        TCP => (20, TCP_CHECK),
        UDP => (8, UDP_CHECK),
        ICMP6 => (4, ICMP_CHECK),
        _ => return Ok(()),
    };
    if headers.fragment.is_some_and(|fragment| fragment.is_partial()) {
        return Err(FRAGMENT);
    }
    let length = end.checked_sub(at).filter(|length| *length >= least).ok_or(BAD_LENGTHS)?;
    let pseudo = checksum::pseudo_ipv6(src, dst, protocol, length as u32);
    let sum = match protocol {
        TCP => checksum::tcp(&bytes, at, length, pseudo),
        UDP => checksum::udp(&bytes, at, length, pseudo),
        _ => checksum::icmp6(&bytes, at, length, pseudo),
    };
    let sum = sum.ok_or(BAD_LENGTHS)?;
    if PacketBytesMut::new(&mut from_ip).put_u16(at + sum_at, sum) { Ok(()) } else { Err(BAD_LENGTHS) }
}

impl Opaque for SetChecksum {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| set_checksum(packet));
    }
}

impl Element for SetChecksum {
    element::facts!(reasons: REASONS);
}
