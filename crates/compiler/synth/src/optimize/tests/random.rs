//! Random programs, shaped like chains, on random packets.

use crate::fuzz::{FLAGS, LAST_NS, PAYLOAD_NS, SEEN, Sample, compare};
use crate::optimize::Known;
use ir::expr::{
    Expr, anno, avail, binary, cell, csum_update, ip_sum, load, now_ns, offset, packet_len, record, select,
    transport_sum,
};
use ir::program::BinOp;
use ir::{BlockId, Builder, Inst, Term, Value, Verified};
use packet::anno;
use packet::field::{self, Base, Field};
use proptest::prelude::*;

/// The choices for a part of a program.
pub(crate) type Choice = (u8, u16, u8, u64);

/// A program under construction, part by part.
struct Maker {
    f: Builder,
    cells: Vec<u16>,
    /// Tables with keys of one word, and with keys of two words: for lookups, and for creating records.
    tables: [u16; 3],
    values: Vec<Value>,
    records: Vec<Value>,
}

const OUTPUTS: usize = 3;

impl Maker {
    fn new() -> Maker {
        let mut f = Builder::new("Random", OUTPUTS);
        let cells = (0..4).map(|n| f.cell(&format!("c{n}"), [1, 0, 0x0102_0304_0506_0708, 2][n])).collect();
        let tables = [f.prefix_table("routes", 16), f.table("known", 2, 24), f.table("made", 2, 40)];
        Maker { f, cells, tables, values: vec![], records: vec![] }
    }

    /// The exit of invalid packets.
    fn away(&mut self, how: u8) -> BlockId {
        let count = self.cells[1];
        self.f.aside(|f| match how % 6 {
            0..=2 => f.drop("bad"),
            3 => f.emit(1),
            4 => f.slow("slow"),
            _ => {
                f.add_to_cell(count, 1);
                f.drop("counted");
            }
        })
    }

    fn pick(&mut self, at: u16) -> Value {
        if self.values.is_empty() {
            let value = self.f.eval(7);
            self.values.push(value);
        }
        self.values[usize::from(at) % self.values.len()]
    }

    fn check_ip(&mut self, offset: u64, how: u8, number: u64) {
        let bad = self.away(how);
        let f = &mut self.f;
        f.need(Base::Data, offset as usize + 20, bad);
        f.set_base(Base::Net, offset);
        let first = f.eval(load(Field::bytes(Base::Net, 0, 1)));
        f.check((first - 0x45).less_than(11), bad);
        let header = f.eval((first & 15) << 2);
        let length = f.eval(load(field::IP_LEN));
        f.check(header.at_most(length), bad);
        let end = f.eval(length + offset);
        f.check(end.at_most(packet_len()), bad);
        if number & 7 != 0 {
            f.check(ip_sum().equals(0xffff), bad);
        }
        if number & 8 != 0 {
            let (good, suspect) = (f.block(), f.block());
            f.switch(load(field::IP_SRC), vec![(0, suspect), (0xffff_ffff, suspect)], good);
            f.at(suspect);
            let cases = if number & 16 != 0 { vec![(0x0a00_0002, good)] } else { vec![] };
            f.switch(load(field::IP_DST), cases, bad);
            f.at(good);
        }
        f.set_base(Base::Trans, header + offset);
        let destination = f.eval(load(field::IP_DST));
        f.store_anno(anno::DST_IP, destination);
        f.check(avail(Base::Data).equals(packet_len()), bad);
        f.take(end);
        self.values = vec![length, header, destination];
    }

    fn dec_ttl(&mut self, how: u8, number: u64) {
        let (bad, expired, untouched) = (self.away(how), self.away(how / 6), self.f.block());
        let (active, f) = (self.cells[0], &mut self.f);
        if number & 1 == 1 {
            f.check(cell(active), untouched);
        }
        f.need(Base::Net, 20, bad);
        let (ttl, one) = (f.eval(load(field::IP_TTL)), f.eval(1));
        f.check(ttl.greater_than(one), expired);
        let by = if number & 0x70 == 0 { 0x0200 } else { 0x0100 };
        let sum = f.eval(csum_update(load(field::IP_SUM), by, 0, 16));
        f.store(field::IP_TTL, ttl - one);
        f.store(field::IP_SUM, sum);
        f.jump(untouched);
        f.at(untouched);
        self.values.clear();
    }

