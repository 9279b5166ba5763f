//! Next hops: one record for all routes that lead to the same.
//!
//! A full table with a few neighbours so has all its records in a cache line or two. Invariants:
//! `uses[n]` is the number of routes that lead to record `n`; a record without any is free and not in
//! `numbers`.

use element::record::Records;
use std::collections::HashMap;
use std::hash::Hash;
use table::lpm::Address;

/// Where a route of a family of addresses leads, which is what its record says, as the program reads it.
pub trait Next: Copy + Eq + Hash + Send {
    /// The addresses.
    type Address: Address + Send;
    /// Words of a program's key, which is an address.
    const KEY_WORDS: usize;
    /// Bytes of a record.
    const BYTES: usize;
    /// The address that begins at a word of some keys.
    fn address(keys: &[u64], at: usize) -> Self::Address;
    /// Writes a record.
    fn store(&self, records: &Records, record: u64);
}

/// Next hops by number.
#[derive(Debug)]
pub struct Hops<H> {
    records: Records,
    numbers: HashMap<H, u32>,
    hops: Vec<H>,
    uses: Vec<u32>,
}

impl<H: Next> Default for Hops<H> {
    fn default() -> Hops<H> {
        Hops { records: Records::new(H::BYTES), numbers: HashMap::new(), hops: vec![], uses: vec![] }
    }
}

impl<H: Next> Hops<H> {
    /// The records.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// What a number stands for; it must be in use.
    pub fn get(&self, number: u32) -> H {
        self.hops[number as usize]
    }

    /// The number of a next hop, counted as used once more.
    pub fn take(&mut self, hop: H) -> u32 {
        let number = match self.numbers.get(&hop) {
            Some(number) => *number,
            None => self.add(hop),
        };
        self.uses[number as usize] += 1;
        number
    }

    fn add(&mut self, hop: H) -> u32 {
        let number = self.records.add();
        hop.store(&self.records, self.records.address(number));
        self.numbers.insert(hop, number);
        let at = number as usize;
        if at == self.hops.len() {
            self.hops.push(hop);
            self.uses.push(0);
        } else {
            self.hops[at] = hop;
        }
        number
    }

    /// Counts a number as used once less.
    pub fn release(&mut self, number: u32) {
        let uses = &mut self.uses[number as usize];
        *uses -= 1;
        if *uses == 0 {
            self.numbers.remove(&self.hops[number as usize]);
            self.records.remove(number);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.records.clear();
        self.numbers.clear();
        self.hops.clear();
        self.uses.clear();
    }
}
