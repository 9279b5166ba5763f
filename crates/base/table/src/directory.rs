//! A directory, for all workers, of the worker that owns each key: one word for each key, no locks.
//!
//! A key is a 64-bit hash. An entry has its upper 48 bits, the worker's number, and a count of insertions.
//! Another key has the same bits about once in 2^44. Then a packet is sent to a worker that does not know its
//! flow, as without an entry. An entry is in the line that its hash selects or, if that is full, in a second
//! one. The first word of a line counts its entries in second lines, so that nearly always one line is
//! searched. Searches cover whole lines, so that removal needs no tombstones.

use crate::prefetch::prefetch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words of a cache line.
const LINE: usize = 8;
/// The maximum number of workers.
pub const MOST_WORKERS: usize = 255;
/// The bits of an entry with the worker's number, plus one.
const WORKER: u64 = 0xff;
/// One insertion, in the count.
const ONCE: u64 = 0x100;
/// The bits of the count. An entry whose count has reached its maximum is never removed.
const TIMES: u64 = 0xff00;

/// The word of a line that counts entries which are in second lines because it was full.
const MOVED: usize = 0;

/// A cache line: a count and seven entries.
pub type Line = [AtomicU64; LINE];

/// The workers that own keys, by hash.
#[derive(Debug)]
pub struct Directory {
    lines: OnceLock<Box<[Line]>>,
    line_count: usize,
    used: AtomicUsize,
    refused: AtomicUsize,
}

fn entry(hash: u64, worker: usize) -> u64 {
    hash & !(WORKER | TIMES) | ONCE | (worker as u64 + 1).min(WORKER)
}

fn is_of(word: u64, hash: u64) -> bool {
    word & WORKER != 0 && (word ^ hash) & !(WORKER | TIMES) == 0
}

