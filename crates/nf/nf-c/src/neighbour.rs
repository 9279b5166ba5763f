//! Next hops, and the L3 interfaces of an NF.
#![expect(
    unsafe_code,
    reason = "functions for C have names that the linker sees, and C's addresses are pointers"
)]

use crate::error::{Code, fail, null};
use crate::link::CallerLink;
use nf::Neighbour;
use nf::headers::MacAddr;
use std::ffi::{c_int, c_uint};
use std::net::IpAddr;

/// The state of a neighbour, by its number in the header.
pub const RESOLVING: c_int = 0;
pub const KNOWN: c_int = 1;
pub const UNREACHABLE: c_int = 2;

/// The address of a family, 4 or 6, at the caller's pointer.
fn address(family: c_uint, bytes: *const u8) -> Result<IpAddr, c_int> {
    if bytes.is_null() {
        return Err(null("the address"));
    }
    match family {
        // SAFETY: it is not NULL, and the header requires 4 readable bytes; no reference outlives the call.
        4 => Ok(IpAddr::from(unsafe { bytes.cast::<[u8; 4]>().read_unaligned() })),
        // SAFETY: the same with 16 bytes.
        6 => Ok(IpAddr::from(unsafe { bytes.cast::<[u8; 16]>().read_unaligned() })),
        _ => Err(fail(Code::Argument, format_args!("there is no IP version {family}: pass 4 or 6"))),
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_neighbour(
    link: Option<&mut CallerLink>,
    interface: u32,
    family: c_uint,
    next_hop: *const u8,
    mac: Option<&mut [u8; 6]>,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let next_hop = match address(family, next_hop) {
        Ok(next_hop) => next_hop,
        Err(code) => return code,
    };
    let Some(mac) = mac else { return null("mac") };
    match link.link.neighbour(interface as usize, next_hop) {
        Neighbour::Known(known) => {
            *mac = known.0;
            KNOWN
        }
        Neighbour::Resolving => RESOLVING,
        Neighbour::Unreachable => UNREACHABLE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_neighbour_changes(link: Option<&CallerLink>) -> u64 {
    link.map_or(0, |link| link.link.neighbour_changes())
}

#[unsafe(no_mangle)]
extern "C" fn millrace_l3_interface(
    link: Option<&CallerLink>,
    interface: u32,
    mac: Option<&mut [u8; 6]>,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(mac) = mac else { return null("mac") };
    let facts = link.link.l3_interface(interface as usize);
    match facts.and_then(|facts| Some((facts, facts.mac.parse::<MacAddr>().ok()?))) {
        Some((facts, known)) => {
            *mac = known.0;
            facts.addresses.len() as c_int
        }
        None => no_l3_interface(interface),
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_l3_interface_address(
    link: Option<&CallerLink>,
    interface: u32,
    number: u32,
    bytes: Option<&mut [u8; 16]>,
    prefix: Option<&mut u32>,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(bytes) = bytes else { return null("bytes") };
    let Some(facts) = link.link.l3_interface(interface as usize) else { return no_l3_interface(interface) };
    let Some(own) = facts.addresses.get(number as usize) else {
        let count = facts.addresses.len();
        return fail(Code::Argument, format_args!("there is no address {number} of {count}"));
    };
    if let Some(prefix) = prefix {
        *prefix = own.len.into();
    }
    *bytes = [0; 16];
    match own.ip {
        IpAddr::V4(ip) => {
            bytes[..4].copy_from_slice(&ip.octets());
            4
        }
        IpAddr::V6(ip) => {
            *bytes = ip.octets();
            6
        }
    }
}

fn no_l3_interface(interface: u32) -> c_int {
    fail(
        Code::Argument,
        format_args!("behind interface {interface} is no port or device with `addresses` in the chain file"),
    )
}