    fn rewrite_mac(&mut self, how: u8, number: u64) {
        let (bad, next) = (self.away(how), self.f.block());
        let (held, f) = (self.cells[2], &mut self.f);
        let headless = f.block();
        for base in [Base::Mac, Base::Data] {
            f.need(base, 12, if base == Base::Mac { headless } else { bad });
            let front = f.eval(if number.is_multiple_of(3) { cell(held) } else { Expr::from(number) });
            f.store(Field::bytes(base, 0, 8), front);
            f.store(Field::bytes(base, 8, 4), front);
            f.jump(next);
            f.at(headless);
        }
        f.drop("headless");
        f.at(next);
        self.values.clear();
    }

    fn strip(&mut self, number: u64) {
        let by = if number.is_multiple_of(5) { number % 40 } else { 14 };
        self.f.pull(by);
    }

    fn encapsulate(&mut self, how: u8, number: u64) {
        let bad = self.away(how);
        let f = &mut self.f;
        f.room(14, bad);
        f.push(14);
        let front = f.eval(number);
        f.store(Field::bytes(Base::Data, 0, 8), front);
        f.store(Field::bytes(Base::Data, 8, 6), front);
        if number & 1 == 1 {
            f.set_base(Base::Mac, 0);
        }
    }

    fn replace(&mut self, how: u8, a: u16, number: u64) {
        let bad = self.away(how);
        let value = self.pick(a);
        let f = &mut self.f;
        f.need(Base::Net, 20, bad);
        let field =
            [field::IP_SRC, field::IP_DST, field::IP_ID, Field::bytes(Base::Net, 0, 2), field::IP_LEN]
                [usize::from(a) % 5];
        let value = match number % 4 {
            0 => value.into(),
            1 => Expr::from(0xffff_ffff),
            2 => Expr::from(0),
            _ => Expr::from(number),
        };
        f.replace(field, value, field::IP_SUM);
    }

    fn route(&mut self, how: u8) {
        let miss = self.away(how);
        let small = self.f.eval(anno(anno::DST_IP) & 0xf);
        let hop = self.f.lookup(self.tables[0], &[small], miss);
        let f = &mut self.f;
        let gateway = f.eval(record(hop, 0, 4));
        let address = f.eval(select(gateway, gateway, anno(anno::DST_IP)));
        f.store_anno(anno::DST_IP, address);
        let port = f.eval(record(hop, 8, 1) & 7);
        if how.is_multiple_of(3) {
            let none = f.block();
            f.emit_to(port, none);
            f.at(none);
        }
        self.values = vec![gateway, address];
        self.records = vec![hop];
    }

    fn translate(&mut self, how: u8, number: u64) {
        let (bad, fail) = (self.away(how), self.away(how / 6));
        let f = &mut self.f;
        f.need(Base::Net, 20, bad);
        let proto = f.eval(load(field::IP_PROTO));
        f.check(proto.equals(6) | proto.equals(17), bad);
        f.need(Base::Trans, 8, bad);
        let key = [f.eval(load(field::IP_PAIR)), f.eval(load(field::L4_PORTS) << 16 | proto)];
        let arg = f.eval(number);
        let found = f.create(self.tables[2], &key, &[arg], fail);
        let new = f.eval(record(found, 0, 8));
        f.store(field::IP_PAIR, new);
        let delta = f.eval(record(found, 8, 2));
        let sum = f.eval((load(field::IP_SUM) ^ 0xffff) + delta);
        f.store(field::IP_SUM, ((sum & 0xffff) + (sum >> 16)) ^ 0xffff);
        f.store(field::L4_PORTS, record(found, 10, 4));
        let seen = record(found, SEEN, 1) + 1;
        // The value becomes stable, or not.
        let seen = f.eval(if number & 14 == 0 { seen } else { seen.min(3) });
        if number & 16 == 0 {
            f.store_record(found, LAST_NS, 8, now_ns());
        }
        if number & 32 == 0 {
            let flag = f.eval(load(field::IP_TOS).less_than(number >> 8 & 0xff));
            f.store_record(found, FLAGS, 1, record(found, FLAGS, 1) | flag);
            let old = record(found, PAYLOAD_NS, 8);
            let time =
                if number & 64 == 0 { select(flag, now_ns(), old) } else { select(flag, old, now_ns()) };
            f.store_record(found, PAYLOAD_NS, 8, time);
        }
        f.store_record(found, SEEN, 1, seen);
        if number & 128 == 0 {
            // What is counted may be asked for later.
            self.values = vec![new, delta];
            self.records = vec![found];
            return;
        }
        self.values = vec![new, delta, seen];
        self.records = vec![found];
    }

