//! The walk along a path: its computations, tests, lookups, and the packet's state at its end.

use super::packet_state::{HeaderPosition, PacketState, Written, near};
use super::prefix_lookup::LEAST_LOOKUPS;
use ir::analysis::interval::{Interval, ones, yields};
use ir::program::Matching;
use ir::{BinOp, BlockId, Inst, Program, Term, Value};
use packet::field::{Base, Field};
use rustc_hash::{FxHashMap, FxHashSet};

/// A value of the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Definition {
    Inst(Inst),
    /// The record of a lookup, by its index in [`Walk::lookups`].
    Record(usize),
}

/// A test that packets of the path pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Guard {
    /// That many bytes of headroom.
    Room(u16),
    /// A value that is not 0, or is 0.
    Test(Value, bool),
    /// A value that is none of these numbers.
    NoneOf(Value, Vec<u64>),
}

/// A lookup of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lookup {
    pub table: u16,
    pub key: Value,
    pub record: Value,
}

/// The instructions of a program's values.
pub(super) type Defined = FxHashMap<Value, Inst>;

/// A path that was walked.
pub(super) struct Walk<'a> {
    program: &'a Program,
    /// The number of the first value of the copy; lower ones are the program's.
    pub first: u32,
    /// The copy's values.
    pub values: Vec<Definition>,
    known: FxHashMap<Inst, Value>,
    /// The copy's values that are numbers.
    constants: FxHashMap<Value, u64>,
    /// The instructions of the program's values.
    defined: &'a Defined,
    /// What the guards say of values.
    bounds: FxHashMap<Value, Interval>,
    /// The copies of the path's values.
    copies: FxHashMap<Value, Value>,
    /// Bytes that the packet must have from its first one at the start.
    pub need: u16,
    pub guards: Vec<Guard>,
    pub lookups: Vec<Lookup>,
    /// Changes of cells.
    pub cells: Vec<Inst>,
    pub packet: PacketState,
    /// The port.
    pub port: u16,
}

