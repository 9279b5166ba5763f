//! Builds the bytes of one frame from its description.
//!
//! Invariant: a built frame has exactly the requested length, all its checksums are right, and its IP packet
//! ends where the frame ends, except that a frame without payload is padded.

use std::net::IpAddr;

use etherparse::{
    EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp,
    IpNumber, Ipv4Header, Ipv6Header, SingleVlanHeader, TcpHeader, TransportHeader, UdpHeader, VlanId,
    VlanPcp,
};

use crate::TrafficError;
use crate::link::{MacAddress, VlanTag};
use crate::protocol::{ICMP, ICMPV6, TCP, UDP};

/// The shortest frame on a wire, without FCS (IEEE 802.3 clause 4.4.2).
pub const SHORTEST_WIRE_FRAME_BYTES: usize = 60;

/// The 5-tuple of a flow: addresses, protocol and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// IP protocol number. For protocols other than TCP, UDP and the family's ICMP, the payload starts with
    /// both ports, so that a header of a rule set stays recognisable.
    pub protocol: u8,
    /// Source port; for ICMP the echo identifier.
    pub src_port: u16,
    /// Destination port; ICMP has none.
    pub dst_port: u16,
}

/// The changing fields of a TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; with one, the ACK flag is set.
    pub acknowledgement: Option<u32>,
    /// SYN flag.
    pub syn: bool,
    /// FIN flag.
    pub fin: bool,
    /// PSH flag.
    pub psh: bool,
}

/// The description of a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameSpec<'a> {
    /// Source MAC address.
    pub src_mac: MacAddress,
    /// Destination MAC address.
    pub dst_mac: MacAddress,
    /// VLAN tags, outermost first, at most two.
    pub vlan: &'a [VlanTag],
    /// Addresses, protocol, ports.
    pub flow: FiveTuple,
    /// TCP header fields, for TCP.
    pub tcp: TcpSegment,
    /// ICMP echo sequence number, and the identification field of IPv4.
    pub sequence: u16,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Payload, used from its start; it must be long enough for the frame. A frame with an empty payload is
    /// padded with zeros after the IP packet.
    pub payload: &'a [u8],
    /// Length of the whole frame without FCS.
    pub len_bytes: usize,
}

