//! One walk over a program from its entries to its exits, which writes it anew.
//!
//! At each instruction the walk knows what bases, places and values are ([`State`]). Of an instruction
//! whose value is there already nothing is written; a value that can be made from others in fewer
//! steps is made so. A test whose outcome is known becomes a jump, and what no way leads to any more
//! is not walked. Blocks keep their numbers; [`super::shape`] tidies up.
//!
//! Values that are carried over a border cost memory. So a value is not taken from before one where
//! the program reads it again behind it: what is known of it stays, the reading too.

use super::Known;
use super::note::{Note, Reads, Touch};
use super::order::Order;
use super::place::{Anchors, Place, Point};
use super::range::Range;
use super::state::{IsSet, Position, State};
use super::value::{Expr, Values, Vn};
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::anno::Anno;
use packet::field::{Base, Field};
use std::collections::HashMap;

/// A program written anew.
pub struct Rewritten {
    /// By the number of the old blocks; those that nothing leads to are empty.
    pub program: Program,
    /// What each instruction reads and writes.
    pub notes: Vec<Vec<Note>>,
}

/// What is handed over to a block's parameters.
#[derive(Clone, Copy)]
struct Param {
    /// The value, where all ways hand over the same.
    same: Option<Vn>,
    range: Range,
}

pub(super) struct Forward<'a> {
    program: &'a Program,
    pub(super) known: &'a Known,
    order: Order,
    pub(super) values: Values,
    pub(super) anchors: Anchors,
    states: Vec<Option<State>>,
    params: Vec<Option<Vec<Param>>>,
    reached: Vec<bool>,
    /// The numbers of the old program's values.
    numbers: Vec<Vn>,
    /// Where the new program has a value.
    homes: HashMap<Vn, Vec<(BlockId, Value)>>,
    next_value: u32,
    out: Vec<Block>,
    notes: Vec<Vec<Note>>,
    pub(super) here: BlockId,
    pub(super) state: State,
}

/// How deep what a value is made from may be.
const MAKE_DEPTH: u32 = 6;
/// Instructions that making a value may take in the place of one that reads it.
const MAKE_COST: u32 = 3;
/// Where a value is looked for.
const MOST_HOMES: usize = 16;

/// Whether nothing has to be known to write a block anew.
fn is_bare_exit(block: &Block) -> bool {
    block.insts.is_empty() && matches!(block.term, Term::Emit(_) | Term::Drop(_) | Term::Slow(_))
}

/// Writes a verified program anew.
pub fn rewrite(program: &Program, known: &Known) -> Rewritten {
    let count = program.blocks.len();
    let (mut values, mut anchors) = (Values::default(), Anchors::default());
    let state = State::at_entry(&mut values, &mut anchors, known.mac_at_data);
    let unset = values.own(Range::ALL);
    let empty = Block { params: vec![], insts: vec![], term: Term::Emit(0) };
    let mut walk = Forward {
        program,
        known,
        order: Order::of(program),
        values,
        anchors,
        states: vec![None; count],
        params: vec![None; count],
        reached: vec![false; count],
        numbers: vec![unset; program.value_count()],
        homes: HashMap::new(),
        next_value: 0,
        out: vec![empty; count],
        notes: vec![vec![]; count],
        here: program.entries[0],
        state: state.clone(),
    };
    for entry in &program.entries {
        walk.send(*entry, state.clone(), &[]);
    }
    for at in 0..walk.order.blocks.len() {
        walk.block(walk.order.blocks[at]);
    }
    let program = Program {
        name: program.name.clone(),
        outputs: program.outputs,
        entries: program.entries.clone(),
        reasons: program.reasons.clone(),
        cells: program.cells.clone(),
        tables: program.tables.clone(),
        slow: program.slow.clone(),
        blocks: walk.out,
    };
    Rewritten { program, notes: walk.notes }
}

