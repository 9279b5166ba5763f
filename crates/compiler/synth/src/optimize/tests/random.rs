//! Programs made at random, of the shapes that chains have, on packets made at random.

use crate::fuzz::{Sample, compare};
use crate::optimize::Known;
use ir::program::BinOp;
use ir::{BlockId, Builder, Inst, Term, Value, Verified};
use packet::anno;
use packet::field::{self, Base, Field};
use proptest::prelude::*;

/// What a stretch of a program is made from.
pub(crate) type Choice = (u8, u16, u8, u64);

/// A program under construction: one stretch after the other.
struct Maker {
    f: Builder,
    cells: Vec<u16>,
    /// Tables of one word, of two words that records are found in, and that they are made in.
    tables: [u16; 3],
    values: Vec<Value>,
    records: Vec<Value>,
    slow: u16,
}

const OUTPUTS: usize = 3;

impl Maker {
    fn new() -> Maker {
        let mut f = Builder::new("Random", OUTPUTS);
        let cells = (0..4).map(|n| f.cell(&format!("c{n}"), [1, 0, 0x0102_0304_0506_0708, 2][n])).collect();
        let tables = [f.prefix_table("routes", 16), f.table("known", 2, 24), f.table("made", 2, 24)];
        let slow = f.slow_path("slow");
        Maker { f, cells, tables, values: vec![], records: vec![], slow }
    }

    /// Where packets go that something is wrong with.
    fn away(&mut self, how: u8) -> BlockId {
        let (block, here) = (self.f.block(), self.f.here());
        self.f.at(block);
        match how % 6 {
            0..=2 => self.f.drop("bad"),
            3 => self.f.emit(1),
            4 => self.f.end(Term::Slow(self.slow)),
            _ => {
                let count = self.f.constant(1);
                let cell = self.cells[1];
                self.f.act(Inst::CellAdd(cell, count));
                self.f.drop("counted");
            }
        }
        self.f.at(here);
        block
    }

    fn pick(&mut self, at: u16) -> Value {
        if self.values.is_empty() {
            let value = self.f.constant(7);
            self.values.push(value);
        }
        self.values[usize::from(at) % self.values.len()]
    }

    fn check_ip(&mut self, offset: u64, how: u8, number: u64) {
        let bad = self.away(how);
        let f = &mut self.f;
        f.need(Base::Data, offset as usize + 20, bad);
        let at = f.constant(offset);
        f.act(Inst::SetBase(Base::Net, at));
        let first = f.load(Field::bytes(Base::Net, 0, 1));
        let above = f.bin_const(BinOp::Sub, first, 0x45);
        let fits = f.bin_const(BinOp::Lt, above, 11);
        f.check(fits, bad);
        let words = f.bin_const(BinOp::And, first, 15);
        let header = f.bin_const(BinOp::Shl, words, 2);
        let length = f.load(field::IP_LEN);
        let long = f.bin(BinOp::Le, header, length);
        f.check(long, bad);
        let end = f.bin_const(BinOp::Add, length, offset);
        let there = f.value(Inst::Len);
        let fits = f.bin(BinOp::Le, end, there);
        f.check(fits, bad);
        if number & 7 != 0 {
            let sum = f.value(Inst::IpSum);
            let right = f.bin_const(BinOp::Eq, sum, 0xffff);
            f.check(right, bad);
        }
        if number & 8 != 0 {
            let (good, suspect) = (f.block(), f.block());
            let source = f.load(field::IP_SRC);
            f.end(Term::Switch(source, vec![(0, suspect), (0xffff_ffff, suspect)], good));
            f.at(suspect);
            let destination = f.load(field::IP_DST);
            let cases = if number & 16 != 0 { vec![(0x0a00_0002, good)] } else { vec![] };
            f.end(Term::Switch(destination, cases, bad));
            f.at(good);
        }
        let trans = f.bin_const(BinOp::Add, header, offset);
        f.act(Inst::SetBase(Base::Trans, trans));
        let destination = f.load(field::IP_DST);
        f.store_anno(anno::DST_IP, destination);
        let first = f.value(Inst::Avail(Base::Data));
        let all = f.value(Inst::Len);
        let single = f.bin(BinOp::Eq, first, all);
        f.check(single, bad);
        f.act(Inst::Take(end));
        self.values = vec![length, header, destination];
    }

    fn dec_ttl(&mut self, how: u8, number: u64) {
        let (bad, expired, untouched) = (self.away(how), self.away(how / 6), self.f.block());
        let cell = self.cells[0];
        let f = &mut self.f;
        if number & 1 == 1 {
            let active = f.value(Inst::CellLoad(cell));
            f.check(active, untouched);
        }
        f.need(Base::Net, 20, bad);
        let ttl = f.load(field::IP_TTL);
        let one = f.constant(1);
        let alive = f.bin(BinOp::Lt, one, ttl);
        f.check(alive, expired);
        let sum = f.load(field::IP_SUM);
        let by = if number & 0x70 == 0 { 0x0200 } else { 0x0100 };
        let (before, after) = (f.constant(by), f.constant(0));
        let sum = f.value(Inst::CsumUpdate(sum, before, after, 16));
        let ttl = f.bin(BinOp::Sub, ttl, one);
        f.store(field::IP_TTL, ttl);
        f.store(field::IP_SUM, sum);
        f.jump(untouched);
        f.at(untouched);
        self.values.clear();
    }

