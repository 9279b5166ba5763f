//! Header views over one field table, checksums and annotations. See the modules.

pub mod anno;
pub mod field;
