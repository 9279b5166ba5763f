//! Hand-written programs, each for a case that random programs seldom reach.

use super::harness::{ClassesAre, MapTables, NOW_NS, Sample, check};
use crate::classes::{Classes, Exit, Options};
use ir::expr::{Expr, binary, cell, load, offset, record};
use ir::{BinOp, Builder, Value, Verified};
use packet::field::{Base, Field};

/// Bytes of a frame.
fn byte(f: &mut Builder, at: u16) -> Value {
    f.eval(load(Field::bytes(Base::Data, at, 1)))
}

fn start(outputs: usize) -> Builder {
    let mut f = Builder::new("Hand", outputs);
    let short = f.drop_block("short");
    f.need(Base::Data, 8, short);
    f
}

/// All frames that start with two small bytes, and some with large ones.
fn frames() -> impl Iterator<Item = Sample> {
    let all = (0..12u8).chain([0x7f, 0xfe, 0xff]);
    all.clone()
        .flat_map(move |a| all.clone().map(move |b| (a, b)))
        .map(|(a, b)| Sample::frame(&[a, b, b, a, 9, 9, 9, 9, 9, 9]))
}

fn hold(program: &Verified) -> Classes {
    hold_by(program, &Options { max_paths_apart: 1, ..Options::default() })
}

fn hold_by(program: &Verified, options: &Options<'_>) -> Classes {
    let classes = Classes::of(program, options);
    let mut tables = MapTables::of(program);
    for table in &mut tables.0 {
        for key in [3, 5] {
            table.put(&[key], vec![key as u8; 8]);
        }
        table.refuse = 2;
    }
    let cells: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
    frames().for_each(|sample| {
        check(ClassesAre::Walked, program, &classes, 0, &sample, &cells, &tables, NOW_NS);
    });
    classes
}

/// A program that emits packets that pass a test to its first output, and the others to its second.
fn hold_either(mut f: Builder, test: Expr) -> Classes {
    let (yes, no) = f.branch(test);
    f.at(yes);
    f.emit(0);
    f.at(no);
    f.emit(1);
    hold(&f.finish().expect("a program"))
}

#[test]
fn multiples_and_what_they_are_compared_with() {
    for (by, more, limit) in [(3, 5, 17), (3, 0, 10), (5, 1, 31), (6, 2, 0x47), (7, 200, 0x5fa)] {
        for op in [BinOp::Lt, BinOp::Le, BinOp::Eq, BinOp::Ne] {
            for swap in [false, true] {
                let mut f = start(2);
                let x = byte(&mut f, 0);
                let x = x * by + more;
                let test = if swap { binary(op, limit, x) } else { binary(op, x, limit) };
                let classes = hold_either(f, test);
                // Each is a set of the byte's values.
                assert!(classes.classes.iter().all(|class| class.filter.0.len() <= 2));
            }
        }
    }
}

#[test]
fn a_number_masked_by_a_truth_has_one_bit() {
    for op in [BinOp::And, BinOp::Or] {
        for swap in [false, true] {
            let mut f = start(2);
            let (x, y) = (byte(&mut f, 0), byte(&mut f, 1));
            let truth = y.less_than(5);
            // 2 is not 0, and yet `2 & 1` is.
            let test = if swap { binary(op, truth, x) } else { binary(op, x, truth) };
            hold_either(f, test);
        }
    }
}

#[test]
fn a_lookup_sees_what_was_made_under_an_equal_key() {
    let mut f = start(3);
    let table = f.table("t", 1, 8);
    let (a, b) = (byte(&mut f, 0), byte(&mut f, 1));
    let miss = f.block();
    f.lookup(table, &[a], miss);
    f.emit(0);
    f.at(miss);
    let refused = f.block();
    f.create(table, &[b], &[a], refused);
    let still = f.block();
    f.lookup(table, &[a], still);
    f.emit(1);
    f.at(still);
    f.emit(2);
    f.at(refused);
    f.drop("refused");
    hold(&f.finish().expect("a program"));
}

