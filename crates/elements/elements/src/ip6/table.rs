//! IPv6 routes, and the lookup that programs do.
//!
//! As in [`crate::route::table`]; a record is 24 bytes: the gateway's halves and the output.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::address::halves;
use super::line::{Hop, Network};
use crate::route::hops::{Hops, Next};
use element::record::Records;
use ir::{CacheValidity, Created, Lasting, Table, TableSize};
use std::net::Ipv6Addr;
use table::TableError;
use table::lpm::{Lpm6, MISS};

/// Offset of the gateway's high half in a record.
pub const HIGH: u16 = 0;
/// Offset of the low half.
pub const LOW: u16 = 8;
/// Offset of the output.
pub const PORT: u16 = 16;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

impl Next for Hop {
    const BYTES: usize = RECORD_BYTES;

    fn store(&self, records: &Records, record: u64) {
        let (high, low) = halves(self.gateway);
        records.store(record, HIGH, 8, high);
        records.store(record, LOW, 8, low);
        records.store(record, PORT, 4, u64::from(self.port));
    }
}

/// Routes.
#[derive(Debug)]
pub struct Routes {
    trie: Lpm6,
    hops: Hops<Hop>,
    changes: u64,
}

impl Routes {
    /// No routes.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn new() -> Result<Routes, TableError> {
        Ok(Routes { trie: Lpm6::new()?, hops: Hops::default(), changes: 0 })
    }

    /// Where exactly that network's route leads to.
    pub fn exact(&self, network: Network) -> Option<Hop> {
        self.trie.get_exact(network.0, network.1).map(|number| self.hops.get(number))
    }

    /// Adds a route, or replaces the one for that network.
    ///
    /// # Errors
    /// When memory is short.
    pub fn set(&mut self, network: Network, hop: Hop) -> Result<(), TableError> {
        self.changes += 1;
        let number = self.hops.take(hop);
        match self.trie.insert(network.0, network.1, number) {
            Ok(replaced) => {
                replaced.into_iter().for_each(|number| self.hops.release(number));
                Ok(())
            }
            Err(error) => {
                self.hops.release(number);
                Err(error)
            }
        }
    }

    /// Removes the route of a network; where it led to.
    pub fn remove(&mut self, network: Network) -> Option<Hop> {
        let number = self.trie.remove(network.0, network.1)?;
        self.changes += 1;
        let hop = self.hops.get(number);
        self.hops.release(number);
        Some(hop)
    }

    /// The routes in the order of their prefixes, one a line.
    pub fn dump(&self) -> String {
        let lines: Vec<String> = self
            .trie
            .iter()
            .map(|(network, len, number)| {
                let Hop { gateway, port } = self.hops.get(number);
                format!("{}/{len}\t{gateway}\t{port}", Ipv6Addr::from(network))
            })
            .collect();
        lines.join("\n")
    }
}

fn address(key: &[u64]) -> Option<u128> {
    let [high, low, ..] = key else { return None };
    Some(u128::from(*high) << 64 | u128::from(*low))
}

// SAFETY: handles are addresses in `Records`, whose words are `Cell`s, initialised when a record is added.
// Numbers in the trie are those of records in use (`Hops`: a record is removed when no route leads to it).
// Records are added and removed by handlers and `configure`, which take `&mut self`, between bursts.
unsafe impl Table for Routes {
    fn key_words(&self) -> usize {
        2
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(RECORD_BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let number = self.trie.lookup(address(key)?)?;
        Some(self.hops.records().address(number))
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        let (first, distance) = self.hops.records().layout();
        let packet = |at: usize| usize::from(list[at]);
        self.trie.lookup_each(
            list.len(),
            |at| address(&keys[packet(at) * stride..]).unwrap_or(0),
            |at, number| {
                let found = first + u64::from(number) * distance;
                records[packet(at)] = if number == MISS { 0 } else { found };
            },
        );
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
        let how = "looked up for a burst at once".into();
        Some(TableSize { entries: self.trie.len() as u64, bytes, most: None, how })
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.hops.records().load(record, offset, bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.hops.records().store(record, offset, bytes, value);
    }
}
