//! The table of routes: a trie, and the list of prefixes that it is built from.

use crate::TableError;
use crate::memory::Column;
use crate::prefetch::prefetch;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hint::select_unpredictable;

/// The largest value of a prefix.
pub const MAX_VALUE: u32 = (1 << 31) - 2;

pub(super) const ROOT_BITS: u32 = 16;
const ROOT_ENTRIES: usize = 1 << ROOT_BITS;
pub(super) const FAN: usize = 256;

/// Marks a node's entry as the number of a lower node.
pub(super) const BELOW: u32 = 1 << 31;

/// Nodes reserved at the start. Reserving costs nothing where the system backs pages when they are
/// touched.
const FIRST_NODES: usize = if cfg!(all(target_os = "linux", not(miri))) { 1 << 18 } else { 64 };

/// The number of nodes from which huge pages are requested: below it, they would outweigh the table.
const HUGE_FROM_NODES: usize = 1024;

/// The parts of an address that the trie uses.
pub trait Address: Copy + Ord + Debug {
    const BITS: u32;
    /// Whether machine code can walk a table of such addresses.
    const IS_WALKABLE: bool;
    /// The first `len` bits, the rest zero.
    fn prefix(self, len: u8) -> Self;
    fn root(self) -> usize;
    /// The 8 bits after the first `done`.
    fn byte(self, done: u32) -> usize;
}

macro_rules! address {
    ($type:ty, $is_walkable:literal) => {
        impl Address for $type {
            const BITS: u32 = <$type>::BITS;
            const IS_WALKABLE: bool = $is_walkable;
            fn prefix(self, len: u8) -> Self {
                self & !<$type>::MAX.checked_shr(u32::from(len)).unwrap_or(0)
            }
            #[inline(always)]
            fn root(self) -> usize {
                (self >> (Self::BITS - ROOT_BITS)) as usize
            }
            #[inline(always)]
            fn byte(self, done: u32) -> usize {
                (self >> (Self::BITS - 8 - done)) as usize & (FAN - 1)
            }
        }
    };
}
address!(u32, true);
address!(u128, false);

/// A lookup in progress: the code of the best value so far, and the next entry to read.
#[derive(Clone, Copy, Default)]
pub(super) struct Step {
    pub(super) code: u32,
    /// Entry to read, for IPv4; node, for IPv6.
    next: u32,
}

/// The location of a run of entries.
#[derive(Clone, Copy)]
enum EntryPlace {
    Root,
    Node(u32),
}

// A *code* is a value plus one, 0 for none. Invariants:
//
// - `root[i]` is the code of the longest prefix of up to 16 bits that covers `i` (low half) and the
//   number of the lower node (high half), 0 for none: node 0 stays all zero, so lookups need no branch;
// - a node's entry is 0 ("as above"), the code of the longest prefix *of this level* that covers it, or
//   `BELOW` and a node, whose `above` then is that code;
// - `depths` are the lengths of the codes' prefixes, meaningless for code 0;
// - `uses[n]` counts the prefixes and nodes directly in node `n`; no node has 0.
/// A table of routes for addresses of one family.
#[derive(Debug)]
pub struct Lpm<A> {
    root: Box<[u64; ROOT_ENTRIES]>,
    root_depths: Box<[u8; ROOT_ENTRIES]>,
    entries: Column<u32>,
    depths: Column<u8>,
    above: Vec<u32>,
    uses: Vec<u32>,
    free: Vec<u32>,
    routes: BTreeMap<(A, u8), u32>,
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
    pub const ROOT_BITS: u32 = ROOT_BITS;
    /// Entries of a node.
    pub const FAN: usize = FAN;
    /// Marks an entry that is the number of a node.
    pub const BELOW: u32 = BELOW;
}

