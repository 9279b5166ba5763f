//! Packets through the evaluator and through classes.
#![expect(unsafe_code, reason = "implements a table for the evaluator")]

use crate::classes::concrete::Concrete;
use crate::classes::packets::{CreatedPacket, World};
use crate::classes::{Class, Classes, settle};
use ir::eval::EvalState;
use ir::program::RecordDelta;
use ir::{Created, Program, Records, Table, Tables};
use rand_pcg::Pcg64;
use shm::descriptor::{BUF_BYTES, Packet};
use std::collections::BTreeMap;

/// A table that can be copied. Records are numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct MapTable {
    pub key_words: usize,
    pub record_bytes: usize,
    pub by_key: BTreeMap<Vec<u64>, usize>,
    pub records: Records,
    /// Keys whose words' sum has this remainder modulo 4 are refused.
    pub refuse: u64,
    /// What its records have of checksums.
    pub deltas: Vec<RecordDelta>,
}

impl MapTable {
    pub fn new(key_words: usize, record_bytes: usize) -> MapTable {
        MapTable {
            key_words,
            record_bytes,
            by_key: BTreeMap::new(),
            records: Records::default(),
            refuse: 9,
            deltas: vec![],
        }
    }

    pub fn put(&mut self, key: &[u64], record: Vec<u8>) {
        let at = self.records.push(record);
        self.records.keep_deltas(Records::handle(at), key, &self.deltas);
        self.by_key.insert(key.to_vec(), at);
    }
}

// SAFETY: handles are numbers, not addresses: `record_bytes` is `None`, so that no machine code runs on it.
unsafe impl Table for MapTable {
    fn key_words(&self) -> usize {
        self.key_words
    }
    fn lookup(&self, key: &[u64]) -> Option<u64> {
        self.by_key.get(key).map(|at| Records::handle(*at))
    }
    fn create(&mut self, key: &[u64], args: &[u64], now_ns: u64) -> Created {
        if let Some(found) = self.lookup(key) {
            return Created::Record(found);
        }
        if key.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)) % 4 == self.refuse {
            return Created::Refused;
        }
        let seed = args.iter().chain(key).fold(now_ns, |sum, word| sum.wrapping_mul(31).wrapping_add(*word));
        self.put(key, (0..self.record_bytes).map(|at| (seed >> (at % 8 * 8)) as u8 ^ at as u8).collect());
        Created::Record(Records::handle(self.records.0.len() - 1))
    }
    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.records.load(record, offset, bytes)
    }
    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.records.store(record, offset, bytes, value);
    }
}

/// Tables that can be copied.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MapTables(pub Vec<MapTable>);

impl MapTables {
    /// Empty ones for a program.
    pub fn of(program: &Program) -> MapTables {
        let table = |decl: &ir::program::TableDecl| MapTable {
            deltas: decl.deltas.clone(),
            ..MapTable::new(decl.key_words.into(), decl.record_bytes.into())
        };
        MapTables(program.tables.iter().map(table).collect())
    }
}

impl Tables for MapTables {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.get_mut(index).map(|table| table as &mut dyn Table)
    }
}

/// A packet and its buffer.
#[derive(Clone)]
pub struct Sample {
    pub packet: Packet,
    pub buffer: Vec<u8>,
}

impl Sample {
    /// A frame in a slot; of the headers only the MAC header is set.
    pub fn frame(bytes: &[u8]) -> Sample {
        let mut buffer = vec![0; BUF_BYTES];
        let data = shm::descriptor::HEADROOM as u16;
        buffer[usize::from(data)..][..bytes.len()].copy_from_slice(bytes);
        let len = bytes.len() as u32;
        let mut packet = Packet::detached(data, len).expect("it fits");
        packet.mac = data;
        Sample { packet, buffer }
    }
}

pub const NOW_NS: u64 = 77_000;

/// The form of classes.
#[derive(Clone, Copy)]
pub enum ClassesAre {
    Walked,
    /// [`settle`].
    Settled,
}

