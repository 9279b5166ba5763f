//! Expressions of traffic classes as bits.
//!
//! Free variables are: bits of packets and annotations, lengths and offsets (within the limits of all
//! packets), cells, results of lookups, the numbers of records, and sums over headers and payload. Equal
//! lookups (same table, same key, the same earlier creations) have the same result, and so do sums over the
//! same bytes. If equality is not known in advance, a clause implies it. All other expressions are computed
//! by gates.

use crate::conditions::parts_of;
use crate::gates::{Answer, Bit, Gates, Word};
use ir::BinOp;
use ir::analysis::interval::IntervalSet;
use shm::descriptor::{BUF_BYTES, HEADROOM};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use synth::classes::expr::{Atom, Bits, Find, Id, Log, NO_WRITES, Node, Pool, Root};
use synth::classes::field_of;
use synth::classes::filter::{Factor, Filter};
use synth::deadline::Deadline;

/// Bits of a record's number.
const RECORD_BITS: usize = 16;

/// With more intervals in the sets of one expression, each is compared by itself: the parts have a clause for each pair.
const MOST_INTERVALS: usize = 256;

/// Bits written from one root, without a write from another root in between.
pub type Run = (Root, BTreeMap<i32, Bit>);

/// A lookup as bits.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The table.
    pub table: u16,
    /// The key.
    pub key: Vec<Word>,
    /// The arguments for creating a record.
    pub args: Option<Vec<Word>>,
    /// Number of earlier creations.
    pub nth: u16,
    /// Whether there is a record.
    pub found: Bit,
    /// The number of the record.
    pub record: Word,
    /// Bytes of the record that were requested, by offset.
    pub bytes: HashMap<u16, Word>,
}

/// A sum over a header, or over a transport segment, after writes.
#[derive(Clone, Debug)]
struct Summed {
    transport: bool,
    of: Vec<Word>,
    runs: Vec<Run>,
    sum: Word,
}

/// Converts expressions to bits.
pub struct Blaster<'p> {
    pool: &'p Pool,
    /// The gates.
    pub gates: Gates,
    words: HashMap<Id, Word>,
    bits: HashMap<(Root, i32), Bit>,
    /// Whether expressions are in sets.
    sets: HashMap<(Id, IntervalSet), Bit>,
    /// Lookups.
    pub asked: Vec<Asked>,
    numbers: HashMap<Id, usize>,
    summed: Vec<Summed>,
    /// Whether the results of lookups, and sums, are free of each other: [`Blaster::free`].
    free: bool,
    /// Whether sums over headers are computed by gates, for packets that have to be real.
    exact: bool,
}

