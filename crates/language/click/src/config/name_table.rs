//! The names of one configuration.

use std::collections::HashMap;

use diag::{Diagnostics, Spanned};

use super::names::{Addresses, Names};
use super::parse;
use super::prefix::Ip6Prefix;
use super::{split_args, split_words};
use crate::scopes;

/// The names of one configuration, by the compound element that defines them.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    /// By scope (`""`, `"a/"`, `"a/b/"`) and name.
    addresses: HashMap<(String, String), Addresses>,
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