impl Forward<'_> {
    /// What is known goes on to a block.
    fn send(&mut self, to: BlockId, state: State, args: &[Vn]) {
        let at = to.index();
        self.reached[at] = true;
        let handed =
            args.iter().map(|arg| Param { same: Some(*arg), range: self.values.range(*arg, &state.facts) });
        let handed: Vec<Param> = handed.collect();
        match &mut self.params[at] {
            None => self.params[at] = Some(handed),
            Some(params) => params.iter_mut().zip(handed).for_each(|(param, new)| {
                param.same = param.same.filter(|same| Some(*same) == new.same);
                param.range = param.range.hull(new.range);
            }),
        }
        if is_bare_exit(&self.program.blocks[at]) {
            return;
        }
        match &mut self.states[at] {
            None => self.states[at] = Some(state),
            Some(known) => known.meet(&state, &mut self.values, &mut self.anchors),
        }
    }

    fn block(&mut self, id: BlockId) {
        if !self.reached[id.index()] {
            return;
        }
        let old: &Block = self.program.block(id);
        self.here = id;
        if is_bare_exit(old) && old.params.is_empty() {
            self.out[id.index()] = old.clone();
            return;
        }
        if let Some(state) = self.states[id.index()].take() {
            self.state = state;
        }
        let handed = self.params[id.index()].take().unwrap_or_default();
        for (param, handed) in old.params.iter().zip(handed) {
            let value = self.fresh();
            self.out[id.index()].params.push(value);
            let same = handed.same.filter(|same| self.operand(*same).is_some());
            let number = same.unwrap_or_else(|| self.values.own(handed.range));
            if same.is_none() {
                self.settle_at(number, value, id);
            }
            self.numbers[param.0 as usize] = number;
        }
        for &(value, inst) in &old.insts {
            let number = self.inst(inst);
            if let (Some(value), Some(number)) = (value, number) {
                self.numbers[value.0 as usize] = number;
            }
        }
        let term = self.term(&old.term);
        self.out[id.index()].term = term;
    }

    fn fresh(&mut self) -> Value {
        self.next_value += 1;
        Value(self.next_value - 1)
    }

    /// The number of one of the old program's values.
    pub(super) fn number(&self, value: Value) -> Vn {
        self.numbers[value.0 as usize]
    }

    fn settle_at(&mut self, number: Vn, value: Value, block: BlockId) {
        self.homes.entry(number).or_default().push((block, value));
    }

    /// Where a value is that is there at this place: on this side of the last border, or wherever.
    fn home(&self, number: Vn, any_side: bool) -> Option<Value> {
        let homes = self.homes.get(&number)?;
        let fits = |home: &&(BlockId, Value)| {
            self.order.dominates(home.0, self.here) && (any_side || self.order.same_side(home.0, self.here))
        };
        homes.iter().rev().take(MOST_HOMES).find(fits).map(|home| home.1)
    }

    fn append(&mut self, inst: Inst, note: Note) -> Option<Value> {
        let value = inst.has_result().then(|| self.fresh());
        self.out[self.here.index()].insts.push((value, inst));
        self.notes[self.here.index()].push(note);
        value
    }

    /// Writes an instruction that yields a value.
    fn write(&mut self, number: Vn, inst: Inst, note: Note) -> Value {
        let value = self.append(inst, note);
        let value = value.unwrap_or(Value(u32::MAX));
        self.settle_at(number, value, self.here);
        value
    }

    /// Writes an instruction that acts.
    pub(super) fn act(&mut self, inst: Inst, note: Note) {
        self.append(inst, note);
    }

    /// Writes an instruction that yields a value of its own.
    pub(super) fn act_with(&mut self, number: Vn, inst: Inst, note: Note) {
        self.write(number, inst, note);
    }

    /// A value of the new program that is this number here.
    pub(super) fn operand(&mut self, number: Vn) -> Option<Value> {
        if let Some(value) = self.home(number, false) {
            return Some(value);
        }
        match self.cost(number, MAKE_DEPTH, false) {
            Some(_) => Some(self.make(number)),
            None => self.read_again(number).or_else(|| self.home(number, true)),
        }
    }

    /// A field that holds a value here, and may be read.
    fn field_with(&self, number: Vn) -> Option<(Field, Place)> {
        let (place, _) = self.state.places.iter().rev().find(|held| held.1 == number)?;
        let base = Base::ALL.into_iter().rev().find(|base| {
            let at = self.state.at[*base as usize];
            let there = i64::from(self.state.there[*base as usize]);
            at.anchor == place.anchor && place.bit >= at.bytes * 8 && place.end() <= (at.bytes + there) * 8
        })?;
        let bit = u16::try_from(place.bit - self.state.at[base as usize].bytes * 8).ok()?;
        let field = Field::new(base, bit, place.width);
        field.is_valid().then_some((field, *place))
    }

    /// Reads a value that is on the other side of a border where it stands in the packet still.
    fn read_again(&mut self, number: Vn) -> Option<Value> {
        let (field, place) = self.field_with(number)?;
        let note = Note { reads: Reads::Bits(self.touch(place)), ..Note::using(field.base) };
        Some(self.write(number, Inst::Load(field), note))
    }

    /// The same for a value that the old program has here.
    pub(super) fn value(&mut self, number: Vn) -> Value {
        let found = self.operand(number);
        debug_assert!(found.is_some(), "v? of number {number} in b{}", self.here.0);
        found.unwrap_or(Value(u32::MAX))
    }

    /// Instructions that it takes to make a value from what is there on this side of the last border, or
    /// on any.
    fn cost(&self, number: Vn, depth: u32, any_side: bool) -> Option<u32> {
        if self.home(number, any_side).is_some() {
            return Some(0);
        }
        let depth = depth.checked_sub(1)?;
        let all = |parts: &[Vn]| -> Option<u32> {
            parts.iter().try_fold(1, |sum, part| Some(sum + self.cost(*part, depth, any_side)?))
        };
        match self.values.expr(number) {
            Expr::Const(_) | Expr::Given(_) => Some(0),
            Expr::Bin(_, a, b) => all(&[a, b]),
            Expr::Select(a, b, c) | Expr::Csum(a, b, c, _) => all(&[a, b, c]),
            _ => None,
        }
    }

    /// Makes a value that has a cost.
    fn make(&mut self, number: Vn) -> Value {
        if let Some(value) = self.home(number, false) {
            return value;
        }
        if self.cost(number, MAKE_DEPTH, false).is_none()
            && let Some(value) = self.read_again(number).or_else(|| self.home(number, true))
        {
            return value;
        }
        self.rebuild(number)
    }

    /// Makes a value from what its expression names.
    fn rebuild(&mut self, number: Vn) -> Value {
        let inst = match self.values.expr(number) {
            Expr::Const(number) => Inst::Const(number),
            Expr::Given(what) => GIVEN[usize::from(what)],
            Expr::Bin(op, a, b) => self.make_bin(op, a, b),
            Expr::Select(a, b, c) => Inst::Select(self.make(a), self.make(b), self.make(c)),
            Expr::Csum(a, b, c, width) => Inst::CsumUpdate(self.make(a), self.make(b), self.make(c), width),
            _ => return Value(u32::MAX),
        };
        self.write(number, inst, Note::PURE)
    }

    fn make_bin(&mut self, op: BinOp, a: Vn, b: Vn) -> Inst {
        let constant = self.values.number(b);
        if op == BinOp::Add
            && let Some(less) = constant.map(u64::wrapping_neg)
            && less <= i64::MAX as u64
            && less != 0
        {
            let less = self.values.constant(less);
            return Inst::Bin(BinOp::Sub, self.make(a), self.make(less));
        }
        // The opposite of a comparison is one, too.
        if op == BinOp::Eq && constant == Some(0) && self.home(a, false).is_none() {
            match self.values.expr(a) {
                Expr::Bin(BinOp::Le, x, y) if self.is_made(x, y) => {
                    return Inst::Bin(BinOp::Lt, self.make(y), self.make(x));
                }
                Expr::Bin(BinOp::Eq, x, y) if self.is_made(x, y) => {
                    return Inst::Bin(BinOp::Ne, self.make(x), self.make(y));
                }
                _ => {}
            }
        }
        Inst::Bin(op, self.make(a), self.make(b))
    }

    fn is_made(&self, x: Vn, y: Vn) -> bool {
        self.cost(x, MAKE_DEPTH, true).is_some() && self.cost(y, MAKE_DEPTH, true).is_some()
    }

    /// A value of arithmetic; `inst` is how the old program makes it, of values of the new one.
    fn computed(&mut self, number: Vn, inst: impl FnOnce(&mut Self) -> Inst, as_is: bool) -> Vn {
        if self.home(number, false).is_some() || self.values.number(number).is_some() {
            return number;
        }
        if !as_is && self.cost(number, MAKE_DEPTH, false).is_some() {
            self.make(number);
            return number;
        }
        let inst = inst(self);
        self.write(number, inst, Note::PURE);
        number
    }

    /// A value that is read; making it from what is there is better when that is cheap.
    fn read(&mut self, number: Vn, inst: Inst, note: Note) -> Vn {
        let cheap = |cost: Option<u32>| cost.is_some_and(|cost| cost <= MAKE_COST);
        if cheap(self.cost(number, MAKE_DEPTH, false)) {
            return number;
        }
        // What was worked out before a border is worked out again from what it was worked out from: then
        // nobody reads what was written there, and the bytes may be left as they were.
        let expr = self.values.expr(number);
        if matches!(expr, Expr::Bin(..) | Expr::Csum(..))
            && self.home(number, false).is_none()
            && let Some(1..=MAKE_COST) = self.far_cost(expr)
        {
            self.rebuild(number);
            return number;
        }
        self.write(number, inst, note);
        number
    }

    /// Instructions that it takes to make a value of one that may be on the other side of a border.
    fn far_cost(&self, expr: Expr) -> Option<u32> {
        let parts = match expr {
            Expr::Bin(_, a, b) => vec![a, b],
            Expr::Csum(a, b, c, _) => vec![a, b, c],
            _ => return None,
        };
        let open: Vec<Vn> = parts.into_iter().filter(|part| self.values.number(*part).is_none()).collect();
        let [part] = open[..] else { return None };
        Some(1 + self.cost(part, 2, true)?)
    }

    pub(super) fn place(&self, field: Field) -> Place {
        let at = self.state.at[field.base as usize];
        Place { anchor: at.anchor, bit: at.bytes * 8 + i64::from(field.bit), width: field.width }
    }

    pub(super) fn anno(&mut self, anno: Anno) -> Place {
        let anchor = self.anchors.of(Point::Anno);
        Place { anchor, bit: i64::from(anno.offset) * 8, width: anno.len * 8 }
    }

    pub(super) fn whole(&mut self, point: Point, width: u8) -> Place {
        Place { anchor: self.anchors.of(point), bit: 0, width }
    }

    fn record(&mut self, record: Value, offset: u16, bytes: u8) -> Place {
        let anchor = self.anchors.of(Point::Record(self.number(record)));
        Place { anchor, bit: i64::from(offset) * 8, width: bytes * 8 }
    }

    pub(super) fn touch(&self, place: Place) -> Touch {
        Touch::of(place, &self.anchors, &self.values, &self.state.facts)
    }

    /// What a place holds: what is known of it, else a value that stands for it.
    pub(super) fn content(&mut self, place: Place) -> Vn {
        if let Some(number) = self.state.held(place, &mut self.values, &self.anchors) {
            return self.values.settled(number, &self.state.facts);
        }
        let packet = self.anchors.is_packet(place.anchor);
        let version = self.state.versions[usize::from(!packet)];
        let most = u64::MAX >> (64 - u32::from(place.width));
        let number = self.values.leaf(Expr::Load(version, place.anchor, place.bit, place.width), most);
        self.state.note(place, number);
        number
    }

    fn load(&mut self, place: Place, inst: Inst, uses: Note) -> Vn {
        let number = self.content(place);
        let note = Note { reads: Reads::Bits(self.touch(place)), ..uses };
        self.read(number, inst, note)
    }

    /// Writes to a place, unless it holds that already.
    fn store(&mut self, place: Place, value: Vn, inst: impl FnOnce(Value) -> Inst, uses: Note) {
        let mask = u64::MAX >> (64 - u32::from(place.width));
        let kept = self.values.bin_const(BinOp::And, value, mask, &self.state.facts);
        let held = self.state.held(place, &mut self.values, &self.anchors);
        if held.is_some_and(|held| self.values.settled(held, &self.state.facts) == kept) {
            return;
        }
        if self.anchors.is_packet(place.anchor) {
            self.track_sum(place, kept);
        }
        // A masked value costs an instruction that the store does not need.
        let wide = self.values.with_const(BinOp::And, kept).filter(|wide| wide.1 == mask);
        let operand = self.home(kept, false).or_else(|| wide.and_then(|wide| self.operand(wide.0)));
        let operand = match operand {
            Some(operand) => operand,
            None => self.value(value),
        };
        let note = Note { writes: Some(self.touch(place)), ..uses };
        self.act(inst(operand), note);
        self.state.write(place, kept, &mut self.values, &self.anchors);
    }

    /// One instruction of the old program; gives the number of what it yields.
    fn inst(&mut self, inst: Inst) -> Option<Vn> {
        let number = match inst {
            Inst::Const(number) => self.values.constant(number),
            Inst::Bin(op, a, b) => {
                let (left, right) = (self.number(a), self.number(b));
                let number = self.values.bin(op, left, right, &self.state.facts);
                let as_is = match self.values.expr(number) {
                    Expr::Bin(same, x, y) => same == op && [(x, y), (y, x)].contains(&(left, right)),
                    _ => false,
                };
                self.computed(number, |walk| Inst::Bin(op, walk.value(left), walk.value(right)), as_is)
            }
            Inst::Select(a, b, c) => {
                let [a, b, c] = [a, b, c].map(|value| self.number(value));
                let number = self.values.select(a, b, c, &self.state.facts);
                let inst = |walk: &mut Self| Inst::Select(walk.value(a), walk.value(b), walk.value(c));
                self.computed(number, inst, false)
            }
            Inst::CsumUpdate(a, b, c, width) => {
                let [a, b, c] = [a, b, c].map(|value| self.number(value));
                let number = self.values.csum(a, b, c, width, &self.state.facts);
                let inst =
                    |walk: &mut Self| Inst::CsumUpdate(walk.value(a), walk.value(b), walk.value(c), width);
                self.computed(number, inst, false)
            }
            Inst::Load(field) => self.load(self.place(field), inst, Note::using(field.base)),
            Inst::LoadAnno(anno) => {
                let place = self.anno(anno);
                self.load(place, inst, Note::PURE)
            }
            Inst::CellLoad(cell) => match self.known.cells.get(&cell) {
                Some(number) => self.values.constant(*number),
                None => {
                    let place = self.whole(Point::Cell(cell), 64);
                    self.load(place, inst, Note::PURE)
                }
            },
            Inst::RecLoad(record, offset, bytes) => {
                let place = self.record(record, offset, bytes);
                let number = self.number(record);
                let record = self.value(number);
                self.load(place, Inst::RecLoad(record, offset, bytes), Note::PURE)
            }
            Inst::PacketType => {
                let place = self.whole(Point::Type, 8);
                self.load(place, inst, Note::PURE)
            }
            Inst::Len | Inst::Avail(_) | Inst::Offset(_) => self.extent(inst),
            Inst::IpSum => self.ip_sum(),
            Inst::TransportSum(proto) => {
                let proto = self.number(proto);
                let proto = self.value(proto);
                let number = self.values.own(Range::up_to(0xffff));
                let uses = 1 << Base::Net as u8 | 1 << Base::Trans as u8;
                let note = Note { reads: Reads::Packet, uses, ..Note::PURE };
                self.read(number, Inst::TransportSum(proto), note)
            }
            Inst::Now | Inst::Timestamp | Inst::FlowHash | Inst::Origin => {
                let which = GIVEN.iter().position(|given| *given == inst).unwrap_or(0);
                let most = GIVEN_MOST[which];
                self.values.leaf(Expr::Given(which as u8), most)
            }
            _ => {
                self.effect(inst);
                return None;
            }
        };
        Some(number)
    }

    /// An instruction that acts.
    fn effect(&mut self, inst: Inst) {
        match inst {
            Inst::Store(field, value) => {
                let value = self.number(value);
                let make = |value| Inst::Store(field, value);
                self.store(self.place(field), value, make, Note::using(field.base));
            }
            Inst::StoreAnno(anno, value) => {
                let (place, value) = (self.anno(anno), self.number(value));
                self.store(place, value, |value| Inst::StoreAnno(anno, value), Note::PURE);
            }
            Inst::SetPacketType(value) => {
                let (place, value) = (self.whole(Point::Type, 8), self.number(value));
                self.store(place, value, Inst::SetPacketType, Note::PURE);
            }
            Inst::CellStore(cell, value) => {
                let (place, value) = (self.whole(Point::Cell(cell), 64), self.number(value));
                self.store(place, value, |value| Inst::CellStore(cell, value), Note::PURE);
            }
            Inst::CellAdd(cell, value) => {
                let (place, value) = (self.whole(Point::Cell(cell), 64), self.number(value));
                if self.values.number(value) == Some(0) {
                    return;
                }
                let held = self.state.held(place, &mut self.values, &self.anchors);
                let operand = self.value(value);
                let note = Note { reads: Reads::Bits(self.touch(place)), ..Note::PURE };
                self.act(Inst::CellAdd(cell, operand), note);
                match held {
                    Some(held) => {
                        let sum = self.values.bin(BinOp::Add, held, value, &self.state.facts);
                        self.state.write(place, sum, &mut self.values, &self.anchors);
                    }
                    None => self.state.spoil(place, &mut self.values, &self.anchors),
                }
            }
            Inst::RecStore(record, offset, bytes, value) => {
                let (place, value) = (self.record(record, offset, bytes), self.number(value));
                let number = self.number(record);
                let record = self.value(number);
                self.store(place, value, |value| Inst::RecStore(record, offset, bytes, value), Note::PURE);
            }
            Inst::SetBase(base, value) => self.set_base(base, self.number(value)),
            Inst::ClearBase(base) => self.clear_base(base),
            Inst::Pull(value) => self.pull(self.number(value)),
            Inst::Push(bytes) => self.push(bytes),
            Inst::Take(value) => self.take(self.number(value)),
            _ => {}
        }
    }

    /// Writes a reading of the packet's extent; one that stands in this block is not repeated. Machine
    /// code knows what a test of it says only when both stand in one block.
    pub(super) fn read_here(&mut self, number: Vn, inst: Inst, note: Note) -> Vn {
        let here = self.here;
        let homes = self.homes.get(&number);
        let found = homes.is_some_and(|homes| homes.iter().any(|home| home.0 == here));
        if !found && self.values.number(number).is_none() {
            self.write(number, inst, note);
        }
        number
    }

    fn jump(&mut self, to: BlockId) -> Term {
        let state = self.state.clone();
        self.send(to, state, &[]);
        Term::Jump(to, vec![])
    }

    /// The end of a block.
    fn term(&mut self, term: &Term) -> Term {
        match term {
            Term::Jump(to, args) => {
                let numbers: Vec<Vn> = args.iter().map(|arg| self.number(*arg)).collect();
                let args = numbers.iter().map(|number| self.value(*number)).collect();
                let state = self.state.clone();
                self.send(*to, state, &numbers);
                Term::Jump(*to, args)
            }
            Term::Branch(value, yes, no) => self.branch(self.number(*value), *yes, *no),
            Term::Need { base, bytes, then, els } => self.need(*base, *bytes, *then, *els),
            Term::Room { bytes, then, els } => {
                if self.state.room >= u32::from(*bytes) || then == els {
                    return self.jump(*then);
                }
                self.send(*els, self.state.clone(), &[]);
                let mut state = self.state.clone();
                state.room = u32::from(*bytes);
                self.send(*then, state, &[]);
                term.clone()
            }
            Term::Switch(value, cases, default) => self.switch(self.number(*value), cases, *default),
            Term::EmitTo(value, els) => self.emit_to(self.number(*value), *els),
            Term::Emit(_) | Term::Drop(_) | Term::Slow(_) => term.clone(),
            Term::Lookup { table, key, rec, hit, miss } => {
                let key: Vec<Vn> = key.iter().map(|word| self.number(*word)).collect();
                self.lookup(*table, key, *rec, *hit, *miss)
            }
            Term::Create { table, key, args, rec, ok, fail } => {
                let [key, args] =
                    [key, args].map(|words| words.iter().map(|word| self.number(*word)).collect::<Vec<Vn>>());
                let key = key.into_iter().map(|word| self.value(word)).collect();
                let args = args.into_iter().map(|arg| self.value(arg)).collect();
                self.state.looked.retain(|looked| looked.0 != *table);
                let new = self.border(*rec, *ok, *fail, None);
                Term::Create { table: *table, key, args, rec: new, ok: *ok, fail: *fail }
            }
        }
    }

    /// Goes on behind a border.
    fn border(&mut self, rec: Value, hit: BlockId, miss: BlockId, looked: Option<(u16, Vec<Vn>)>) -> Value {
        let (number, value) = (self.values.own(Range::ALL), self.fresh());
        self.numbers[rec.0 as usize] = number;
        if self.order.preds[hit.index()] == 1 {
            self.settle_at(number, value, hit);
        }
        let mut state = self.state.clone();
        state.pass_border(&mut self.values, &self.anchors);
        let mut missed = state.clone();
        if let Some((table, key)) = looked {
            missed.note_lookup((table, key.clone(), None));
            state.note_lookup((table, key, Some(number)));
        }
        self.send(hit, state, &[]);
        self.send(miss, missed, &[]);
        value
    }

    fn lookup(&mut self, table: u16, key: Vec<Vn>, rec: Value, hit: BlockId, miss: BlockId) -> Term {
        let known = self.state.looked.iter().find(|looked| looked.0 == table && looked.1 == key);
        match known.map(|looked| looked.2) {
            Some(None) => return self.jump(miss),
            Some(Some(record)) if self.home(record, true).is_some() => {
                self.numbers[rec.0 as usize] = record;
                return self.jump(hit);
            }
            _ => {}
        }
        let words = key.iter().map(|word| self.value(*word)).collect();
        let rec = self.border(rec, hit, miss, Some((table, key)));
        Term::Lookup { table, key: words, rec, hit, miss }
    }

    fn need(&mut self, base: Base, bytes: u16, then: BlockId, els: BlockId) -> Term {
        let at = self.state.at[base as usize];
        let there = self.state.there[base as usize] >= u32::from(bytes);
        let known =
            self.state.set[base as usize] == IsSet::Yes && self.state.bytes_from(at) >= i64::from(bytes);
        if there && known || then == els {
            return self.jump(then);
        }
        if self.state.set[base as usize] == IsSet::No {
            return self.jump(els);
        }
        self.send(els, self.state.clone(), &[]);
        let mut state = self.state.clone();
        state.there[base as usize] = state.there[base as usize].max(u32::from(bytes));
        state.set[base as usize] = IsSet::Yes;
        state.note_bytes(at, i64::from(bytes));
        self.send(then, state, &[]);
        Term::Need { base, bytes, then, els }
    }

    fn branch(&mut self, test: Vn, yes: BlockId, no: BlockId) -> Term {
        if yes == no {
            return self.jump(yes);
        }
        let (mut taken, mut other) = (self.state.clone(), self.state.clone());
        if !self.values.assume(test, true, &mut taken.facts) {
            return self.jump(no);
        }
        if !self.values.assume(test, false, &mut other.facts) {
            return self.jump(yes);
        }
        self.learn(test, &mut taken);
        // Not the opposite of what is there already.
        let (mut test, mut swapped) = (test, false);
        if let Expr::Bin(BinOp::Eq, inner, zero) = self.values.expr(test)
            && self.values.number(zero) == Some(0)
            && self.home(test, false).is_none()
            && self.home(inner, false).is_some()
        {
            (test, swapped) = (inner, true);
        }
        let value = self.value(test);
        self.send(yes, taken, &[]);
        self.send(no, other, &[]);
        if swapped { Term::Branch(value, no, yes) } else { Term::Branch(value, yes, no) }
    }

    fn switch(&mut self, value: Vn, cases: &[(u64, BlockId)], default: BlockId) -> Term {
        if let Some(number) = self.values.range(value, &self.state.facts).number() {
            let case = cases.iter().find(|case| case.0 == number);
            return self.jump(case.map_or(default, |case| case.1));
        }
        let mut numbers: Vec<u64> = cases.iter().map(|case| case.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let none = self.values.within(value, numbers.clone());
        if cases.iter().all(|case| case.1 == default)
            || self.values.truth(none, &self.state.facts) == Some(false)
        {
            return self.jump(default);
        }
        let mut other = self.state.clone();
        let mut open = self.values.assume(none, false, &mut other.facts);
        let mut left = vec![];
        let mut seen = std::collections::HashSet::new();
        for &(number, to) in cases {
            let constant = self.values.constant(number);
            let equal = self.values.bin(BinOp::Eq, value, constant, &self.state.facts);
            let mut state = self.state.clone();
            if !seen.insert(number) || !self.values.assume(equal, true, &mut state.facts) {
                continue;
            }
            left.push((number, to));
            self.send(to, state, &[]);
        }
        for &number in numbers.iter().take(FEW_CASES) {
            let constant = self.values.constant(number);
            let equal = self.values.bin(BinOp::Eq, value, constant, &self.state.facts);
            open = open && self.values.assume(equal, false, &mut other.facts);
        }
        if !open {
            // Whoever comes here is one of the cases: the last one stands for all others.
            if let Some((_, last)) = left.pop() {
                if left.is_empty() {
                    return Term::Jump(last, vec![]);
                }
                return Term::Switch(self.value(value), left, last);
            }
        }
        self.send(default, other, &[]);
        if left.is_empty() {
            return Term::Jump(default, vec![]);
        }
        if let [(number, to)] = left[..] {
            let constant = self.values.constant(number);
            let equal = self.values.bin(BinOp::Eq, value, constant, &self.state.facts);
            if let Some(test) = self.operand(equal) {
                return Term::Branch(test, to, default);
            }
        }
        Term::Switch(self.value(value), left, default)
    }

    fn emit_to(&mut self, port: Vn, els: BlockId) -> Term {
        let outputs = u64::from(self.program.outputs);
        let range = self.values.range(port, &self.state.facts);
        match range.number() {
            Some(port) if port < outputs => return Term::Emit(port as u16),
            _ if range.lo >= outputs => return self.jump(els),
            _ => {}
        }
        let mut state = self.state.clone();
        let above = Range { lo: outputs, hi: u64::MAX };
        // Where no port is left out, the block behind is still one that must exist.
        let _ = self.values.assume_range(port, above, &mut state.facts);
        self.send(els, state, &[]);
        Term::EmitTo(self.value(port), els)
    }
}

/// What is the same through the whole run.
const GIVEN: [Inst; 4] = [Inst::Now, Inst::Timestamp, Inst::FlowHash, Inst::Origin];
/// The largest of each.
const GIVEN_MOST: [u64; 4] = [u64::MAX, u64::MAX, u32::MAX as u64, u16::MAX as u64];
/// Headers that are further away are not compared with others.
const FARTHEST: u64 = 1 << 20;
/// Cases that are noted one by one where none of them is taken.
const FEW_CASES: usize = 4;

impl Forward<'_> {
    /// Where the bytes of a base's value are, behind the packet's first byte.
    pub(super) fn behind_data(&mut self, value: Vn) -> Position {
        let data = self.state.at[Base::Data as usize];
        let near = |by: u64| (by as i64).unsigned_abs() <= FARTHEST;
        if let Some(by) = self.values.number(value).filter(|by| near(*by)) {
            return Position { bytes: data.bytes + by as i64, ..data };
        }
        let split = self.values.with_const(BinOp::Add, value).filter(|(_, extra)| near(*extra));
        let (by, extra) = split.unwrap_or((value, 0));
        let anchor = self.anchors.of(Point::Behind(data.anchor, by));
        Position { anchor, bytes: data.bytes + extra as i64 }
    }
}
