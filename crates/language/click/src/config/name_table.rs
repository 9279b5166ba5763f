//! The names of one configuration.

use std::collections::HashMap;

use diag::{Diagnostics, Spanned};

use super::names::{Addresses, Names};
use super::parse;
use super::prefix::Ip6Prefix;
use super::services;
use super::{split_args, split_words};
use crate::scopes;

/// The names of one configuration, by the compound element that defines them.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    /// By scope (`""`, `"a/"`, `"a/b/"`) and name.
    addresses: HashMap<(String, String), Addresses>,
    /// Ports by scope, IP protocol and name.
    ports: HashMap<(String, u8, String), u16>,
}

/// The IP protocols that have ports, by the names that definitions use.
const PROTOCOLS: [(&str, u8); 2] = [("tcp", 6), ("udp", 17)];

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
                let found = self.scoped(element).read(address.as_str());
                if found == Addresses::default() {
                    diags
                        .error(address.span, format!("`{address}` is no address"))
                        .help("expected an IPv4, IPv6 or Ethernet address or a prefix");
                }
                entry = merge(entry, found);
            }
            let scope = scopes(element).next().unwrap_or_default();
            let key = (scope.to_owned(), name.text.clone());
            let known = self.addresses.entry(key).or_default();
            *known = entry.or(*known);
        }
    }

    /// Adds the arguments of the `PortInfo` element with this (flat) name: lines `NAME PORT[/PROTOCOL] [ALIAS ...]`, as in
    /// `/etc/services`. What follows a `#` is a comment.
    pub fn port_info(&mut self, element: &str, config: &Spanned, diags: &mut Diagnostics) {
        for arg in split_args(config) {
            let words = split_words(&arg);
            let end = words.iter().position(|word| word.as_str().starts_with('#')).unwrap_or(words.len());
            let (name, port, aliases) = match &words[..end] {
                [] => continue,
                [name] => {
                    diags
                        .error(name.span, format!("`{name}` has no port"))
                        .help("write `NAME PORT[/PROTOCOL] ...`");
                    continue;
                }
                [name, port, aliases @ ..] => (name, port, aliases),
            };
            let (number, protocol) = match port.as_str().split_once('/') {
                Some((number, protocol)) => (number, Some(protocol)),
                None => (port.as_str(), None),
            };
            let protocols: Vec<u8> = PROTOCOLS
                .iter()
                .filter(|(name, _)| protocol.is_none_or(|wanted| wanted == *name))
                .map(|(_, number)| *number)
                .collect();
            // By number, or by a name that is known already.
            let named = || protocols.iter().find_map(|protocol| self.scoped(element).port(*protocol, number));
            let number = number.parse().ok().or_else(named);
            let Some(number) = number.filter(|_| !protocols.is_empty()) else {
                diags
                    .error(port.span, format!("`{port}` is no port"))
                    .help("expected a number from 0 to 65535, or one with `/tcp` or `/udp`");
                continue;
            };
            let scope = scopes(element).next().unwrap_or_default();
            for (name, protocol) in
                [name].into_iter().chain(aliases).flat_map(|name| protocols.iter().map(move |to| (name, *to)))
            {
                // The first definition of a name holds, as in `/etc/services`.
                self.ports.entry((scope.to_owned(), protocol, name.text.clone())).or_insert(number);
            }
        }
    }

    /// The names visible to the element with this (flat) name.
    pub fn scoped<'a>(&'a self, element: &'a str) -> ScopedNames<'a> {
        ScopedNames { table: self, element }
    }
}

/// Adds one address of a definition. An address that can be read as several kinds (`10.0.0.1/8` is an address
/// and a prefix) does not replace earlier ones.
fn merge(entry: Addresses, found: Addresses) -> Addresses {
    let kinds = [
        found.ip4.is_some(),
        found.ip4_prefix.is_some(),
        found.ip6.is_some(),
        found.ip6_prefix.is_some(),
        found.ether.is_some(),
    ];
    let is_one_kind = kinds.iter().filter(|&&kind| kind).count() <= 1;
    if is_one_kind { found.or(entry) } else { entry.or(found) }
}

