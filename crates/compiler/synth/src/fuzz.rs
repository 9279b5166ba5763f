//! The fuzzing entry point for program transformations: the evaluator runs the original and the result.
#![expect(unsafe_code, reason = "implements a table for the evaluator")]

use ir::eval::{EvalState, Exit, run};
use ir::program::TableDecl;
use ir::{CacheValidity, Created, Lasting, Merge, Program, Records, Table, Tables, Verified, text};
use packet::anno::{self, ANNO_BYTES};
use shm::descriptor::{BUF_BYTES, HEADROOM, NO_HEADER, Packet};
use std::cell::RefCell;
use std::collections::HashMap;

use crate::optimize::{Known, Report, optimize_with, with_joined_reads, with_joined_writes};
use crate::separate;

/// Longer programs are left to other tests.
const MOST_BLOCKS: usize = 2000;

/// Offsets of numbers that packets change in records.
pub(crate) const SEEN: u16 = 16;
pub(crate) const FLAGS: u16 = 17;
pub(crate) const LAST_NS: u16 = 24;
pub(crate) const PAYLOAD_NS: u16 = 32;

/// A call on a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Lookup(Vec<u64>),
    Create(Vec<u64>, Vec<u64>),
}

/// A table that records its calls.
#[derive(Clone)]
pub(crate) struct Noting {
    decl: TableDecl,
    by_key: HashMap<Vec<u64>, usize>,
    records: Records,
    calls: RefCell<Vec<Call>>,
}

impl Noting {
    /// A table of that declaration; half of all small numbers are keys of it, in pairs that share a record.
    pub(crate) fn new(decl: &TableDecl) -> Noting {
        let (records, calls) = (Records::default(), RefCell::default());
        let mut table = Noting { decl: decl.clone(), by_key: HashMap::new(), records, calls };
        if decl.key_words == 1 {
            for number in 0..8 {
                table.make(&[2 * number]);
                table.by_key.insert(vec![2 * number + 16], number as usize);
            }
        }
        table
    }

    pub(crate) fn make(&mut self, key: &[u64]) -> u64 {
        let at = self.records.0.len() as u16;
        // Times begin at 0: no packet was seen.
        let byte = |byte| if byte < LAST_NS { (at * 7 + byte * 3) as u8 } else { 0 };
        let bytes = (0..self.decl.record_bytes).map(byte);
        let at = self.records.push(bytes.collect());
        self.records.keep_deltas(Records::handle(at), key, &self.decl.deltas);
        self.by_key.insert(key.to_vec(), at);
        Records::handle(at)
    }
}

// SAFETY: handles are numbers, not addresses: `record_bytes` is `None`, so that no machine code runs on it.
unsafe impl Table for Noting {
    fn key_words(&self) -> usize {
        self.decl.key_words.into()
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        self.calls.borrow_mut().push(Call::Lookup(key.to_vec()));
        self.by_key.get(key).map(|at| Records::handle(*at))
    }

    /// Refuses keys whose words have a sum that is divisible by four.
    fn create(&mut self, key: &[u64], args: &[u64], _now_ns: u64) -> Created {
        self.calls.borrow_mut().push(Call::Create(key.to_vec(), args.to_vec()));
        if let Some(at) = self.by_key.get(key) {
            return Created::Record(Records::handle(*at));
        }
        if key.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)).is_multiple_of(4) {
            return Created::Refused;
        }
        Created::Record(self.make(key))
    }

    /// Results never become invalid.
    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: true, changes: 0, gone: Some(0) })
    }

    fn lasting(&self, _record: u64, offset: u16) -> Lasting {
        // As `translate` in `optimize::tests::random` changes them.
        match offset {
            LAST_NS => Lasting::Merged(Merge::Max),
            SEEN => Lasting::Merged(Merge::SumTo(3)),
            FLAGS => Lasting::Merged(Merge::Or),
            PAYLOAD_NS => Lasting::Merged(Merge::Max),
            _ => Lasting::Fixed,
        }
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.records.load(record, offset, bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.records.store(record, offset, bytes, value);
    }
}

pub(crate) struct All(pub(crate) Vec<Noting>);

impl All {
    pub(crate) fn copy(&self) -> All {
        All(self.0.clone())
    }

    pub(crate) fn records(&self) -> Vec<Vec<Vec<u8>>> {
        self.0.iter().map(|table| table.records.0.clone()).collect()
    }
}

impl Tables for All {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.get_mut(index).map(|table| table as &mut dyn Table)
    }
}

