//! Machine code compared with the evaluator, on random programs and random packets.
#![expect(unsafe_code, reason = "promises machine code that a table's records are addresses")]

mod rig;
mod shared_stages;

use codegen::{Engine, Scratch};
use ir::eval::{Buffer, EvalState};
use ir::expr::{
    anno, avail, binary, cell, csum_update, ip_sum, load, packet_len, record, select, transport_sum,
};
use ir::{BinOp, Builder, Created, Inst, Program, RandomStart, Table, Value, Verified};
use packet::access::Access;
use packet::anno;
use packet::field::{Base, Field};
use proptest::prelude::*;
use rig::{BoxTable, Seen};
use shm::Packet;
use shm::burst::{Burst, Exits};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{Pool, SharedPool};

/// Runs a program on frames at two times, with a table of known records and one for new records.
fn run(program: &Program, engine: &Engine, frames: &[Vec<u8>], refuse_odd: bool) -> Seen {
    let mut known = BoxTable::new(2, 2);
    for key in (0..64).map(|n| [n % 8, n / 8]) {
        known.create(&key, &key, 9);
    }
    let mut made = BoxTable::new(2, 2);
    made.refuse_odd = refuse_odd;
    rig::run(program, engine, frames, vec![known, made], &[5, 6])
}

/// A program generated from choices: some checks, then instructions, branches and a lookup.
fn program(choices: &[(u8, u16, u8, u64)]) -> Verified {
    let RandomStart { mut f, outputs, short, cells, tables } = RandomStart::new(choices.len());
    let [known, made] = tables;
    let mut values = vec![f.eval(7)];
    let mut held = None;
    let mut push_left = 20u16;
    for &(what, a, b, number) in choices {
        let pick = |n: u16| values[usize::from(n) % values.len()];
        let (x, y): (Value, Value) = (pick(a), pick(u16::from(b)));
        let (field, fits) = RandomStart::field(a, b);
        match what % 18 {
            0 => values.push(f.eval(number)),
            1 | 2 => {
                let op = BinOp::ALL[usize::from(a) % BinOp::ALL.len()].0;
                values.push(f.eval(binary(op, x, y)));
            }
            3 | 4 if fits => values.push(f.eval(load(field))),
            5 if fits => f.store(field, x),
            6 => values.push(f.eval(select(x, y, values[0]))),
            7 => values.push(f.eval(csum_update(x, y, pick(a ^ 5), if b % 2 == 0 { 16 } else { 32 }))),
            8 => values.push(f.value(
                [Inst::Len, Inst::Avail(Base::Net), Inst::Offset(Base::Trans), Inst::Now][usize::from(a) % 4],
            )),
            9 => {
                let len = [1, 2, 4, 8][usize::from(b) % 4];
                let place = anno::Anno { offset: (a % 40) as u8, len };
                f.store_anno(place, x);
                values.push(f.eval(anno(place)));
            }
            10 => {
                // A cell is used on one side of the lookup only: stages run one after the other over the
                // batch.
                let count = cells[usize::from(held.is_some())];
                f.add_to_cell(count, x);
                values.push(f.eval(cell(count)));
            }
            11 => {
                let els = f.bad_block(usize::from(a) % 5, "branch");
                f.check(x, els);
            }
            12 if held.is_none() => {
                let x = f.eval(x & 7);
                let miss = f.block();
                let found = f.lookup(known, &[x, y], miss);
                let here = f.here();
                f.at(miss);
                let fail = f.bad_block(1, "refused");
                let new = f.create(made, &[x, y], &[y], fail);
                // The first word is set from the arguments.
                f.store_anno(anno::AGGREGATE, record(new, if a % 2 == 0 { 0 } else { 8 }, 4));
                f.store_record(new, 8, 4, y);
                f.emit(outputs - 1);
                f.at(here);
                held = Some(found);
                values.push(f.eval(record(found, 0, 8)));
            }
            13 => {
                if let Some(held) = held {
                    f.store_record(held, 8, 2, x);
                    values.push(f.eval(record(held, 4, 4)));
                }
            }
            14 => {
                f.set_base(Base::Mac, x & 31);
                values.push(f.eval(transport_sum(17)));
                let sum = f.eval(ip_sum());
                values.push(sum);
                values.push(f.eval(sum.equals(0xffff)));
            }
            15 if push_left >= 5 => {
                push_left -= 5;
                f.push(5);
                f.store(Field::bytes(Base::Data, 0, 5), x);
            }
            16 => {
                f.take(x | 54);
                f.pull(x & 3);
            }
            17 => {
                f.need(Base::Data, 34, short);
                f.set_base(Base::Net, 14);
                let els = f.bad_block(usize::from(a) % 3, "segments");
                f.check(avail(Base::Data).equals(packet_len()), els);
                // Some cut the header off.
                let keep = x | u64::from(a % 60);
                let keep = f.eval(if b % 2 == 0 { keep } else { keep & 127 });
                if b % 4 == 1 {
                    let els = f.bad_block(usize::from(b) % 3, "longer");
                    f.check(keep.at_most(packet_len()), els);
                }
                f.take(keep);
                values.push(f.eval(ip_sum()));
                values.push(f.eval(avail(Base::Net)));
            }
            _ => {}
        }
    }
    let last = values[values.len() - 1];
    let none = f.drop_block("no-port");
    f.emit_to(last, none);
    f.finish().expect("a valid program")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn machine_code_does_what_the_evaluator_does(
        choices in prop::collection::vec(any::<(u8, u16, u8, u64)>(), 0..40),
        mut frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 1..20),
        refuse_odd: bool,
    ) {
        for (at, frame) in frames.iter_mut().enumerate() {
            if at % 3 > 0 && frame.len() > 18 {
                // Some with options; most of those have a header length beyond the packet's end.
                frame[14] = 0x45 + (frame[15] % 4) * u8::from(frame[15] > 100);
                frame[16] = 0;
                frame[17] = frame.len() as u8 - 14;
                if frame[15] % 2 == 0 {
                    let header_bytes = usize::from(frame[14] & 15) * 4;
                    // A truncated header has no correct sum.
                    let _ = packet::checksum::set_ipv4_header(&mut frame[14..], 0, header_bytes);
                }
            }
        }
        let program = program(&choices);
        let parsed = ir::text::parse(&ir::text::print(&program)).expect("own text");
        prop_assert_eq!(&parsed, &*program);
        let [evaluator, native] = rig::engines(&program);
        let expected = run(&program, &evaluator, &frames, refuse_odd);
        prop_assert_eq!(run(&program, &native, &frames, refuse_odd), expected);
    }
}

