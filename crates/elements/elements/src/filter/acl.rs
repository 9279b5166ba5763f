//! Large rule lists as a lookup table.
//!
//! A key is two words: the addresses; and ports, protocol and bits. A record holds a decision, which all
//! rules with that decision share. The table is built once for all workers; each has its own lanes.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::boxes::{Boxer, Cuboid, DPORT, LARGEST, MAX_BITS, NO_PORTS, SIDES, SPORT};
use super::expr::{Expr, Test};
use ir::{CacheValidity, Created, Lasting, Table, TableSize};
use shm::burst::LIST_CAPACITY;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use table::acl::{AclError, Classifier, FiveTuple, Limits, MISS, Rule, Schema};

/// Words of a key.
pub const KEY_WORDS: usize = 2;
/// Bytes of a record: a decision.
pub const RECORD_BYTES: usize = 8;
/// Shift of the protocol in the second word; the ports are below it.
pub const PROTO_SHIFT: u64 = 32;
/// The bit of the second word of packets without ports.
pub const NO_PORTS_BIT: u64 = 40;
/// The first bit of the second word for tests of other kinds.
pub const TESTS_BIT: u64 = 41;

/// Numbers of a packet in the classifier.
const LANES: usize = SIDES;

/// Default limits of building: no longer than an operator waits.
pub const LIMITS: Limits = Limits { max_bytes: 64 << 20, max_build_ms: 1_500 };

/// A list of rules, ready.
#[derive(Debug)]
pub struct Acl {
    classifier: Classifier,
    /// The list itself, for offload to a switch.
    rules: Vec<Rule>,
    /// The record of each box.
    slots: Vec<u16>,
    /// The decisions, by record. Atomics, because the machine code of several workers has their addresses.
    decisions: Box<[AtomicU64]>,
    /// The tests whose results are the key's bits from [`TESTS_BIT`] on.
    pub(super) tests: Vec<Test>,
    /// Whether a rule looks at ports.
    pub(super) ports: bool,
    limits: Limits,
}

/// Collects rules for an [`Acl`].
#[derive(Default, Debug)]
pub struct AclBuilder {
    boxer: Boxer,
    boxes: Vec<(Cuboid, u32)>,
}

impl AclBuilder {
    /// Appends a rule; false if the table cannot hold it.
    pub fn add(&mut self, expr: &Expr, decision: u32) -> bool {
        let boxes = self.boxer.boxes(expr);
        let fits = boxes.is_some();
        self.boxes.extend(boxes.into_iter().flatten().map(|cuboid| (cuboid, decision)));
        fits
    }

    /// Builds the table.
    ///
    /// # Errors
    /// When the list is too large for a classifier within the limits.
    pub fn build(self, limits: Limits) -> Result<Acl, AclError> {
        let tests = self.boxer.tests;
        let widths = LARGEST.map(|largest| (u64::BITS - largest.leading_zeros()) as u8);
        // Bits that no rule tests are left out: a lookup gets faster with fewer dimensions.
        let schema = Schema::new(widths.get(..SIDES - MAX_BITS + tests.len()).unwrap_or(&widths))?;
        let mut rules = Vec::with_capacity(self.boxes.len());
        let mut decisions: Vec<u64> = vec![];
        let mut slots = Vec::with_capacity(self.boxes.len());
        for (cuboid, decision) in &self.boxes {
            let mut sides = cuboid.0.iter().take(schema.dims()).enumerate();
            let rule = sides.try_fold(Rule::any(&schema), |rule, (dim, side)| {
                rule.range(&schema, dim, side.0 as u32, side.1 as u32)
            });
            rules.push(rule?);
            let decision = u64::from(*decision);
            let slot = decisions.iter().position(|known| *known == decision).unwrap_or_else(|| {
                decisions.push(decision);
                decisions.len() - 1
            });
            slots.push(u16::try_from(slot).map_err(|_| AclError::TooManyRules(slot))?);
        }
        let narrow = |cuboid: &Cuboid, side: usize| cuboid.0[side] != (0, LARGEST[side]);
        let ports = self.boxes.iter().any(|(cuboid, _)| narrow(cuboid, SPORT) || narrow(cuboid, DPORT));
        let classifier = Classifier::build(&schema, &rules, limits)?;
        let decisions = decisions.into_iter().map(AtomicU64::new).collect();
        Ok(Acl { classifier, rules, slots, decisions, tests, ports, limits })
    }
}

impl Acl {
    /// The decision, if all rules have the same.
    pub fn only_decision(&self) -> Option<u32> {
        match &*self.decisions {
            [only] => Some(only.load(Ordering::Relaxed) as u32),
            _ => None,
        }
    }

