//! Longest-prefix match for IPv4 and IPv6 routes.
//!
//! A multibit trie: a root indexed by the first 16 bits, then nodes of 256 entries for 8 bits each. An entry means "as
//! above" unless a longer prefix covers it, so a change touches the entries of one node (or the root) and no lower
//! node. An IPv4 lookup reads the root and one node; only addresses under prefixes longer than /24 read one node more.
//!
//! - Memory: 576 KiB for the root, 1.25 KiB for each node. A full IPv4 table takes 26 thousand nodes. DIR-24-8 needs as
//!   many reads but always 64 MiB or more for its first level; compressed tries are smaller and need more work per
//!   lookup and per update.
//! - Changes (insert, replace, remove) take microseconds; a default route 100 µs. Nodes are reserved address space that
//!   the system backs when it is touched, so the table does not pause to grow (below 2^18 nodes; each doubling above
//!   that copies the nodes once).
//! - Values are at most [`MAX_VALUE`]; a batched lookup writes [`MISS`] where nothing matches.
//!
//! Not here: the meaning of a value; sharing between cores (the core that owns the table makes a handler's change,
//! between bursts).
//! Figures: `cargo run --release -p millrace-table --example lookup_cycles`.

#[cfg(test)]
mod tests;
mod trie;

use crate::TableError;
pub use trie::MAX_VALUE;
use trie::Trie;

/// The result of a batched lookup for an address that no prefix covers.
pub const MISS: u32 = u32::MAX;

/// IPv4 addresses in flight at once. Also keeps the indices in the first-level cache.
const STAGE4: usize = 64;
/// IPv6 addresses that descend the trie together.
const STAGE6: usize = 32;

/// An address as a lookup key, as a number in host byte order.
pub trait Address: trie::Address {
    /// Whether machine code can walk a table of such addresses.
    const IS_WALKABLE: bool;

    /// Implements [`Lpm::lookup_each`].
    fn lookup_each(
        table: &Lpm<Self>,
        count: usize,
        address: impl Fn(usize) -> Self,
        found: impl FnMut(usize, u32),
    );
}

/// A table of routes for addresses of one family.
#[derive(Debug)]
pub struct Lpm<A> {
    trie: Trie<A>,
}

/// Routes of IPv4 addresses.
pub type Lpm4 = Lpm<u32>;
/// Routes of IPv6 addresses.
pub type Lpm6 = Lpm<u128>;

impl<A: Address> Lpm<A> {
    /// An empty table.
    ///
    /// # Errors
    ///
    /// [`TableError::NoMemory`] if the system refuses the address space.
    pub fn new() -> Result<Self, TableError> {
        Ok(Self { trie: Trie::new()? })
    }

    /// Makes `prefix/len` lead to `value`; returns the value it replaces. Bits of `prefix` after `len` are ignored.
    ///
    /// # Errors
    ///
    /// [`TableError::BadParameter`] if `len` exceeds the address or `value`
    /// [`MAX_VALUE`], [`TableError::NoMemory`].
    pub fn insert(&mut self, prefix: A, len: u8, value: u32) -> Result<Option<u32>, TableError> {
        self.trie.insert(prefix, len, value)
    }

    /// Removes exactly `prefix/len` and returns its value.
    pub fn remove(&mut self, prefix: A, len: u8) -> Option<u32> {
        self.trie.remove(prefix, len)
    }

    /// The value of exactly `prefix/len`.
    pub fn get_exact(&self, prefix: A, len: u8) -> Option<u32> {
        self.trie.get_exact(prefix, len)
    }

    /// Prefix, length and value of each route, by prefix and then length.
    pub fn iter(&self) -> impl Iterator<Item = (A, u8, u32)> {
        self.trie.iter()
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.trie.len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that lookups may read (the list of prefixes, kept for changes, is
    /// separate).
    pub fn lookup_bytes(&self) -> usize {
        self.trie.lookup_bytes()
    }

    /// The value of the longest prefix that covers an address.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u32> {
        match self.trie.lookup(address) {
            0 => None,
            code => Some(code - 1),
        }
    }

    /// Looks up each address and writes its value, or [`MISS`], to the same index.
    ///
    /// # Panics
    ///
    /// If `values` is shorter than `addresses`.
    #[inline]
    pub fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        self.lookup_each(addresses.len(), |i| addresses[i], |i, value| values[i] = value);
    }