/// Number of checksum words in a frame.
const WORDS: u16 = 64;

/// Updates each word as a checksum for a number that changes from `old` to `new`, the same for all words.
fn step(old: u64, new: u64, bits: u8) -> Verified {
    let mut f = Builder::new("Step", 1);
    let short = f.drop_block("short");
    f.need(Base::Data, usize::from(2 * WORDS), short);
    let (old, new) = (f.eval(old), f.eval(new));
    for word in 0..WORDS {
        let field = Field::bytes(Base::Data, 2 * word, 2);
        f.store(field, csum_update(load(field), old, new, bits));
    }
    f.emit(0);
    f.finish().expect("a valid program")
}

#[test]
fn constant_changes_of_every_checksum() {
    let (all, ones) = (0xffff, 0xffff_ffff);
    let narrow = [(256, 0), (0, 0), (all, 0), (0, all), (all, all), (1, 0x1234), (0xfffe, 0x80ff)];
    let wide = [(0, 0), (ones, 0), (0, ones), (ones, ones), (0x0a00_0001, 0xc633_6401), (1, 0xffff_0000)];
    let narrow = narrow.map(|(old, new)| (old, new, 16));
    for (old, new, bits) in narrow.into_iter().chain(wide.map(|(old, new)| (old, new, 32))) {
        let program = step(old, new, bits);
        let [evaluator, native] = rig::engines(&program);
        for batch in 0..4u16 {
            let frame =
                |frame: u16| (0..WORDS).flat_map(move |n| ((batch * 256 + frame) * WORDS + n).to_be_bytes());
            let frames: Vec<Vec<u8>> = (0..256).map(|at| frame(at).collect()).collect();
            let expected = run(&program, &evaluator, &frames, false);
            assert_eq!(run(&program, &native, &frames, false), expected, "{old:#x} to {new:#x}, {bits} bits");
        }
    }
}

/// The frames for which a test is skipped.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Skip {
    Nobody,
    Odd,
    Even,
}

/// A frame's first byte is the length to cut it to, after a test that it is at least as long. In between,
/// bytes may be pulled, or the test may be skipped on one path.
fn cut(pull: bool, skip: Skip) -> Verified {
    let mut f = Builder::new("Cut", 1);
    let short = f.drop_block("short");
    f.need(Base::Data, 2, short);
    let keep = f.eval(load(Field::bytes(Base::Data, 0, 1)));
    let which = f.eval(load(Field::bytes(Base::Data, 1, 1)));
    let [segments, longer] = [0, 1].map(|reason| f.bad_block(reason, ["segments", "longer"][reason]));
    f.check(avail(Base::Data).equals(packet_len()), segments);
    let (join, asked, other) = (f.block(), f.block(), f.block());
    let odd = f.eval(which & 1);
    match skip {
        Skip::Nobody => f.jump(asked),
        Skip::Odd => f.branch_to(odd, other, asked),
        Skip::Even => f.branch_to(odd, asked, other),
    }
    if skip != Skip::Nobody {
        f.at(other);
        f.jump(join);
    }
    f.at(asked);
    f.check(keep.at_most(packet_len()), longer);
    f.jump(join);
    f.at(join);
    if pull {
        f.pull(which & 7);
    }
    f.take(keep);
    f.emit(0);
    f.finish().expect("a valid program")
}

