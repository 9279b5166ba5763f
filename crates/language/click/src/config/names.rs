//! Names of addresses, ports and protocols.
//!
//! After `AddressInfo(server 10.0.0.1 00:50:ba:85:84:a9)`, other arguments may use the name `server`. The
//! argument determines the kind of address, or a suffix does (`server:eth`, `server:ip`, `server:ipnet`,
//! `server:bcast`, `server:gw`). A name is visible in the compound element that defines it, and in all
//! compounds inside.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::prefix::{Ip4Prefix, Ip6Prefix};
use super::services;

/// The addresses of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub(super) ip4: Option<Ipv4Addr>,
    pub(super) ip4_prefix: Option<Ip4Prefix>,
    pub(super) ip6: Option<Ipv6Addr>,
    pub(super) ip6_prefix: Option<Ip6Prefix>,
    pub(super) ether: Option<[u8; 6]>,
}

impl Addresses {
    /// These addresses, and those of the other kinds from `others`.
    pub(super) fn or(self, others: Addresses) -> Addresses {
        Addresses {
            ip4: self.ip4.or(others.ip4),
            ip4_prefix: self.ip4_prefix.or(others.ip4_prefix),
            ip6: self.ip6.or(others.ip6),
            ip6_prefix: self.ip6_prefix.or(others.ip6_prefix),
            ether: self.ether.or(others.ether),
        }
    }
}

/// `name` without a type suffix from `suffixes`; `None` if it has a suffix of another type.
fn without_suffix<'a>(name: &'a str, suffixes: &[&str]) -> Option<&'a str> {
    match name.rsplit_once(':') {
        None => Some(name),
        Some((name, suffix)) => {
            let known = suffixes.iter().any(|known| suffix.eq_ignore_ascii_case(known));
            known.then_some(name)
        }
    }
}

/// Resolves names for the value parsers. By default, a method resolves no addresses, and the well-known ports
/// and protocols.
pub trait Names {
    /// The addresses of a name without a suffix.
    fn addresses(&self, _name: &str) -> Addresses {
        Addresses::default()
    }

    /// The IPv4 address of a name.
    fn ip4(&self, name: &str) -> Option<Ipv4Addr> {
        if let Some((name, suffix)) = name.rsplit_once(':') {
            let prefix = || self.addresses(name).ip4_prefix;
            if suffix.eq_ignore_ascii_case("bcast") {
                let prefix = prefix()?;
                let host = !u32::from(prefix.mask);
                return Some(Ipv4Addr::from(u32::from(prefix.address) | host));
            }
            if suffix.eq_ignore_ascii_case("gw") {
                return Some(Ipv4Addr::from(u32::from(prefix()?.network()) | 1));
            }
        }
        self.addresses(without_suffix(name, &["ip", "ip4"])?).ip4
    }

    /// The IPv4 prefix of a name.
    fn ip4_prefix(&self, name: &str) -> Option<Ip4Prefix> {
        self.addresses(without_suffix(name, &["net", "ipnet", "ip4net", "ipprefix"])?).ip4_prefix
    }

    /// The IPv6 address of a name.
    fn ip6(&self, name: &str) -> Option<Ipv6Addr> {
        self.addresses(without_suffix(name, &["ip6"])?).ip6
    }

    /// The IPv6 prefix of a name.
    fn ip6_prefix(&self, name: &str) -> Option<Ip6Prefix> {
        self.addresses(without_suffix(name, &["net", "ip6net", "ip6prefix"])?).ip6_prefix
    }

    /// The Ethernet address of a name.
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        self.addresses(without_suffix(name, &["eth", "ether", "ethernet"])?).ether
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
