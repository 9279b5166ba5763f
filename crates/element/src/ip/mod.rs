//! IPv4: checking, marking, changing, fragmenting, and the ICMP that goes with it.
//!
//! Elements that check a header sort bad packets with [`complaint`]; handlers read what is written to
//! them with [`value`].

use crate::class::Class;

mod argument;
mod checkipheader;
mod checklength;
mod complaint;
mod decipttl;
mod fixipsrc;
mod ipaddress;
mod ipmirror;
mod markipheader;
mod setannobyte;
mod setipchecksum;
mod storeipaddress;
mod tos;
mod value;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &checkipheader::CLASS,
    &checkipheader::CLASS2,
    &checklength::CLASS,
    &decipttl::CLASS,
    &fixipsrc::CLASS,
    &ipaddress::GET,
    &ipaddress::SET,
    &ipmirror::CLASS,
    &markipheader::MARK,
    &markipheader::STRIP,
    &setannobyte::CLASS,
    &setipchecksum::RESET,
    &setipchecksum::SET,
    &storeipaddress::CLASS,
    &tos::CE,
    &tos::DSCP,
    &tos::ECN,
];

#[cfg(test)]
mod tests;
