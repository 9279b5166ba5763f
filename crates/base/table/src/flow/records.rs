//! Records and the list of keys of each.
//!
//! Record memory is one region reserved for the whole capacity, so an address is `base + line * 64` and
//! never changes. It contains none of the table's own data: the records in use, and the keys of each, are
//! in columns of their own that lookups never touch.

use crate::TableError;
use crate::memory::{Column, TableMemory};
use crate::prefetch::prefetch;
use std::num::NonZeroU32;

/// Number of a record in use. Numbers of removed records are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub(super) NonZeroU32);

impl RecordId {
    /// The number, from 1 to the table's capacity: an index for columns beside the table.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

/// Marks a head as a link of the free list; the rest is the next free record.
const FREE: u32 = 1 << 31;

/// Invariants: record 0 and key node 0 are never allocated (0 means none); `heads[i]` of a used record is
/// its first key node (never 0) and has no FREE bit; a record after `touched` was never used. The key
/// list of a record ends with its primary key (aliases are put in front).
#[derive(Debug)]
pub(super) struct Records<const W: usize> {
    memory: TableMemory,
    lines_per_record: u32,
    pub(super) capacity: u32,
    heads: Column<u32>,
    /// Highest record that was ever in use.
    pub(super) touched: u32,
    free: u32,
    pub(super) live: u32,
    /// Rows of W key words and one word of (next node << 32 | line).
    nodes: Column<u64>,
    max_keys: u32,
    nodes_touched: u32,
    free_node: u32,
    pub(super) keys: u32,
}

impl<const W: usize> Records<W> {
    pub(super) fn new(record_bytes: usize, capacity: u32, max_keys: u32) -> Result<Self, TableError> {
        let lines_per_record = u32::try_from(record_bytes / 64).unwrap_or(u32::MAX);
        let count = capacity as usize + 1;
        // Line numbers have 32 bits.
        let lines = count
            .checked_mul(lines_per_record as usize)
            .filter(|&lines| lines <= u32::MAX as usize)
            .ok_or(TableError::NoMemory { bytes: usize::MAX })?;
        let memory = TableMemory::zeroed(lines * 64)?;
        memory.advise_huge();
        Ok(Self {
            memory,
            lines_per_record,
            capacity,
            heads: Column::zeroed(count)?,
            touched: 0,
            free: 0,
            live: 0,
            nodes: Column::zeroed((max_keys as usize + 1) * (W + 1))?,
            max_keys,
            nodes_touched: 0,
            free_node: 0,
            keys: 0,
        })
    }

    pub(super) fn record_bytes(&self) -> usize {
        self.lines_per_record as usize * 64
    }

    #[inline(always)]
    pub(super) fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    /// Bytes of the memory of all records.
    #[inline(always)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Bytes of a record, with its share of the columns.
    pub(super) fn bytes_each(&self, keys: usize) -> usize {
        self.record_bytes() + size_of::<u32>() + keys * (W + 1) * size_of::<u64>()
    }

    /// Bytes that were ever in use.
    pub(super) fn bytes(&self) -> usize {
        self.touched as usize * self.bytes_each(0) + self.nodes_touched as usize * (W + 1) * size_of::<u64>()
    }

    /// Backs the memory of all records and of the columns.
    pub(super) fn touch_all(&mut self) {
        self.memory.touch_all();
        self.heads.region_mut().touch_all();
        self.nodes.region_mut().touch_all();
    }

    pub(super) fn first_line(&self, record: RecordId) -> u32 {
        record.0.get() * self.lines_per_record
    }

    pub(super) fn record_of_line(&self, line: u32) -> Option<RecordId> {
        NonZeroU32::new(line / self.lines_per_record).map(RecordId)
    }

    /// Address of a line; it is only valid for a line in the region.
    #[inline(always)]
    pub(super) fn address(&self, line: u32) -> *mut u8 {
        self.base().wrapping_add(line as usize * 64)
    }

    pub(super) fn is_live(&self, record: RecordId) -> bool {
        self.heads.get(record.0.get() as usize).is_some_and(|&head| head != 0 && head & FREE == 0)
    }

    /// The record with this number, if it is in use.
    pub(super) fn live_at(&self, number: u32) -> Option<RecordId> {
        NonZeroU32::new(number).map(RecordId).filter(|&record| self.is_live(record))
    }

    /// Takes a free record, which has no key yet: the caller must add one at once.
    pub(super) fn allocate(&mut self) -> Result<RecordId, TableError> {
        let full = TableError::RecordsFull { capacity: self.capacity };
        let number = if self.free != 0 {
            let number = self.free;
            self.free = self.heads[number as usize] & !FREE;
            number
        } else if self.touched < self.capacity {
            self.touched += 1;
            self.touched
        } else {
            return Err(full);
        };
        self.heads[number as usize] = 0;
        self.live += 1;
        NonZeroU32::new(number).map(RecordId).ok_or(full)
    }

