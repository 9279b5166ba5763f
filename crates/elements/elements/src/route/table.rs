//! Routes, and their lookup by programs.
//!
//! The trie maps a prefix to the number of a next hop. A record is 8 bytes: the gateway (0 without one) and
//! the output, 4 bytes each.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::hops::{Hops, Next};
use super::line::{Hop, Line, Shown};
use element::record::Records;
use ir::table::{PrefixRecord, PrefixWalk};
use ir::{CacheValidity, Created, Lasting, Table, TableSize};
use std::hint::select_unpredictable;
use table::TableError;
use table::lpm::{Lpm, MISS};

/// Offset of the gateway in a record.
pub const GATEWAY: u16 = 0;
/// Offset of the output in a record.
pub const PORT: u16 = 4;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 8;

/// Most nodes of a table that machine code walks packet by packet: they fit into the second-level cache
/// beside the packets.
const WALKED_NODES: usize = 512;

/// Why a route could not be changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RouteError {
    #[error("conflict with existing route '{0}'")]
    Exists(String),
    #[error("route `{0}` not found")]
    NotFound(String),
    #[error("a route needs an output")]
    NoPort,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Next for Hop {
    type Address = u32;
    const KEY_WORDS: usize = 1;
    const BYTES: usize = RECORD_BYTES;

    #[inline(always)]
    fn address(keys: &[u64], at: usize) -> u32 {
        keys[at] as u32
    }

    fn store(&self, records: &Records, record: u64) {
        records.store(record, GATEWAY, 4, u64::from(self.gateway));
        records.store(record, PORT, 4, u64::from(self.port));
    }
}

/// Routes of a family of addresses.
#[derive(Debug)]
pub struct Routes<H: Next> {
    trie: Lpm<H::Address>,
    hops: Hops<H>,
    changes: u64,
}

