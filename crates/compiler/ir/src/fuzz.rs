//! The fuzzing entry point for program texts: parser, verifier, printer and evaluator; and what tests of
//! programs share.
#![expect(unsafe_code, reason = "implements a table for the evaluator")]

use crate::eval::{Buffer, EvalState, run};
use crate::program::RecordDelta;
use crate::table::{Created, Table, Tables};
use crate::{BlockId, Builder, Program, text, verify};
use packet::anno::ANNO_BYTES;
use packet::field::{self, Base, Field};
use shm::descriptor::{BUF_BYTES, HEADROOM, NO_HEADER, Packet};
use std::collections::HashMap;

/// Where tables' records start: a number that a program is unlikely to compute by accident.
const FIRST_RECORD: u64 = 0x7f31_0000;

/// Records whose handles are numbers, not addresses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Records(pub Vec<Vec<u8>>);

impl Records {
    /// The handle of a record, by its index.
    pub fn handle(at: usize) -> u64 {
        FIRST_RECORD + at as u64
    }

    /// Adds a record; returns its index.
    pub fn push(&mut self, record: Vec<u8>) -> usize {
        self.0.push(record);
        self.0.len() - 1
    }

    /// Sets what a record has of checksums, for the key that leads to it.
    pub fn keep_deltas(&mut self, record: u64, key: &[u64], deltas: &[RecordDelta]) {
        for delta in deltas {
            let number = delta.number(key[usize::from(delta.key)], self.load(record, delta.to, 8));
            self.store(record, delta.at, 2, number.into());
        }
    }

    fn index(record: u64) -> usize {
        usize::try_from(record.wrapping_sub(FIRST_RECORD)).expect("a record that this table gave out")
    }

    /// See [`Table::record_load`].
    pub fn load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        let at = usize::from(offset);
        let bytes = &self.0[Self::index(record)][at..at + usize::from(bytes)];
        bytes.iter().rev().fold(0, |acc, byte| acc << 8 | u64::from(*byte))
    }

    /// See [`Table::record_store`].
    pub fn store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        let at = usize::from(offset);
        let target = &mut self.0[Self::index(record)][at..at + usize::from(bytes)];
        target.copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
    }
}

/// The start of a random program on packets with 40 bytes, 20 of the network header and 4 of the transport
/// header.
pub struct RandomStart {
    /// The program.
    pub f: Builder,
    /// Its outputs: 1 for some numbers of choices, else 3.
    pub outputs: usize,
    /// Where packets that are too short go.
    pub short: BlockId,
    /// Two cells.
    pub cells: [u16; 2],
    /// Two tables with keys of two words and records of 16 bytes: for lookups, and for creating records.
    pub tables: [u16; 2],
}

impl RandomStart {
    /// Starts a program of that many choices.
    pub fn new(choices: usize) -> RandomStart {
        let outputs = if choices % 4 == 1 { 1 } else { 3 };
        let mut f = Builder::new("Random", outputs);
        let short = f.drop_block("short");
        let cells = [f.cell("first", 3), f.cell("second", 4)];
        let tables = [f.table("known", 2, 16), f.table("made", 2, 16)];
        f.need(Base::Data, 40, short);
        f.need(Base::Net, 20, short);
        f.need(Base::Trans, 4, short);
        f.room(20, short);
        RandomStart { f, outputs, short, cells, tables }
    }

    /// A field from choices, and whether it is in the headers that the program has tested.
    pub fn field(a: u16, b: u8) -> (Field, bool) {
        let field = match b % 4 {
            0 => Field::new(Base::Data, a % 300, 1 + b % 16),
            1 => Field::new(Base::Net, a % 120, 1 + b % 33),
            2 => {
                [field::IP_SRC, field::IP_PAIR, field::IP_HL, field::IP_MF, field::IP_TTL][usize::from(a) % 5]
            }
            _ => [field::L4_SPORT, field::L4_PORTS][usize::from(a) % 2],
        };
        let limit = match field.base {
            Base::Net => 20,
            Base::Trans => 4,
            _ => 0,
        };
        (field, field.is_valid() && field.end_byte() <= limit)
    }
}

/// A table that panics when a verified program accesses anything but a record that the table returned.
struct Checked {
    key_words: usize,
    record_bytes: usize,
    by_key: HashMap<Vec<u64>, usize>,
    records: Records,
}

// SAFETY: handles are numbers, not addresses: `record_bytes` is `None`, so that no machine code runs on it.
unsafe impl Table for Checked {
    fn key_words(&self) -> usize {
        self.key_words
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        assert_eq!(key.len(), self.key_words);
        self.by_key.get(key).map(|at| Records::handle(*at))
    }

    /// Refuses keys whose first word is divisible by four.
    fn create(&mut self, key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        if let Some(record) = self.lookup(key) {
            return Created::Record(record);
        }
        if key.first().is_none_or(|word| word % 4 == 0) {
            return Created::Refused;
        }
        let at = self.records.push(vec![0; self.record_bytes]);
        self.by_key.insert(key.to_vec(), at);
        Created::Record(Records::handle(at))
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.records.load(record, offset, bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.records.store(record, offset, bytes, value);
    }
}

struct AllChecked(Vec<Checked>);

impl Tables for AllChecked {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.get_mut(index).map(|table| table as &mut dyn Table)
    }
}

