//! The mappings as a program's table.
//!
//! Mappings have a lock, because `ICMPRewriter` reads them; both elements run on one worker, so that the lock
//! is always free. It is taken once for the lookups of a burst, and once for each new flow.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::flow::{ADDRESSES, Kind, LINE_BYTES, at};
use super::mappings::{Mappings, Others};
use ir::{CacheValidity, Created, FoundEarlier, HeldRecord, Holder, Lasting, Room, Table, TableSize};
use shm::burst::LIST_CAPACITY;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mappings of a rewriter on one worker, which several of its elements see; none until the rewriter is
/// made.
#[derive(Clone, Default)]
pub struct SharedMappings(pub Arc<Mutex<Option<Mappings>>>);

impl SharedMappings {
    fn lock(&self) -> MutexGuard<'_, Option<Mappings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the mappings; `None` while there are none.
    pub fn with<T>(&self, what: impl FnOnce(&mut Mappings) -> T) -> Option<T> {
        self.lock().as_mut().map(what)
    }
}

impl SharedMappings {
    fn find_or_make(&mut self, key: &[u64], args: &[u64], now_ns: u64, others: Others) -> Created {
        let created = read_key(key).and_then(|key| {
            self.with(|mappings| {
                mappings.others = others;
                let found = mappings.find_or_make(key, args, now_ns);
                debug_assert!(found == 0 || has_right_delta(mappings, key, found), "{key:?}");
                match found {
                    0 if mappings.take_waits() => Created::Wait,
                    0 => Created::Refused,
                    found => Created::Record(found),
                }
            })
        });
        created.unwrap_or(Created::Refused)
    }
}

fn read_key(words: &[u64]) -> Option<[u64; 2]> {
    words.get(..2)?.try_into().ok()
}