    /// Frees a record without keys.
    pub(super) fn release(&mut self, record: RecordId) {
        self.heads[record.0.get() as usize] = FREE | self.free;
        self.free = record.0.get();
        self.live -= 1;
    }

    /// Records that `key` leads to `line` of `record`.
    pub(super) fn push_key(&mut self, record: RecordId, key: &[u64; W], line: u32) -> Result<(), TableError> {
        let node = if self.free_node != 0 {
            let node = self.free_node;
            self.free_node = self.link(node).0;
            node
        } else if self.nodes_touched < self.max_keys {
            self.nodes_touched += 1;
            self.nodes_touched
        } else {
            return Err(TableError::KeysFull { max_keys: self.max_keys });
        };
        let next = self.heads[record.0.get() as usize];
        let row = self.row(node);
        self.nodes[row..row + W].copy_from_slice(key);
        self.set_link(node, next, line);
        self.heads[record.0.get() as usize] = node;
        self.keys += 1;
        Ok(())
    }

    /// Removes the first key from a record's list: the last alias added, at the end the primary.
    pub(super) fn pop_key(&mut self, record: RecordId) -> Option<[u64; W]> {
        let node = self.heads[record.0.get() as usize];
        if node == 0 || node & FREE != 0 {
            return None;
        }
        let key = self.node_key(node);
        self.heads[record.0.get() as usize] = self.link(node).0;
        self.free_key(node);
        Some(key)
    }

    /// Removes an alias from a record's list. The primary key, last in the list, stays.
    pub(super) fn take_alias(&mut self, record: RecordId, key: &[u64; W]) -> bool {
        let mut before = 0;
        let mut node = self.heads[record.0.get() as usize];
        while node != 0 {
            let (next, _) = self.link(node);
            if next == 0 {
                return false;
            }
            if self.node_key(node) == *key {
                if before == 0 {
                    self.heads[record.0.get() as usize] = next;
                } else {
                    let (_, line) = self.link(before);
                    self.set_link(before, next, line);
                }
                self.free_key(node);
                return true;
            }
            before = node;
            node = next;
        }
        false
    }

    /// The keys of a record with the byte offset each leads to, aliases first, primary last.
    pub(super) fn keys_of(&self, record: RecordId) -> impl Iterator<Item = ([u64; W], usize)> {
        let first_line = self.first_line(record);
        let mut node = if self.is_live(record) { self.heads[record.0.get() as usize] } else { 0 };
        std::iter::from_fn(move || {
            if node == 0 {
                return None;
            }
            let (next, line) = self.link(node);
            let key = self.node_key(node);
            node = next;
            Some((key, (line - first_line) as usize * 64))
        })
    }

    /// Fetches a record's first two lines, and the head of its key list.
    #[inline]
    pub(super) fn fetch(&self, record: RecordId) {
        let line = self.first_line(record);
        prefetch(self.address(line));
        prefetch(self.address(line + 1));
        if let Some(head) = self.heads.get(record.0.get() as usize) {
            prefetch(head);
        }
    }

    /// The first key node of a record in use; 0 for others.
    pub(super) fn first_key(&self, record: RecordId) -> u32 {
        self.heads.get(record.0.get() as usize).copied().filter(|head| head & FREE == 0).unwrap_or(0)
    }

    /// The key node after another one; 0 at the end.
    pub(super) fn key_after(&self, node: u32) -> u32 {
        if node == 0 { 0 } else { self.link(node).0 }
    }

    /// Fetches a key node.
    pub(super) fn fetch_key(&self, node: u32) {
        if let Some(row) = self.nodes.get(self.row(node)) {
            prefetch(row);
        }
    }

    /// The key in a node; none in node 0.
    pub(super) fn key_at(&self, node: u32) -> Option<[u64; W]> {
        (node != 0).then(|| self.node_key(node))
    }

    fn free_key(&mut self, node: u32) {
        self.set_link(node, self.free_node, 0);
        self.free_node = node;
        self.keys -= 1;
    }

    fn row(&self, node: u32) -> usize {
        node as usize * (W + 1)
    }

    fn node_key(&self, node: u32) -> [u64; W] {
        let row = self.row(node);
        std::array::from_fn(|i| self.nodes[row + i])
    }

    fn link(&self, node: u32) -> (u32, u32) {
        let word = self.nodes[self.row(node) + W];
        ((word >> 32) as u32, word as u32)
    }

    fn set_link(&mut self, node: u32, next: u32, line: u32) {
        let at = self.row(node) + W;
        self.nodes[at] = u64::from(next) << 32 | u64::from(line);
    }
}
