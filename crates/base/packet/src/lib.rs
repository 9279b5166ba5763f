//! Header views over one field table, bounded parsing, checksums and annotations.
//!
//! The order of the modules is the order in which a packet meets them: [`access`] is how bytes are
//! read, [`field`] says where header fields lie, [`view`] gives headers types and checks, [`parse`]
//! finds where headers begin, [`flow`] names the flow, [`checksum`] keeps sums right.
//!
//! This crate owns no packet memory and allocates nothing per packet. Whatever bytes it is given, it
//! does not panic: that is tested by properties here and by fuzzing (`fuzz/` at the root).

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