// The mappings are inserted once, before the first packet. The table belongs to one worker; the mutex
// excludes `ICMPRewriter` on the same worker.
// SAFETY: handles are addresses in the flow table's own mapping, reached by a raw pointer: it is reserved
// whole with the table, does not move, and lives as long as the table; all its bytes are initialised. A key
// leads to the first or the second line of a record of two (`flow::RECORD_BYTES`): `LINE_BYTES` follow each.
unsafe impl Table for SharedMappings {
    fn key_words(&self) -> usize {
        2
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(LINE_BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let key = read_key(key)?;
        let found = self.with(|mappings| mappings.flows.find_address(&key))?;
        (found != 0).then_some(found)
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        let looked_up = self.with(|mappings| {
            mappings.flows.lookup_batch_strided(keys, stride, list, records);
            match mappings.settings.kind {
                Kind::Address => fetch_replies(mappings, keys, stride, list, records),
                Kind::Ports => fetch_new(mappings, keys, stride, list, records),
                _ => {}
            }
        });
        if looked_up.is_none() {
            // The slots may hold records of another table.
            list.iter().for_each(|index| records[usize::from(*index)] = 0);
        }
    }

    fn create(&mut self, key: &[u64], args: &[u64], now_ns: u64) -> Created {
        self.find_or_make(key, args, now_ns, Others::Nobody)
    }

    fn create_behind(
        &mut self,
        key: &[u64],
        args: &[u64],
        now_ns: u64,
        earlier: FoundEarlier<'_>,
    ) -> Created {
        let others = if earlier.may_wait { Others::MayWaitFor } else { Others::Unknown };
        self.with(|mappings| mappings.note_in_use(earlier.found()));
        let created = self.find_or_make(key, args, now_ns, others);
        self.with(|mappings| mappings.in_use.clear());
        created
    }

    fn take_replaced(&mut self) -> Option<[u64; 2]> {
        self.with(|mappings| mappings.replaced.take()).flatten()
    }

    fn room(&self) -> Option<Room> {
        self.with(|mappings| mappings.room())
    }

    fn may_end_others(&self, by: Option<u64>) -> Option<bool> {
        self.with(|mappings| mappings.may_take_reply_keys(by)).unwrap_or(Some(true))
    }

    fn note_merged(&mut self, is_merged: bool) {
        self.with(|mappings| mappings.is_merged = is_merged);
    }

    fn cache_validity(&self) -> Option<CacheValidity> {
        self.with(|mappings| mappings.cache_validity())
    }

    fn lasting(&self, record: u64, offset: u16) -> Lasting {
        self.with(|mappings| mappings.lasting(record, offset)).unwrap_or(Lasting::Moving)
    }

    fn take_gone(&mut self, gone: &mut Vec<HeldRecord>) {
        self.with(|mappings| mappings.held.take_gone(gone));
    }

    fn hold(&mut self, record: u64, by: Holder) {
        self.with(|mappings| mappings.hold_line(record, by));
    }

    fn holder(&self, record: u64) -> Holder {
        self.with(|mappings| mappings.holder(record)).unwrap_or_default()
    }

    fn take_asked(&mut self, asked: &mut Vec<HeldRecord>) {
        self.with(|mappings| mappings.held.take_asked(asked));
    }

    fn settle(&mut self, record: u64, is_held: bool) {
        self.with(|mappings| mappings.settle_line(record, is_held));
    }

    fn size(&self) -> Option<TableSize> {
        self.with(|mappings| {
            let flows = &mappings.flows;
            let limit = mappings.budget.limit.load(std::sync::atomic::Ordering::Relaxed) as usize;
            let most = (flows.capacity() - super::mappings::SLACK as usize).min(limit);
            // A mapping has a key for each direction; some wait to be removed.
            let full = flows.bytes_for(most + super::mappings::SLACK as usize, 2);
            TableSize {
                entries: flows.len() as u64,
                bytes: flows.bytes() as u64,
                most: Some((most as u64, full as u64)),
                how: "grows as flows come".into(),
            }
        })
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.with(|mappings| mappings.flows.load(record, usize::from(offset), bytes)).unwrap_or(0)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.with(|mappings| mappings.flows.store(record, usize::from(offset), bytes, value));
    }
}

/// Whether [`ADDRESSES`] holds for a key and its line.
fn has_right_delta(mappings: &Mappings, key: [u64; 2], line: u64) -> bool {
    let load = |at: u16, bytes: u8| mappings.flows.load(line, usize::from(at), bytes);
    let number = ADDRESSES.number(key[usize::from(ADDRESSES.key)], load(ADDRESSES.to, 8));
    mappings.settings.kind == Kind::Address || load(ADDRESSES.at, 2) == u64::from(number)
}

/// Prefetches the cache lines of replies. A packet whose source has no mapping may be a reply, whose
/// destination has one. [`Mappings::find_or_make`] decides that packet by packet, since an earlier packet of
/// the burst may make a mapping for the source.
fn fetch_replies(mappings: &Mappings, keys: &[u64], stride: usize, list: &[u16], records: &[u64]) {
    let mut wanted = [[0u64; 2]; LIST_CAPACITY];
    let mut count = 0;
    for &index in list {
        let dst = keys.get(usize::from(index) * stride + 3);
        if let (Some(&dst), Some(0), Some(place)) =
            (dst, records.get(usize::from(index)), wanted.get_mut(count))
        {
            let reply = super::flow::FlowId { dst: dst as u32, ..Default::default() };
            *place = Kind::Address.key(reply, 0, true);
            count += 1;
        }
    }
    let mut order = [0u16; LIST_CAPACITY];
    order.iter_mut().enumerate().for_each(|(at, place)| *place = at as u16);
    let mut found = [0u64; LIST_CAPACITY];
    mappings.flows.lookup_batch(&wanted, order.get(..count).unwrap_or_default(), &mut found);
}

/// Prefetches the index entries of replies to flows that get a mapping next, if they keep their port.
fn fetch_new(mappings: &Mappings, keys: &[u64], stride: usize, list: &[u16], records: &[u64]) {
    let mut missed = list.iter().map(|index| usize::from(*index)).filter(|at| records.get(*at) == Some(&0));
    let Some(first) = missed.next() else { return };
    let Some(pattern) = mappings.inputs.iter().find_map(|input| input.spec.pattern()) else { return };
    let Ok(pattern) = pattern.lock() else { return };
    for at in std::iter::once(first).chain(missed) {
        let Some(key) = keys.get(at * stride..).and_then(read_key) else { continue };
        let (flow, protocol, _) = Kind::Ports.read(key);
        if let Some(to) = pattern.first_choice(flow) {
            mappings.flows.fetch_place(&Kind::Ports.key(to.reversed(), protocol, true));
        }
    }
}

const _: () = assert!(at::HOLDERS + 6 <= super::flow::LINE_BYTES as u16);