    /// Looks up `addresses[i]` for each `i` in `list` and writes `values[i]`.
    ///
    /// # Panics
    ///
    /// If an index is outside `addresses` or `values`.
    #[inline]
    pub fn lookup_batch_list(&self, addresses: &[A], list: &[u16], values: &mut [u32]) {
        let place = |i: usize| usize::from(list[i]);
        self.lookup_each(list.len(), |i| addresses[place(i)], |i, value| values[place(i)] = value);
    }

    /// Looks up `address(i)` for each `i` below `count` and calls `found` with `i` and the value or
    /// [`MISS`].
    #[inline(always)]
    pub fn lookup_each(&self, count: usize, address: impl Fn(usize) -> A, found: impl FnMut(usize, u32)) {
        A::lookup_each(self, count, address, found);
    }

    /// Nodes of the table, 1 KiB each, including free ones.
    pub fn nodes(&self) -> usize {
        self.trie.nodes()
    }

    /// The addresses of the table, if machine code can walk it. Valid until a route is added or removed.
    pub fn layout(&self) -> Option<Layout4> {
        let [root, entries, above] = self.trie.addresses();
        A::IS_WALKABLE.then_some(Layout4 { root, entries, above })
    }
}

/// The table's memory, for machine code that walks it: a *code* is a value plus one, 0 for none.
///
/// The root has an entry of 8 bytes for each value of an address's first [`Layout4::ROOT_BITS`] bits: the
/// code so far in the low half, the number of a node in the high half. Node `n` has [`Layout4::FAN`] entries
/// of 4 bytes from entry `n * FAN` on, for the next 8 bits: 0 for the code so far, a code, or
/// [`Layout4::BELOW`] and the number of a node for the last 8 bits, whose entry in `above` (4 bytes each) is
/// then the code so far where it is not 0. Node 0 is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout4 {
    /// Address of the root.
    pub root: usize,
    /// Address of the nodes' entries.
    pub entries: usize,
    /// Address of `above`.
    pub above: usize,
}

impl Layout4 {
    /// Bits that select an entry of the root.
    pub const ROOT_BITS: u32 = trie::ROOT_BITS;
    /// Entries of a node.
    pub const FAN: usize = trie::FAN;
    /// Marks an entry that is the number of a node.
    pub const BELOW: u32 = trie::BELOW;
}

impl Address for u32 {
    const IS_WALKABLE: bool = true;

    /// Reads the root for a whole stage before any node, so that the nodes' cache lines are fetched together.
    #[inline(always)]
    fn lookup_each(
        table: &Lpm4,
        count: usize,
        address: impl Fn(usize) -> u32,
        mut found: impl FnMut(usize, u32),
    ) {
        let mut steps = [trie::Step::default(); STAGE4];
        let mut start = 0;
        while start < count {
            let here = (count - start).min(STAGE4);
            for (i, step) in steps[..here].iter_mut().enumerate() {
                *step = table.trie.step_root(address(start + i));
            }
            for (i, step) in steps[..here].iter().enumerate() {
                let code = table.trie.finish4(*step, || address(start + i));
                found(start + i, code.wrapping_sub(1));
            }
            start += here;
        }
    }
}

impl Address for u128 {
    const IS_WALKABLE: bool = false;

    /// The addresses of a stage descend level by level together; finished ones are removed from the list.
    #[inline(always)]
    fn lookup_each(
        table: &Lpm6,
        count: usize,
        address: impl Fn(usize) -> u128,
        mut found: impl FnMut(usize, u32),
    ) {
        let mut steps = [trie::Step::default(); STAGE6];
        let mut walking = [0u8; STAGE6];
        let mut start = 0;
        while start < count {
            let here = (count - start).min(STAGE6);
            for (i, step) in steps[..here].iter_mut().enumerate() {
                *step = table.trie.step_root(address(start + i));
                walking[i] = i as u8;
            }
            let mut left = here;
            // Prefixes of 128 bits end on the last level, so this ends with the address.
            let mut done = 16;
            while left > 0 {
                let mut kept = 0;
                for at in 0..left {
                    let i = walking[at];
                    let step = &mut steps[usize::from(i)];
                    let more = table.trie.step_down(step, address(start + usize::from(i)), done);
                    walking[kept] = i;
                    kept += usize::from(more);
                }
                left = kept;
                done += 8;
            }
            for (i, step) in steps[..here].iter().enumerate() {
                found(start + i, step.code().wrapping_sub(1));
            }
            start += here;
        }
    }
}
