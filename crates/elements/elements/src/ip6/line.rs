//! The text of an IPv6 route: `ADDR/LEN [GW] OUT`.

use click::config::parse::{self, Parsed};
use click::config::{Ip6Prefix, Names, split_words};
use diag::{Diagnostic, Spanned};
use std::net::Ipv6Addr;

/// A route's next hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// The gateway, unspecified when there is none.
    pub gateway: Ipv6Addr,
    /// The output port.
    pub port: u32,
}

/// A prefix: the network's address, with bits beyond the length 0, and the length.
pub type Network = (u128, u8);

/// What a route must look like.
const SYNTAX: &str = "a route is written `ADDR/LEN [GATEWAY] OUTPUT`";

/// Reads a prefix, or an address as a prefix of 128 bits.
pub fn network(text: &Spanned, names: &dyn Names) -> Parsed<Network> {
    let prefix = parse::ip6_or_prefix(text, names)?;
    Ok((u128::from(prefix.address) & Ip6Prefix::mask(prefix.len), prefix.len))
}

/// Reads a route for an element with that many outputs.
pub fn route(outputs: usize) -> impl Fn(&Spanned, &dyn Names) -> Parsed<(Network, Hop)> {
    move |text, names| {
        let words = split_words(text);
        let (first, gateway, output) = match &words[..] {
            [first, output] => (first, None, output),
            [first, gateway, output] => (first, Some(gateway), output),
            _ => {
                let message = format!("{} words are no route", words.len());
                return Err(Diagnostic::error(text.span, message).help(SYNTAX));
            }
        };
        let network = network(first, names)?;
        let gateway = gateway.map(|gateway| parse::ip6(gateway, names)).transpose()?;
        let port = parse::i32(output, names)?;
        match u32::try_from(port).ok().filter(|port| (*port as usize) < outputs) {
            Some(port) => Ok((network, Hop { gateway: gateway.unwrap_or(Ipv6Addr::UNSPECIFIED), port })),
            None => {
                let message = format!("output {port} does not exist");
                Err(Diagnostic::error(output.span, message).help(format!("there are {outputs} outputs")))
            }
        }
    }
}
