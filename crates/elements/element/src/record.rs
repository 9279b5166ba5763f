//! Records of a fixed size for tables that programs read.
//!
//! A record's handle is its address as a number, as machine code needs it ([`ir::Table`]). Handles are valid
//! until the next record is added: tables add and remove records only between bursts, and a program looks its
//! handles up again in each burst. The memory consists of cells, so that machine code may also write to it
//! while this structure is alive.
//!
//! A record is a whole number of 8-byte words; its bytes are little-endian numbers. No code here reads
//! through an address: a handle is converted to an index and checked, so an invalid handle reads as zero.

use std::cell::Cell;

/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// Records of one size.
#[derive(Debug)]
pub struct Records {
    words: Vec<Cell<u64>>,
    words_per_record: usize,
    free: Vec<u32>,
}

impl Records {
    /// No records, of that many bytes each, rounded up to whole words.
    pub fn new(record_bytes: usize) -> Records {
        let words_per_record = record_bytes.div_ceil(WORD_BYTES).max(1);
        Records { words: vec![], words_per_record, free: vec![] }
    }

    /// A record of zeros; its number.
    pub fn add(&mut self) -> u32 {
        if let Some(number) = self.free.pop() {
            self.record(number).iter().for_each(|word| word.set(0));
            return number;
        }
        let number = self.words.len() / self.words_per_record;
        self.words.extend((0..self.words_per_record).map(|_| Cell::new(0)));
        number as u32
    }

    /// Removes a record; a later one gets its number.
    pub fn remove(&mut self, number: u32) {
        debug_assert!(!self.free.contains(&number), "record {number} is removed twice");
        self.free.push(number);
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.words.clear();
        self.free.clear();
    }

    fn record(&self, number: u32) -> &[Cell<u64>] {
        let at = number as usize * self.words_per_record;
        self.words.get(at..at + self.words_per_record).unwrap_or_default()
    }

    /// Address of the first record, and the distance between records in bytes: the handle of record
    /// `n` is the first plus `n` times the second.
    #[inline]
    pub fn layout(&self) -> (u64, u64) {
        let base = self.words.as_ptr().expose_provenance() as u64;
        (base, (self.words_per_record * WORD_BYTES) as u64)
    }

    /// The handle of a record.
    #[inline]
    pub fn address(&self, number: u32) -> u64 {
        let (base, distance) = self.layout();
        base + u64::from(number) * distance
    }

    /// Index of the byte at an offset of a record.
    fn byte(&self, record: u64, offset: u16) -> usize {
        let (base, _) = self.layout();
        usize::try_from(record.wrapping_sub(base)).unwrap_or(usize::MAX).saturating_add(usize::from(offset))
    }

    /// Reads a little-endian number of up to 8 bytes; 0 outside of all records.
    pub fn load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        let from = self.byte(record, offset);
        let byte = |at: usize| match self.words.get(at / WORD_BYTES) {
            Some(word) => word.get().to_ne_bytes()[at % WORD_BYTES],
            None => 0,
        };
        (0..usize::from(bytes.min(8))).rev().fold(0, |acc, at| acc << 8 | u64::from(byte(from + at)))
    }

    /// Writes a little-endian number of up to 8 bytes; writes nothing outside of all records.
    pub fn store(&self, record: u64, offset: u16, bytes: u8, value: u64) {
        let from = self.byte(record, offset);
        for (at, byte) in value.to_le_bytes().into_iter().take(usize::from(bytes)).enumerate() {
            let Some(word) = self.words.get(from.saturating_add(at) / WORD_BYTES) else { return };
            let mut whole = word.get().to_ne_bytes();
            whole[(from + at) % WORD_BYTES] = byte;
            word.set(u64::from_ne_bytes(whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_what_is_stored_and_neighbours_keep_theirs() {
        let mut records = Records::new(12);
        let (a, b) = (records.add(), records.add());
        let (a_at, b_at) = (records.address(a), records.address(b));
        assert_eq!(b_at - a_at, 16);
        records.store(a_at, 4, 8, 0x1122_3344_5566_7788);
        records.store(b_at, 0, 2, 0xfffff);
        assert_eq!(records.load(a_at, 4, 8), 0x1122_3344_5566_7788);
        assert_eq!(records.load(a_at, 5, 2), 0x6677);
        assert_eq!((records.load(a_at, 0, 4), records.load(b_at, 0, 4)), (0, 0xffff));
    }

    #[test]
    fn a_handle_outside_of_all_records_reads_as_zero() {
        let mut records = Records::new(8);
        let first = records.add();
        let at = records.address(first);
        records.store(at, 0, 8, u64::MAX);
        records.store(at + 8, 0, 8, 1);
        records.store(0, 0, 8, 1);
        assert_eq!(
            (records.load(at + 8, 0, 8), records.load(0, 0, 8), records.load(at - 1, 0, 1)),
            (0, 0, 0)
        );
        assert_eq!(records.load(at, 0, 8), u64::MAX);
    }

    #[test]
    fn a_removed_record_is_handed_out_again_as_zeros() {
        let mut records = Records::new(8);
        let first = records.add();
        records.store(records.address(first), 0, 8, 7);
        records.remove(first);
        assert_eq!(records.add(), first);
        assert_eq!(records.load(records.address(first), 0, 8), 0);
        records.clear();
        assert_eq!(records.load(records.address(0), 0, 8), 0);
    }
}