/// A packet of one segment and the offsets of its headers from its first byte; they may be negative.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// MAC, network and transport header, where they are set.
    pub headers: [Option<i16>; 3],
    /// Bytes of the buffer before it.
    pub headroom: u8,
    /// Each byte of its annotations, and its type.
    pub fill: u8,
}

impl Sample {
    /// The descriptor and the buffer.
    pub(crate) fn packet(&self) -> (Packet, Vec<u8>) {
        let data = u16::from(self.headroom);
        let mut buffer: Vec<u8> = (0..BUF_BYTES).map(|at| at as u8 ^ 0x5c).collect();
        let bytes = &self.bytes[..self.bytes.len().min(BUF_BYTES - usize::from(data))];
        buffer[usize::from(data)..][..bytes.len()].copy_from_slice(bytes);
        let header = |at: Option<i16>| at.map_or(NO_HEADER, |at| data.saturating_add_signed(at).min(2000));
        let mut packet = Packet::detached(data, bytes.len() as u32).expect("cut to what a buffer has");
        [packet.mac, packet.net, packet.trans] = self.headers.map(header);
        packet.packet_type = self.fill;
        (packet.flow_hash, packet.origin) = (self.fill.into(), self.fill.into());
        packet.timestamp_ns = u64::from(self.fill) << 40;
        packet.anno = [self.fill; ANNO_BYTES];
        (packet, buffer)
    }

    /// The observable state of a packet.
    pub(crate) fn left(packet: &Packet, buffer: Vec<u8>) -> Left {
        let bases = [packet.data(), packet.mac, packet.net, packet.trans];
        (buffer, packet.anno, bases, [packet.len(), packet.total()], packet.packet_type)
    }
}

/// A packet that left.
pub(crate) type Left = (Vec<u8>, [u8; ANNO_BYTES], [u16; 4], [u32; 2], u8);

/// The observable results of a run for one packet.
#[derive(PartialEq, Debug)]
pub(crate) struct Observed {
    pub exit: Exit,
    /// Bytes, annotations, bases and lengths, type; not of dropped packets.
    pub packet: Option<Left>,
    pub cells: Vec<u64>,
    pub records: Vec<Vec<Vec<u8>>>,
    /// By table, without repeated lookups with no creation in between.
    pub calls: Vec<Vec<Call>>,
}

/// A program with its state.
pub(crate) struct Runner<'a> {
    pub program: &'a Program,
    pub cells: Vec<u64>,
    pub tables: All,
}

