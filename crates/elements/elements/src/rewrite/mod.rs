//! Address and port translation: `IPRewriter` and related classes.
//!
//! - [`flow`]: flow identities, keys and the record of a mapping
//! - [`model`]: the request of a new flow; [`pattern`], [`free`], [`endpoint`]: what the flow becomes
//! - [`reader`], [`mapper`], [`named`], [`input`]: specifications, read from arguments
//! - [`timeouts`], [`mappings`], [`store`], [`ageing`], [`standing`], [`eviction`], [`show`], [`table`]: the mappings of a
//!   rewriter on one worker; [`targets`]: whether two flows may become the same
//! - [`program`]: the program that rewrites packets
//! - [`flavor`], [`rewriter`], [`class`], [`page`]: the rewriter elements
//! - [`icmp`]: errors about translated packets; [`ftp_port_mapper`]: FTP commands that name a port; [`sequence`]:
//!   sequence numbers behind commands of another length, which `adjusted` changes
//!
//! State is per worker; no two workers share any. The worker that has a mapping claims its replies in
//! [`element::steering`], which brings them there.

use element::class::Class;

mod adjusted;
mod ageing;
mod cache_validity;
mod class;
mod endpoint;
mod eviction;
mod flavor;
mod flow;
mod free;
mod ftp_port_mapper;
mod held_lines;
mod icmp;
mod input;
mod mapper;
mod mappings;
mod model;
mod named;
mod page;
mod pattern;
mod program;
mod reader;
mod rewriter;
mod sequence;
mod show;
mod standing;
mod store;
mod table;
mod targets;
mod timeouts;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &class::IP_REWRITER,
    &class::TCP_REWRITER,
    &class::UDP_REWRITER,
    &class::ADDRESS_REWRITER,
    &class::PAIR_REWRITER,
    &class::PING_REWRITER,
    &ftp_port_mapper::CLASS,
    &icmp::CLASS,
    &mapper::ROUND_ROBIN,
    &mapper::SOURCE_HASH,
    &named::CLASS,
];

#[cfg(test)]
mod tests;