#[test]
fn two_records_may_be_one() {
    let mut f = start(2);
    let table = f.table("t", 1, 8);
    let (a, b) = (byte(&mut f, 0), byte(&mut f, 1));
    let miss = f.drop_block("missed");
    let first = f.create(table, &[a], &[a], miss);
    let second = f.create(table, &[b], &[a], miss);
    f.store_record(first, 0, 4, 0x0102_0304);
    f.store_record(second, 4, 2, record(second, 1, 2));
    f.store(Field::bytes(Base::Data, 2, 4), record(first, 4, 4));
    f.emit(0);
    hold(&f.finish().expect("a program"));
}

#[test]
fn a_record_is_made_only_where_the_way_comes_to_it() {
    let mut f = start(3);
    let table = f.table("t", 1, 8);
    let (a, b, key) = (byte(&mut f, 0), byte(&mut f, 1), byte(&mut f, 2));
    let (joined, other) = (f.block(), f.block());
    let (one, more) = f.branch(a.equals(1));
    let refused = f.drop_block("refused");
    f.at(more);
    f.check(b.equals(2), other);
    f.create(table, &[key], &[], refused);
    f.jump(joined);
    f.at(one);
    f.create(table, &[key], &[], refused);
    f.jump(joined);
    f.at(joined);
    f.emit(0);
    f.at(other);
    f.emit(1);
    hold(&f.finish().expect("a program"));
}

/// Ways that differ in what they store are one, however many follow one another; each keeps what the others stored, and
/// where records may be one, the later number counts.
#[test]
fn ways_that_differ_in_what_they_store_are_one() {
    let mut f = start(1);
    let table = f.table("t", 1, 8);
    let counted = f.cell("counted", 4);
    let miss = f.drop_block("missed");
    let keys = [byte(&mut f, 0), byte(&mut f, 1)];
    let records = keys.map(|key| f.create(table, &[key], &[key], miss));
    for (at, limit) in [(0, 3), (1, 5), (2, 4), (0, 9)] {
        let number = byte(&mut f, at);
        let (less, more) = f.branch(number.less_than(limit));
        let after = f.block();
        f.at(less);
        f.store_record(records[0], 2, 2, u64::from(at) + 1);
        f.store_record(records[1], 2, 2, record(records[0], 2, 2) + 7);
        f.jump(after);
        f.at(more);
        f.store_record(records[0], 5, 1, number);
        f.store_record(records[0], 2, 2, record(records[1], 2, 2) + 1);
        f.store_record(records[1], 2, 2, limit);
        f.set_cell(counted, cell(counted) + 1);
        f.jump(after);
        f.at(after);
    }
    f.emit(0);
    let program = f.finish().expect("a program");
    let exits = |options: &Options<'_>| {
        hold_by(&program, options).classes.iter().filter(|class| class.exit == Exit::Emit(0)).count()
    };
    let options = Options { max_paths_apart: 1, ..Options::default() };
    assert_eq!(exits(&Options { stores_by_condition: true, ..options }), 1);
    assert!(exits(&options) > 8);
}

#[test]
fn a_place_past_all_places_is_none() {
    let mut f = start(2);
    let (a, b) = (byte(&mut f, 0), byte(&mut f, 1));
    f.set_base(Base::Net, a << 8 | b);
    f.store(Field::bytes(Base::Data, 0, 4), offset(Base::Net));
    let none = f.block();
    f.need(Base::Net, 1, none);
    f.emit(0);
    f.at(none);
    f.emit(1);
    hold(&f.finish().expect("a program"));
}

#[test]
fn of_equal_cases_the_first_counts() {
    let mut f = start(3);
    let a = byte(&mut f, 0);
    let blocks = [f.block(), f.block(), f.block()];
    let cases = vec![(1, blocks[0]), (1, blocks[1]), (2, blocks[1]), (3, blocks[2]), (3, blocks[0])];
    f.switch(a, cases, blocks[2]);
    for (port, block) in blocks.into_iter().enumerate() {
        f.at(block);
        f.emit(port);
    }
    hold(&f.finish().expect("a program"));
}

#[test]
fn what_was_written_decides_what_is_read() {
    let mut f = start(2);
    f.store(Field::bytes(Base::Data, 0, 2), 0x4500);
    let (yes, no) = f.branch((load(Field::bytes(Base::Data, 0, 4)) >> 28).equals(4));
    f.at(yes);
    f.emit(0);
    f.at(no);
    f.emit(1);
    let classes = hold(&f.finish().expect("a program"));
    assert_eq!(classes.classes.len(), 2, "short frames and the others");
}
