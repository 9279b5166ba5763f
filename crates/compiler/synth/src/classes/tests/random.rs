//! Random programs.

use super::harness::{ClassesAre, MapTables, NOW_NS, Sample, check, makes, settled};
use crate::classes::{Classes, Options};
use ir::expr::{
    anno, avail, binary, cell, csum_update, ip_sum, load, offset, packet_len, record, select, transport_sum,
};
use ir::{BinOp, Inst, Program, RandomStart, Term, Value, Verified};
use packet::anno;
use packet::field::{Base, Field};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use shm::descriptor::{NO_HEADER, Packet};

/// A program made from a string of choices, with joins, switches, lookups and moves of headers.
pub fn program(choices: &[(u8, u16, u8, u64)]) -> Verified {
    let RandomStart { mut f, short, cells, tables, .. } = RandomStart::new(choices.len());
    let [known, made] = tables;
    let mut values = vec![f.eval(7)];
    let mut records = vec![];
    let mut push_left = 20u16;
    let mut splits = 0;
    for &(what, a, b, number) in choices {
        let pick = |n: u16| values[usize::from(n) % values.len()];
        let (x, y): (Value, Value) = (pick(a), pick(u16::from(b)));
        let (field, fits) = RandomStart::field(a, b);
        match what % 24 {
            0 => values.push(f.eval(if b % 2 == 0 { number } else { number % 70 })),
            1 | 2 => {
                let op = BinOp::ALL[usize::from(a) % BinOp::ALL.len()].0;
                values.push(f.eval(binary(op, x, y)));
            }
            3 | 4 if fits => values.push(f.eval(load(field))),
            5 | 6 if fits => f.store(field, x),
            7 => values.push(f.eval(select(x, y, values[0]))),
            8 => values.push(f.eval(csum_update(x, y, pick(a ^ 5), if b % 2 == 0 { 16 } else { 32 }))),
            9 => values.push(f.value(
                [Inst::Len, Inst::Avail(Base::Net), Inst::Offset(Base::Trans), Inst::Now, Inst::PacketType]
                    [usize::from(a) % 5],
            )),
            10 => {
                let len = [1, 2, 4, 8][usize::from(b) % 4];
                f.store_anno(anno::Anno { offset: (a % 40) as u8, len }, x);
                values.push(f.eval(anno(anno::Anno { offset: (a % 38) as u8 + 1, len: 4 })));
            }
            11 => {
                f.add_to_cell(cells[usize::from(a) % 2], x);
                values.push(f.eval(cell(cells[usize::from(b) % 2])));
            }
            12 if splits < 9 => {
                splits += 1;
                let els = f.bad_block(usize::from(a) % 5, "branch");
                f.check(x, els);
            }
            13 if splits < 9 => {
                // A diamond: two sides that write differently, and a value that differs.
                splits += 1;
                let (yes, no) = f.branch(x);
                let joined = f.block();
                let param = f.param(joined);
                f.at(yes);
                if a % 2 == 0 {
                    f.store_anno(anno::PAINT, y);
                }
                f.end(Term::Jump(joined, vec![y]));
                f.at(no);
                let one = f.eval(1);
                f.end(Term::Jump(joined, vec![if b % 3 == 0 { y } else { one }]));
                f.at(joined);
                values.push(param);
            }
            14 if splits < 9 => {
                splits += 1;
                let (one, other, rest) = (f.block(), f.bad_block(1, "switch"), f.block());
                let cases = vec![(number & 0x707, one), (1, other), (3, other), (2, one), (6, rest)];
                f.switch(x & 0x707, cases, rest);
                f.at(one);
                f.jump(rest);
                f.at(rest);
            }
            15 if records.len() < 3 => {
                let x = f.eval(x & 7);
                if a % 3 == 0 {
                    let miss = f.bad_block(0, "missed");
                    let rec = f.lookup(known, &[x, y], miss);
                    records.push(rec);
                } else {
                    let miss = f.bad_block(2, "refused");
                    let rec = f.create(made, &[x, pick(b.into())], &[y], miss);
                    records.push(rec);
                }
                values.push(f.eval(record(records[records.len() - 1], 0, 8)));
            }
            16 | 17 if !records.is_empty() => {
                let rec = records[usize::from(a) % records.len()];
                let other = records[usize::from(b) % records.len()];
                f.store_record(rec, 8, 2, x);
                f.store_record(rec, u16::from(b % 3), 4, y);
                values.push(f.eval(record(other, 8, [2, 4][usize::from(b) % 2])));
                values.push(f.eval(record(other, 0, 8)));
            }
            18 => {
                f.set_base(Base::Mac, x & 31);
                values.push(f.eval(transport_sum(17)));
                values.push(f.eval(ip_sum()));
                values.push(f.eval(offset(Base::Mac)));
            }
            19 if push_left >= 5 => {
                push_left -= 5;
                f.push(5);
                f.store(Field::bytes(Base::Data, 0, 5), x);
            }
            20 => {
                f.take(x | 54);
                f.pull(x & 3);
                values.push(f.eval(avail(Base::Data)));
            }
            21 if splits < 9 => {
                splits += 1;
                f.need(Base::Data, 34, short);
                f.set_base(Base::Net, 14);
                let els = f.bad_block(usize::from(a) % 3, "segments");
                f.check(avail(Base::Data).equals(packet_len()), els);
                values.push(f.eval(load(Field::bytes(Base::Data, 6, 8))));
                values.push(f.eval(load(Field::bytes(Base::Data, 14, 8))));
                values.push(f.eval(ip_sum()));
            }
            22 => values.push(f.eval(x & number)),
            23 if splits < 9 => {
                splits += 1;
                let op = [BinOp::Lt, BinOp::Le, BinOp::Eq, BinOp::Ne][usize::from(b) % 4];
                let els = f.bad_block(usize::from(a) % 3, "tested");
                f.check(binary(op, x & 0xf0ff, number & 0xf0ff), els);
            }
            _ => {}
        }
    }
    let last = values[values.len() - 1];
    let none = f.drop_block("no-port");
    f.emit_to(last, none);
    f.finish().expect("a valid program")
}

