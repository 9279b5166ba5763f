//! The names of one configuration.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use diag::{Diagnostics, Spanned};

use super::names::Names;
use super::parse;
use super::prefix::{Ip4Prefix, Ip6Prefix};
use super::{split_args, split_words};

/// The addresses of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Addresses {
    ip4: Option<Ipv4Addr>,
    ip4_prefix: Option<Ip4Prefix>,
    ip6: Option<Ipv6Addr>,
    ip6_prefix: Option<Ip6Prefix>,
    ether: Option<[u8; 6]>,
}

/// The names of one configuration, by the compound element that defines them.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    /// By scope (`""`, `"a/"`, `"a/b/"`) and name.
    addresses: HashMap<(String, String), Addresses>,
}

/// The scope of an element: the compound element that contains it, with its slash.
fn scope_of(element: &str) -> &str {
    let end = element.rfind('/').map_or(0, |slash| slash + 1);
    element.get(..end).unwrap_or("")
}

impl NameTable {
    /// An empty table.
    pub fn new() -> NameTable {
        NameTable::default()
    }

    /// Adds the arguments of the `AddressInfo` element with this (flat) name.
    pub fn address_info(&mut self, element: &str, config: &Spanned, diags: &mut Diagnostics) {
        for arg in split_args(config) {
            let words = split_words(&arg);
            let Some((name, addresses)) = words.split_first() else {
                continue;
            };
            if addresses.is_empty() {
                diags.error(arg.span, format!("`{name}` has no address")).help("write `NAME ADDRESS ...`");
            }
            let mut entry = Addresses::default();
            for address in addresses {
                let found = self.scoped(element).read(address);
                if found == Addresses::default() {
                    diags
                        .error(address.span, format!("`{address}` is no address"))
                        .help("expected an IPv4, IPv6 or Ethernet address or a prefix");
                }
                entry.merge(found);
            }
            let key = (scope_of(element).to_owned(), name.text.clone());
            self.addresses.entry(key).or_default().replace(entry);
        }
    }

    /// The names visible to the element with this (flat) name.
    pub fn scoped<'a>(&'a self, element: &'a str) -> ScopedNames<'a> {
        ScopedNames { table: self, scope: scope_of(element) }
    }
}

impl Addresses {
    /// Adds one address of a definition. An address that can be read as several kinds (`10.0.0.1/8` is an address and a
    /// prefix) does not replace earlier ones.
    fn merge(&mut self, found: Addresses) {
        let kinds = [
            found.ip4.is_some(),
            found.ip4_prefix.is_some(),
            found.ip6.is_some(),
            found.ip6_prefix.is_some(),
            found.ether.is_some(),
        ];
        if kinds.iter().filter(|&&kind| kind).count() <= 1 {
            self.replace(found);
        } else {
            let mut merged = found;
            merged.replace(*self);
            *self = merged;
        }
    }

    fn replace(&mut self, new: Addresses) {
        self.ip4 = new.ip4.or(self.ip4);
        self.ip4_prefix = new.ip4_prefix.or(self.ip4_prefix);
        self.ip6 = new.ip6.or(self.ip6);
        self.ip6_prefix = new.ip6_prefix.or(self.ip6_prefix);
        self.ether = new.ether.or(self.ether);
    }
}

/// The names of a [`NameTable`] that are visible to one element.
#[derive(Clone, Copy, Debug)]
pub struct ScopedNames<'a> {
    table: &'a NameTable,
    scope: &'a str,
}

impl ScopedNames<'_> {
    /// This scope and the surrounding ones, the innermost first.
    fn scopes(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.scope), |scope| {
            let inner = scope.strip_suffix('/')?;
            Some(scope_of(inner))
        })
    }

    fn find<T>(&self, name: &str, pick: impl Fn(&Addresses) -> Option<T>) -> Option<T> {
        self.scopes().find_map(|scope| {
            let key = (scope.to_owned(), name.to_owned());
            self.table.addresses.get(&key).and_then(&pick)
        })
    }

    /// All addresses that a literal (or another name) can be read as.
    fn read(&self, text: &Spanned) -> Addresses {
        let mut found = Addresses {
            ether: parse::ether(text, self).ok(),
            ip4: parse::ip4(text, self).ok(),
            ip6: parse::ip6(text, self).ok(),
            ..Addresses::default()
        };
        if found.ip4.is_none() {
            found.ip4_prefix = parse::ip4_prefix(text, self).ok();
            let host = found.ip4_prefix.filter(|prefix| prefix.address != prefix.network());
            found.ip4 = host.map(|prefix| prefix.address);
        }
        if found.ip6.is_none() {
            found.ip6_prefix = parse::ip6_prefix(text, self).ok();
            let host = found
                .ip6_prefix
                .filter(|prefix| u128::from(prefix.address) & !Ip6Prefix::mask(prefix.len) != 0);
            found.ip6 = host.map(|prefix| prefix.address);
        }
        found
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

impl Names for ScopedNames<'_> {
    fn ip4(&self, name: &str) -> Option<Ipv4Addr> {
        if let Some((name, suffix)) = name.rsplit_once(':') {
            let prefix = || self.find(name, |found| found.ip4_prefix);
            if suffix.eq_ignore_ascii_case("bcast") {
                let prefix = prefix()?;
                let host = !u32::from(prefix.mask);
                return Some(Ipv4Addr::from(u32::from(prefix.address) | host));
            }
            if suffix.eq_ignore_ascii_case("gw") {
                return Some(Ipv4Addr::from(u32::from(prefix()?.network()) | 1));
            }
        }
        let name = without_suffix(name, &["ip", "ip4"])?;
        self.find(name, |found| found.ip4)
    }

    fn ip4_prefix(&self, name: &str) -> Option<Ip4Prefix> {
        let name = without_suffix(name, &["net", "ipnet", "ip4net", "ipprefix"])?;
        self.find(name, |found| found.ip4_prefix)
    }

    fn ip6(&self, name: &str) -> Option<Ipv6Addr> {
        let name = without_suffix(name, &["ip6"])?;
        self.find(name, |found| found.ip6)
    }

    fn ip6_prefix(&self, name: &str) -> Option<Ip6Prefix> {
        let name = without_suffix(name, &["net", "ip6net", "ip6prefix"])?;
        self.find(name, |found| found.ip6_prefix)
    }

    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        let name = without_suffix(name, &["eth", "ether", "ethernet"])?;
        self.find(name, |found| found.ether)
    }

    fn known(&self) -> Vec<String> {
        let scopes: Vec<&str> = self.scopes().collect();
        let visible = |key: &&(String, String)| scopes.contains(&key.0.as_str());
        let mut names: Vec<String> =
            self.table.addresses.keys().filter(visible).map(|key| key.1.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}
