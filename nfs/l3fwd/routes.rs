//! Interfaces and routes: read from the configuration, and looked up by the longest prefix (crate `table`).

use millrace_nfs::Keys;
use millrace_nfs::Prefix;
use millrace_nfs::configuration::{as_a, interface, ipv4, mac, read};
use nf::message::{InterfaceFacts, OwnAddress};
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use table::lpm::{Lpm4, Lpm6};

/// The next hop of a route.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub interface: usize,
    pub next: Next,
}

/// The Ethernet destination of a route.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// The Ethernet address from the configuration.
    Mac(MacAddr),
    /// A neighbour, whose Ethernet address the platform resolves.
    Gateway(IpAddr),
    /// The destination itself, which is a neighbour.
    Destination,
    /// None: the packet is for this router, or a broadcast of a network.
    Nobody,
}

/// An interface's own addresses.
#[derive(Clone, Copy, Default, Debug)]
pub struct Own {
    pub mac: MacAddr,
    /// The source addresses of ICMP errors; without one, none are sent.
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Addr>,
}

/// The values of the configuration.
#[derive(Default)]
pub struct Routes {
    own: Vec<Own>,
    hops: Vec<Hop>,
    v4: Option<Lpm4>,
    v6: Option<Lpm6>,
}

/// An interface, with its name and its L3 interface from the chain file.
pub struct Interface<'a> {
    pub name: &'a str,
    pub facts: Option<&'a InterfaceFacts>,
}

impl AsRef<str> for Interface<'_> {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl Interface<'_> {
    fn addresses(&self) -> &[OwnAddress] {
        self.facts.map_or(&[], |facts| &facts.addresses)
    }

    fn mac(&self) -> Option<MacAddr> {
        self.facts?.mac.parse().ok()
    }

    /// Its own addresses from the chain file.
    fn own(&self) -> Option<Own> {
        let ipv4 = self.addresses().iter().find_map(|own| match own.ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        });
        // An ICMP error may pass routers, so a link-local address must not be its source.
        let ipv6 = self.addresses().iter().find_map(|own| match own.ip {
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => Some(ip),
            _ => None,
        });
        Some(Own { mac: self.mac()?, ipv4, ipv6 })
    }

    /// Whether an address is that of a neighbour.
    fn reaches(&self, address: IpAddr) -> bool {
        self.addresses().iter().any(|own| Prefix::of(own.ip, own.len).contains(address) && own.ip != address)
    }
}

/// Reads a route.
fn route(keys: &mut Keys<'_>, interfaces: &[Interface<'_>]) -> Option<(Prefix, Hop)> {
    let to: Option<Prefix> = keys.required("to", str::parse);
    let interface = keys.value("interface", interface(interfaces));
    let named = keys.has("interface");
    let mac = keys.value("mac", mac);
    let gateway: Option<IpAddr> = keys.value("gateway", as_a("an IP address"));
    let (has_mac, has_gateway) = (keys.has("mac"), keys.has("gateway"));
    if has_mac && has_gateway {
        keys.mistake("[[route]] has a `mac` and a `gateway`: one says where the next hop is");
        return None;
    }
    if let (Some(to), Some(gateway)) = (to, gateway)
        && to.address().is_ipv4() != gateway.is_ipv4()
    {
        keys.mistake(
            "`to` and `gateway` of [[route]] are of two families: write IPv4 with IPv4, IPv6 with IPv6",
        );
        return None;
    }
    let all = 0..interfaces.len();
    let interface = match gateway {
        Some(gateway) if !named => {
            let beside: Vec<usize> = all.filter(|at| interfaces[*at].reaches(gateway)).collect();
            match beside.as_slice() {
                [only] => Some(*only),
                [] => {
                    let why = "is a neighbour on no interface: give the port in the chain file an address of its network";
                    keys.mistake(format_args!("gateway {gateway} {why}"));
                    None
                }
                _ => {
                    keys.mistake(format_args!("gateway {gateway} is on several interfaces: add `interface`"));
                    None
                }
            }
        }
        _ if !named => {
            keys.mistake("[[route]] needs `interface`");
            None
        }
        _ => interface,
    };
    let here = interfaces.get(interface?)?;
    let next = match (mac, gateway) {
        (Some(mac), _) => Next::Mac(mac),
        (None, Some(gateway)) if here.reaches(gateway) => Next::Gateway(gateway),
        (None, Some(gateway)) => {
            let (name, why) =
                (here.name, "write one of its networks in the chain file, as one of `addresses` of the port");
            keys.mistake(format_args!("gateway {gateway} is no neighbour on `{name}`: {why}"));
            return None;
        }
        (None, None) if has_mac || has_gateway => return None,
        (None, None) if here.facts.is_some() => Next::Destination,
        (None, None) => {
            let name = here.name;
            keys.mistake(format_args!(
                "[[route]] needs `mac`, or `gateway` and `addresses` for the port at `{name}` in the chain file"
            ));
            return None;
        }
    };
    Some((to?, Hop { interface: interface?, next }))
}

