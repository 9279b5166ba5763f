//! A flow table whose key width is known when a configuration is loaded, not when this is built.
//!
//! One match per call (per batch, for lookups) picks the code made for the width.
#![expect(unsafe_code, reason = "passes the caller's addresses on")]

use super::{FlowConfig, FlowTable, RecordId};
use crate::TableError;

/// A [`FlowTable`] of any width from 1 to 5 words. Methods are those of [`FlowTable`], with keys
/// as slices.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants are the widths")]
pub enum AnyFlowTable {
    W1(FlowTable<1>),
    W2(FlowTable<2>),
    W3(FlowTable<3>),
    W4(FlowTable<4>),
    W5(FlowTable<5>),
}

macro_rules! each_width {
    ($self:expr, $table:ident => $body:expr) => {
        match $self {
            AnyFlowTable::W1($table) => $body,
            AnyFlowTable::W2($table) => $body,
            AnyFlowTable::W3($table) => $body,
            AnyFlowTable::W4($table) => $body,
            AnyFlowTable::W5($table) => $body,
        }
    };
}

fn sized<const W: usize>(key: &[u64]) -> Result<&[u64; W], TableError> {
    key.try_into().map_err(|_| TableError::BadParameter {
        what: "words in the key",
        value: key.len() as u64,
        allowed: "the table's key width",
    })
}

impl AnyFlowTable {
    /// Builds an empty table for keys of `key_words` words.
    ///
    /// # Errors
    ///
    /// As [`FlowTable::new`], and for a width outside 1 to 5.
    pub fn new(key_words: usize, config: &FlowConfig) -> Result<Self, TableError> {
        Ok(match key_words {
            1 => Self::W1(FlowTable::new(config)?),
            2 => Self::W2(FlowTable::new(config)?),
            3 => Self::W3(FlowTable::new(config)?),
            4 => Self::W4(FlowTable::new(config)?),
            5 => Self::W5(FlowTable::new(config)?),
            _ => {
                return Err(TableError::BadParameter {
                    what: "key_words",
                    value: key_words as u64,
                    allowed: "1 to 5 words",
                });
            }
        })
    }

    /// Words in a key.
    pub fn key_words(&self) -> usize {
        match self {
            Self::W1(_) => 1,
            Self::W2(_) => 2,
            Self::W3(_) => 3,
            Self::W4(_) => 4,
            Self::W5(_) => 5,
        }
    }

    /// Records in use.
    pub fn len(&self) -> usize {
        each_width!(self, table => table.len())
    }

    /// Whether no record is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys in the table, primary and alias.
    pub fn keys(&self) -> usize {
        each_width!(self, table => table.keys())
    }

    /// Records the table may hold.
    pub fn capacity(&self) -> usize {
        each_width!(self, table => table.capacity())
    }

    /// Bytes of one record.
    pub fn record_bytes(&self) -> usize {
        each_width!(self, table => table.record_bytes())
    }

    /// See [`FlowTable::record_ptr`].
    #[inline]
    pub fn record_ptr(&self, record: RecordId) -> *mut u8 {
        each_width!(self, table => table.record_ptr(record))
    }

    /// See [`FlowTable::record_at`].
    pub fn record_at(&self, address: u64) -> Option<RecordId> {
        each_width!(self, table => table.record_at(address))
    }

    /// Whether the record is in use.
    pub fn is_live(&self, record: RecordId) -> bool {
        each_width!(self, table => table.is_live(record))
    }

    /// The records in use, in no order that means anything. Allocates: for handlers.
    pub fn record_ids(&self) -> Vec<RecordId> {
        each_width!(self, table => table.iter().collect())
    }

    /// The keys of a record, see [`FlowTable::keys_of`]. Allocates: for handlers.
    pub fn keys_of(&self, record: RecordId) -> Vec<(Vec<u64>, usize)> {
        each_width!(self, table => {
            table.keys_of(record).map(|(key, offset)| (key.to_vec(), offset)).collect()
        })
    }

    /// The record a key leads to; none for a key of another width.
    pub fn find(&self, key: &[u64]) -> Option<RecordId> {
        each_width!(self, table => table.find(sized(key).ok()?))
    }

    /// See [`FlowTable::find_address`]; 0 for a key of another width.
    pub fn find_address(&self, key: &[u64]) -> u64 {
        each_width!(self, table => sized(key).map_or(0, |key| table.find_address(key)))
    }

    /// See [`FlowTable::insert`].
    ///
    /// # Errors
    ///
    /// As there, and for a key of another width.
    pub fn insert(&mut self, key: &[u64]) -> Result<RecordId, TableError> {
        each_width!(self, table => table.insert(sized(key)?))
    }

    /// See [`FlowTable::find_or_insert`].
    ///
    /// # Errors
    ///
    /// As there, and for a key of another width.
    pub fn find_or_insert(&mut self, key: &[u64]) -> Result<(RecordId, bool), TableError> {
        each_width!(self, table => table.find_or_insert(sized(key)?))
    }

    /// See [`FlowTable::insert_alias`].
    ///
    /// # Errors
    ///
    /// As there, and for a key of another width.
    pub fn insert_alias(
        &mut self,
        record: RecordId,
        key: &[u64],
        offset_bytes: usize,
    ) -> Result<(), TableError> {
        each_width!(self, table => table.insert_alias(record, sized(key)?, offset_bytes))
    }

    /// See [`FlowTable::remove_alias`].
    pub fn remove_alias(&mut self, record: RecordId, key: &[u64]) -> bool {
        each_width!(self, table => {
            sized(key).is_ok_and(|key| table.remove_alias(record, key))
        })
    }

    /// See [`FlowTable::remove`].
    pub fn remove(&mut self, record: RecordId) -> bool {
        each_width!(self, table => table.remove(record))
    }

    /// See [`FlowTable::clear`].
    pub fn clear(&mut self) {
        each_width!(self, table => table.clear());
    }

    /// See [`FlowTable::maintain`].
    pub fn maintain(&mut self) {
        each_width!(self, table => table.maintain());
    }

    /// See [`FlowTable::expire`].
    pub fn expire(
        &mut self,
        now_ns: u64,
        budget: usize,
        expiry_ns: impl FnMut(*mut u8) -> Option<u64>,
        expired: impl FnMut(RecordId, *mut u8),
    ) -> usize {
        each_width!(self, table => table.expire(now_ns, budget, expiry_ns, expired))
    }

    /// See [`FlowTable::oldest`].
    pub fn oldest(&mut self, sample: usize, age_key: impl FnMut(*mut u8) -> u64) -> Option<RecordId> {
        each_width!(self, table => table.oldest(sample, age_key))
    }

    /// See [`FlowTable::lookup_batch_raw`]; a key has [`Self::key_words`] words.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub unsafe fn lookup_batch_raw(&self, keys: *const u8, stride: usize, list: &[u16], out: *mut u64) {
        // SAFETY: passed on to the caller.
        each_width!(self, table => unsafe { table.lookup_batch_raw(keys, stride, list, out) });
    }
}
