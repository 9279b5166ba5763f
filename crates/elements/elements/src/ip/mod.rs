//! IPv4: checking, marking, changing and fragmenting, and its ICMP.
//!
//! Elements that check a header use [`complaint`] for bad packets; handlers read and write addresses with
//! [`value`].

use element::Class;

pub(crate) mod argument;
mod checkicmpheader;
mod checkipheader;
mod checklength;
mod checktransport;
mod combo;
pub(crate) mod complaint;
mod decipttl;
mod encap;
mod fixipsrc;
pub mod header;
mod icmperror;
mod icmpipencap;
pub mod icmpname;
mod ipaddress;
mod ipfragmenter;
mod ipgwoptions;
mod ipmirror;
mod ipreassembler;
mod markipheader;
mod setannobyte;
mod setipchecksum;
mod settransport;
mod storeipaddress;
pub(crate) mod tos;
pub(crate) mod value;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &checkicmpheader::CLASS,
    &checkipheader::CLASS,
    &checkipheader::CLASS2,
    &checklength::CLASS,
    &checktransport::TCP,
    &checktransport::UDP,
    &combo::INPUT,
    &combo::OUTPUT,
    &decipttl::CLASS,
    &encap::IP,
    &encap::UDP,
    &fixipsrc::CLASS,
    &icmperror::CLASS,
    &icmpipencap::CLASS,
    &icmpipencap::PING,
    &ipaddress::GET,
    &ipaddress::SET,
    &ipfragmenter::CLASS,
    &ipgwoptions::CLASS,
    &ipmirror::CLASS,
    &ipreassembler::CLASS,
    &markipheader::MARK,
    &markipheader::STRIP,
    &markipheader::UNSTRIP,
    &setannobyte::CLASS,
    &setipchecksum::RESET,
    &setipchecksum::SET,
    &settransport::TCP,
    &settransport::UDP,
    &storeipaddress::CLASS,
    &tos::CE,
    &tos::DSCP,
    &tos::ECN,
];

#[cfg(test)]
pub(crate) mod tests;
