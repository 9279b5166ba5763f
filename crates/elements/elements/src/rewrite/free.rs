//! The search for a free value in a range of ports or addresses.
//!
//! The flow table decides whether a value is free: flows to different remote ends may share a port. The
//! search probes the table from a random value on (RFC 6056, algorithm 1), or in order. That is fast until
//! nearly all values are used towards one remote end. Then it builds a bitmap of the values used there, a
//! piece with each new flow so that nothing pauses. With the bitmap a search takes a constant number of
//! steps.
//!
//! Ranges of more than 65,536 values (addresses) have no bitmap: [`PROBES_WIDE`] values are tried.

use super::flow::Key;
use std::collections::HashMap;
use table::Random;
use table::portpool::{PortOrder, PortPool, Preserve};

/// Ranges up to this size are always searched from end to end.
const SMALL: u32 = 64;
/// Probes before a remote end counts as crowded.
const PROBES: u32 = 32;
/// Probes in a range too wide for a bitmap.
const PROBES_WIDE: u32 = 4096;
/// Values checked with each new flow while a bitmap is built.
const SCAN_STEP: u32 = 1024;
/// Attempts with a bitmap: a mapping of another pattern may use a value that the bitmap has as free.
const RETRIES: usize = 16;

/// The values used towards one remote end.
struct Crowd {
    pool: PortPool,
    /// Values checked so far; the bitmap is complete once that is all of them.
    scanned: u32,
}

/// A range and the state of its search.
pub struct FreeSearch {
    first: u32,
    top: u32,
    sequential: bool,
    /// Offset after the last value that was taken.
    next: u32,
    crowds: HashMap<Key, Crowd>,
}

impl FreeSearch {
    /// The values `first` to `first + top`.
    pub fn new(first: u32, top: u32, sequential: bool) -> FreeSearch {
        FreeSearch { first, top, sequential, next: 0, crowds: HashMap::new() }
    }

    /// Whether a value lies in the range.
    pub fn holds(&self, value: u32) -> bool {
        value.wrapping_sub(self.first) <= self.top
    }

    /// Takes a value for which `is_free` holds: `same` if it lies in the range and is free.
    pub fn find(
        &mut self,
        same: Option<u32>,
        crowd: Key,
        random: &mut Random,
        is_free: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let found = match self.offset(same) {
            Some(offset) if is_free(self.first + offset) => Some(offset),
            _ => self.search(crowd, random, &is_free),
        }?;
        self.take(found, crowd);
        Some(self.first.wrapping_add(found))
    }

    /// Takes a value for which `suits` holds, if a few probes find one; `same` is tried first.
    pub fn probe(
        &mut self,
        same: Option<u32>,
        crowd: Key,
        random: &mut Random,
        suits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let first = self.first;
        let suits = |offset: &u32| suits(first.wrapping_add(*offset));
        let mut others = (0..PROBES.min(self.top.saturating_add(1))).map(self.turn(random));
        let found = self.offset(same).filter(suits).or_else(|| others.find(suits))?;
        self.take(found, crowd);
        Some(first.wrapping_add(found))
    }

    /// The offset of a value, if it lies in the range.
    fn offset(&self, value: Option<u32>) -> Option<u32> {
        value.map(|value| value.wrapping_sub(self.first)).filter(|offset| *offset <= self.top)
    }

    /// The offsets to probe, by number: in order from the next one, or from a random one.
    fn turn(&self, random: &mut Random) -> impl Fn(u32) -> u32 + use<> {
        let values = u64::from(self.top) + 1;
        let from = if self.sequential { self.next.min(self.top).into() } else { random.below(values) };
        move |count| ((from + u64::from(count)) % values) as u32
    }

    fn take(&mut self, found: u32, crowd: Key) {
        if let Some(crowd) = self.crowds.get_mut(&crowd) {
            crowd.pool.reserve(found as u16);
        }
        self.next = if found == self.top { 0 } else { found + 1 };
    }

    /// An offset whose value is free.
    fn search(&mut self, crowd: Key, random: &mut Random, is_free: &impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.first;
        let free = |offset: u32| is_free(first.wrapping_add(offset));
        if let Some(found) = self.search_crowd(crowd, &free) {
            return found;
        }
        let turn = self.turn(random);
        let limit = match self.top {
            top if top < SMALL => top + 1,
            top if top > u32::from(u16::MAX) => PROBES_WIDE,
            _ => PROBES,
        };
        if let Some(found) = (0..limit).map(&turn).find(|offset| free(*offset)) {
            return Some(found);
        }
        if limit == PROBES {
            self.start_crowd(crowd, random);
            // The bitmap is not complete yet: more probes.
            return (limit..limit + SCAN_STEP).map(turn).find(|offset| free(*offset));
        }
        None
    }

    /// Searches by bitmap; the outer `None` means that no bitmap is complete.
    fn search_crowd(&mut self, crowd: Key, free: &impl Fn(u32) -> bool) -> Option<Option<u32>> {
        let top = self.top;
        let crowd = self.crowds.get_mut(&crowd)?;
        if crowd.scanned <= top {
            let end = top.min(crowd.scanned + SCAN_STEP - 1);
            for offset in crowd.scanned..=end {
                if !free(offset) {
                    crowd.pool.reserve(offset as u16);
                }
            }
            crowd.scanned = end + 1;
            if crowd.scanned <= top {
                return None;
            }
        }
        let mut passed = vec![];
        let mut found = None;
        while found.is_none() && passed.len() < RETRIES {
            let Ok(offset) = crowd.pool.allocate(0, Preserve::Nothing) else { break };
            if free(u32::from(offset)) { found = Some(u32::from(offset)) } else { passed.push(offset) }
        }
        passed.into_iter().for_each(|offset| {
            crowd.pool.free(offset);
        });
        Some(found)
    }

    fn start_crowd(&mut self, crowd: Key, random: &mut Random) {
        let order =
            if self.sequential { PortOrder::Sequential } else { PortOrder::Random { seed: random.bits() } };
        if let Ok(pool) = PortPool::new(0, self.top as u16, order) {
            self.crowds.entry(crowd).or_insert(Crowd { pool, scanned: 0 });
        }
    }

    /// Returns a value.
    pub fn release(&mut self, value: u32, key: Key) {
        if self.crowds.is_empty() {
            return;
        }
        let offset = value.wrapping_sub(self.first);
        if let Some(crowd) = self.crowds.get_mut(&key)
            && offset <= self.top
        {
            crowd.pool.free(offset as u16);
            if crowd.scanned > self.top && crowd.pool.free_ports() > crowd.pool.len() / 2 {
                self.crowds.remove(&key);
            }
        }
    }
}