impl Directory {
    /// A directory for about that many entries; the first may be refused a little earlier.
    pub fn new(entries: usize) -> Directory {
        Directory {
            lines: OnceLock::new(),
            line_count: (entries / (LINE - 1)).max(2),
            used: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether it has no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries that were refused for lack of room.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Prefetches the line that [`Directory::find`] will read first.
    #[inline]
    pub fn fetch(&self, hash: u64) {
        let line = self.lines.get().and_then(|lines| lines.get(self.places(hash)[0]));
        if let Some(line) = line {
            prefetch(line);
        }
    }

    /// The worker that owns the key with that hash.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<usize> {
        let lines = self.lines.get()?;
        let [first, second] = self.places(hash);
        let line = lines.get(first)?;
        if let Some(worker) = find_in(line, hash) {
            return Some(worker);
        }
        if line[MOVED].load(Ordering::Relaxed) == 0 {
            return None;
        }
        find_in(lines.get(second)?, hash)
    }

    /// The two lines of a hash, selected by its product with an odd constant.
    #[inline]
    fn places(&self, hash: u64) -> [usize; 2] {
        let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = |bits: u64| (((bits & 0xffff_ffff) * self.line_count as u64) >> 32) as usize;
        let (first, second) = (at(spread >> 32), at(spread));
        let next = if first + 1 == self.line_count { 0 } else { first + 1 };
        [first, if second == first { next } else { second }]
    }

    /// Allocates its memory, so that the first insertion does not have to.
    pub fn prepare(&self) -> &[Line] {
        self.lines.get_or_init(|| (0..self.line_count).map(|_| Line::default()).collect())
    }

    /// Whether its memory is allocated.
    pub fn is_prepared(&self) -> bool {
        self.lines.get().is_some()
    }

    /// Records that `worker` owns the key; returns whether there was room. An entry for another worker is
    /// replaced.
    pub fn insert(&self, hash: u64, worker: usize) -> bool {
        let lines = self.prepare();
        let new = entry(hash, worker);
        // An entry that another thread removes at this moment leaves room for a new one below.
        let again = |found: u64| match found {
            _ if !is_of(found, hash) => None,
            _ if (found ^ new) & WORKER != 0 => Some(new),
            _ if found & TIMES == TIMES => Some(found),
            _ => Some(found + ONCE),
        };
        let [first, second] = self.places(hash).map(|at| lines.get(at));
        if let Some(first) = first
            && (change(first, again).is_some()
                || second.is_some_and(|second| change(second, again).is_some()))
        {
            return true;
        }
        let put = |line: &Line| change(line, |found| (found == 0).then_some(new)).is_some();
        let is_in = first.is_some_and(put)
            || first.zip(second).is_some_and(|(first, second)| {
                // The count is raised first, so that no search misses the entry in the second line.
                first[MOVED].fetch_add(1, Ordering::AcqRel);
                let is_in = put(second);
                if !is_in {
                    first[MOVED].fetch_sub(1, Ordering::AcqRel);
                }
                is_in
            });
        let count = if is_in { &self.used } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        is_in
    }

    /// Takes back one insertion of a worker. An entry that another worker has replaced stays.
    pub fn remove(&self, hash: u64, worker: usize) {
        let Some(lines) = self.lines.get().filter(|_| !self.is_empty()) else { return };
        let said = entry(hash, worker);
        let less = |found: u64| match found {
            _ if !is_of(found, hash) || (found ^ said) & WORKER != 0 || found & TIMES == TIMES => None,
            _ if found & TIMES == ONCE => Some(0),
            _ => Some(found - ONCE),
        };
        let [first, second] = self.places(hash).map(|at| lines.get(at));
        let Some(first) = first else { return };
        if let Some(was) = change(first, less) {
            if was & TIMES == ONCE {
                self.used.fetch_sub(1, Ordering::Relaxed);
            }
        } else if let Some(was) = second.and_then(|second| change(second, less))
            && was & TIMES == ONCE
        {
            self.used.fetch_sub(1, Ordering::Relaxed);
            first[MOVED].fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Changes the first entry of a line for which `how` returns a new value; returns the old one.
fn change(line: &Line, how: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    line[1..].iter().find_map(|word| word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, &how).ok())
}

#[inline]
fn find_in(line: &Line, hash: u64) -> Option<usize> {
    let mut words = line[1..].iter().map(|word| word.load(Ordering::Relaxed));
    words.find(|found| is_of(*found, hash)).map(|found| (found & WORKER) as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn it_says_what_a_map_would(steps in prop::collection::vec((0..3u8, 0..40u64, 0..5usize), 1..400)) {
            let (directory, mut map) = (Directory::new(4096), HashMap::new());
            for (what, key, worker) in steps {
                let hash = key.wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(17);
                match what {
                    0 => {
                        prop_assert!(directory.insert(hash, worker));
                        let said = map.entry(hash).or_insert((worker, 0));
                        *said = (worker, if said.0 == worker { said.1 + 1 } else { 1 });
                    }
                    1 => {
                        directory.remove(hash, worker);
                        if let Some((_, times)) = map.get_mut(&hash).filter(|said| said.0 == worker) {
                            *times -= 1;
                        }
                        map.retain(|_, (_, times)| *times > 0);
                    }
                    _ => prop_assert_eq!(directory.find(hash), map.get(&hash).map(|said| said.0)),
                }
                prop_assert_eq!(directory.len(), map.len());
            }
        }
    }

    #[test]
    fn a_full_one_refuses_and_says_so() {
        let directory = Directory::new(56);
        let hash = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let taken = (0..100).filter(|at| directory.insert(hash(*at), 3)).count();
        assert_eq!((taken, taken), (directory.len(), 100 - directory.refused()));
        assert!((40..=56).contains(&taken), "{taken}");
        assert_eq!((0..100).filter(|at| directory.find(hash(*at)) == Some(3)).count(), taken);
        (0..100).for_each(|at| directory.remove(hash(at), 3));
        assert!(directory.is_empty());
    }

    #[test]
    fn workers_write_at_the_same_time() {
        let directory = Arc::new(Directory::new(1 << 14));
        let workers = (0..4).map(|worker| {
            let directory = Arc::clone(&directory);
            std::thread::spawn(move || {
                let hash = |at: u64| (at << 8 | worker as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
                for round in 0..20 {
                    (0..1_000).for_each(|at| assert!(directory.insert(hash(at), worker)));
                    assert!((0..1_000).all(|at| directory.find(hash(at)) == Some(worker)), "{round}");
                    (0..1_000).for_each(|at| directory.remove(hash(at), worker));
                }
            })
        });
        workers.collect::<Vec<_>>().into_iter().for_each(|worker| worker.join().expect("no panic"));
        assert!(directory.is_empty());
    }
}
