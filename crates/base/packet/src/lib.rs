//! Header views over one field table, bounded parsing, checksums and annotations.
//!
//! In the order in which a packet meets them: [`access`] reads bytes, [`field`] has the positions of header
//! fields, [`view`] has typed and checked headers, [`parse`] finds where headers start, [`flow`] has the keys
//! of flows, and [`checksum`] computes and updates checksums.
//!
//! This crate owns no packet memory and allocates nothing per packet. It panics on no input bytes: property
//! tests here and fuzzing (`fuzz/` at the root) check that.

pub mod access;
pub mod anno;
pub mod checksum;
pub mod error;
pub mod field;
pub mod flow;
pub mod interface_address;
pub mod mac_addr;
pub mod parse;
pub mod view;

pub use access::Access;
pub use error::{Error, Header};
pub use flow::FlowKey;
pub use interface_address::InterfaceAddress;
pub use mac_addr::MacAddr;
pub use parse::Layers;