/// A packet of up to two segments.
struct Segments {
    first: Vec<u8>,
    rest: Vec<u8>,
}

impl Buffer for Segments {
    fn read(&self, at: usize, out: &mut [u8]) -> bool {
        self.first.as_slice().read(at, out)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        self.first.as_mut_slice().write(at, bytes)
    }

    fn read_packet(&self, packet: &Packet, at: usize, out: &mut [u8]) -> bool {
        let (start, len) = (usize::from(packet.data()), packet.len() as usize);
        let Some(head) = self.first.get(start..start + len) else { return false };
        let mut all = head.iter().chain(&self.rest).skip(at);
        out.iter_mut().all(|byte| {
            all.next().is_some_and(|from| {
                *byte = *from;
                true
            })
        })
    }
}

/// Bytes of a fuzzed packet that describe its position in the slot and its headers; its content follows them.
const PLACE_BYTES: usize = 8;
/// The value of a header byte that sets the header at the packet's first byte; smaller values set it before
/// that byte.
const AT_START: u8 = 32;

/// The frame of packets without bytes of their own: a UDP datagram in Ethernet.
const FRAME: &[u8] = &[
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0x66, 0xc2, 10, 0, 0, 1,
    10, 0, 0, 2, 0x9c, 0x40, 0, 53, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
];

/// The packet that the bytes describe: position, then content. Without a position, it is [`FRAME`] with its
/// headers set.
fn packet(bytes: &[u8]) -> (Packet, Segments) {
    let (place, content) = match bytes.split_first_chunk::<PLACE_BYTES>() {
        Some((place, content)) => (*place, content),
        None => ([HEADROOM as u8, 0, AT_START, AT_START + 14, AT_START + 34, 0, 0, 0], FRAME),
    };
    let [data, cut, mac, net, trans, kind, hash, anno] = place;
    let most = BUF_BYTES - usize::from(data);
    let first_bytes = content.len().min(if cut == 0 { most } else { usize::from(cut) });
    let (head, rest) = content.split_at(first_bytes);
    let mut first = vec![0; BUF_BYTES];
    first[usize::from(data)..][..head.len()].copy_from_slice(head);
    let header = |at: u8| match at {
        0xff => NO_HEADER,
        at => (u16::from(data) + u16::from(at)).saturating_sub(AT_START.into()),
    };
    let mut packet = Packet::detached(data.into(), head.len() as u32).expect("cut to what a buffer has");
    assert!(packet.set_rest(rest.len() as u32), "it has no further segments");
    (packet.mac, packet.net, packet.trans) = (header(mac), header(net), header(trans));
    packet.packet_type = kind;
    (packet.flow_hash, packet.origin) = (hash.into(), hash.into());
    packet.timestamp_ns = u64::from(hash) << 40;
    packet.anno = [anno; ANNO_BYTES];
    (packet, Segments { first, rest: rest.to_vec() })
}

/// Runs a verified program on a packet twice, so that the second run finds the records that the first one
/// created.
fn evaluate(program: &Program, bytes: &[u8]) {
    let mut cells: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
    let table = |decl: &crate::program::TableDecl| Checked {
        key_words: decl.key_words.into(),
        record_bytes: decl.record_bytes.into(),
        by_key: HashMap::new(),
        records: Records::default(),
    };
    let mut tables = AllChecked(program.tables.iter().map(table).collect());
    for now_ns in [1_000_000_000, 2_000_000_000] {
        for input in 0..program.entries.len().min(4) {
            let (mut packet, mut buffer) = packet(bytes);
            let mut state = EvalState { cells: &mut cells, tables: &mut tables, now_ns };
            if let Err(error) = run(program, input, &mut packet, &mut buffer, &mut state) {
                panic!("the verifier let this through: {error}\n{}", text::print(program));
            }
            let end = usize::from(packet.data()) + packet.len() as usize;
            assert!(
                end <= BUF_BYTES && packet.len() <= packet.total(),
                "a packet outside its slot: {packet:?}"
            );
        }
    }
}

/// Parses arbitrary bytes as a program's text and, after the first byte 0, a packet; runs the program if it
/// verifies.
///
/// # Panics
/// When this crate breaks an invariant: a verified program whose printed text parses to another program, or
/// that does something that the verifier should have refused. Any other panic is a bug, too.
pub fn fuzz_text(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (source, bytes) = data.split_at(at);
    let Ok(program) = text::parse(&String::from_utf8_lossy(source)) else { return };
    if verify::verify(&program).is_err() {
        return;
    }
    let printed = text::print(&program);
    match text::parse(&printed) {
        Ok(again) => assert_eq!(again, program, "printing changed the program:\n{printed}"),
        Err(error) => panic!("the printed program does not parse: {error}\n{printed}"),
    }
    evaluate(&program, bytes.get(1..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use testkit::replay;

    /// The inputs that fuzzing starts from, and every input that once failed.
    #[test]
    fn seeds_and_regressions_of_fuzzing_hold() {
        replay::replay("ir_text", 5, super::fuzz_text);
    }

    /// The seeds reach the evaluator: they are programs that verify.
    #[test]
    fn the_seeds_are_programs() {
        for path in replay::files("seeds/ir_text") {
            let bytes = std::fs::read(&path).expect("a file that can be read");
            let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
            let program = crate::text::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            crate::verify::verify(&program).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
    }
}
