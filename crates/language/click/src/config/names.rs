//! Names of addresses, ports and protocols.
//!
//! After `AddressInfo(server 10.0.0.1 00:50:ba:85:84:a9)`, other arguments may use the name `server`. The argument
//! determines the kind of address, or a suffix does (`server:eth`, `server:ip`, `server:ipnet`, `server:bcast`,
//! `server:gw`). A name is visible in the compound element that defines it, and in all compounds inside.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::prefix::{Ip4Prefix, Ip6Prefix};
use super::services;

/// Resolves names for the value parsers. By default, a method resolves no addresses, and the well-known ports and
/// protocols.
pub trait Names {
    /// The IPv4 address of a name.
    fn ip4(&self, _name: &str) -> Option<Ipv4Addr> {
        None
    }

    /// The IPv4 prefix of a name.
    fn ip4_prefix(&self, _name: &str) -> Option<Ip4Prefix> {
        None
    }

    /// The IPv6 address of a name.
    fn ip6(&self, _name: &str) -> Option<Ipv6Addr> {
        None
    }

    /// The IPv6 prefix of a name.
    fn ip6_prefix(&self, _name: &str) -> Option<Ip6Prefix> {
        None
    }

    /// The Ethernet address of a name.
    fn ether(&self, _name: &str) -> Option<[u8; 6]> {
        None
    }

    /// The port of a service, for one IP protocol.
    fn port(&self, protocol: u8, name: &str) -> Option<u16> {
        services::port(protocol, name)
    }

    /// The number of an IP protocol.
    fn protocol(&self, name: &str) -> Option<u8> {
        services::protocol(name)
    }

    /// The known names, for suggestions.
    fn known(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Resolves the well-known ports and protocols only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}
