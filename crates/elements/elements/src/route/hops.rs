//! Next hops: routes with the same next hop share a record.
//!
//! So the records of a full table with a few neighbours fit into a cache line or two. Invariants: `uses[n]`
//! is the number of routes that use record `n`; a record without uses is free and not in `numbers`.

use element::record::Records;
use std::collections::HashMap;
use std::hash::Hash;
use table::lpm::Address;

/// The next hop of an address family, and its record as programs read it.
pub trait Next: Copy + Eq + Hash + Send {
    /// The addresses.
    type Address: Address + Send;
    /// Words of a program's key, which holds an address.
    const KEY_WORDS: usize;
    /// Bytes of a record.
    const BYTES: usize;
    /// The address at a word of a list of keys.
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

    /// The next hop of a number, which must be in use.
    pub fn get(&self, number: u32) -> H {
        self.hops[number as usize]
    }

    /// The number of a next hop; counts one more use.
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

    /// Counts one use less.
    pub fn release(&mut self, number: u32) {
        let uses = &mut self.uses[number as usize];
        *uses -= 1;
        if *uses == 0 {
            self.numbers.remove(&self.hops[number as usize]);
            self.records.remove(number);
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.records.clear();
        self.numbers.clear();
        self.hops.clear();
        self.uses.clear();
    }
}