    /// Every decision.
    pub fn decisions(&self) -> impl Iterator<Item = u32> + '_ {
        self.decisions.iter().map(|decision| decision.load(Ordering::Relaxed) as u32)
    }

    /// Number of boxes, and bytes of memory.
    pub fn size(&self) -> (usize, usize) {
        (self.slots.len(), self.classifier.bytes() + size_of_val(self.rules.as_slice()))
    }

    /// The boxes with their decisions, in order; `None` if rules test more than addresses, protocol and
    /// ports.
    pub fn boxes(&self) -> Option<impl Iterator<Item = (FiveTuple, u32)> + '_> {
        self.tests.is_empty().then(|| {
            let decision = |slot: &u16| self.decision(usize::from(*slot)) as u32;
            self.rules.iter().zip(&self.slots).map(move |(rule, slot)| {
                let side = |at: usize| (rule.ranges[at].lo, rule.ranges[at].hi);
                let five =
                    FiveTuple { src: side(0), dst: side(1), sport: side(2), dport: side(3), proto: side(4) };
                (five, decision(slot))
            })
        })
    }

    /// How the table was built, for people.
    pub fn how(&self) -> String {
        let Limits { max_bytes, max_build_ms } = self.limits;
        format!(
            "{}; built in {} ms (limits: {max_build_ms} ms, {} MiB)",
            self.classifier.shape(),
            self.classifier.build_ms(),
            max_bytes >> 20
        )
    }

    fn decision(&self, record: usize) -> u64 {
        self.decisions.get(record).map_or(0, |decision| decision.load(Ordering::Relaxed))
    }

    fn base(&self) -> u64 {
        self.decisions.as_ptr().expose_provenance() as u64
    }

    /// The record of the box with that number; 0 for [`MISS`].
    fn record(&self, found: u32) -> u64 {
        match self.slots.get(found as usize) {
            Some(slot) => self.base() + u64::from(*slot) * RECORD_BYTES as u64,
            None => 0,
        }
    }
}

/// The classifier's values of a key.
fn lanes(addresses: u64, rest: u64) -> [u32; LANES] {
    let no_ports = (rest >> NO_PORTS_BIT & 1) as u32;
    let ports = rest as u32;
    let bit = |at: u64| (rest >> (TESTS_BIT + at) & 1) as u32;
    [
        (addresses >> 32) as u32,
        addresses as u32,
        (ports >> 16) | (no_ports * NO_PORTS as u32),
        ports & 0xffff,
        (rest >> PROTO_SHIFT & 0xff) as u32,
        bit(0),
        bit(1),
        bit(2),
    ]
}

/// Values between keys and records.
#[derive(Debug)]
struct Scratch {
    lanes: Vec<u32>,
    found: Vec<u32>,
}

/// An [`Acl`] as a worker's program uses it.
#[derive(Debug)]
pub struct AclTable {
    acl: Arc<Acl>,
    scratch: RefCell<Scratch>,
}

impl AclTable {
    /// The table of a worker.
    pub fn new(acl: Arc<Acl>) -> AclTable {
        let scratch = Scratch { lanes: vec![0; LIST_CAPACITY * LANES], found: vec![MISS; LIST_CAPACITY] };
        AclTable { acl, scratch: RefCell::new(scratch) }
    }
}

// SAFETY: handles are addresses of words of `Acl::decisions`, which is never changed in length and lives as
// long as `self.acl`. The words are atomics, because workers share them and a program may write what it is
// given.
unsafe impl Table for AclTable {
    fn key_words(&self) -> usize {
        KEY_WORDS
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(RECORD_BYTES)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let [addresses, rest] = key else { return None };
        let found = self.acl.classifier.classify(&lanes(*addresses, *rest));
        Some(self.acl.record(found)).filter(|record| *record != 0)
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        let Scratch { lanes: numbers, found } = &mut *self.scratch.borrow_mut();
        for &packet in list {
            let packet = usize::from(packet);
            let key = keys.get(packet * stride..packet * stride + KEY_WORDS);
            let numbers = numbers.get_mut(packet * LANES..(packet + 1) * LANES);
            if let (Some([addresses, rest]), Some(numbers)) = (key, numbers) {
                numbers.copy_from_slice(&lanes(*addresses, *rest));
            }
        }
        self.acl.classifier.classify_batch(numbers, LANES, list, found);
        for &packet in list {
            let packet = usize::from(packet);
            if let Some(record) = records.get_mut(packet) {
                *record = found.get(packet).map_or(0, |found| self.acl.record(*found));
            }
        }
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: true, changes: 0, gone: None })
    }

    fn lasting(&self, _record: u64, _offset: u16) -> Lasting {
        Lasting::Fixed
    }

    fn size(&self) -> Option<TableSize> {
        let (boxes, bytes) = self.acl.size();
        Some(TableSize { entries: boxes as u64, bytes: bytes as u64, most: None, how: self.acl.how() })
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        let at = record.wrapping_sub(self.acl.base()).wrapping_add(u64::from(offset));
        let decision = self.acl.decision((at / RECORD_BYTES as u64) as usize);
        let value = decision >> (at % RECORD_BYTES as u64 * 8);
        if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
    }

    fn record_store(&mut self, _record: u64, _offset: u16, _bytes: u8, _value: u64) {
        // Programs do not write to rules.
    }
}
