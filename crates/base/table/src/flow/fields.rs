//! Reading and writing records by address without `unsafe`: for handlers, ageing and interpreters.
//! Machine code uses the address itself.
//!
//! Every access is checked to be inside the records' memory. It is not checked to be inside a record in
//! use: a stale address reads the current content.
#![expect(unsafe_code, reason = "reads and writes record memory at checked addresses")]

use super::FlowTable;

impl<const W: usize> FlowTable<W> {
    /// The address of `bytes` bytes at `address + offset`, if they are inside the records' memory.
    fn place(&self, address: u64, offset: usize, bytes: usize) -> Option<*mut u8> {
        let base = self.records.base();
        let from = usize::try_from(address.checked_sub(base as u64)?).ok()?.checked_add(offset)?;
        let end = from.checked_add(bytes)?;
        (bytes <= 8 && end <= self.records.memory_bytes()).then(|| base.wrapping_add(from))
    }

    /// Reads a little-endian number of up to 8 bytes, `offset` bytes after an address that a lookup
    /// returned; 0 outside the records' memory.
    #[inline]
    pub fn load(&self, address: u64, offset: usize, bytes: u8) -> u64 {
        let count = usize::from(bytes);
        let Some(from) = self.place(address, offset, count) else { return 0 };
        let mut raw = [0; 8];
        // SAFETY: `place` checked that `count` bytes, at most 8, lie in the records' memory, which is
        // initialised; machine code that writes it runs on the core that owns the table.
        unsafe { from.copy_to_nonoverlapping(raw.as_mut_ptr(), count) };
        u64::from_le_bytes(raw)
    }

    /// Writes such a number; does nothing outside the records' memory.
    #[inline]
    pub fn store(&mut self, address: u64, offset: usize, bytes: u8, value: u64) {
        let count = usize::from(bytes);
        let Some(to) = self.place(address, offset, count) else { return };
        // SAFETY: as in `load`; `&mut self` keeps other users of the table away.
        unsafe { to.copy_from_nonoverlapping(value.to_le_bytes().as_ptr(), count) };
    }

    /// As [`FlowTable::lookup_batch`] for keys that begin every `stride_words` words of `keys`; the words
    /// between them are ignored.
    ///
    /// # Panics
    ///
    /// If an index in `list` is outside `keys` or `out`.
    #[inline]
    pub fn lookup_batch_strided(&self, keys: &[u64], stride_words: usize, list: &[u16], out: &mut [u64]) {
        let places = if keys.len() < W { 0 } else { (keys.len() - W) / stride_words.max(1) + 1 };
        let len = places.min(out.len());
        let highest = list.iter().copied().max();
        assert!(highest.is_none_or(|i| usize::from(i) < len), "list points outside keys or out");
        // SAFETY: each index is below the number of keys that lie in `keys` at this stride, and below
        // the length of `out`.
        unsafe {
            self.lookup_batch_raw(keys.as_ptr().cast(), stride_words * 8, list, out.as_mut_ptr());
        }
    }
}
