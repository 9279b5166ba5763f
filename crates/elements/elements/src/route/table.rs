//! Routes and next hops, and the lookup that programs do.
//!
//! The trie leads from a prefix to the number of a next hop. A record is 8 bytes: the gateway (0 when
//! there is none) and the output, 4 bytes each.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::hops::{Hops, Next};
use super::line::{Hop, Line, Shown};
use element::record::Records;
use ir::table::PrefixWalk;
use ir::{CacheValidity, Created, Lasting, Table, TableSize};
use std::hint::select_unpredictable;
use table::TableError;
use table::lpm::{Lpm4, MISS};

/// Offset of the gateway in a record.
pub const GATEWAY: u16 = 0;
/// Offset of the output in a record.
pub const PORT: u16 = 4;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 8;

/// Nodes up to which machine code walks the table packet by packet: they fit the second-level cache beside
/// the packets.
const WALKED_NODES: usize = 512;

/// Why a route could not be changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RouteError {
    #[error("conflict with existing route `{0}`")]
    Exists(String),
    #[error("route `{0}` not found")]
    NotFound(String),
    #[error("a route needs an output")]
    NoPort,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Next for Hop {
    const BYTES: usize = RECORD_BYTES;

    fn store(&self, records: &Records, record: u64) {
        records.store(record, GATEWAY, 4, u64::from(self.gateway));
        records.store(record, PORT, 4, u64::from(self.port));
    }
}

/// Routes.
#[derive(Debug)]
pub struct Routes {
    trie: Lpm4,
    hops: Hops<Hop>,
    changes: u64,
}

impl Routes {
    /// No routes.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn new() -> Result<Routes, RouteError> {
        Ok(Routes { trie: Lpm4::new()?, hops: Hops::default(), changes: 0 })
    }

    /// Adds a route, or with `replace` puts it in the place of the one that is there; gives that.
    ///
    /// # Errors
    /// When there is one and `replace` is false, or memory is short. Nothing is changed then.
    pub fn add(&mut self, line: &Line, replace: bool) -> Result<Option<Hop>, RouteError> {
        let hop = line.hop().ok_or(RouteError::NoPort)?;
        let old = self.exact(line.prefix, line.len);
        if let Some(old) = old.filter(|_| !replace) {
            return Err(RouteError::Exists(Shown(line.prefix, line.len, old).to_string()));
        }
        let number = self.hops.take(hop);
        match self.trie.insert(line.prefix, line.len, number) {
            Ok(replaced) => {
                self.changes += 1;
                replaced.into_iter().for_each(|number| self.hops.release(number));
                Ok(old)
            }
            Err(error) => {
                self.hops.release(number);
                Err(error.into())
            }
        }
    }

    /// Removes a route and gives where it led to. Gateway and output must be those of the route, or
    /// the output be left off.
    ///
    /// # Errors
    /// When there is no such route.
    pub fn remove(&mut self, line: &Line) -> Result<Hop, RouteError> {
        let found = self.exact(line.prefix, line.len);
        let hop = found.filter(|hop| line.hop().is_none_or(|wanted| wanted == *hop));
        let Some(hop) = hop else {
            let shown = Hop { gateway: line.gateway, port: line.port.unwrap_or(0) };
            let mut shown = Shown(line.prefix, line.len, shown).to_string();
            if line.port.is_none() {
                shown.truncate(shown.find(' ').unwrap_or(shown.len()));
            }
            return Err(RouteError::NotFound(shown));
        };
        if let Some(number) = self.trie.remove(line.prefix, line.len) {
            self.hops.release(number);
            self.changes += 1;
        }
        Ok(hop)
    }

    /// Removes all routes.
    ///
    /// # Errors
    /// When the system refuses the memory of an empty table; the routes stay then.
    pub fn flush(&mut self) -> Result<(), RouteError> {
        self.changes += 1;
        self.trie = Lpm4::new()?;
        self.hops.clear();
        Ok(())
    }

    /// Where an address goes.
    pub fn find(&self, address: u32) -> Option<Hop> {
        self.trie.lookup(address).map(|number| self.hops.get(number))
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.trie.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.trie.is_empty()
    }

    /// The routes in the order of their prefixes, one a line, in Click's columns.
    pub fn dump(&self) -> String {
        let lines = self.trie.iter().map(|(prefix, len, number)| {
            let mut line = Shown(prefix, len, self.hops.get(number)).columns();
            line.push('\n');
            line
        });
        let mut text: String = lines.collect();
        text.pop();
        text
    }

    fn exact(&self, prefix: u32, len: u8) -> Option<Hop> {
        self.trie.get_exact(prefix, len).map(|number| self.hops.get(number))
    }
}

// SAFETY: handles are addresses in `Records`, whose words are `Cell`s, initialised when a record is added.
// Numbers in the trie are those of records in use (`Hops`: a record is removed when no route leads to it).
// Records are added and removed by handlers and `configure`, which take `&mut self`, between bursts.
// A walk gives the trie's own layout and record 0, at the distance that a program's declaration says:
// `RECORD_BYTES` is a whole number of words.
unsafe impl Table for Routes {
    fn key_words(&self) -> usize {
        1
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(RECORD_BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let number = self.trie.lookup(*key.first()? as u32)?;
        Some(self.hops.records().address(number))
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        let (first, distance) = self.hops.records().layout();
        let packet = |at: usize| usize::from(list[at]);
        self.trie.lookup_each(
            list.len(),
            |at| keys[packet(at) * stride] as u32,
            |at, number| {
                let found = first + u64::from(number) * distance;
                records[packet(at)] = select_unpredictable(number == MISS, 0, found);
            },
        );
    }

    fn walk(&self) -> Option<PrefixWalk> {
        let layout = self.trie.layout();
        (self.trie.nodes() <= WALKED_NODES).then(|| PrefixWalk {
            root: layout.root as u64,
            entries: layout.entries as u64,
            above: layout.above as u64,
            records: self.hops.records().layout().0,
        })
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { ns: u64::MAX, misses: true, changes: self.changes, gone: None })
    }

    fn lasting(&self, _offset: u16) -> Lasting {
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
