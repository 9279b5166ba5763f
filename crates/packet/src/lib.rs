//! Header views over one field table, checksums and annotations. See the modules.

pub mod access;
pub mod anno;
pub mod checksum;
pub mod field;

pub use access::Access;
