//! Interfaces and routes: read, and looked up by the longest prefix (crate `table`).

use millrace_nfs::Prefix;
use millrace_nfs::configuration::{as_a, read};
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use table::lpm::{Lpm4, Lpm6};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub interface: usize,
    pub mac: MacAddr,
}

/// An interface's own addresses.
#[derive(Clone, Copy, Default, Debug)]
pub struct Own {
    pub mac: MacAddr,
    /// ICMP errors come from these; without, none are sent.
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Addr>,
}

/// What the configuration says.
#[derive(Default)]
pub struct Routes {
    own: Vec<Own>,
    hops: Vec<Hop>,
    v4: Option<Lpm4>,
    v6: Option<Lpm6>,
}

impl Routes {
    /// Reads the configuration of an NF with those interfaces.
    pub fn read(config: &[u8], interfaces: &[String]) -> Result<Routes, String> {
        let number = |name: &str| {
            let found = interfaces.iter().position(|interface| interface == name);
            found.ok_or_else(|| format!("there is no interface `{name}`, only {}", interfaces.join(", ")))
        };
        let mac = || as_a::<MacAddr>("an Ethernet address such as 02:00:00:00:00:01");
        let (own, routes) = read(config, |keys| {
            let named = keys.named("interface", |name, keys| {
                let number = number(name).inspect_err(|sentence| keys.mistake(sentence)).ok();
                let mac = keys.required("mac", mac());
                let ipv4 = keys.value("address", as_a("an IPv4 address"));
                let ipv6 = keys.value("address6", as_a("an IPv6 address"));
                Some((number?, Own { mac: mac?, ipv4, ipv6 }))
            });
            let mut own = vec![None; interfaces.len()];
            for (number, one) in named {
                if let Some(place) = own.get_mut(number) {
                    *place = Some(one);
                }
            }
            for (name, _) in interfaces.iter().zip(&own).filter(|(_, own)| own.is_none()) {
                keys.mistake(format_args!("interface `{name}` has no MAC address: add [interface.{name}]"));
            }
            let routes = keys.tables("route", |keys| {
                let to: Option<Prefix> = keys.required("to", str::parse);
                let interface = keys.required("interface", number);
                let mac = keys.required("mac", mac());
                Some((to?, Hop { interface: interface?, mac: mac? }))
            });
            if routes.is_empty() {
                keys.mistake("there are no routes: add [[route]]");
            }
            (own.into_iter().map(Option::unwrap_or_default).collect(), routes)
        })?;
        let failed = |error: table::TableError| format!("no room for these routes: {error}");
        let (mut v4, mut v6) = (Lpm4::new().map_err(failed)?, Lpm6::new().map_err(failed)?);
        let mut hops = vec![];
        for (to, hop) in routes {
            let number = hops.len() as u32;
            let replaced = match to.address() {
                IpAddr::V4(address) => v4.insert(address.to_bits(), to.len(), number),
                IpAddr::V6(address) => v6.insert(address.to_bits(), to.len(), number),
            };
            if replaced.map_err(failed)?.is_some() {
                return Err(format!("two routes lead to {}/{}: leave one out", to.address(), to.len()));
            }
            hops.push(hop);
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

    /// Whether a frame that came in by an interface is for this router.
    pub fn is_for_us(&self, interface: usize, mac: MacAddr) -> bool {
        self.mac(interface) == mac
    }
}
