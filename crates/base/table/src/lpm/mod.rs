//! Longest-prefix match for IPv4 and IPv6 routes.
//!
//! A multibit trie: a root indexed by the first 16 bits, then nodes of 256 entries for 8 bits each. An entry
//! means "as above" unless a longer prefix covers it, so a change touches the entries of one node (or the
//! root) and no lower node. An IPv4 lookup reads the root and one node; only addresses under prefixes longer
//! than /24 read one node more.
//!
//! - Memory: 576 KiB for the root, 1.25 KiB for each node. A full IPv4 table takes 26 thousand nodes.
//!   DIR-24-8 needs as many reads but always 64 MiB or more for its first level; compressed tries are smaller
//!   and need more work per lookup and per update.
//! - Changes (insert, replace, remove) take microseconds; a default route 100 µs. Nodes are reserved address
//!   space that the system backs when it is touched, so the table does not pause to grow (below 2^18 nodes;
//!   each doubling above that copies the nodes once).
//! - Values are at most [`MAX_VALUE`]; a batched lookup writes [`MISS`] where nothing matches.
//!
//! Not here: the meaning of a value; sharing between cores (the core that owns the table makes a handler's
//! change, between bursts). Figures: `cargo run --release -p millrace-table --example lookup_cycles`.

#[cfg(test)]
mod tests;
mod trie;
mod union;

pub use trie::{Layout4, Lpm, MAX_VALUE};
pub use union::{Together, union};

/// The result of a batched lookup for an address that no prefix covers.
pub const MISS: u32 = u32::MAX;

/// IPv4 addresses in flight at once. Also keeps the indices in the first-level cache.
const STAGE4: usize = 64;
/// IPv6 addresses that descend the trie together.
const STAGE6: usize = 32;

/// An address as a lookup key, as a number in host byte order.
pub trait Address: trie::Address + Into<u128> {
    /// Implements [`Lpm::lookup_each`].
    fn lookup_each(
        table: &Lpm<Self>,
        count: usize,
        address: impl Fn(usize) -> Self,
        found: impl FnMut(usize, u32),
    );
}

/// Routes of IPv4 addresses.
pub type Lpm4 = Lpm<u32>;
/// Routes of IPv6 addresses.
pub type Lpm6 = Lpm<u128>;

impl<A: Address> Lpm<A> {
    /// Looks up each address and writes its value, or [`MISS`], to the same index.
    ///
    /// # Panics
    ///
    /// If `values` is shorter than `addresses`.
    #[inline]
    pub fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        self.lookup_each(addresses.len(), |i| addresses[i], |i, value| values[i] = value);
    }

    /// Looks up `address(i)` for each `i` below `count` and calls `found` with `i` and the value or
    /// [`MISS`].
    #[inline(always)]
    pub fn lookup_each(&self, count: usize, address: impl Fn(usize) -> A, found: impl FnMut(usize, u32)) {
        A::lookup_each(self, count, address, found);
    }
}

impl Address for u32 {
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
                *step = table.step_root(address(start + i));
            }
            for (i, step) in steps[..here].iter().enumerate() {
                let code = table.finish4(*step, || address(start + i));
                found(start + i, code.wrapping_sub(1));
            }
            start += here;
        }
    }
}

impl Address for u128 {
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
                *step = table.step_root(address(start + i));
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
                    let more = table.step_down(step, address(start + usize::from(i)), done);
                    walking[kept] = i;
                    kept += usize::from(more);
                }
                left = kept;
                done += 8;
            }
            for (i, step) in steps[..here].iter().enumerate() {
                found(start + i, step.code.wrapping_sub(1));
            }
            start += here;
        }
    }
}