impl<H: Next> Routes<H> {
    /// No routes.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn new() -> Result<Routes<H>, TableError> {
        Ok(Routes { trie: Lpm::new()?, hops: Hops::default(), changes: 0 })
    }

    /// The next hop of exactly that prefix.
    pub fn exact(&self, prefix: H::Address, len: u8) -> Option<H> {
        self.trie.get_exact(prefix, len).map(|number| self.hops.get(number))
    }

    /// Adds a route, or replaces the one for that prefix.
    ///
    /// # Errors
    /// When memory is short. Nothing is changed then.
    pub fn set(&mut self, prefix: H::Address, len: u8, hop: H) -> Result<(), TableError> {
        let number = self.hops.take(hop);
        let unused = match self.trie.insert(prefix, len, number) {
            Ok(replaced) => {
                self.changes += 1;
                replaced
            }
            Err(error) => {
                self.hops.release(number);
                return Err(error);
            }
        };
        unused.into_iter().for_each(|number| self.hops.release(number));
        Ok(())
    }

    /// Removes the route of a prefix; returns its next hop.
    pub fn clear(&mut self, prefix: H::Address, len: u8) -> Option<H> {
        let number = self.trie.remove(prefix, len)?;
        self.changes += 1;
        let hop = self.hops.get(number);
        self.hops.release(number);
        Some(hop)
    }

    /// Removes all routes.
    ///
    /// # Errors
    /// When the system refuses the memory of an empty table; the routes stay then.
    pub fn flush(&mut self) -> Result<(), TableError> {
        self.changes += 1;
        self.trie = Lpm::new()?;
        self.hops.clear();
        Ok(())
    }

    /// The next hop of an address.
    pub fn find(&self, address: H::Address) -> Option<H> {
        self.trie.lookup(address).map(|number| self.hops.get(number))
    }

    /// The routes in the order of their prefixes, each as `show` writes it, one a line.
    pub fn dump(&self, show: impl Fn(H::Address, u8, H) -> String) -> String {
        let lines = self.trie.iter().map(|(prefix, len, number)| show(prefix, len, self.hops.get(number)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Routes<Hop> {
    /// Adds a route; with `replace` it may replace another, whose next hop is returned.
    ///
    /// # Errors
    /// When there is one and `replace` is false, or memory is short. Nothing is changed then.
    pub fn add(&mut self, line: &Line, replace: bool) -> Result<Option<Hop>, RouteError> {
        let hop = line.hop().ok_or(RouteError::NoPort)?;
        let old = self.exact(line.prefix, line.len);
        if let Some(old) = old.filter(|_| !replace) {
            return Err(RouteError::Exists(Shown(line.prefix, line.len, old).to_string()));
        }
        self.set(line.prefix, line.len, hop)?;
        Ok(old)
    }

    /// Removes a route; returns its next hop. Gateway and output must be those of the route, unless the
    /// output is left off.
    ///
    /// # Errors
    /// When there is no such route.
    pub fn remove(&mut self, line: &Line) -> Result<Hop, RouteError> {
        let found = self.exact(line.prefix, line.len);
        if found.is_some_and(|hop| line.hop().is_none_or(|wanted| wanted == hop))
            && let Some(hop) = self.clear(line.prefix, line.len)
        {
            return Ok(hop);
        }
        let shown = Hop { gateway: line.gateway, port: line.port.unwrap_or(0) };
        let mut shown = Shown(line.prefix, line.len, shown).to_string();
        if line.port.is_none() {
            shown.truncate(shown.find(' ').unwrap_or(shown.len()));
        }
        Err(RouteError::NotFound(shown))
    }
}

// Numbers in the trie are those of records in use (`Hops`: a record is removed when no route leads to it).
// Records are added and removed by handlers and `configure`, which take `&mut self`, between bursts.
// SAFETY: handles are addresses in `Records`, whose words are `Cell`s, initialised when a record is added. A
// walk has the trie's own layout and record 0; `Records` keeps records as far apart as `H::BYTES`, rounded up
// to words.
unsafe impl<H: Next> Table for Routes<H> {
    fn key_words(&self) -> usize {
        H::KEY_WORDS
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(H::BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let is_whole = key.len() >= H::KEY_WORDS;
        let number = is_whole.then(|| self.trie.lookup(H::address(key, 0)))??;
        Some(self.hops.records().address(number))
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        let (first, distance) = self.hops.records().layout();
        let packet = |at: usize| usize::from(list[at]);
        self.trie.lookup_each(
            list.len(),
            |at| H::address(keys, packet(at) * stride),
            |at, number| {
                let found = first + u64::from(number) * distance;
                records[packet(at)] = select_unpredictable(number == MISS, 0, found);
            },
        );
    }

    fn walk(&self) -> Option<PrefixWalk> {
        let layout = self.trie.layout().filter(|_| self.trie.nodes() <= WALKED_NODES)?;
        Some(PrefixWalk {
            root: layout.root as u64,
            entries: layout.entries as u64,
            above: layout.above as u64,
            records: self.hops.records().layout().0,
        })
    }

    fn prefixes(&self, most: usize) -> Option<Vec<PrefixRecord>> {
        // Only tables of IPv4 prefixes can be walked.
        self.walk().filter(|_| self.trie.len() <= most)?;
        let of = |(prefix, len, number): (H::Address, u8, u32)| {
            let prefix = u32::try_from(Into::<u128>::into(prefix)).ok()?;
            Some(PrefixRecord { prefix, len, record: self.hops.records().address(number) })
        };
        self.trie.iter().map(of).collect()
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: true, changes: self.changes, gone: None })
    }

    fn lasting(&self, _record: u64, _offset: u16) -> Lasting {
        Lasting::Fixed
    }

    fn size(&self) -> Option<TableSize> {
        let bytes = self.trie.lookup_bytes() as u64;
        let how = if self.walk().is_some() { "walked in place" } else { "looked up for a burst at once" };
        Some(TableSize { entries: self.trie.len() as u64, bytes, most: None, how: how.into() })
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.hops.records().load(record, offset, bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.hops.records().store(record, offset, bytes, value);
    }
}
