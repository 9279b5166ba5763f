//! Filters of ClassBench's sets as rules of an `IPFilter`.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use table::acl::classbench::Filter;

/// A filter as a rule: `allow src net 10.0.0.0/8 && dst host 1.2.3.4 && tcp && dst port 80`. Fields that
/// match every packet are left out, and so are TCP flags, as in published figures for these sets. Ports are
/// those of TCP and UDP: a filter with a range of ports and another protocol matches nothing.
pub fn rule(action: &str, filter: &Filter) -> String {
    let mut tests = vec![];
    for (word, (address, len)) in [("src", filter.src), ("dst", filter.dst)] {
        let address = Ipv4Addr::from(address & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0));
        match len {
            0 => {}
            32 => tests.push(format!("{word} host {address}")),
            _ => tests.push(format!("{word} net {address}/{len}")),
        }
    }
    match filter.proto {
        (_, 0) => {}
        (6, 0xff) => tests.push("tcp".to_string()),
        (17, 0xff) => tests.push("udp".to_string()),
        (proto, 0xff) => tests.push(format!("ip proto {proto}")),
        (proto, mask) => tests.push(format!("ip proto & {mask:#x} = {proto}")),
    }
    for (word, (first, last)) in [("src", filter.sport), ("dst", filter.dport)] {
        match (first, last) {
            (0, 0xffff) => {}
            _ if first == last => tests.push(format!("{word} port {first}")),
            _ => tests.push(format!("{word} port {first}-{last}")),
        }
    }
    if tests.is_empty() {
        tests.push("all".to_string());
    }
    format!("{action} {}", tests.join(" && "))
}

/// A set of filters as the configuration of an `IPFilter`. `action` gives the action by the filter's number.
/// Packets that match no filter are dropped.
pub fn configuration<'a>(filters: &[Filter], mut action: impl FnMut(usize) -> &'a str) -> String {
    let mut text = String::new();
    for (at, filter) in filters.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},", rule(action(at), filter));
    }
    text
}