#[test]
fn what_was_asked_holds_no_longer_than_the_packet_stays_as_it_was() {
    let frames: Vec<Vec<u8>> = (0..200u8)
        .map(|at| (0..40).map(|byte| if byte == 0 { at % 50 } else { at ^ byte }).collect())
        .collect();
    let skips = [Skip::Nobody, Skip::Odd, Skip::Even];
    for (pull, skip) in skips.into_iter().flat_map(|skip| [(false, skip), (true, skip)]) {
        let program = cut(pull, skip);
        let [evaluator, native] = rig::engines(&program);
        let expected = run(&program, &evaluator, &frames, false);
        assert_eq!(run(&program, &native, &frames, false), expected, "pull {pull}, skip {skip:?}");
    }
}

#[test]
#[should_panic(expected = "list names Some(2) of 2")]
fn a_list_names_packets_of_the_vector_only() {
    let mut f = Builder::new("All", 1);
    f.emit(0);
    let program = f.finish().expect("a valid program");
    let [_, engine] = rig::engines(&program);
    let (mut packets, mut tables) = ([Packet::EMPTY; 2], ());
    let mut state = EvalState { cells: &mut [], tables: &mut tables, now_ns: 0 };
    let burst = Burst { input: 0, packets: &mut packets, list: &[0, 2] };
    let mut exits = Exits::with_capacity(1);
    codegen::run(&engine, burst, &mut state, &mut Scratch::default(), &mut exits);
}

/// Runs one packet that looks up its length in a table of two key words and 16 bytes, and adds to a cell.
fn run_on(table: impl Table + 'static, cells: &mut [u64]) {
    let mut f = Builder::new("Counted", 1);
    let (count, known) = (f.cell("count", 0), f.table("known", 2, 16));
    let miss = f.drop_block("unknown");
    let key = f.eval(packet_len());
    f.add_to_cell(count, key);
    f.lookup(known, &[key, key], miss);
    f.emit(0);
    let program = f.finish().expect("a valid program");
    let [_, engine] = rig::engines(&program);
    let mut packets = [Packet::EMPTY];
    let mut tables: Vec<Box<dyn Table>> = vec![Box::new(table)];
    let mut state = EvalState { cells, tables: &mut tables, now_ns: 0 };
    let burst = Burst { input: 0, packets: &mut packets, list: &[0] };
    let mut exits = Exits::with_capacity(1);
    codegen::run(&engine, burst, &mut state, &mut Scratch::default(), &mut exits);
    assert_eq!(exits.dropped(0), [0]);
}

/// A table of other sizes than the program declares; it is empty.
struct Shaped(usize, Option<usize>);

// SAFETY: it returns no record.
unsafe impl Table for Shaped {
    fn key_words(&self) -> usize {
        self.0
    }

    fn record_bytes(&self) -> Option<usize> {
        self.1
    }

    fn lookup(&self, _key: &[u64]) -> Option<u64> {
        None
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn record_load(&self, _record: u64, _offset: u16, _bytes: u8) -> u64 {
        0
    }

    fn record_store(&mut self, _record: u64, _offset: u16, _bytes: u8, _value: u64) {}
}

#[test]
fn tables_and_cells_that_fit_are_taken() {
    run_on(Shaped(2, Some(16)), &mut [0]);
    run_on(Shaped(2, Some(64)), &mut [0, 0]);
}

#[test]
#[should_panic(expected = "program `Counted` has 1 state cells and was given 0")]
fn fewer_cells_than_declared_are_refused() {
    run_on(Shaped(2, Some(16)), &mut []);
}

#[test]
#[should_panic(expected = "has keys of 1 words and records of 16 bytes; the program declares 2 and 16")]
fn a_table_of_other_keys_is_refused() {
    run_on(Shaped(1, Some(16)), &mut [0]);
}

#[test]
#[should_panic(expected = "has keys of 2 words and records of 8 bytes; the program declares 2 and 16")]
fn a_table_of_shorter_records_is_refused() {
    run_on(Shaped(2, Some(8)), &mut [0]);
}

#[test]
#[should_panic(expected = "table `known` gives out no addresses")]
fn a_table_without_addresses_is_for_the_evaluator_only() {
    run_on(Shaped(2, None), &mut [0]);
}

/// For the evaluator a packet is its first buffer, whatever its lengths are, and ends with that.
#[test]
fn a_buffer_is_read_as_a_whole() {
    let region = PacketRegion::create(RegionOptions::slots(64)).expect("memory");
    let mut pool = SharedPool::new(region).worker();
    let mut packets = [Packet::EMPTY];
    assert_eq!(pool.alloc(&mut packets), 1);
    assert!(packets[0].put(10));
    let mut buffer = codegen::SlotBuffer(packets[0]);
    let end = shm::descriptor::BUF_BYTES;
    let mut read = [0; 4];
    for at in [0, usize::from(packets[0].data()) + 8, end - 4] {
        assert!(buffer.write(at, b"here") && buffer.read(at, &mut read), "at {at}");
        assert_eq!(&read, b"here");
    }
    assert!(!buffer.read(end - 3, &mut read) && !buffer.write(end - 3, b"gone"));
    assert!(!buffer.read_packet(&packets[0], 8, &mut read), "the packet ends there");
    pool.free_all(&packets);
}