/// The networks of the interfaces: a router has these routes without configuration.
fn connected(interfaces: &[Interface<'_>]) -> Vec<(Prefix, Hop)> {
    let mut routes = vec![];
    for (interface, at) in interfaces.iter().enumerate() {
        // Link-local addresses are not routed; every interface has one.
        let is_local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        for own in at.addresses().iter().filter(|own| !is_local(own.ip)) {
            let network = Prefix::of(own.ip, own.len);
            routes.push((network, Hop { interface, next: Next::Destination }));
            let mut nobody = vec![own.ip];
            if let (IpAddr::V4(first), true) = (network.address(), own.len < 31) {
                let last = first.to_bits() | u32::MAX.checked_shr(own.len.into()).unwrap_or(0);
                nobody.extend([IpAddr::V4(first), IpAddr::V4(Ipv4Addr::from(last))]);
            }
            let whole = |ip: IpAddr| Prefix::of(ip, if ip.is_ipv4() { 32 } else { 128 });
            routes.extend(nobody.into_iter().map(|ip| (whole(ip), Hop { interface, next: Next::Nobody })));
        }
    }
    routes
}

impl Routes {
    /// Reads the configuration of an NF with these interfaces.
    pub fn read(config: &[u8], interfaces: &[Interface<'_>]) -> Result<Routes, String> {
        let (own, routes) = read(config, |keys| {
            let named = keys.named("interface", |name, keys| {
                let number = interface(interfaces)(name).inspect_err(|sentence| keys.mistake(sentence)).ok();
                let known = number.and_then(|number| interfaces.get(number)?.own());
                let stated = match known {
                    Some(known) => keys.value("mac", mac).or(Some(known.mac)),
                    None => keys.required("mac", mac),
                };
                if let (Some(known), Some(stated)) = (known, stated)
                    && known.mac != stated
                {
                    let why = "the port answers for in the chain file: leave `mac` out here";
                    keys.mistake(format_args!("{stated} is not {}, which {why}", known.mac));
                }
                let ipv4 = keys.value("address", ipv4).or(known.and_then(|own| own.ipv4));
                let ipv6 = keys.value("address6", as_a("an IPv6 address")).or(known.and_then(|own| own.ipv6));
                Some((number?, Own { mac: stated?, ipv4, ipv6 }))
            });
            let mut own: Vec<Option<Own>> = interfaces.iter().map(Interface::own).collect();
            for (number, one) in named {
                if let Some(place) = own.get_mut(number) {
                    *place = Some(one);
                }
            }
            for (at, _) in interfaces.iter().zip(&own).filter(|(_, own)| own.is_none()) {
                let name = at.name;
                keys.mistake(format_args!("interface `{name}` has no MAC address: add [interface.{name}]"));
            }
            let routes = keys.tables("route", |keys| route(keys, interfaces));
            if routes.is_empty() && interfaces.iter().all(|at| at.addresses().is_empty()) {
                keys.mistake("there are no routes: add [[route]]");
            }
            (own.into_iter().map(Option::unwrap_or_default).collect(), routes)
        })?;
        let failed = |error: table::TableError| format!("no room for these routes: {error}");
        let (mut v4, mut v6) = (Lpm4::new().map_err(failed)?, Lpm6::new().map_err(failed)?);
        let mut hops = vec![];
        // Configured routes are last, and replace those of the networks.
        let known = connected(interfaces);
        for (number, (to, hop)) in known.iter().chain(&routes).enumerate() {
            let replaced = match to.address() {
                IpAddr::V4(address) => v4.insert(address.to_bits(), to.len(), number as u32),
                IpAddr::V6(address) => v6.insert(address.to_bits(), to.len(), number as u32),
            };
            let replaced = replaced.map_err(failed)?;
            if replaced.is_some_and(|replaced| replaced as usize >= known.len()) {
                return Err(format!("two routes lead to {}/{}: leave one out", to.address(), to.len()));
            }
            hops.push(*hop);
        }
        Ok(Routes { own, hops, v4: Some(v4), v6: Some(v6) })
    }

    /// The next hop to an address.
    pub fn hop(&self, to: IpAddr) -> Option<Hop> {
        let number = match to {
            IpAddr::V4(to) => self.v4.as_ref()?.lookup(to.to_bits()),
            IpAddr::V6(to) => self.v6.as_ref()?.lookup(to.to_bits()),
        };
        self.hops.get(number? as usize).copied()
    }

    /// An interface's own addresses.
    pub fn own(&self, interface: usize) -> Own {
        self.own.get(interface).copied().unwrap_or_default()
    }

    /// An interface's own MAC address.
    pub fn mac(&self, interface: usize) -> MacAddr {
        self.own(interface).mac
    }
}