impl<'a> Walk<'a> {
    /// A walk that begins with the packet in this state.
    pub fn new(program: &'a Program, defined: &'a Defined, packet: PacketState) -> Walk<'a> {
        Walk {
            program,
            first: program.value_count() as u32,
            values: vec![],
            known: FxHashMap::default(),
            constants: FxHashMap::default(),
            defined,
            bounds: FxHashMap::default(),
            copies: FxHashMap::default(),
            need: 0,
            guards: vec![],
            lookups: vec![],
            cells: vec![],
            packet,
            port: 0,
        }
    }

    /// Walks through a block to the next one, or out of it by a port; `None` where something cannot be copied.
    pub fn pass(&mut self, id: BlockId, next: Option<BlockId>) -> Option<()> {
        let block = self.program.block(id);
        for (value, inst) in &block.insts {
            let copy = self.inst(*inst)?;
            if let Some(value) = value {
                self.copies.insert(*value, copy?);
            }
        }
        self.term(&block.term, next)
    }

    /// What stands for a value of the path in the copy.
    pub fn copy_of(&self, value: Value) -> Option<Value> {
        self.copies.get(&value).copied()
    }

    /// The copy's value for one of the program's.
    fn get(&mut self, value: Value) -> Value {
        if let Some(copy) = self.copies.get(&value) {
            return *copy;
        }
        match self.defined.get(&value) {
            Some(Inst::Const(number)) => self.constant(*number),
            _ => value,
        }
    }

    pub fn definition(&self, value: Value) -> Option<Definition> {
        let at = value.0.checked_sub(self.first)?;
        self.values.get(at as usize).copied()
    }

    fn define(&mut self, definition: Definition) -> Value {
        self.values.push(definition);
        Value(self.first + self.values.len() as u32 - 1)
    }

    /// The value of an instruction; the same for the same one.
    pub fn emit(&mut self, inst: Inst) -> Value {
        if let Some(value) = self.known.get(&inst) {
            return *value;
        }
        let value = self.define(Definition::Inst(inst));
        self.known.insert(inst, value);
        if let Inst::Const(number) = inst {
            self.constants.insert(value, number);
        }
        value
    }

    pub fn constant(&mut self, number: u64) -> Value {
        self.emit(Inst::Const(number))
    }

    pub fn number(&self, value: Value) -> Option<u64> {
        self.constants.get(&value).copied()
    }

    /// The possible numbers of a value behind the guards.
    fn range(&self, value: Value) -> Interval {
        self.range_by(value, |operand| self.range_by(operand, |_| Interval::ALL))
    }

    fn range_by(&self, value: Value, operand: impl Fn(Value) -> Interval) -> Interval {
        let inst = match self.definition(value) {
            Some(Definition::Inst(inst)) => Some(inst),
            Some(Definition::Record(_)) => None,
            None => self.defined.get(&value).copied(),
        };
        let known = inst.map_or(Interval::ALL, |inst| yields(inst, operand));
        let bound = self.bounds.get(&value).copied().unwrap_or(Interval::ALL);
        known.and(bound).unwrap_or(known)
    }

    fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let (x, y) = (self.number(a), self.number(b));
        if let (Some(x), Some(y)) = (x, y) {
            return self.constant(op.apply(x, y));
        }
        let inner = |walk: &Self, value| match walk.definition(value) {
            Some(Definition::Inst(Inst::Bin(BinOp::Sub, whole, taken))) => {
                walk.number(taken).map(|taken| (whole, taken))
            }
            _ => None,
        };
        match (op, x, y) {
            (BinOp::And, _, Some(mask)) if is_all_of(mask, self.range(a).hi) => a,
            (BinOp::And, Some(mask), _) if is_all_of(mask, self.range(b).hi) => b,
            (BinOp::Add | BinOp::Sub | BinOp::Shl | BinOp::Shr, _, Some(0)) => a,
            // `a - c - d` is `a - (c + d)`, also where it wraps.
            (BinOp::Sub, _, Some(more)) if let Some((whole, taken)) = inner(self, a) => {
                let all = self.constant(taken.wrapping_add(more));
                self.emit(Inst::Bin(BinOp::Sub, whole, all))
            }
            // A lower bound of `a - c`, which does not wrap, is one of `a`: of the TTL tests of ten routers,
            // one is left.
            (BinOp::Lt | BinOp::Le, Some(least), _)
                if let Some(least) = least.checked_add(u64::from(op == BinOp::Lt)) =>
            {
                let of_whole = inner(self, b)
                    .filter(|(whole, taken)| self.range(*whole).lo >= *taken)
                    .and_then(|(whole, taken)| Some((whole, least.checked_add(taken)?)));
                let (of, least) = of_whole.unwrap_or((b, least));
                let least = self.constant(least);
                self.emit(Inst::Bin(BinOp::Le, least, of))
            }
            _ => self.emit(Inst::Bin(op, a, b)),
        }
    }

    fn bound(&mut self, value: Value, by: Interval) -> Option<()> {
        let bound = self.range(value).and(by)?;
        self.bounds.insert(value, bound);
        Some(())
    }

    /// Requires a value to be 0, or not 0; `None` where it never is.
    fn test(&mut self, value: Value, is_set: bool) -> Option<()> {
        if let Some(number) = self.number(value) {
            return ((number != 0) == is_set).then_some(());
        }
        let guard = Guard::Test(value, is_set);
        if self.guards.contains(&guard) {
            return Some(());
        }
        let Some(Definition::Inst(Inst::Bin(op, a, b))) = self.definition(value) else {
            self.guards.push(guard);
            return Some(());
        };
        match (op, self.number(a), self.number(b)) {
            (BinOp::Le, Some(least), _) if is_set => {
                if self.range(b).lo >= least {
                    return Some(());
                }
                self.bound(b, Interval { lo: least, hi: u64::MAX })?;
                // A weaker bound of the same value is implied.
                let is_weaker = |other: &Guard| match other {
                    Guard::Test(test, true) => match self.definition(*test) {
                        Some(Definition::Inst(Inst::Bin(BinOp::Le, c, of))) => {
                            of == b && self.number(c).is_some()
                        }
                        _ => false,
                    },
                    _ => false,
                };
                if let Some(at) = self.guards.iter().position(is_weaker) {
                    self.guards[at] = guard;
                    return Some(());
                }
            }
            (BinOp::Le, Some(least), _) => self.bound(b, Interval::up_to(least.checked_sub(1)?))?,
            (BinOp::Eq, _, Some(number)) if is_set => self.bound(a, Interval::only(number))?,
            (BinOp::Eq, Some(number), _) if is_set => self.bound(b, Interval::only(number))?,
            _ => {}
        }
        self.guards.push(guard);
        Some(())
    }

    /// The offset of a base. Where it was set before the path, a guard tests it.
    fn position(&mut self, base: Base) -> Option<i64> {
        match (base, self.packet.headers[base as usize]) {
            (Base::Data, _) => Some(self.packet.data),
            (_, HeaderPosition::At(at)) => Some(at),
            // The offset of a header that is not set is -1.
            (_, HeaderPosition::AsBefore(Some(at))) if at != -1 => {
                let offset = self.emit(Inst::Offset(base));
                let wanted = self.constant(at as u64);
                let is = self.emit(Inst::Bin(BinOp::Eq, offset, wanted));
                self.test(is, true)?;
                Some(at)
            }
            _ => None,
        }
    }

    /// Requires bytes up to an offset.
    fn reach(&mut self, end: i64) -> Option<()> {
        if let Some((bytes, from)) = self.packet.cut
            && end > from
        {
            let (cut, end) = (self.end_of_cut(bytes, from), self.constant(end as u64));
            let is_there = self.bin(BinOp::Le, end, cut);
            self.test(is_there, true)?;
        }
        self.need = self.need.max(u16::try_from(end.max(0)).ok()?);
        Some(())
    }

    /// Where the tail was cut.
    fn end_of_cut(&mut self, bytes: Value, from: i64) -> Value {
        let from = self.constant(from as u64);
        self.bin(BinOp::Add, bytes, from)
    }

    /// The packet's bytes, or those of its first segment, behind its present first byte.
    fn length(&mut self, of: Inst) -> Option<Value> {
        let mut end = self.emit(of);
        if let Some((bytes, from)) = self.packet.cut {
            // Only packets of one segment are cut.
            let (avail, len) = (self.emit(Inst::Avail(Base::Data)), self.emit(Inst::Len));
            let is_one = self.emit(Inst::Bin(BinOp::Eq, avail, len));
            self.test(is_one, true)?;
            let cut = self.end_of_cut(bytes, from);
            end = self.bin(BinOp::Min, end, cut);
        }
        let data = self.constant(self.packet.data as u64);
        Some(self.bin(BinOp::Sub, end, data))
    }

    fn load(&mut self, field: Field) -> Option<Value> {
        let bit = self.position(field.base)? * 8 + i64::from(field.bit);
        let end = bit + i64::from(field.width);
        let meets = |written: &&Written| written.bit < end && bit < written.end();
        if let Some(written) = self.packet.written.iter().rev().find(meets).copied() {
            if written.bit > bit || end > written.end() {
                return None;
            }
            let by = self.constant((written.end() - end) as u64);
            let low = self.bin(BinOp::Shr, written.value, by);
            let mask = self.constant(ones(field.width));
            return Some(self.bin(BinOp::And, low, mask));
        }
        let field = Field::new(Base::Data, u16::try_from(bit).ok()?, field.width);
        // The bytes are read at the start, where they are all there.
        self.need = self.need.max(field.end_byte());
        field.is_valid().then(|| self.emit(Inst::Load(field)))
    }

    fn store(&mut self, field: Field, value: Value) -> Option<()> {
        let bit = self.position(field.base)? * 8 + i64::from(field.bit);
        let mask = self.constant(ones(field.width));
        let value = self.bin(BinOp::And, value, mask);
        if bit >= 0 {
            let end = Field::new(Base::Data, u16::try_from(bit).ok()?, field.width).end_byte();
            self.need = self.need.max(end);
        }
        self.packet.write(Written { bit, width: field.width, value });
        Some(())
    }

    /// Copies an instruction; the inner `None` for one without a value.
    fn inst(&mut self, inst: Inst) -> Option<Option<Value>> {
        let mut copy = inst;
        copy.map_operands(|operand| *operand = self.get(*operand));
        let value = match copy {
            Inst::Const(number) => self.constant(number),
            Inst::Bin(op, a, b) => self.bin(op, a, b),
            Inst::Select(c, a, b) => match self.range(c) {
                Interval { lo: 1.., .. } => a,
                Interval { hi: 0, .. } => b,
                _ => self.emit(copy),
            },
            Inst::CsumUpdate(..) | Inst::Now | Inst::Timestamp | Inst::FlowHash | Inst::Origin => {
                self.emit(copy)
            }
            Inst::Load(field) => self.load(field)?,
            Inst::LoadAnno(anno) => match self.packet.annotation(anno)? {
                Some(value) => value,
                None => self.emit(copy),
            },
            Inst::PacketType => match self.packet.packet_type {
                Some(value) => value,
                None => self.emit(copy),
            },
            Inst::Len | Inst::Avail(Base::Data) => self.length(copy)?,
            // All reads are in front of all writes.
            Inst::CellLoad(cell) if !self.writes_cell(cell) => self.emit(copy),
            Inst::RecLoad(record, ..) if matches!(self.definition(record), Some(Definition::Record(_))) => {
                self.emit(copy)
            }
            _ => return self.effect(copy).map(|()| None),
        };
        Some(Some(value))
    }

    /// Whether the path so far writes a cell.
    fn writes_cell(&self, cell: u16) -> bool {
        let writes = |inst: &Inst| matches!(inst, Inst::CellAdd(other, _) | Inst::CellStore(other, _) if *other == cell);
        self.cells.iter().any(writes)
    }

    fn effect(&mut self, inst: Inst) -> Option<()> {
        match inst {
            Inst::Store(field, value) => self.store(field, value),
            Inst::StoreAnno(anno, value) => {
                let mask = self.constant(ones(anno.len * 8));
                let value = self.bin(BinOp::And, value, mask);
                self.packet.annotate(anno, value)
            }
            Inst::SetPacketType(value) => {
                let mask = self.constant(0xff);
                self.packet.packet_type = Some(self.bin(BinOp::And, value, mask));
                Some(())
            }
            Inst::SetBase(base, by) => {
                let data = self.packet.data;
                self.packet.headers[base as usize] = match self.number(by) {
                    Some(by) => HeaderPosition::At(data + near(by)?),
                    None => HeaderPosition::Behind(by, data),
                };
                Some(())
            }
            Inst::ClearBase(base) => {
                self.packet.headers[base as usize] = HeaderPosition::Unset;
                Some(())
            }
            Inst::Pull(by) => {
                let by = self.number(by)?;
                self.packet.pull(by)?;
                self.reach(self.packet.data)
            }
            Inst::Push(bytes) => self.packet.push(bytes),
            // What is cut at a far end is not followed: sums of it could wrap.
            Inst::Take(bytes)
                if self.packet.cut.is_none()
                    && self.packet.data >= 0
                    && self.range(bytes).hi <= u64::from(u32::MAX) =>
            {
                self.packet.cut = Some((bytes, self.packet.data));
                Some(())
            }
            Inst::CellAdd(..) | Inst::CellStore(..) => {
                self.cells.push(inst);
                Some(())
            }
            _ => None,
        }
    }

    /// The number of lookups by keys by which enough tables are asked.
    pub fn in_rows(&self) -> usize {
        let mut by_key: FxHashMap<Value, usize> = FxHashMap::default();
        self.lookups.iter().for_each(|lookup| *by_key.entry(lookup.key).or_default() += 1);
        by_key.values().filter(|lookups| **lookups >= LEAST_LOOKUPS).sum()
    }

    /// Whether a value is computed from a record.
    fn hangs_on_record(&self, value: Value) -> bool {
        let (mut seen, mut open) = (FxHashSet::default(), vec![value]);
        while let Some(value) = open.pop() {
            match self.definition(value) {
                _ if !seen.insert(value) => {}
                Some(Definition::Record(_)) => return true,
                Some(Definition::Inst(inst)) => open.extend(inst.operands()),
                None => {}
            }
        }
        false
    }

    /// Follows a block's end to the path's next block.
    fn term(&mut self, term: &Term, next: Option<BlockId>) -> Option<()> {
        match term {
            Term::Jump(to, args) => {
                let args: Vec<Value> = args.iter().map(|arg| self.get(*arg)).collect();
                self.copies.extend(self.program.block(*to).params.iter().copied().zip(args));
                Some(())
            }
            Term::Branch(_, yes, no) if yes == no => Some(()),
            Term::Branch(value, yes, _) => {
                let value = self.get(*value);
                self.test(value, Some(*yes) == next)
            }
            Term::Need { base, bytes, then, .. } if Some(*then) == next => {
                let end = self.position(*base)? + i64::from(*bytes);
                self.reach(end)
            }
            Term::Room { bytes, then, .. } if Some(*then) == next => {
                let bytes = i64::from(*bytes) - self.packet.data;
                if bytes > 0 {
                    self.guards.push(Guard::Room(u16::try_from(bytes).ok()?));
                }
                Some(())
            }
            Term::Switch(value, cases, default) => {
                let value = self.get(*value);
                if Some(*default) != next {
                    let (case, _) = cases.iter().find(|(_, to)| Some(*to) == next)?;
                    let case = self.constant(*case);
                    let is = self.bin(BinOp::Eq, value, case);
                    return self.test(is, true);
                }
                let mut numbers: Vec<u64> = cases.iter().map(|(case, _)| *case).collect();
                numbers.sort_unstable();
                numbers.dedup();
                if let Some(number) = self.range(value).number() {
                    return (!numbers.contains(&number)).then_some(());
                }
                let guard = Guard::NoneOf(value, numbers);
                if !self.guards.contains(&guard) {
                    self.guards.push(guard);
                }
                Some(())
            }
            Term::Lookup { table, key, args: None, rec, hit, .. } if Some(*hit) == next => {
                let decl = self.program.tables.get(usize::from(*table))?;
                let [key] = key[..] else { return None };
                let key = self.get(key);
                if decl.matching != Matching::Prefixes4 || self.hangs_on_record(key) {
                    return None;
                }
                let is_same = |known: &&Lookup| (known.table, known.key) == (*table, key);
                let known = self.lookups.iter().find(is_same).copied();
                let record = known.map_or_else(
                    || {
                        let record = self.define(Definition::Record(self.lookups.len()));
                        self.lookups.push(Lookup { table: *table, key, record });
                        record
                    },
                    |known| known.record,
                );
                self.copies.insert(*rec, record);
                Some(())
            }
            Term::Emit(port) if next.is_none() => {
                self.port = *port;
                Some(())
            }
            _ => None,
        }
    }
}

/// Whether a mask has all bits of numbers up to `most`.
fn is_all_of(mask: u64, most: u64) -> bool {
    mask & (mask.wrapping_add(1)) == 0 && most <= mask
}