/// A frame, the locations of its headers, and whether its IP header is made valid.
pub fn sample(bytes: &[u8], place: (u8, u8, u8), right: bool) -> Sample {
    let mut frame = bytes.to_vec();
    if right && frame.len() >= 34 {
        frame[14] = 0x45 + frame[15] % 3;
        let len = frame.len() as u16 - 14;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        let header = usize::from(frame[14] & 15) * 4;
        let _ = packet::checksum::set_ipv4_header(&mut frame[14..], 0, header);
    }
    let mut sample = Sample::frame(&frame);
    let data = sample.packet.data();
    let at = |n: u8, usual: u16| match n % 8 {
        0 => NO_HEADER,
        1 => data + u16::from(n / 8),
        2 => data - u16::from(n / 8),
        _ => data + usual,
    };
    let packet: &mut Packet = &mut sample.packet;
    (packet.mac, packet.net, packet.trans) = (at(place.0, 0), at(place.1, 14), at(place.2, 34));
    packet.anno = std::array::from_fn(|at| bytes.get(at * 3 % bytes.len().max(1)).copied().unwrap_or(9));
    packet.packet_type = place.0 % 5;
    packet.origin = u16::from(place.1 % 3);
    sample
}

/// Tables in which some keys are known.
fn tables(program: &Program) -> MapTables {
    let mut tables = MapTables::of(program);
    if let [known, made] = tables.0.as_mut_slice() {
        for key in (0..64).map(|n| [n % 8, n / 8]) {
            known.put(&key, (0..16).map(|at| (key[0] * 16 + key[1] + at) as u8).collect());
        }
        made.refuse = 1;
    }
    tables
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn one_class_has_each_packet_and_says_what_becomes_of_it(
        choices in prop::collection::vec(any::<(u8, u16, u8, u64)>(), 0..40),
        frames in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..90), any::<(u8, u8, u8)>(), any::<bool>()), 1..20),
        apart in 1usize..6,
        stores_by_condition in any::<bool>(),
    ) {
        let program = program(&choices);
        let options = Options { max_paths_apart: apart, stores_by_condition, ..Options::default() };
        let classes = Classes::of(&program, &options);
        prop_assert!(classes.left.is_empty());
        let tables = tables(&program);
        let settled = settled(Classes::of(&program, &options));
        for (bytes, place, right) in &frames {
            let sample = sample(bytes, *place, *right);
            check(ClassesAre::Walked, &program, &classes, 0, &sample, &[3, 4], &tables, NOW_NS);
            check(ClassesAre::Settled, &program, &settled, 0, &sample, &[3, 4], &tables, NOW_NS);
        }
        // Packets generated for a class are in it.
        let mut rng = Pcg64::seed_from_u64(choices.len() as u64);
        for at in 0..classes.classes.len().min(12) {
            for (bytes, ..) in frames.iter().cycle().take(2) {
                makes(&program, &classes, at, long_sample(bytes), &[3, 4], &tables, &mut rng);
            }
        }
    }
}

/// A frame that is long enough, with its headers at their usual places.
fn long_sample(bytes: &[u8]) -> Sample {
    sample(&[bytes, &[0; 64]].concat(), (3, 3, 3), true)
}

/// Of random programs, no packet may be found for a class; of this one, some are.
#[test]
fn packets_of_a_fixed_program_are_found() {
    let choices =
        [(3, 8, 1, 0), (12, 3, 1, 0), (15, 1, 1, 0), (15, 3, 1, 0), (21, 2, 0, 0), (23, 2, 3, 0x4011)];
    let program = program(&choices);
    let classes = Classes::of(&program, &Options::default());
    let (tables, mut rng) = (tables(&program), Pcg64::seed_from_u64(1));
    let mut is_found = |at: &usize| {
        (0..8)
            .any(|byte| makes(&program, &classes, *at, long_sample(&[byte; 30]), &[3, 4], &tables, &mut rng))
    };
    let all = classes.classes.len();
    let found = (0..all).filter(&mut is_found).count();
    assert!(all > 6 && 2 * found > all, "{found} of {all}");
}
