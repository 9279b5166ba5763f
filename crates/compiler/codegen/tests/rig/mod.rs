//! Runs packets through an engine and collects the observable results.

use codegen::{CodeBuilder, Engine, Scratch};
use ir::eval::EvalState;
use ir::{Created, Program, Table, Tables, Verified};
use packet::access::Access;
use shm::Packet;
use shm::burst::{Burst, Exits};
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{Pool, SharedPool};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A table that the test can read: records are in boxes, and machine code uses their addresses.
#[derive(Default)]
pub struct BoxTable {
    records: BTreeMap<Vec<u64>, Box<[AtomicU64]>>,
    key_words: usize,
    record_words: usize,
    /// Whether keys with an odd sum of bits are refused.
    pub refuse_odd: bool,
}

impl BoxTable {
    /// An empty table. Records have `record_words` words of 8 bytes.
    pub fn new(key_words: usize, record_words: usize) -> BoxTable {
        BoxTable { key_words, record_words, ..BoxTable::default() }
    }

    fn handle(record: &[AtomicU64]) -> u64 {
        record.as_ptr().expose_provenance() as u64
    }

    fn by_address(&self, record: u64) -> &[AtomicU64] {
        self.records.values().find(|known| BoxTable::handle(known) == record).expect("a live record")
    }

    /// Keys, and bytes of their records.
    fn contents(&self) -> Contents {
        self.records.iter().map(|(key, record)| (key.clone(), bytes_of(record))).collect()
    }
}

fn bytes_of(record: &[AtomicU64]) -> Vec<u8> {
    record.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect()
}

// SAFETY: handles are addresses of boxes of atomics, as many bytes as `record_bytes` returns, which live as
// long as the table: no record is removed, and the map moves the boxes only.
unsafe impl Table for BoxTable {
    fn key_words(&self) -> usize {
        self.key_words
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(8 * self.record_words)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        self.records.get(key).map(|record| BoxTable::handle(record))
    }

    fn create(&mut self, key: &[u64], args: &[u64], now_ns: u64) -> Created {
        if self.refuse_odd && key.iter().fold(0, |acc, word| acc ^ word) % 2 == 1 {
            return Created::Refused;
        }
        let first = args.iter().fold(now_ns, |acc, arg| acc.wrapping_add(*arg));
        let words = (0..self.record_words).map(|at| AtomicU64::new(if at == 0 { first } else { 0 }));
        let new = || words.collect();
        Created::Record(BoxTable::handle(self.records.entry(key.to_vec()).or_insert_with(new)))
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        let all = bytes_of(self.by_address(record));
        let part = &all[usize::from(offset)..usize::from(offset) + usize::from(bytes)];
        part.iter().rev().fold(0, |acc, byte| acc << 8 | u64::from(*byte))
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        let words = self.by_address(record);
        let mut all = bytes_of(words);
        let at = usize::from(offset);
        all[at..at + usize::from(bytes)].copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
        for (word, bytes) in words.iter().zip(all.chunks(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().expect("8 bytes")), Relaxed);
        }
    }
}

struct BoxTables(Vec<BoxTable>);

impl Tables for BoxTables {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.get_mut(index).map(|table| table as &mut dyn Table)
    }
}

/// The evaluator for a program, and machine code.
pub fn engines(program: &Verified) -> [Engine; 2] {
    let program = Arc::new(program.clone());
    let mut builder = CodeBuilder::new().expect("this machine");
    let id = builder.add(&program).expect("compiles");
    [Engine::Evaluator(program), Engine::Native(builder.finish().expect("memory").compiled(id))]
}

/// A table's keys, and bytes of their records.
pub type Contents = BTreeMap<Vec<u64>, Vec<u8>>;

/// Bytes, header offsets, annotations and type of a packet.
pub type Facts = (Vec<u8>, [u16; 3], Vec<u8>, u8);

/// The observable results of a run, except the order of packets in the lists.
#[derive(PartialEq, Debug)]
pub struct Seen {
    /// The list that each packet is in: outputs, drop reasons, slow paths.
    pub exit_of: Vec<Option<usize>>,
    pub packets: Vec<Facts>,
    pub cells: Vec<u64>,
    pub tables: Vec<Contents>,
}

/// Runs a program on the same packets, once for each clock value, with headers after 14 bytes of Ethernet and
/// 20 of IPv4.
pub fn run(
    program: &Program,
    engine: &Engine,
    frames: &[Vec<u8>],
    tables: Vec<BoxTable>,
    times: &[u64],
) -> Seen {
    run_in_order(program, engine, frames, tables, times).0
}

/// [`run`], and the packets of each list, in the order in which they are in it.
pub fn run_in_order(
    program: &Program,
    engine: &Engine,
    frames: &[Vec<u8>],
    tables: Vec<BoxTable>,
    times: &[u64],
) -> (Seen, Vec<Vec<u16>>) {
    let region = PacketRegion::create(RegionOptions::slots(512)).expect("memory");
    let mut pool = SharedPool::new(region).worker();
    let mut packets = vec![Packet::EMPTY; frames.len()];
    assert_eq!(pool.alloc(&mut packets), frames.len());
    for (packet, frame) in packets.iter_mut().zip(frames) {
        assert!(packet.put(frame.len()));
        packet.mac = packet.data();
        packet.net = packet.data() + 14;
        packet.trans = packet.data() + 34;
        assert!(PacketBytesMut::new(packet).copy_in(0, frame));
    }
    let mut cells: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
    let mut tables = BoxTables(tables);
    let mut exits = Exits::with_capacity(1);
    let list: Vec<u16> = (0..frames.len() as u16).collect();
    let mut scratch = Scratch::default();
    for now_ns in times {
        let mut state = EvalState { cells: &mut cells, tables: &mut tables, now_ns: *now_ns };
        let burst = Burst { input: 0, packets: &mut packets, list: &list };
        codegen::run(engine, burst, &mut state, &mut scratch, &mut exits);
    }
    let lists = usize::from(program.outputs) + program.reasons.len() + program.slow.len();
    let exit_of = list.iter().map(|index| (0..lists).find(|at| exits.list(*at).contains(index))).collect();
    let listed: usize = (0..lists).map(|at| exits.list(at).len()).sum();
    assert_eq!(listed, frames.len(), "each packet leaves once");
    let seen = packets.iter().map(|packet| {
        let bytes = PacketBytes::new(packet).to_vec();
        (bytes, [packet.data(), packet.net, packet.trans], packet.anno.to_vec(), packet.packet_type)
    });
    let tables = tables.0.iter().map(BoxTable::contents).collect();
    let seen = Seen { exit_of, packets: seen.collect(), cells, tables };
    pool.free_all(&packets);
    (seen, (0..lists).map(|at| exits.list(at).to_vec()).collect())
}