impl<'p> Blaster<'p> {
    /// For the expressions of a pool.
    pub fn new(pool: &'p Pool, deadline: &Deadline) -> Blaster<'p> {
        Blaster {
            pool,
            gates: Gates::new(deadline),
            words: HashMap::new(),
            bits: HashMap::new(),
            sets: HashMap::new(),
            asked: vec![],
            numbers: HashMap::new(),
            summed: vec![],
            free: false,
            exact: false,
        }
    }

    /// The same, with sums over headers computed: more gates, and a solution is a real packet.
    pub fn exact(pool: &'p Pool, deadline: &Deadline) -> Blaster<'p> {
        Blaster { exact: true, ..Blaster::new(pool, deadline) }
    }

    /// The same, with results of lookups and sums that are free of each other even where their keys or bytes are equal:
    /// far fewer clauses, and what is impossible then is impossible.
    pub fn free(pool: &'p Pool, deadline: &Deadline) -> Blaster<'p> {
        Blaster { free: true, ..Blaster::new(pool, deadline) }
    }

    /// The field that a bit of a packet is in.
    pub fn field(&self, (root, bit): (Root, i32)) -> String {
        field_of(self.pool, Bits { root, bit, width: 1 })
    }

    /// Bits of packets that were requested.
    pub fn packet_bits(&self) -> impl Iterator<Item = (&(Root, i32), &Bit)> {
        self.bits.iter()
    }

    /// The bits of an expression that was requested.
    pub fn known(&self, id: Id) -> Option<&Word> {
        self.words.get(&id)
    }

    /// Asks whether all the bits can be 1 at once, for a packet each of whose bits has one value, from
    /// whichever header it is counted.
    pub fn ask_packet(&mut self, bits: &[Bit], time: Duration) -> Answer {
        let until = Instant::now() + time;
        loop {
            match self.gates.ask(bits, until.saturating_duration_since(Instant::now())) {
                Answer::Found if self.unite_bits() => {}
                answer => return answer,
            }
        }
    }

    /// A bit of a packet as it arrived.
    pub fn packet_bit(&mut self, root: Root, bit: i32) -> Bit {
        if let Root::At(at) = root {
            // So that the solution has the offset.
            self.word(at);
        }
        let gates = &mut self.gates;
        *self.bits.entry((root, bit)).or_insert_with(|| gates.fresh())
    }

    /// The bits of an expression; none once no more gates are made.
    pub fn word(&mut self, id: Id) -> Word {
        if self.gates.is_over() {
            return vec![];
        }
        if let Some(word) = self.words.get(&id) {
            return word.clone();
        }
        let word = self.make(id);
        self.words.insert(id, word.clone());
        word
    }

    fn make(&mut self, id: Id) -> Word {
        let pool = self.pool;
        match pool.node(id) {
            Node::Const(number) => self.gates.number(*number),
            Node::Atom(atom) => self.atom(*atom),
            Node::Cat(parts) => {
                let mut all = vec![];
                for (low, part) in parts {
                    let mut moved = vec![self.gates.no(); usize::from(*low)];
                    moved.extend(self.word(*part));
                    moved.truncate(64);
                    all = self.gates.each(&all, &moved, Gates::or);
                }
                all
            }
            Node::Slice(of, low, width) => {
                let of = self.word(*of);
                self.gates.slice(&of, (*low).into(), (*width).into())
            }
            Node::Sum(constant, terms) => self.sum(*constant, terms),
            Node::Fold(sum) => {
                let sum = self.word(*sum);
                self.fold_once(&sum)
            }
            Node::Bin(op, a, b) => {
                let (a, b) = (self.word(*a), self.word(*b));
                self.bin(*op, &a, &b)
            }
            Node::In(of, set) => {
                let of = self.word(*of);
                vec![self.inside(&of, set)]
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.word(*c), self.word(*a), self.word(*b));
                let c = self.gates.any(&c);
                self.gates.select(c, &a, &b)
            }
            Node::Csum(sum, old, new, bits) => {
                let (sum, old, new) = (self.word(*sum), self.word(*old), self.word(*new));
                self.checksum(&sum, &old, &new, (*bits).into())
            }
            Node::IpSum(log, net, end) => match self.root(*net) {
                Some(root) if self.exact => self.header_sum(*log, root, *net, *end),
                _ => self.summed(false, &[*net, *end], *log),
            },
            Node::TransportSum(of) => {
                self.summed(true, &[of.net, of.trans, of.end, of.rest, of.proto], of.log)
            }
            Node::Read(log, bits) => self.read(pool.writes(*log), *bits),
            Node::Found(_) => {
                let at = self.ask(id);
                vec![self.asked[at].found]
            }
            Node::Record(found) => {
                let at = self.ask(*found);
                self.asked[at].record.clone()
            }
            Node::RecLoad(log, rec, offset, bytes) => self.record_number(*log, *rec, *offset, *bytes),
        }
    }

    fn atom(&mut self, atom: Atom) -> Word {
        match atom {
            Atom::Bits(Bits { root, bit, width }) => (0..i32::from(width))
                .map(|low| self.packet_bit(root, bit + i32::from(width) - 1 - low))
                .collect(),
            // Bytes after a header: 0 if it is not set or after the end.
            Atom::Reach(base) => {
                let (room, head) = (self.part(Atom::Room, 12), self.part(Atom::Head, 12));
                let at = self.part(Atom::Place(base), 16);
                let end = self.gates.add(&room, &head);
                let behind = self.gates.sub(&end, &at);
                let (there, none) = (self.gates.at_most(&at, &end), self.gates.number(0xffff));
                let unset = self.gates.equal(&at, &none);
                let there = self.gates.and(there, !unset);
                self.gates.select(there, &behind, &[])
            }
            Atom::Room | Atom::Head => self.part(atom, 12),
            Atom::Place(_) | Atom::Origin => self.part(atom, 16),
            Atom::Rest | Atom::FlowHash => self.part(atom, 32),
            Atom::PacketType => self.part(atom, 8),
            Atom::Cell(_) | Atom::Now | Atom::Timestamp => self.part(atom, 64),
        }
    }

    /// Whether the packet is of one segment, and whether it has the headroom that ports give.
    pub fn as_delivered(&mut self) -> [Bit; 2] {
        let (rest, room) = (self.part(Atom::Rest, 32), self.part(Atom::Room, 12));
        let usual = self.gates.number(HEADROOM as u64);
        [self.gates.is_zero(&rest), self.gates.equal(&room, &usual)]
    }

    /// Bits of an atom, the same for each node of it.
    pub fn part(&mut self, atom: Atom, width: usize) -> Word {
        // Atoms are unique in the pool; those that only a relation needs get their bits here.
        let key = (Root::Anno, free_key(atom));
        if self.bits.contains_key(&key) {
            return (0..width as i32).map(|bit| self.bits[&(Root::Anno, key.1 - bit)]).collect();
        }
        let word = self.gates.fresh_word(width);
        for (at, bit) in word.iter().enumerate() {
            self.bits.insert((Root::Anno, key.1 - at as i32), *bit);
        }
        if matches!(atom, Atom::Room | Atom::Head) {
            // Packets fit their slots.
            let (room, head) = (self.part(Atom::Room, 12), self.part(Atom::Head, 12));
            let end = self.gates.add(&room, &head);
            let slot = self.gates.number(BUF_BYTES as u64);
            let fits = self.gates.at_most(&end, &slot);
            self.gates.clause(&[fits]);
        }
        word
    }

    /// An atom's value in the solution, if it was requested.
    pub fn atom_value(&self, atom: Atom, width: usize) -> Option<u64> {
        let key = free_key(atom);
        let bits: Option<Word> =
            (0..width as i32).map(|at| self.bits.get(&(Root::Anno, key - at)).copied()).collect();
        bits.map(|word| self.gates.value(&word))
    }

    fn sum(&mut self, constant: u64, terms: &[(Id, u64)]) -> Word {
        let mut sum = self.gates.number(constant);
        for (term, by) in terms {
            let term = self.word(*term);
            let minus = (*by as i64) < 0;
            let times = self.gates.number(if minus { by.wrapping_neg() } else { *by });
            let term = self.gates.mul(&term, &times);
            sum = if minus { self.gates.sub(&sum, &term) } else { self.gates.add(&sum, &term) };
        }
        sum
    }

    /// A sum over bytes: the same for equal offsets after writes with equal effects.
    fn summed(&mut self, transport: bool, of: &[Id], log: Log) -> Word {
        let pool = self.pool;
        let of: Vec<Word> = of.iter().map(|id| self.word(*id)).collect();
        let runs = self.runs(pool.writes(log));
        let sum = self.gates.fresh_word(16);
        let others: Vec<Summed> =
            self.summed.iter().filter(|other| !self.free && other.transport == transport).cloned().collect();
        for other in others {
            if self.gates.is_over() {
                break;
            }
            let apart = self.differences(&runs, &other.runs);
            let mut differ = apart.overlaps;
            differ.extend(apart.bits.into_iter().map(|(_, bit)| bit));
            for (a, b) in of.iter().zip(&other.of) {
                differ.push(!self.gates.equal(a, b));
            }
            let differ = self.gates.any(&differ);
            self.gates.equate_unless(differ, &sum, &other.sum);
        }
        self.summed.push(Summed { transport, of, runs, sum: sum.clone() });
        sum
    }

    /// An offset as an expression without constant part, and the constant part.
    fn root(&self, place: Id) -> Option<(Id, i32)> {
        let Node::Sum(by, terms) = self.pool.node(place) else { return Some((place, 0)) };
        let root = match &**terms {
            [(only, 1)] => *only,
            _ => self.pool.find(&Node::Sum(0, terms.clone()))?,
        };
        Some((root, i32::try_from(*by as i64).ok()?))
    }

    /// The sum of an IPv4 header's words, as many as its length field states.
    fn header_sum(&mut self, log: Log, (root, by): (Id, i32), net: Id, end: Id) -> Word {
        let pool = self.pool;
        let at = |blaster: &mut Blaster<'_>, bit: i32, width: u8| {
            let bits = Bits { root: Root::At(root), bit: by * 8 + bit, width };
            blaster.read(pool.writes(log), bits)
        };
        let words = at(self, 4, 4);
        let mut sum = vec![];
        for word in 0..30 {
            let value = at(self, word * 16, 16);
            let (place, always) = (self.gates.number(word as u64 / 2 + 1), word < 10);
            let within = self.gates.at_most(&place, &words);
            let within = if always { self.gates.yes() } else { within };
            let value = self.gates.select(within, &value, &[]);
            sum = self.gates.add(&sum, &value);
        }
        for _ in 0..2 {
            sum = self.fold_once(&sum);
        }
        // The header is there, and has a valid length.
        let (net, end) = (self.word(net), self.word(end));
        let four = self.gates.number(4);
        let length = self.gates.mul(&words, &four);
        let behind = self.gates.add(&net, &length);
        let (there, five) = (self.gates.at_most(&behind, &end), self.gates.number(5));
        let long = self.gates.at_most(&five, &words);
        let last = self.gates.number(0xfffe);
        let set = self.gates.at_most(&net, &last);
        let right = self.gates.all(&[there, long, set]);
        self.gates.select(right, &sum, &[])
    }

    fn fold_once(&mut self, sum: &[Bit]) -> Word {
        let (low, high) = (self.gates.slice(sum, 0, 16), self.gates.slice(sum, 16, 64));
        self.gates.add(&low, &high)
    }

    /// RFC 1624, equation 3, with all carries.
    fn checksum(&mut self, sum: &[Bit], old: &[Bit], new: &[Bit], bits: usize) -> Word {
        let not = |gates: &Gates, word: &[Bit], width: usize| -> Word {
            (0..width).map(|at| !gates.at(word, at)).collect()
        };
        let (sum, old) = (not(&self.gates, sum, 16), not(&self.gates, old, bits));
        let new = self.gates.slice(new, 0, bits);
        let mut all = self.gates.add(&sum, &old);
        all = self.gates.add(&all, &new);
        // 34 bits, then 19, 17, and 16 for certain.
        for _ in 0..3 {
            all = self.fold_once(&all);
        }
        let out = not(&self.gates, &all, 16);
        self.gates.trimmed(out)
    }

    fn bin(&mut self, op: BinOp, a: &[Bit], b: &[Bit]) -> Word {
        let gates = &mut self.gates;
        match op {
            BinOp::Add => gates.add(a, b),
            BinOp::Sub => gates.sub(a, b),
            BinOp::Mul => gates.mul(a, b),
            BinOp::Rem => gates.rem(a, b),
            BinOp::And => gates.each(a, b, Gates::and),
            BinOp::Or => gates.each(a, b, Gates::or),
            BinOp::Xor => gates.each(a, b, Gates::xor),
            BinOp::Shl => gates.shift(a, b, true),
            BinOp::Shr => gates.shift(a, b, false),
            BinOp::Eq => vec![gates.equal(a, b)],
            BinOp::Ne => vec![!gates.equal(a, b)],
            BinOp::Lt => vec![!gates.at_most(b, a)],
            BinOp::Le => vec![gates.at_most(a, b)],
            BinOp::Min => {
                let first = gates.at_most(a, b);
                gates.select(first, a, b)
            }
        }
    }

    /// Whether a number is in a set.
    pub fn inside(&mut self, word: &[Bit], set: &IntervalSet) -> Bit {
        let each = set.intervals().iter().map(|&(first, last)| {
            let (first, last) = (self.gates.number(first), self.gates.number(last));
            let (above, below) = (self.gates.at_most(&first, word), self.gates.at_most(word, &last));
            self.gates.and(above, below)
        });
        let each: Vec<Bit> = each.collect();
        self.gates.any(&each)
    }

    /// Whether an expression is in a set.
    fn is_in(&mut self, id: Id, set: &IntervalSet) -> Bit {
        if let Some(&known) = self.sets.get(&(id, set.clone())) {
            return known;
        }
        let word = self.word(id);
        let bit = self.inside(&word, set);
        self.sets.insert((id, set.clone()), bit);
        bit
    }

    /// Prepares an expression's conditions for many questions: bits that say in which of these sets its number is are made
    /// of one bit for each part of the numbers that the sets tell apart. What the solver learns about many conditions is
    /// said by few of these, and by more of the number's own bits.
    pub fn tell_apart(&mut self, id: Id, sets: &[&IntervalSet]) {
        let word = self.word(id);
        let intervals: usize = sets.iter().map(|set| set.intervals().len()).sum();
        if intervals > MOST_INTERVALS || word.iter().all(|bit| self.gates.known(*bit).is_some()) {
            return;
        }
        let parts = parts_of(sets).into_iter().map(|(held, part)| (self.inside(&word, &part), held));
        let parts: Vec<(Bit, Vec<bool>)> = parts.collect();
        let all: Vec<Bit> = parts.iter().map(|(bit, _)| *bit).collect();
        self.gates.clause(&all);
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                self.gates.clause(&[!*one, !*other]);
            }
        }
        for (at, set) in sets.iter().enumerate() {
            let is_in = self.gates.fresh();
            for (bit, held) in &parts {
                self.gates.clause(&[!*bit, if held[at] { is_in } else { !is_in }]);
            }
            self.sets.insert((id, (*set).clone()), is_in);
        }
    }

    /// Whether a packet passes a filter.
    pub fn filter(&mut self, filter: &Filter) -> Bit {
        self.factors(&filter.0)
    }

    fn factors(&mut self, factors: &[Factor]) -> Bit {
        let mut all = self.gates.yes();
        for factor in factors {
            let one = match factor {
                Factor::Is(id, set) => self.is_in(*id, set),
                Factor::Any(lists) => {
                    let each: Vec<Bit> = lists.iter().map(|list| self.factors(list)).collect();
                    self.gates.any(&each)
                }
            };
            all = self.gates.and(all, one);
        }
        all
    }

    /// Allows only packets that do not pass a filter, from now on: one clause, and one for each alternative.
    pub fn exclude<'f>(&mut self, filter: &'f Filter, alternatives: &mut HashMap<&'f [Vec<Factor>], Bit>) {
        let clause = self.not_all(&filter.0, alternatives);
        self.gates.clause(&clause);
    }

    /// Bits of which one is 1 if not all conditions hold.
    fn not_all<'f>(
        &mut self,
        factors: &'f [Factor],
        known: &mut HashMap<&'f [Vec<Factor>], Bit>,
    ) -> Vec<Bit> {
        let mut not = |factor: &'f Factor| match factor {
            Factor::Is(id, set) => !self.is_in(*id, set),
            Factor::Any(lists) => match known.get(&**lists) {
                Some(any) => !*any,
                None => {
                    // It is 1 if one of the alternatives holds, and may be if none does.
                    let any = self.gates.fresh();
                    for list in lists.iter() {
                        let mut clause = self.not_all(list, known);
                        clause.push(any);
                        self.gates.clause(&clause);
                    }
                    known.insert(lists, any);
                    !any
                }
            },
        };
        factors.iter().map(&mut not).collect()
    }

    /// The lookup of an expression. Lookups with the same bits are one.
    pub fn ask(&mut self, id: Id) -> usize {
        if let Some(&known) = self.numbers.get(&id) {
            return known;
        }
        let pool = self.pool;
        let Node::Found(find) = pool.node(id) else { unreachable!("records come from lookups") };
        let Find { table, nth, .. } = **find;
        let key: Vec<Word> = find.key.iter().map(|word| self.word(*word)).collect();
        let args: Option<Vec<Word>> =
            find.args.as_ref().map(|args| args.iter().map(|arg| self.word(*arg)).collect());
        let same = |asked: &Asked| {
            asked.table == table && asked.nth == nth && asked.args.is_some() == args.is_some()
        };
        let twin = self.asked.iter().position(|asked| same(asked) && asked.key == key && asked.args == args);
        if let Some(twin) = twin {
            self.numbers.insert(id, twin);
            return twin;
        }
        let (found, record) = (self.gates.fresh(), self.gates.fresh_word(RECORD_BITS));
        let others: Vec<usize> =
            (0..self.asked.len()).filter(|at| !self.free && same(&self.asked[*at])).collect();
        for other in others {
            if self.gates.is_over() {
                break;
            }
            let Asked { key: other_key, args: other_args, found: other_found, record: other_record, .. } =
                self.asked[other].clone();
            let pairs = key.iter().zip(&other_key);
            let args = args.iter().flatten().zip(other_args.iter().flatten());
            let alike: Vec<Bit> = pairs.chain(args).map(|(a, b)| self.gates.equal(a, b)).collect();
            let alike = self.gates.all(&alike);
            self.gates.equate_unless(!alike, &[found], &[other_found]);
            self.gates.equate_unless(!alike, &record, &other_record);
        }
        self.asked.push(Asked { table, key, args, nth, found, record, bytes: HashMap::new() });
        self.numbers.insert(id, self.asked.len() - 1);
        self.asked.len() - 1
    }

    /// The lookup of a record.
    pub fn lookup_of(&mut self, rec: Id) -> usize {
        match self.pool.node(rec) {
            Node::Record(found) => self.ask(*found),
            _ => unreachable!("the walk knows where records are from"),
        }
    }

    /// A byte of a record before any write.
    pub fn record_byte(&mut self, lookup: usize, offset: u16) -> Word {
        if let Some(known) = self.asked[lookup].bytes.get(&offset) {
            return known.clone();
        }
        let byte = match self.delta(lookup, offset) {
            Some(byte) => byte,
            None => self.gates.fresh_word(8),
        };
        let (table, record) = (self.asked[lookup].table, self.asked[lookup].record.clone());
        let others: Vec<(Word, Word)> = self
            .asked
            .iter()
            .filter(|other| !self.free && other.table == table)
            .filter_map(|other| Some((other.record.clone(), other.bytes.get(&offset)?.clone())))
            .collect();
        for (other, other_byte) in others {
            let same = self.gates.equal(&record, &other);
            self.gates.equate_unless(!same, &byte, &other_byte);
        }
        self.asked[lookup].bytes.insert(offset, byte.clone());
        byte
    }

    /// A byte of what a record has of a checksum: it follows from the key and the record.
    fn delta(&mut self, lookup: usize, offset: u16) -> Option<Word> {
        let Asked { table, key, .. } = &self.asked[lookup];
        let delta = *self.pool.deltas_of(*table).find(|delta| (delta.at..delta.at + 2).contains(&offset))?;
        let key = key.get(usize::from(delta.key))?.clone();
        let mut words = vec![];
        for at in 0..8 {
            let mut byte = self.record_byte(lookup, delta.to + at);
            byte.resize(8, self.gates.no());
            words.extend(byte);
        }
        let mut sum = vec![];
        for word in 0..4 {
            let old: Word = (word * 16..word * 16 + 16).map(|bit| !self.gates.at(&key, bit)).collect();
            let new = self.gates.slice(&words, word * 16, 16);
            sum = self.gates.add(&sum, &old);
            sum = self.gates.add(&sum, &new);
        }
        for _ in 0..2 {
            sum = self.fold_once(&sum);
        }
        let same = self.gates.equal(&key, &words);
        let number = self.gates.select(same, &[], &sum);
        Some(self.gates.slice(&number, usize::from(offset - delta.at) * 8, 8))
    }

    fn record_number(&mut self, log: Log, rec: Id, offset: u16, bytes: u8) -> Word {
        let lookup = self.lookup_of(rec);
        let mut all = vec![];
        for at in offset..offset + u16::from(bytes) {
            let mut byte = self.record_byte(lookup, at);
            if log != NO_WRITES {
                for write in self.pool.rec_writes(log).to_vec() {
                    let is_over = self.gates.is_over();
                    if is_over || at < write.offset || at >= write.offset + u16::from(write.bytes) {
                        continue;
                    }
                    let other = self.lookup_of(write.rec);
                    let (mine, theirs) =
                        (self.asked[lookup].record.clone(), self.asked[other].record.clone());
                    let same = self.gates.equal(&mine, &theirs);
                    let value = self.word(write.value);
                    let value = self.gates.slice(&value, usize::from(at - write.offset) * 8, 8);
                    byte = self.gates.select(same, &value, &byte);
                }
            }
            byte.resize(8, self.gates.no());
            all.extend(byte);
        }
        self.gates.trimmed(all)
    }
}