impl<A: Address> Lpm<A> {
    /// An empty table.
    ///
    /// # Errors
    ///
    /// [`TableError::NoMemory`] if the system refuses the address space.
    pub fn new() -> Result<Self, TableError> {
        let no_memory = || TableError::NoMemory { bytes: ROOT_ENTRIES * 9 };
        let root = vec![0; ROOT_ENTRIES].into_boxed_slice();
        let root_depths = vec![0; ROOT_ENTRIES].into_boxed_slice();
        Ok(Self {
            root: root.try_into().map_err(|_| no_memory())?,
            root_depths: root_depths.try_into().map_err(|_| no_memory())?,
            entries: Column::zeroed(FIRST_NODES * FAN)?,
            depths: Column::zeroed(FIRST_NODES * FAN)?,
            above: vec![0],
            uses: vec![0],
            free: Vec::new(),
            routes: BTreeMap::new(),
        })
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefix, length and value of each route, by prefix and then length.
    pub fn iter(&self) -> impl Iterator<Item = (A, u8, u32)> {
        self.routes.iter().map(|(&(prefix, len), &value)| (prefix, len, value))
    }

    /// Nodes of the table, 1 KiB each, including free ones.
    pub fn nodes(&self) -> usize {
        self.above.len()
    }

    /// The addresses of the table, if machine code can walk it. Valid until a route is added or removed.
    pub fn layout(&self) -> Option<Layout4> {
        A::IS_WALKABLE.then(|| Layout4 {
            root: self.root.as_ptr().expose_provenance(),
            entries: self.entries.as_ptr().expose_provenance(),
            above: self.above.as_ptr().expose_provenance(),
        })
    }

    /// Bytes that lookups may read (the list of prefixes, kept for changes, is
    /// separate).
    pub fn lookup_bytes(&self) -> usize {
        size_of_val(&*self.root) + self.above.len() * (FAN * size_of::<u32>() + size_of::<u32>())
    }

    /// The value of exactly `prefix/len`.
    pub fn get_exact(&self, prefix: A, len: u8) -> Option<u32> {
        if u32::from(len) > A::BITS {
            return None;
        }
        self.routes.get(&(prefix.prefix(len), len)).copied()
    }

    /// Makes `prefix/len` lead to `value`; returns the value it replaces. Bits of `prefix` after `len` are
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`TableError::BadParameter`] if `len` exceeds the address or `value`
    /// [`MAX_VALUE`], [`TableError::NoMemory`].
    pub fn insert(&mut self, prefix: A, len: u8, value: u32) -> Result<Option<u32>, TableError> {
        if u32::from(len) > A::BITS {
            return Err(TableError::bad("prefix length", len, "0 to the bits of the address"));
        }
        if value > MAX_VALUE {
            return Err(TableError::bad("value", value, "0 to 2^31 - 2"));
        }
        let prefix = prefix.prefix(len);
        let known = self.routes.contains_key(&(prefix, len));
        let place = self.place_for(prefix, len)?;
        if let EntryPlace::Node(node) = place
            && !known
        {
            self.uses[node as usize] += 1;
        }
        self.paint(place, prefix, len, |code, depth| (code == 0 || depth <= len).then_some((value + 1, len)));
        Ok(self.routes.insert((prefix, len), value))
    }

    /// Removes exactly `prefix/len` and returns its value.
    pub fn remove(&mut self, prefix: A, len: u8) -> Option<u32> {
        if u32::from(len) > A::BITS {
            return None;
        }
        let prefix = prefix.prefix(len);
        let value = self.routes.remove(&(prefix, len))?;
        // The next shorter prefix of the same level replaces it; prefixes of upper levels apply where
        // there is none.
        let (first, _) = level(len);
        let heir = (first..len).rev().find_map(|shorter| {
            let value = self.routes.get(&(prefix.prefix(shorter), shorter))?;
            Some((value + 1, shorter))
        });
        let path = self.path(prefix, len);
        let place = path.last().map_or(EntryPlace::Root, |&node| EntryPlace::Node(node));
        self.paint(place, prefix, len, |code, depth| {
            (code != 0 && depth == len).then_some(heir.unwrap_or((0, 0)))
        });
        self.release(prefix, &path);
        Some(value)
    }