    /// The path forks and joins again.
    fn fork(&mut self, how: u8, a: u16, number: u64) {
        let bad = self.away(how);
        self.f.need(Base::Net, 20, bad);
        let field = [field::IP_PROTO, field::IP_DST, field::IP_TTL, field::IP_TOS][usize::from(a) % 4];
        let left = self.f.eval(load(field));
        let op = [BinOp::Eq, BinOp::Lt, BinOp::Le, BinOp::Ne, BinOp::And][usize::from(how) % 5];
        let (yes, no) = self.f.branch(binary(op, left, number % 70));
        let next = self.f.block();
        let param = self.f.param(next);
        for (block, value) in [(yes, number), (no, number >> 8)] {
            self.f.at(block);
            let handed = if how & 8 == 0 || block == yes { self.f.eval(value % 8) } else { left };
            if value & 1 == 1 {
                self.f.store(field::IP_TOS, handed);
            }
            if value & 2 == 2 {
                self.f.store_anno(anno::PAINT, handed);
            }
            if value & 4 == 4 {
                self.f.set_base(Base::Net, 14);
            }
            if value & 8 == 8 {
                self.f.act(Inst::SetPacketType(handed));
            }
            self.f.end(Term::Jump(next, vec![handed]));
        }
        self.f.at(next);
        self.values = vec![param, left];
    }

    fn classify(&mut self, how: u8, a: u16, number: u64) {
        let (bad, next) = (self.away(how), self.f.block());
        self.f.need(Base::Net, 20, bad);
        let field = [field::IP_PROTO, field::IP_SRC, field::IP_TTL, field::IP_FRAG][usize::from(a) % 4];
        let value = self.f.eval(load(field));
        let cases = [(6, next), (17, next), (number % 64, bad), (1, bad)];
        let cases = cases[..1 + usize::from(how) % 4].to_vec();
        let default = if number & 64 == 0 { bad } else { next };
        self.f.switch(value, cases, default);
        self.f.at(next);
        if default == bad {
            self.values = vec![value];
        }
    }

    /// One instruction of any kind.
    fn any(&mut self, a: u16, b: u8, number: u64) {
        let (x, y, z) = (self.pick(a), self.pick(b.into()), self.pick(a / 7));
        let place = anno::Anno { offset: (a % 40) as u8, len: [1, 2, 4, 8][usize::from(b) % 4] };
        let held = self.cells[usize::from(a) % 4];
        let base = Base::ALL[usize::from(b) % 4];
        let f = &mut self.f;
        match number % 24 {
            0..=5 => {
                let op = BinOp::ALL[usize::from(a) % BinOp::ALL.len()].0;
                let few = (number >> 8) % [2, 16, 300, 70_000][usize::from(b) % 4];
                let y = if b < 100 { Expr::from(few) } else { y.into() };
                self.values.push(f.eval(binary(op, x, y)));
            }
            6 => self.values.push(f.eval(number)),
            7 => self.values.push(f.eval(select(x, y, z))),
            8 => self.values.push(f.eval(csum_update(x, y, z, if b < 128 { 16 } else { 32 }))),
            9 => f.store_anno(place, x),
            10 => self.values.push(f.eval(anno(place))),
            11 => f.set_cell(held, x),
            12 => f.add_to_cell(held, x),
            13 => self.values.push(f.eval(cell(held))),
            14 => self.values.push(f.eval(avail(base))),
            15 => self.values.push(f.eval(offset(base))),
            16 => self.values.push(f.eval(packet_len())),
            17 if base != Base::Data => f.set_base(base, if b < 128 { x & 63 } else { x.into() }),
            18 if base != Base::Data && b > 220 => f.clear_base(base),
            19 => self.values.push(f.value(Inst::PacketType)),
            20 => self.values.push(f.eval(transport_sum(17))),
            21 => self.values.push(f.eval(ip_sum())),
            22 => f.take(x | 20),
            _ => self.values.push(f.value([Inst::Now, Inst::Timestamp, Inst::Origin][usize::from(a) % 3])),
        }
    }

    /// Reads or writes some bits after a test that they are there.
    fn bits(&mut self, how: u8, a: u16, b: u8, number: u64) {
        let base = Base::ALL[usize::from(b) % 4];
        let field = Field::new(base, a % 200, 1 + (number % 40) as u8);
        let field = if a.is_multiple_of(3) {
            Field::bytes(base, a / 3 % 24, [1, 2, 4, 8][usize::from(b) / 4 % 4])
        } else {
            field
        };
        if !field.is_valid() {
            return;
        }
        let value = self.pick(a ^ 3);
        let bad = self.away(how);
        self.f.need(base, usize::from(field.end_byte()).max(20), bad);
        if number & 128 == 0 {
            self.values.push(self.f.eval(load(field)));
        } else {
            self.f.store(field, value);
        }
    }