/// The names of a [`NameTable`] that are visible to one element.
#[derive(Clone, Copy, Debug)]
pub struct ScopedNames<'a> {
    table: &'a NameTable,
    element: &'a str,
}

impl ScopedNames<'_> {
    /// All addresses that a literal (or another name) can be read as.
    fn read(&self, text: &str) -> Addresses {
        let mut found = Addresses {
            ether: parse::ether_text(text, self),
            ip4: parse::ip4_text(text, self),
            ip6: parse::ip6_text(text, self),
            ..Addresses::default()
        };
        if found.ip4.is_none() {
            found.ip4_prefix = parse::ip4_prefix_text(text, self);
            let host = found.ip4_prefix.filter(|prefix| prefix.address != prefix.network());
            found.ip4 = host.map(|prefix| prefix.address);
        }
        if found.ip6.is_none() {
            found.ip6_prefix = parse::ip6_prefix_text(text, self);
            let host = found
                .ip6_prefix
                .filter(|prefix| u128::from(prefix.address) & !Ip6Prefix::mask(prefix.len) != 0);
            found.ip6 = host.map(|prefix| prefix.address);
        }
        found
    }
}

impl Names for ScopedNames<'_> {
    fn addresses(&self, name: &str) -> Addresses {
        let defined = |scope: &str| self.table.addresses.get(&(scope.to_owned(), name.to_owned())).copied();
        scopes(self.element).filter_map(defined).reduce(Addresses::or).unwrap_or_default()
    }

    fn port(&self, protocol: u8, name: &str) -> Option<u16> {
        let defined =
            |scope: &str| self.table.ports.get(&(scope.to_owned(), protocol, name.to_owned())).copied();
        scopes(self.element).find_map(defined).or_else(|| services::port(protocol, name))
    }

    fn known(&self) -> Vec<String> {
        let scopes: Vec<&str> = scopes(self.element).collect();
        let visible = |key: &&(String, String)| scopes.contains(&key.0.as_str());
        let mut names: Vec<String> =
            self.table.addresses.keys().filter(visible).map(|key| key.1.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::Span;

    fn table(infos: &[(&str, &str)]) -> (NameTable, usize) {
        let (mut names, mut diags) = (NameTable::new(), Diagnostics::new());
        for (element, config) in infos {
            names.port_info(element, &Spanned::derived(*config, Span::NONE), &mut diags);
        }
        (names, diags.errors())
    }

    #[test]
    fn ports_have_names_and_aliases_where_they_are_defined() {
        let (names, errors) = table(&[
            (
                "PortInfo@1",
                "foo 79/udp # ssh 25/udp comment, # ssh 26/udp comment, , both 80 other, foo 99/udp",
            ),
            ("a/PortInfo@1", "foo 81/udp, alias foo/udp, web http"),
        ]);
        assert_eq!(errors, 0);
        let (outside, inside) = (names.scoped("e"), names.scoped("a/e"));
        assert_eq!(
            [outside.port(17, "foo"), outside.port(6, "foo"), inside.port(17, "foo")],
            [Some(79), None, Some(81)]
        );
        assert_eq!([outside.port(6, "both"), outside.port(17, "other")], [Some(80); 2]);
        assert_eq!(
            [inside.port(17, "alias"), inside.port(6, "web"), outside.port(6, "web")],
            [Some(81), Some(80), None]
        );
        // Neither a comment, nor what is known without a definition.
        assert_eq!([outside.port(17, "comment"), outside.port(6, "ssh")], [None, Some(22)]);
    }

    #[test]
    fn what_is_no_port_is_a_mistake() {
        for config in ["foo", "foo 65536", "foo 80/sctp", "foo nowhere", "foo 80/"] {
            assert_eq!(table(&[("p", config)]).1, 1, "{config}");
        }
    }
}
