//! Packets as etherparse reads them.

use etherparse::{Icmpv4Type, NetSlice, SlicedPacket, TransportSlice};
use std::net::Ipv4Addr;

/// An IPv4 packet, with every checksum found right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    pub destination_mac: [u8; 6],
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub ttl: u8,
    pub id: u16,
    /// Ports of TCP and UDP.
    pub ports: Option<(u16, u16)>,
    pub icmp: Option<Icmpv4Type>,
    /// What follows the transport header.
    pub payload: Vec<u8>,
}

/// One direction of a flow: protocol, source, source port, destination, destination port.
pub type Flow = (u8, Ipv4Addr, u16, Ipv4Addr, u16);

impl Ipv4 {
    /// Reads a frame; `None` when it holds no whole IPv4 packet.
    ///
    /// Panics at a wrong checksum.
    pub fn read(frame: &[u8]) -> Option<Ipv4> {
        let sliced = SlicedPacket::from_ethernet(frame).ok()?;
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { return None };
        let header = ip.header();
        let own = header.to_header();
        assert_eq!(own.header_checksum, own.calc_header_checksum(), "IP checksum of {header:?}");
        let (mut ports, mut icmp, mut payload) = (None, None, vec![]);
        match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let sum = tcp.calc_checksum_ipv4(header.source(), header.destination());
                assert_eq!(Ok(tcp.checksum()), sum, "TCP checksum of {own:?}");
                ports = Some((tcp.source_port(), tcp.destination_port()));
                payload = tcp.payload().to_vec();
            }
            Some(TransportSlice::Udp(udp)) => {
                let sum = udp.to_header().calc_checksum_ipv4_raw(
                    header.source(),
                    header.destination(),
                    udp.payload(),
                );
                // Zero says that the sender made none.
                assert!(udp.checksum() == 0 || Ok(udp.checksum()) == sum, "UDP checksum of {own:?}");
                ports = Some((udp.source_port(), udp.destination_port()));
                payload = udp.payload().to_vec();
            }
            Some(TransportSlice::Icmpv4(message)) => {
                let sum = message.icmp_type().calc_checksum(message.payload());
                assert_eq!(message.checksum(), sum, "ICMP checksum of {own:?}");
                icmp = Some(message.icmp_type());
                payload = message.payload().to_vec();
            }
            _ => {}
        }
        Some(Ipv4 {
            destination_mac: frame.get(..6)?.try_into().ok()?,
            source: header.source_addr(),
            destination: header.destination_addr(),
            protocol: header.protocol().0,
            ttl: header.ttl(),
            id: header.identification(),
            ports,
            icmp,
            payload,
        })
    }

    /// Its flow, if it has ports.
    pub fn flow(&self) -> Option<Flow> {
        let (source, destination) = self.ports?;
        Some((self.protocol, self.source, source, self.destination, destination))
    }
}