impl<'a> Runner<'a> {
    pub fn new(program: &'a Program) -> Runner<'a> {
        let cells = program.cells.iter().map(|cell| cell.init).collect();
        Runner { program, cells, tables: All(program.tables.iter().map(Noting::new).collect()) }
    }

    pub fn run(&mut self, input: usize, sample: &Sample, now_ns: u64) -> Observed {
        let (mut packet, mut buffer) = sample.packet();
        if self.program.from_ports.contains(&(input as u16)) {
            deliver(&mut packet);
        }
        let mut state = EvalState { cells: &mut self.cells, tables: &mut self.tables, now_ns };
        let exit = run(self.program, input, &mut packet, buffer.as_mut_slice(), &mut state)
            .unwrap_or_else(|error| panic!("{error}\n{}", text::print(self.program)));
        let seen = Sample::left(&packet, buffer);
        Observed {
            exit,
            packet: (!matches!(exit, Exit::Drop(_))).then_some(seen),
            cells: self.cells.clone(),
            records: self.tables.records(),
            calls: self.tables.0.iter().map(|table| once(table.calls.take())).collect(),
        }
    }
}

/// Makes a packet one that a port delivers ([`Program::from_ports`]).
fn deliver(packet: &mut Packet) {
    (packet.mac, packet.net, packet.trans) = (packet.data(), NO_HEADER, NO_HEADER);
    let unset = packet.anno.iter_mut().enumerate().filter(|(at, _)| anno::is_unset(*at));
    unset.for_each(|(_, byte)| *byte = 0);
}

/// Removes lookups whose outcome is known. (`prove` has the same of its own: it shares no code with this
/// crate's tests.)
fn once(calls: Vec<Call>) -> Vec<Call> {
    let mut known = vec![];
    let mut kept = vec![];
    for call in calls {
        match &call {
            Call::Create(..) => known.clear(),
            Call::Lookup(_) if known.contains(&call) => continue,
            Call::Lookup(_) => known.push(call.clone()),
        }
        kept.push(call);
    }
    kept
}

/// Optimises a verified program and runs both on packets, one after the other with the same state; and the same with
/// copies, where they are worth it, with joined writes, and with joined reads.
///
/// # Panics
/// When the observable results of the two differ, or the result does not verify.
pub fn compare(program: &Verified, known: &Known, samples: &[Sample]) -> (Verified, Report) {
    let (optimized, report) = optimize_with(program, known)
        .unwrap_or_else(|error| panic!("{error}, in what became of\n{}", text::print(program)));
    let runs = |made: &Verified| {
        same(program, made, samples);
        let wrong = |error| panic!("{error}, in what became of\n{}", text::print(made));
        let with_writes = with_joined_writes(made, known).unwrap_or_else(wrong);
        same(program, &with_writes, samples);
        same(program, &with_joined_reads(&with_writes, known).unwrap_or_else(wrong), samples);
    };
    runs(&optimized);
    if let Some((separated, _)) = separate::outcomes(&optimized, known) {
        runs(&separated);
    }
    (optimized, report)
}

/// Runs two programs on packets, one after the other with the same state.
///
/// # Panics
/// When the observable results of the two differ.
pub fn same(program: &Verified, other: &Verified, samples: &[Sample]) {
    let (mut before, mut after) = (Runner::new(program), Runner::new(other));
    for (at, sample) in samples.iter().enumerate() {
        for input in 0..program.entries.len().min(4) {
            let now_ns = 1_000_000_000 + at as u64;
            let (wanted, found) = (before.run(input, sample, now_ns), after.run(input, sample, now_ns));
            assert!(
                wanted == found,
                "{}",
                difference(&wanted, &found, sample, &text::print(program), &text::print(other))
            );
        }
    }
}

fn difference(wanted: &Observed, found: &Observed, sample: &Sample, before: &str, after: &str) -> String {
    let bytes = match (&wanted.packet, &found.packet) {
        (Some(wanted), Some(found)) => {
            let pairs = wanted.0.iter().zip(&found.0).enumerate();
            let other = pairs.filter(|(_, (a, b))| a != b);
            let bytes: Vec<_> = other.map(|(at, (a, b))| (at, *a, *b)).take(16).collect();
            format!(
                "bytes {bytes:?}\n{:?}\n{:?}\nannotations alike: {}",
                (wanted.2, wanted.3, wanted.4),
                (found.2, found.3, found.4),
                wanted.1 == found.1
            )
        }
        _ => String::new(),
    };
    format!(
        "{:?} became {:?}\n{bytes}\ncells {:?} {:?}\ncalls {:?} {:?}\nrecords alike: {}\nof {sample:?}\n{before}\nnow\n{after}",
        wanted.exit,
        found.exit,
        wanted.cells,
        found.cells,
        wanted.calls,
        found.calls,
        wanted.records == found.records,
    )
}

/// Bytes of a fuzzed packet that describe its position in its buffer and its headers; its content follows
/// them.
const PLACE_BYTES: usize = 6;

/// The frame for programs without a packet: a UDP datagram in Ethernet.
const FRAME: &[u8] = &[
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0x66, 0xc2, 10, 0, 0, 1,
    10, 0, 0, 2, 0x9c, 0x40, 0, 53, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
];

fn sample(bytes: &[u8]) -> Sample {
    let Some((place, content)) = bytes.split_first_chunk::<PLACE_BYTES>() else {
        let headers = [Some(0), Some(14), Some(34)];
        return Sample { bytes: FRAME.to_vec(), headers, headroom: HEADROOM as u8, fill: 0 };
    };
    let [headroom, mac, net, trans, fill, _] = *place;
    let header = |at: u8| (at != 0xff).then_some(i16::from(at) - 32);
    Sample { bytes: content.to_vec(), headers: [mac, net, trans].map(header), headroom, fill }
}

/// Parses arbitrary bytes as a program's text and, after the first byte 0, a packet; if the program verifies,
/// it is optimised and compared.
///
/// # Panics
/// When the optimised program behaves differently. Any other panic is a bug, too.
pub fn fuzz_optimize(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (source, bytes) = data.split_at(at);
    let Ok(program) = text::parse(&String::from_utf8_lossy(source)) else { return };
    if program.blocks.len() > MOST_BLOCKS {
        return;
    }
    let Ok(program) = Verified::new(program) else { return };
    let sample = sample(bytes.get(1..).unwrap_or_default());
    compare(&program, &Known::default(), &[sample.clone(), sample]);
}

#[cfg(test)]
mod tests {
    use testkit::replay;

    /// The inputs that fuzzing starts from, and every input that once failed.
    #[test]
    fn seeds_and_regressions_of_fuzzing_hold() {
        replay::replay("ir_optimize", 11, super::fuzz_optimize);
        // Programs that are regression inputs for the evaluator are inputs here, too.
        replay::replay("ir_text", 5, super::fuzz_optimize);
    }
}