/// The position of an atom's bits among those of annotations: below all of them.
fn free_key(atom: Atom) -> i32 {
    let number = match atom {
        Atom::Room => 0,
        Atom::Head => 1,
        Atom::Rest => 2,
        Atom::Now => 3,
        Atom::Timestamp => 4,
        Atom::PacketType => 5,
        Atom::FlowHash => 6,
        Atom::Origin => 7,
        Atom::Place(base) => 8 + base as i32,
        Atom::Reach(_) | Atom::Bits(_) => 15,
        Atom::Cell(cell) => 16 + i32::from(cell),
    };
    -1 - 64 * number
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use synth::classes::{Classes, Options};

    /// Whether a number is in a set is the same with sets told apart and without, for every number of some and of sets
    /// beyond its width.
    #[test]
    fn sets_that_are_told_apart_have_the_same_numbers() {
        let program = crate::test_programs::by_protocol();
        let classes = Classes::of(&program, &Options::default());
        let filter = &classes.classes.iter().find(|class| class.filter.0.len() > 1).expect("two ask").filter;
        let Some(Factor::Is(protocol, _)) = filter.0.last() else { panic!("{filter:?}") };
        let (deadline, mut rng) = (Deadline::default(), Pcg64::seed_from_u64(3));
        for _ in 0..40 {
            let sets: Vec<IntervalSet> = (0..rng.random_range(1..6))
                .map(|_| {
                    let intervals = (0..rng.random_range(0..4)).map(|_| {
                        let first = rng.random_range(0..260);
                        (
                            first,
                            if rng.random_ratio(1, 8) { u64::MAX } else { first + rng.random_range(0..60) },
                        )
                    });
                    IntervalSet::from_intervals(intervals.collect::<Vec<_>>())
                })
                .collect();
            let mut blaster = Blaster::new(&classes.pool, &deadline);
            blaster.tell_apart(*protocol, &sets.iter().collect::<Vec<_>>());
            let word = blaster.word(*protocol);
            for _ in 0..8 {
                let number = rng.random_range(0..256);
                let of_number = blaster.gates.number(number);
                let is_number = blaster.gates.equal(&word, &of_number);
                for set in &sets {
                    let is_in = blaster.is_in(*protocol, set);
                    let answers = [is_in, !is_in]
                        .map(|bit| blaster.ask_packet(&[is_number, bit], Duration::from_secs(10)));
                    let expected = match set.contains(number) {
                        true => [Answer::Found, Answer::Never],
                        false => [Answer::Never, Answer::Found],
                    };
                    assert_eq!(answers, expected, "{number} in {set:?} of {sets:?}");
                }
            }
        }
    }
}
