//! IP protocol numbers (IANA "Assigned Internet Protocol Numbers"): IPv4's protocol and IPv6's next header.
//! EtherTypes are in [`super::ethernet`].

/// IPv6 hop-by-hop options; means HOPOPT in IPv4 too.
pub const HOP_BY_HOP: u8 = 0;
/// ICMP.
pub const ICMP: u8 = 1;
/// IGMP.
pub const IGMP: u8 = 2;
/// IPv4 in IP (RFC 2003).
pub const IPIP: u8 = 4;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// DCCP.
pub const DCCP: u8 = 33;
/// IPv6 in IP (RFC 2473).
pub const IPV6: u8 = 41;
/// IPv6 routing header.
pub const ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const FRAGMENT: u8 = 44;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// Encapsulating security payload (RFC 4303).
pub const ESP: u8 = 50;
/// Authentication header (RFC 4302).
pub const AUTH: u8 = 51;
/// ICMPv6.
pub const ICMP6: u8 = 58;
/// No next header (RFC 8200).
pub const NO_NEXT: u8 = 59;
/// IPv6 destination options.
pub const DEST_OPTIONS: u8 = 60;
/// OSPF.
pub const OSPF: u8 = 89;
/// SCTP.
pub const SCTP: u8 = 132;
/// IPv6 mobility header (RFC 6275).
pub const MOBILITY: u8 = 135;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;
/// Host identity protocol (RFC 7401).
pub const HIP: u8 = 139;
/// Shim6 (RFC 5533).
pub const SHIM6: u8 = 140;

/// Whether the protocol's first four bytes are a source and a destination port.
#[inline]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}