    /// The nodes on the path to the level of a prefix in the trie.
    fn path(&self, prefix: A, len: u8) -> Vec<u32> {
        let (_, levels) = level(len);
        let mut path = Vec::with_capacity(levels as usize);
        let mut node = (self.root[prefix.root()] >> 32) as u32;
        for depth in 0..levels {
            path.push(node);
            if depth + 1 < levels {
                let entry = self.entries[slot(node, prefix.byte(ROOT_BITS + depth * 8))];
                node = entry & !BELOW;
            }
        }
        path
    }

    /// Removes one use from the last node of a path, and frees nodes without uses.
    fn release(&mut self, prefix: A, path: &[u32]) {
        for (depth, &node) in path.iter().enumerate().rev() {
            self.uses[node as usize] -= 1;
            if self.uses[node as usize] > 0 {
                return;
            }
            let above = std::mem::take(&mut self.above[node as usize]);
            if depth == 0 {
                self.root[prefix.root()] &= u64::from(u32::MAX);
            } else {
                let byte = prefix.byte(ROOT_BITS + (depth as u32 - 1) * 8);
                self.entries[slot(path[depth - 1], byte)] = above;
            }
            self.free.push(node);
        }
    }

    /// Descends to the level of a prefix and creates the missing nodes.
    fn place_for(&mut self, prefix: A, len: u8) -> Result<EntryPlace, TableError> {
        let (_, levels) = level(len);
        if levels == 0 {
            return Ok(EntryPlace::Root);
        }
        // Reserved before any node is created, so that a refusal leaves no empty node.
        self.reserve(levels as usize)?;
        let at = prefix.root();
        let mut node = (self.root[at] >> 32) as u32;
        if node == 0 {
            node = self.make_node(0);
            self.root[at] |= u64::from(node) << 32;
        }
        for depth in 1..levels {
            let at = slot(node, prefix.byte(ROOT_BITS + (depth - 1) * 8));
            let entry = self.entries[at];
            if entry & BELOW == 0 {
                let below = self.make_node(entry);
                self.entries[at] = BELOW | below;
                self.uses[node as usize] += 1;
                node = below;
            } else {
                node = entry & !BELOW;
            }
        }
        Ok(EntryPlace::Node(node))
    }

    /// Makes sure that `count` nodes can be created.
    fn reserve(&mut self, count: usize) -> Result<(), TableError> {
        let needed = self.above.len() + count.saturating_sub(self.free.len());
        if needed * FAN > self.entries.len() {
            let len = self.entries.len() * 2;
            self.entries.grow(len)?;
            self.depths.grow(len)?;
        }
        Ok(())
    }

    /// A node of zeroes under an entry with this code. Its memory was reserved.
    fn make_node(&mut self, above: u32) -> u32 {
        if let Some(node) = self.free.pop() {
            self.above[node as usize] = above;
            return node;
        }
        let node = self.above.len();
        if node == HUGE_FROM_NODES {
            self.entries.region_mut().advise_huge();
        }
        self.above.push(above);
        self.uses.push(0);
        node as u32
    }

    /// Replaces the code and depth of each entry under a prefix by those that `paint` returns for them.
    fn paint(&mut self, place: EntryPlace, prefix: A, len: u8, paint: impl Fn(u32, u8) -> Option<(u32, u8)>) {
        let (_, levels) = level(len);
        let span = 1usize << (ROOT_BITS + levels * 8 - u32::from(len));
        match place {
            EntryPlace::Root => {
                for at in prefix.root()..prefix.root() + span {
                    let entry = self.root[at];
                    if let Some((code, depth)) = paint(entry as u32, self.root_depths[at]) {
                        self.root[at] = entry >> 32 << 32 | u64::from(code);
                        self.root_depths[at] = depth;
                    }
                }
            }
            EntryPlace::Node(node) => {
                let start = slot(node, prefix.byte(ROOT_BITS + (levels - 1) * 8));
                for at in start..start + span {
                    let entry = self.entries[at];
                    let code = if entry & BELOW == 0 {
                        &mut self.entries[at]
                    } else {
                        &mut self.above[(entry & !BELOW) as usize]
                    };
                    if let Some((new, depth)) = paint(*code, self.depths[at]) {
                        *code = new;
                        self.depths[at] = depth;
                    }
                }
            }
        }
    }