    fn append(&mut self, (what, a, b, number): Choice) {
        let how = (number >> 16) as u8;
        match what % 20 {
            0..=2 => self.check_ip(if b % 4 == 0 { 0 } else { 14 }, how, number),
            3 | 4 => self.dec_ttl(how, number),
            5 => self.rewrite_mac(how, number),
            6 => self.strip(number),
            7 => self.encapsulate(how, number),
            8 | 9 => self.replace(how, a, number),
            10 => self.route(how),
            11 => self.translate(how, number),
            12 | 13 => self.fork(how, a, number),
            14 => self.classify(how, a, number),
            15 | 16 => self.bits(how, a, b, number),
            17 => {
                if let Some(&held) = self.records.last() {
                    let value = self.pick(a);
                    self.f.store_record(held, a % 8, [1, 2, 4, 8][usize::from(b) % 4], value);
                    let read = record(held, u16::from(b) % 8, [1, 2, 4][usize::from(a) % 3]);
                    self.values.push(self.f.eval(read));
                }
            }
            _ => self.any(a, b, number),
        }
    }
}

pub(crate) fn program(choices: &[Choice]) -> Verified {
    let mut maker = Maker::new();
    choices.iter().for_each(|choice| maker.append(*choice));
    maker.f.emit(0);
    maker.f.finish().expect("a valid program")
}

/// A frame that passes most checks, or one that fails some.
pub(crate) fn sample((bytes, kind, extra): (Vec<u8>, [u8; 6], u64)) -> Sample {
    let [headroom, mac, shape, fill, ttl, proto] = kind;
    let mut bytes = bytes;
    if shape > 20 && bytes.len() >= 34 {
        let words = if shape % 5 == 0 { 6 } else { 5 };
        bytes[14] = 0x40 + words;
        let spare = if shape % 3 == 0 { usize::from(shape) % 20 } else { 0 };
        let length = (bytes.len() - 14).saturating_sub(spare);
        bytes[16..18].copy_from_slice(&(length as u16).to_be_bytes());
        bytes[22] = ttl % 6 + if ttl > 128 { 60 } else { 0 };
        bytes[23] = [6, 17, 1, proto][usize::from(proto) % 4];
        bytes[30..34].copy_from_slice(&[10, 0, 0, (extra % 4) as u8]);
        match shape % 7 {
            // Sums at the boundaries of one's complement arithmetic.
            0 => bytes[18..20].copy_from_slice(&[0, 0]),
            1 => bytes[26..30].copy_from_slice(&[255; 4]),
            _ => {}
        }
        if shape % 11 != 0 {
            let _ = packet::checksum::set_ipv4_header(&mut bytes[14..], 0, usize::from(words) * 4);
            // The identification makes the checksum 0 or 0xffff, which are both correct.
            if shape % 4 == 0 && shape % 5 != 0 {
                let sum = u16::from_be_bytes([bytes[24], bytes[25]]);
                let id = u16::from_be_bytes([bytes[18], bytes[19]]);
                let (id, carry) = id.overflowing_add(sum);
                bytes[18..20].copy_from_slice(&(id + u16::from(carry)).to_be_bytes());
                bytes[24..26].copy_from_slice(if extra & 4 == 0 { &[0, 0] } else { &[255, 255] });
            }
        }
    }
    let headers = match mac % 4 {
        0 => [None, None, None],
        1 => [Some(0), Some(0), Some(20)],
        2 => [Some(-14), Some(14), Some(34)],
        _ => [Some(0), Some(14), Some(34)],
    };
    Sample { bytes, headers, headroom, fill }
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (prop::collection::vec(any::<u8>(), 0..90), any::<[u8; 6]>(), any::<u64>());
    let full = (prop::collection::vec(any::<u8>(), 50..90), any::<[u8; 6]>(), any::<u64>());
    prop::collection::vec(prop_oneof![1 => one, 4 => full].prop_map(sample), 8..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn a_program_does_what_it_did(
        choices in prop::collection::vec(any::<Choice>(), 0..24),
        samples in samples(),
    ) {
        compare(&program(&choices), &Known::default(), &samples);
    }

    #[test]
    fn chains_of_routers_do_what_they_did(
        first in any::<[Choice; 3]>(),
        times in 1..5usize,
        samples in samples(),
    ) {
        let kinds = [0u8, 3, 3, 10, 5];
        let chain = (0..times).flat_map(|_| {
            kinds.iter().enumerate().map(|(at, kind)| {
                let (_, a, b, number) = first[at % 3];
                (*kind, a, b, number)
            })
        });
        let chain: Vec<Choice> = chain.collect();
        compare(&program(&chain), &Known::default(), &samples);
    }
}