/// Runs a packet through the evaluator and through its class; they must agree. Returns the class's number,
/// `None` if the packet took a path that was not followed.
#[expect(clippy::too_many_arguments, reason = "those of a run, and the form")]
pub fn check<'a>(
    classes_are: ClassesAre,
    program: &Program,
    classes: &'a Classes,
    entry: usize,
    sample: &Sample,
    cells: &[u64],
    tables: &MapTables,
    now_ns: u64,
) -> Option<(usize, &'a Class)> {
    let (pool, bytes) = (&classes.pool, sample.buffer.as_slice());
    let mut class_tables = tables.clone();
    let mut on_all = Concrete::new(pool, &sample.packet, bytes, cells, &mut class_tables, now_ns);
    let passes = |(_, class): &(usize, &Class)| match classes_are {
        // One after the other on the same tables: a filter creates no record for a packet that does not reach the
        // creation.
        ClassesAre::Walked => on_all.passes(&class.filter),
        // A key may have what a later condition says.
        ClassesAre::Settled => {
            let mut own = tables.clone();
            Concrete::new(pool, &sample.packet, bytes, cells, &mut own, now_ns).passes(&class.filter)
        }
    };
    let of_entry = classes.classes.iter().enumerate().filter(|(_, class)| class.entry == entry);
    let found: Vec<usize> = of_entry.filter(passes).map(|(at, _)| at).collect();
    assert!(found.len() <= 1, "a packet in classes {found:?}\n{}", ir::text::print(program));
    let Some(&at) = found.first() else {
        assert!(!classes.left.is_empty(), "a packet in no class\n{}", ir::text::print(program));
        return None;
    };
    let class = &classes.classes[at];
    assert!(on_all.passes(&class.filter));
    let decided = on_all.decided(class).len();
    assert!(
        class.merged_paths > 1 || decided == class.steps.len(),
        "a step that does not hold for the packet"
    );
    let outcome = on_all.outcome(class).expect("values of a packet that is in the class");
    let (mut packet, mut buffer) = (sample.packet, sample.buffer.clone());
    let (mut own_cells, mut own_tables) = (cells.to_vec(), tables.clone());
    let mut state = EvalState { cells: &mut own_cells, tables: &mut own_tables, now_ns };
    let exit = ir::eval::run(program, entry, &mut packet, buffer.as_mut_slice(), &mut state).expect("runs");

    let (mut class_buffer, mut class_cells) = (sample.buffer.clone(), cells.to_vec());
    outcome.apply(class_buffer.as_mut_slice(), &mut class_cells, &mut class_tables);
    let text = || format!("class {at}\n{}", ir::text::print(program));
    assert_eq!(outcome.exit, exit, "exit of {}", text());
    let described = |packet: &Packet| {
        let Packet { mac, net, trans, packet_type, anno, .. } = *packet;
        let ends = (packet.data(), packet.len(), packet.total(), packet.segments());
        (ends, mac, net, trans, packet_type, anno)
    };
    assert_eq!(described(&outcome.packet), described(&packet), "descriptor of {}", text());
    assert!(class_buffer == buffer, "bytes of {}", text());
    assert_eq!(class_cells, own_cells, "cells of {}", text());
    assert_eq!(class_tables, own_tables, "tables of {}", text());
    Some((at, class))
}

/// The same classes in the form in which those of two programs are compared.
pub fn settled(mut classes: Classes) -> Classes {
    classes.classes.iter_mut().for_each(|class| settle(&mut classes.pool, class));
    classes
}

/// Derives a packet of a class from a sample; false if none is found. The packet must be in that class.
pub fn makes(
    program: &Program,
    classes: &Classes,
    at: usize,
    Sample { packet, buffer }: Sample,
    cells: &[u64],
    tables: &MapTables,
    rng: &mut Pcg64,
) -> bool {
    let class = &classes.classes[at];
    let keys = |table: u16| tables.0[usize::from(table)].by_key.keys().cloned().collect();
    let mut fresh = || -> Box<dyn Tables> { Box::new(tables.clone()) };
    let mut world = World { tables: &mut fresh, keys: &keys };
    let created = CreatedPacket { packet, buffer, cells: cells.to_vec(), now_ns: 1_000_000_000 };
    let Some(created) = class.mended(classes, created, &mut world, rng) else { return false };
    let sample = Sample { packet: created.packet, buffer: created.buffer };
    let fell = check(
        ClassesAre::Walked,
        program,
        classes,
        class.entry,
        &sample,
        &created.cells,
        tables,
        created.now_ns,
    );
    assert_eq!(fell.map(|(at, _)| at), Some(at), "{}", ir::text::print(program));
    true
}