    fn rewrite_mac(&mut self, how: u8, number: u64) {
        let (bad, next) = (self.away(how), self.f.block());
        let cell = self.cells[2];
        let f = &mut self.f;
        let headless = f.block();
        for base in [Base::Mac, Base::Data] {
            f.need(base, 12, if base == Base::Mac { headless } else { bad });
            let front = match number % 3 {
                0 => f.value(Inst::CellLoad(cell)),
                _ => f.constant(number),
            };
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
        let by = self.f.constant(by);
        self.f.act(Inst::Pull(by));
    }

    fn encapsulate(&mut self, how: u8, number: u64) {
        let bad = self.away(how);
        let f = &mut self.f;
        f.room(14, bad);
        f.act(Inst::Push(14));
        let front = f.constant(number);
        f.store(Field::bytes(Base::Data, 0, 8), front);
        f.store(Field::bytes(Base::Data, 8, 6), front);
        if number & 1 == 1 {
            let zero = f.constant(0);
            f.act(Inst::SetBase(Base::Mac, zero));
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
            0 => value,
            1 => f.constant(0xffff_ffff),
            2 => f.constant(0),
            _ => f.constant(number),
        };
        f.replace(field, value, field::IP_SUM);
    }

    fn route(&mut self, how: u8) {
        let miss = self.away(how);
        let address = self.f.load_anno(anno::DST_IP);
        let small = self.f.bin_const(BinOp::And, address, 0xf);
        let hop = self.f.lookup(self.tables[0], &[small], miss);
        let f = &mut self.f;
        let gateway = f.value(Inst::RecLoad(hop, 0, 4));
        let address = f.load_anno(anno::DST_IP);
        let address = f.value(Inst::Select(gateway, gateway, address));
        f.store_anno(anno::DST_IP, address);
        let port = f.value(Inst::RecLoad(hop, 8, 1));
        let port = f.bin_const(BinOp::And, port, 7);
        if how.is_multiple_of(3) {
            let none = f.block();
            f.end(Term::EmitTo(port, none));
            f.at(none);
        }
        self.values = vec![gateway, address];
        self.records = vec![hop];
    }

    fn translate(&mut self, how: u8, number: u64) {
        let (bad, fail) = (self.away(how), self.away(how / 6));
        let f = &mut self.f;
        f.need(Base::Net, 20, bad);
        let proto = f.load(field::IP_PROTO);
        let (udp, tcp) = (f.bin_const(BinOp::Eq, proto, 17), f.bin_const(BinOp::Eq, proto, 6));
        let known = f.bin(BinOp::Or, tcp, udp);
        f.check(known, bad);
        f.need(Base::Trans, 8, bad);
        let pair = f.load(field::IP_PAIR);
        let ports = f.load(field::L4_PORTS);
        let ports = f.bin_const(BinOp::Shl, ports, 16);
        let rest = f.bin(BinOp::Or, ports, proto);
        let arg = f.constant(number);
        let record = f.create(self.tables[2], &[pair, rest], &[arg], fail);
        let new = f.value(Inst::RecLoad(record, 0, 8));
        f.store(field::IP_PAIR, new);
        let (sum, delta) = (f.load(field::IP_SUM), f.value(Inst::RecLoad(record, 8, 2)));
        let sum = f.bin_const(BinOp::Xor, sum, 0xffff);
        let sum = f.bin(BinOp::Add, sum, delta);
        let low = f.bin_const(BinOp::And, sum, 0xffff);
        let carry = f.bin_const(BinOp::Shr, sum, 16);
        let sum = f.bin(BinOp::Add, low, carry);
        let sum = f.bin_const(BinOp::Xor, sum, 0xffff);
        f.store(field::IP_SUM, sum);
        let ports = f.value(Inst::RecLoad(record, 10, 4));
        f.store(field::L4_PORTS, ports);
        let seen = f.value(Inst::RecLoad(record, 16, 1));
        let mut seen = f.bin_const(BinOp::Add, seen, 1);
        if number & 6 == 0 {
            let now = f.value(Inst::Now);
            f.act(Inst::RecStore(record, 17, 2, now));
        } else {
            // It comes to rest.
            seen = f.bin_const(BinOp::Min, seen, 3);
        }
        f.act(Inst::RecStore(record, 16, 1, seen));
        self.values = vec![new, delta, seen];
        self.records = vec![record];
    }

    /// Packets go two ways that meet again.
    fn fork(&mut self, how: u8, a: u16, number: u64) {
        let bad = self.away(how);
        self.f.need(Base::Net, 20, bad);
        let field = [field::IP_PROTO, field::IP_DST, field::IP_TTL, field::IP_TOS][usize::from(a) % 4];
        let left = self.f.load(field);
        let op = [BinOp::Eq, BinOp::Lt, BinOp::Le, BinOp::Ne, BinOp::And][usize::from(how) % 5];
        let test = self.f.bin_const(op, left, number % 70);
        let (yes, no) = self.f.branch(test);
        let next = self.f.block();
        let param = self.f.param(next);
        for (block, value) in [(yes, number), (no, number >> 8)] {
            self.f.at(block);
            let handed = if how & 8 == 0 || block == yes { self.f.constant(value % 8) } else { left };
            if value & 1 == 1 {
                self.f.store(field::IP_TOS, handed);
            }
            if value & 2 == 2 {
                self.f.store_anno(anno::PAINT, handed);
            }
            if value & 4 == 4 {
                let at = self.f.constant(14);
                self.f.act(Inst::SetBase(Base::Net, at));
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
        let value = self.f.load(field);
        let cases = [(6, next), (17, next), (number % 64, bad), (1, bad)];
        let cases = cases[..1 + usize::from(how) % 4].to_vec();
        let default = if number & 64 == 0 { bad } else { next };
        self.f.end(Term::Switch(value, cases, default));
        self.f.at(next);
        if default == bad {
            self.values = vec![value];
        }
    }

    /// One instruction of any kind.
    fn any(&mut self, a: u16, b: u8, number: u64) {
        let (x, y, z) = (self.pick(a), self.pick(b.into()), self.pick(a / 7));
        let anno = anno::Anno { offset: (a % 40) as u8, len: [1, 2, 4, 8][usize::from(b) % 4] };
        let cell = self.cells[usize::from(a) % 4];
        let base = Base::ALL[usize::from(b) % 4];
        let f = &mut self.f;
        match number % 24 {
            0..=5 => {
                let op = BinOp::ALL[usize::from(a) % BinOp::ALL.len()].0;
                let y = if b < 100 {
                    f.constant((number >> 8) % [2, 16, 300, 70_000][usize::from(b) % 4])
                } else {
                    y
                };
                self.values.push(f.bin(op, x, y));
            }
            6 => self.values.push(f.constant(number)),
            7 => self.values.push(f.value(Inst::Select(x, y, z))),
            8 => self.values.push(f.value(Inst::CsumUpdate(x, y, z, if b < 128 { 16 } else { 32 }))),
            9 => f.store_anno(anno, x),
            10 => self.values.push(f.load_anno(anno)),
            11 => f.act(Inst::CellStore(cell, x)),
            12 => f.act(Inst::CellAdd(cell, x)),
            13 => self.values.push(f.value(Inst::CellLoad(cell))),
            14 => self.values.push(f.value(Inst::Avail(base))),
            15 => self.values.push(f.value(Inst::Offset(base))),
            16 => self.values.push(f.value(Inst::Len)),
            17 if base != Base::Data => {
                let at = f.bin_const(BinOp::And, x, 63);
                f.act(Inst::SetBase(base, if b < 128 { at } else { x }));
            }
            18 if base != Base::Data && b > 220 => f.act(Inst::ClearBase(base)),
            19 => self.values.push(f.value(Inst::PacketType)),
            20 => {
                let proto = f.constant(17);
                self.values.push(f.value(Inst::TransportSum(proto)));
            }
            21 => self.values.push(f.value(Inst::IpSum)),
            22 => {
                let keep = f.bin_const(BinOp::Or, x, 20);
                f.act(Inst::Take(keep));
            }
            _ => self.values.push(f.value([Inst::Now, Inst::Timestamp, Inst::Origin][usize::from(a) % 3])),
        }
    }

    /// Reads or writes some bits that are shown to be there.
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
            let value = self.f.load(field);
            self.values.push(value);
        } else {
            self.f.store(field, value);
        }
    }

    fn stretch(&mut self, (what, a, b, number): Choice) {
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
                if let Some(&record) = self.records.last() {
                    let value = self.pick(a);
                    self.f.act(Inst::RecStore(record, a % 8, [1, 2, 4, 8][usize::from(b) % 4], value));
                    let value =
                        self.f.value(Inst::RecLoad(record, u16::from(b) % 8, [1, 2, 4][usize::from(a) % 3]));
                    self.values.push(value);
                }
            }
            _ => self.any(a, b, number),
        }
    }
}

pub(crate) fn program(choices: &[Choice]) -> Verified {
    let mut maker = Maker::new();
    choices.iter().for_each(|choice| maker.stretch(*choice));
    maker.f.emit(0);
    maker.f.finish().expect("a valid program")
}

/// A frame that most checks let pass, or one that some do not.
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
            // Sums that are at the ends of what one's complement tells apart.
            0 => bytes[18..20].copy_from_slice(&[0, 0]),
            1 => bytes[26..30].copy_from_slice(&[255; 4]),
            _ => {}
        }
        if shape % 11 != 0 {
            let _ = packet::checksum::set_ipv4_header(&mut bytes[14..], 0, usize::from(words) * 4);
            // The identification makes the checksum 0 or 0xffff, which both are right.
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
