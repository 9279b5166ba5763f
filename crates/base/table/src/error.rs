//! The errors of building or changing a table. Lookups cannot fail.

/// Why a table could not be built or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Every record of a flow table is in use.
    #[error("flow table is full ({capacity} records); expire or evict one, or raise the capacity")]
    RecordsFull {
        /// Records the table may hold.
        capacity: u32,
    },
    /// Every key slot of a flow table is in use.
    #[error("flow table holds its limit of {max_keys} keys; remove one, or raise max_keys")]
    KeysFull {
        /// Keys (primary and alias) the table may hold.
        max_keys: u32,
    },
    /// The key is already in the table.
    #[error("key is already present; remove it first, or use find_or_insert")]
    KeyExists,
    /// The record is not in use.
    #[error("record {0} is not in use; its flow was removed or expired")]
    NoSuchRecord(u32),
    /// No port of a pool is free.
    #[error("ports {low}-{high} are exhausted; expire mappings, or add an external address")]
    PortsExhausted {
        /// First port of the pool.
        low: u16,
        /// Last port of the pool.
        high: u16,
    },
    /// A table parameter is outside what the structure supports.
    #[error("{what} = {value} is out of range ({allowed})")]
    BadParameter {
        /// The parameter's name.
        what: &'static str,
        /// The value.
        value: u64,
        /// The values that are accepted.
        allowed: &'static str,
    },
    /// The system refused memory.
    #[error("cannot reserve {bytes} bytes of memory; lower the table's capacity")]
    NoMemory {
        /// The requested bytes.
        bytes: usize,
    },
}

impl TableError {
    pub(crate) fn bad(what: &'static str, value: impl Into<u64>, allowed: &'static str) -> TableError {
        TableError::BadParameter { what, value: value.into(), allowed }
    }
}