impl FrameSpec<'_> {
    /// Bytes of all headers, Ethernet to transport: the shortest length that can be built.
    pub fn header_bytes(&self) -> usize {
        let ipv6 = self.flow.src.is_ipv6();
        let network = if ipv6 { 40 } else { 20 };
        let transport = match (self.flow.protocol, ipv6) {
            (TCP, _) => 20,
            (UDP, _) | (ICMP, false) | (ICMPV6, true) => 8,
            _ => 4,
        };
        14 + 4 * self.vlan.len() + network + transport
    }

    /// Builds the frame's bytes.
    ///
    /// # Errors
    ///
    /// As [`Self::build_into`].
    pub fn build(&self) -> Result<Vec<u8>, TrafficError> {
        let mut frame = Vec::with_capacity(self.len_bytes);
        self.build_into(&mut frame)?;
        Ok(frame)
    }

    /// Appends the frame to `out`. On an error `out` is unchanged.
    ///
    /// # Errors
    ///
    /// When the length is less than [`Self::header_bytes`] or more than an IP length field can hold, the
    /// addresses are of two families, a tag or the DSCP is out of its range, or the payload is too short.
    pub fn build_into(&self, out: &mut Vec<u8>) -> Result<(), TrafficError> {
        let start = out.len();
        let built = self.append(out);
        if built.is_err() {
            out.truncate(start);
        }
        built
    }

    fn refuse(&self, reason: impl Into<String>) -> TrafficError {
        TrafficError::BadFrame { len_bytes: self.len_bytes, reason: reason.into() }
    }

    fn append(&self, out: &mut Vec<u8>) -> Result<(), TrafficError> {
        let start = out.len();
        let free = self.len_bytes.checked_sub(self.header_bytes());
        let free =
            free.ok_or_else(|| self.refuse(format!("its headers alone have {} bytes", self.header_bytes())))?;
        let payload = match self.payload {
            [] => &[],
            payload => payload
                .get(..free)
                .ok_or_else(|| self.refuse(format!("{free} bytes of payload were not supplied")))?,
        };
        self.append_link(out)?;
        let dscp = IpDscp::try_new(self.dscp).map_err(|_| self.refuse("a DSCP is 0 to 63"))?;
        let mut transport = self.transport(payload);
        let ip_payload_bytes = transport.as_ref().map_or(4, TransportHeader::header_len) + payload.len();
        let too_long = |family: &str| self.refuse(format!("it is longer than {family} can say"));
        match (self.flow.src, self.flow.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let protocol = IpNumber(self.flow.protocol);
                let mut header = Ipv4Header::new(0, self.ttl, protocol, src.octets(), dst.octets())
                    .map_err(|_| too_long("IPv4"))?;
                header.set_payload_len(ip_payload_bytes).map_err(|_| too_long("IPv4"))?;
                header.dscp = dscp;
                header.identification = self.sequence;
                header.header_checksum = header.calc_header_checksum();
                out.extend_from_slice(&header.to_bytes());
                let sum = transport.as_mut().map(|above| above.update_checksum_ipv4(&header, payload));
                sum.transpose().map_err(|_| too_long("IPv4"))?;
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let mut header = Ipv6Header {
                    next_header: IpNumber(self.flow.protocol),
                    hop_limit: self.ttl,
                    source: src.octets(),
                    destination: dst.octets(),
                    ..Ipv6Header::default()
                };
                header.set_payload_length(ip_payload_bytes).map_err(|_| too_long("IPv6"))?;
                header.set_dscp(dscp);
                out.extend_from_slice(&header.to_bytes());
                let sum = transport.as_mut().map(|above| above.update_checksum_ipv6(&header, payload));
                sum.transpose().map_err(|_| too_long("IPv6"))?;
            }
            _ => return Err(self.refuse("its addresses are of two families")),
        }
        match transport {
            Some(TransportHeader::Tcp(header)) => out.extend_from_slice(&header.to_bytes()),
            Some(TransportHeader::Udp(header)) => out.extend_from_slice(&header.to_bytes()),
            Some(TransportHeader::Icmpv4(header)) => out.extend_from_slice(&header.to_bytes()),
            Some(TransportHeader::Icmpv6(header)) => out.extend_from_slice(&header.to_bytes()),
            _ => [self.flow.src_port, self.flow.dst_port]
                .iter()
                .for_each(|port| out.extend(port.to_be_bytes())),
        }
        out.extend_from_slice(payload);
        // Only a frame without payload is too short here.
        out.resize(start + self.len_bytes, 0);
        Ok(())
    }

    fn append_link(&self, out: &mut Vec<u8>) -> Result<(), TrafficError> {
        let network = if self.flow.src.is_ipv6() { EtherType::IPV6 } else { EtherType::IPV4 };
        let first = match self.vlan {
            [] => network,
            [_] => EtherType::VLAN_TAGGED_FRAME,
            [_, _] => EtherType::PROVIDER_BRIDGING,
            _ => return Err(self.refuse("it has more than two VLAN tags")),
        };
        let ethernet =
            Ethernet2Header { source: self.src_mac.0, destination: self.dst_mac.0, ether_type: first };
        out.extend_from_slice(&ethernet.to_bytes());
        for (place, tag) in self.vlan.iter().enumerate() {
            let last = place + 1 == self.vlan.len();
            let header = SingleVlanHeader {
                pcp: VlanPcp::try_new(tag.priority).map_err(|_| self.refuse("a VLAN priority is 0 to 7"))?,
                drop_eligible_indicator: false,
                vlan_id: VlanId::try_new(tag.id)
                    .map_err(|_| self.refuse("a VLAN identifier is 0 to 4095"))?,
                ether_type: if last { network } else { EtherType::VLAN_TAGGED_FRAME },
            };
            out.extend_from_slice(&header.to_bytes());
        }
        Ok(())
    }

    fn tcp_header(&self) -> TcpHeader {
        let FiveTuple { src_port, dst_port, .. } = self.flow;
        let mut header = TcpHeader::new(src_port, dst_port, self.tcp.sequence, 65_535);
        header.ack = self.tcp.acknowledgement.is_some();
        header.acknowledgment_number = self.tcp.acknowledgement.unwrap_or(0);
        header.syn = self.tcp.syn;
        header.fin = self.tcp.fin;
        header.psh = self.tcp.psh;
        header
    }

    /// The transport header, without its checksum. Protocols that this module does not know have none.
    fn transport(&self, payload: &[u8]) -> Option<TransportHeader> {
        let FiveTuple { src_port, dst_port, protocol, .. } = self.flow;
        let echo = IcmpEchoHeader { id: src_port, seq: self.sequence };
        match (protocol, self.flow.src.is_ipv6()) {
            (TCP, _) => Some(TransportHeader::Tcp(self.tcp_header())),
            (UDP, _) => Some(TransportHeader::Udp(UdpHeader {
                source_port: src_port,
                destination_port: dst_port,
                // A length that does not fit is refused with that of the IP header.
                length: (UdpHeader::LEN + payload.len()) as u16,
                checksum: 0,
            })),
            (ICMP, false) => Some(TransportHeader::Icmpv4(Icmpv4Header::new(Icmpv4Type::EchoRequest(echo)))),
            (ICMPV6, true) => Some(TransportHeader::Icmpv6(Icmpv6Header::new(Icmpv6Type::EchoRequest(echo)))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