    /// The value of the longest prefix that covers an address.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u32> {
        let root = self.root[address.root()];
        let (mut code, mut node) = (root as u32, (root >> 32) as u32);
        let mut done = ROOT_BITS;
        while node != 0 {
            let entry = self.entries[slot(node, address.byte(done))];
            (code, node) = self.step(code, entry);
            done += 8;
        }
        code.checked_sub(1)
    }

    /// The code after an entry, and the lower node or 0.
    #[inline(always)]
    fn step(&self, code: u32, entry: u32) -> (u32, u32) {
        if entry & BELOW == 0 {
            (select_unpredictable(entry == 0, code, entry), 0)
        } else {
            let node = entry & !BELOW;
            let above = self.above[node as usize];
            (select_unpredictable(above == 0, code, above), node)
        }
    }
}

#[cfg(test)]
impl<A: Address> Lpm<A> {
    /// Without prefixes no node may be in use, and all entries must be 0.
    pub(super) fn assert_empty(&self) {
        assert!(self.root.iter().all(|&entry| entry == 0));
        assert_eq!(self.free.len() + 1, self.above.len());
        assert!(self.entries[..self.above.len() * FAN].iter().all(|&entry| entry == 0));
        assert!(self.uses.iter().all(|&uses| uses == 0));
    }

    /// Replaces the memory by room for so few nodes that a test can exceed it.
    pub(super) fn shrink_reserve_for_test(&mut self, nodes: usize) {
        self.entries = Column::zeroed(nodes * FAN).expect("memory");
        self.depths = Column::zeroed(nodes * FAN).expect("memory");
    }
}

impl Lpm<u32> {
    /// Reads the root and fetches the entry of the lower node (of node 0 if there is none).
    #[inline(always)]
    pub(super) fn step_root(&self, address: u32) -> Step {
        let root = self.root[address.root()];
        let next = slot((root >> 32) as u32, address.byte(ROOT_BITS));
        prefetch(self.entries.as_ptr().wrapping_add(next));
        Step { code: root as u32, next: next as u32 }
    }

    /// Reads that entry, and the lower node if a prefix is longer than /24.
    #[inline(always)]
    pub(super) fn finish4(&self, step: Step, address: impl Fn() -> u32) -> u32 {
        let entry = self.entries[step.next as usize];
        if entry & BELOW == 0 {
            return select_unpredictable(entry == 0, step.code, entry);
        }
        let (code, node) = self.step(step.code, entry);
        self.step(code, self.entries[slot(node, address().byte(ROOT_BITS + 8))]).0
    }
}

impl Lpm<u128> {
    /// Reads the root and fetches the entry of the lower node.
    #[inline(always)]
    pub(super) fn step_root(&self, address: u128) -> Step {
        let root = self.root[address.root()];
        let next = (root >> 32) as u32;
        prefetch(self.entries.as_ptr().wrapping_add(slot(next, address.byte(ROOT_BITS))));
        Step { code: root as u32, next }
    }

    /// Reads the entry of the 8 bits after the first `done`; true if there is a lower node, whose entry
    /// is then being fetched.
    #[inline(always)]
    pub(super) fn step_down(&self, step: &mut Step, address: u128, done: u32) -> bool {
        let entry = self.entries[slot(step.next, address.byte(done))];
        (step.code, step.next) = self.step(step.code, entry);
        if step.next != 0 {
            let at = slot(step.next, address.byte(done + 8));
            prefetch(self.entries.as_ptr().wrapping_add(at));
        }
        step.next != 0
    }
}

/// The shortest length on the level of `len`, and the number of nodes on the path to it.
fn level(len: u8) -> (u8, u32) {
    if u32::from(len) <= ROOT_BITS {
        (0, 0)
    } else {
        let levels = (u32::from(len) - ROOT_BITS).div_ceil(8);
        ((ROOT_BITS + (levels - 1) * 8 + 1) as u8, levels)
    }
}

#[inline(always)]
fn slot(node: u32, byte: usize) -> usize {
    node as usize * FAN + byte
}
