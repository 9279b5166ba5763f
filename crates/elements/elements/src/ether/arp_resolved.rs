//! A worker's copy of the known neighbours, for the packet path.
//!
//! A record is 16 bytes: the first 8 bytes of the Ethernet header to the neighbour, and the time until which
//! the record may be used without a look into the shared table ([`super::neighbours`]). The copy may be a
//! millisecond old.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::header::EtherHeader;
use super::neighbours::{Known, Neighbours};
use ir::{CacheValidity, Created, Lasting, Table};
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// Offset of the Ethernet header's first bytes in a record.
pub(super) const FIRST_BYTES: u16 = 0;
/// Offset of the time in a record.
pub(super) const UNTIL_NS: u16 = 8;
/// Bytes of a record.
pub(super) const RECORD_BYTES: usize = 16;
/// Most neighbours in the copy; packets to others take the slow path.
const CAPACITY: u32 = 1 << 16;

/// The copy.
#[derive(Debug)]
pub(super) struct Resolved {
    table: FlowTable<1>,
    source: [u8; 6],
    seen: u64,
    /// How often a record was changed or removed.
    changes: u64,
}

impl Resolved {
    /// An empty copy for packets from `source`.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub(super) fn new(source: [u8; 6], seed: u64) -> Result<Resolved, TableError> {
        let config = FlowConfig {
            record_bytes: RECORD_BYTES,
            capacity: CAPACITY,
            initial_keys: 64,
            seed,
            ..FlowConfig::default()
        };
        Ok(Resolved { table: FlowTable::new(&config)?, source, seen: 0, changes: 0 })
    }

    /// Stores what is known of a neighbour, or removes its record.
    pub(super) fn set(&mut self, ip: u32, known: Option<Known>) {
        match known {
            Some(known) => self.learn(u64::from(ip), known),
            None => self.forget(u64::from(ip)),
        }
    }

    fn learn(&mut self, ip: u64, known: Known) {
        // A full table takes no more: packets to those neighbours take the slow path.
        let Ok((record, is_new)) = self.table.find_or_insert(&[ip]) else { return };
        let at = self.table.record_ptr(record) as u64;
        let header = EtherHeader { dst: known.mac, src: self.source, ethertype: 0 };
        let (front, until_ns) = (header.first_bytes(), known.until_ns);
        let stays =
            self.record_load(at, FIRST_BYTES, 8) == front && self.record_load(at, UNTIL_NS, 8) <= until_ns;
        // A cached record whose time only grew is used for too short, never for too long.
        self.changes += u64::from(!stays && !is_new);
        self.record_store(at, FIRST_BYTES, 8, front);
        self.record_store(at, UNTIL_NS, 8, until_ns);
    }

    fn forget(&mut self, ip: u64) {
        if let Some(record) = self.table.find(&[ip]) {
            self.changes += 1;
            self.table.remove(record);
        }
    }

    fn clear(&mut self) {
        self.changes += 1;
        self.table.clear();
    }

    /// Applies the changes of the shared table; takes its lock only if there are some.
    pub(super) fn refresh(&mut self, neighbours: &Neighbours, now_ns: u64, poll_ns: u64) {
        if neighbours.version() == self.seen {
            return;
        }
        self.seen = neighbours.changes_since(self.seen, now_ns, poll_ns, |change| match change {
            None => self.clear(),
            Some((ip, known)) => self.set(ip, known),
        });
    }
}

// Records are added and removed in `set` and `refresh`, between bursts or after the program's part of one;
// `create` makes none.
// SAFETY: handles are addresses in the flow table's own mapping, reached by a raw pointer. It is reserved
// whole with the table, does not move, and lives as long as the table; all its bytes are initialised. A key
// leads to the start of a record of `RECORD_BYTES`.
unsafe impl Table for Resolved {
    fn key_words(&self) -> usize {
        1
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(RECORD_BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        Some(self.table.find_address(&[*key.first()?])).filter(|record| *record != 0)
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        // Most packets of a burst go to the same router.
        let mut last: Option<(u64, u64)> = None;
        for &index in list {
            let key = keys.get(usize::from(index) * stride).copied().unwrap_or(0);
            let found = match last {
                Some((known, record)) if known == key => record,
                _ => self.lookup(&[key]).unwrap_or(0),
            };
            last = Some((key, found));
            if let Some(record) = records.get_mut(usize::from(index)) {
                *record = found;
            }
        }
    }

    fn create(&mut self, key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        self.lookup(key).map_or(Created::Refused, Created::Record)
    }

    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: false, changes: self.changes, gone: None })
    }

    fn lasting(&self, _record: u64, _offset: u16) -> Lasting {
        Lasting::Fixed
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.table.load(record, usize::from(offset), bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.table.store(record, usize::from(offset), bytes, value);
    }
}
