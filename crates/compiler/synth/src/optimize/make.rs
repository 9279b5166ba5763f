//! Values of the new program: where they are defined, and how new ones are computed.
//!
//! A value that is carried over a stage boundary is stored and loaded, once for all stages behind it: less
//! than a read of the packet behind each, and than computing it from more than one operation. So values of the
//! packet are read once.

use super::byte_range::ByteRange;
use super::forward::{Forward, GIVEN};
use super::optimization_note::{OptimizationNote, Reads};
use super::value::{Expr, Vn};
use ir::{BinOp, BlockId, Inst, Value};
use packet::field::{Base, Field};

/// The depth of expressions that are computed again.
const MAKE_DEPTH: u32 = 6;
/// The number of instructions up to which computing a value is preferred to reading it.
const MAKE_COST: u32 = 3;
/// The number of instructions up to which computing a value is preferred to carrying it over a stage boundary.
const CARRY_COST: u32 = 2;

impl Forward<'_> {
    pub(super) fn settle_at(&mut self, number: Vn, value: Value, block: BlockId) {
        self.locations.entry(number).or_default().push((block, value));
    }

    /// The definition of a value that is available here: on this side of the last stage boundary, or on
    /// any side.
    pub(super) fn holder(&self, number: Vn, any_side: bool) -> Option<Value> {
        let locations = self.locations.get(&number)?;
        let fits = |location: &&(BlockId, Value)| {
            self.order.dominates(location.0, self.here)
                && (any_side || self.order.same_side(location.0, self.here))
        };
        locations.iter().rev().find(fits).map(|location| location.1)
    }

    /// Appends an instruction.
    pub(super) fn act(&mut self, inst: Inst, note: OptimizationNote) -> Option<Value> {
        let value = inst.has_result().then(|| self.fresh());
        self.out[self.here.index()].insts.push((value, inst));
        self.notes[self.here.index()].push(note);
        value
    }

    /// Appends one that writes to a location.
    pub(super) fn act_write(&mut self, place: ByteRange, inst: Inst) {
        let note = OptimizationNote { writes: Some(self.touch(place)), ..OptimizationNote::of(inst) };
        self.act(inst, note);
    }

    /// Appends an instruction that yields a value.
    pub(super) fn write(&mut self, number: Vn, inst: Inst, note: OptimizationNote) -> Value {
        let value = self.act(inst, note).unwrap_or(Value(u32::MAX));
        self.settle_at(number, value, self.here);
        value
    }

    /// A value of the new program that has this number here.
    pub(super) fn operand(&mut self, number: Vn) -> Option<Value> {
        if let Some(value) = self.holder(number, false) {
            return Some(value);
        }
        let cost = self.cost(number, MAKE_DEPTH, false);
        if cost.is_none_or(|cost| cost > CARRY_COST)
            && !self.has_parts(number)
            && let Some(value) = self.holder(number, true)
        {
            return Some(value);
        }
        match cost {
            Some(_) => Some(self.rebuild(number)),
            // From what is carried.
            None if self.cost(number, MAKE_DEPTH, true).is_some() => Some(self.rebuild(number)),
            None => self.read_again(number),
        }
    }

    /// Whether the value is an updated checksum that can be computed from what is available on any side of a stage
    /// boundary. It is not carried: a row of updates is one at its end, and only paths that leave in between need
    /// the others.
    fn has_parts(&self, number: Vn) -> bool {
        match self.values.expr(number) {
            Expr::Csum(a, b, c, _) => {
                [a, b, c].into_iter().all(|part| self.cost(part, MAKE_DEPTH - 1, true).is_some())
            }
            _ => false,
        }
    }

    /// Whether the value is carried here from before a stage boundary, rather than computed.
    fn is_carried(&self, number: Vn) -> bool {
        self.holder(number, true).is_some()
            && !self.has_parts(number)
            && self.cost(number, MAKE_DEPTH, false).is_none_or(|cost| cost > CARRY_COST)
    }

    /// A field with this content here that may be read.
    fn field_with(&self, number: Vn) -> Option<(Field, ByteRange)> {
        let (place, _) = self.state.places.iter().rev().find(|held| held.1 == number)?;
        Some((self.field_at(*place)?, *place))
    }

    /// The field that is a location of the packet, where it may be read.
    pub(super) fn field_at(&self, place: ByteRange) -> Option<Field> {
        let base = Base::ALL.into_iter().rev().find(|base| {
            let at = self.state.at[*base as usize];
            let there = i64::from(self.state.extent.accessible(*base));
            at.anchor == place.anchor && place.bit >= at.bytes * 8 && place.end() <= (at.bytes + there) * 8
        })?;
        let bit = u16::try_from(place.bit - self.state.at[base as usize].bytes * 8).ok()?;
        let field = Field::new(base, bit, place.width);
        field.is_valid().then_some(field)
    }

    /// Reads a value from the other side of a stage boundary, if the packet still contains it.
    fn read_again(&mut self, number: Vn) -> Option<Value> {
        let (field, place) = self.field_with(number)?;
        let note = self.note_of_read(field, place);
        Some(self.write(number, Inst::Load(field), note))
    }

    /// The same for a value that the old program defines here.
    pub(super) fn value(&mut self, number: Vn) -> Value {
        let found = self.operand(number);
        debug_assert!(found.is_some(), "v? of number {number} in b{}", self.here.0);
        found.unwrap_or(Value(u32::MAX))
    }

    /// The number of instructions that compute a value from those available on this side of the last
    /// stage boundary, or on any side.
    pub(super) fn cost(&self, number: Vn, depth: u32, any_side: bool) -> Option<u32> {
        if self.holder(number, any_side).is_some() {
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

    /// Whether a value can be computed here.
    pub(super) fn is_at_hand(&self, number: Vn) -> bool {
        self.cost(number, MAKE_DEPTH, true).is_some()
    }

    /// Reads a location of the packet that has some content, where it may be read and is not known yet.
    pub(super) fn read_content(&mut self, number: Vn, place: ByteRange) {
        if let Some(field) = self.field_at(place) {
            let note = self.note_of_read(field, place);
            self.read(number, Inst::Load(field), note);
        }
    }

    fn note_of_read(&self, field: Field, place: ByteRange) -> OptimizationNote {
        OptimizationNote { reads: Reads::Bits(self.touch(place)), ..OptimizationNote::using(field.base) }
    }

    /// Computes a value that has a cost.
    fn make(&mut self, number: Vn) -> Value {
        self.operand(number).unwrap_or_else(|| self.rebuild(number))
    }

    /// Computes a value from the operands of its expression.
    fn rebuild(&mut self, number: Vn) -> Value {
        let inst = match self.values.expr(number) {
            Expr::Const(number) => Inst::Const(number),
            Expr::Given(what) => GIVEN[usize::from(what)],
            Expr::Bin(op, a, b) => self.make_bin(op, a, b),
            Expr::Select(a, b, c) => Inst::Select(self.make(a), self.make(b), self.make(c)),
            Expr::Csum(a, b, c, width) => Inst::CsumUpdate(self.make(a), self.make(b), self.make(c), width),
            _ => return Value(u32::MAX),
        };
        self.write(number, inst, OptimizationNote::PURE)
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
        // The negation of a comparison is a comparison, too.
        if op == BinOp::Eq && constant == Some(0) && self.holder(a, false).is_none() {
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

    /// A computed value; `inst` returns the old program's instruction for it, with values of the new one.
    pub(super) fn computed(&mut self, number: Vn, inst: impl FnOnce(&mut Self) -> Inst, as_is: bool) -> Vn {
        if self.holder(number, false).is_some() || self.values.number(number).is_some() {
            return number;
        }
        if self.is_carried(number) {
            return number;
        }
        if !as_is && (self.cost(number, MAKE_DEPTH, false).is_some() || self.has_parts(number)) {
            self.make(number);
            return number;
        }
        let inst = inst(self);
        self.write(number, inst, OptimizationNote::PURE);
        number
    }

    /// A value that is read; it is computed from available values if that is cheap.
    pub(super) fn read(&mut self, number: Vn, inst: Inst, note: OptimizationNote) -> Vn {
        let cheap = |cost: Option<u32>| cost.is_some_and(|cost| cost <= MAKE_COST);
        if self.is_carried(number) {
            return number;
        }
        if cheap(self.cost(number, MAKE_DEPTH, false)) {
            return number;
        }
        // A value computed before a stage boundary is computed again from its operands. Then the bytes
        // that store it are not read, and the write may be dead.
        let expr = self.values.expr(number);
        if matches!(expr, Expr::Bin(..) | Expr::Csum(..))
            && self.holder(number, false).is_none()
            && let Some(1..=MAKE_COST) = self.far_cost(number)
        {
            self.rebuild(number);
            return number;
        }
        self.write(number, inst, note);
        number
    }

    /// The number of instructions that compute a value from one that may be on the other side of a stage
    /// boundary.
    fn far_cost(&self, number: Vn) -> Option<u32> {
        let parts = match self.values.expr(number) {
            // Bytes of which some were written: a read of them would wait for the writes.
            Expr::Bin(BinOp::Or, ..) => return self.cost(number, MAKE_DEPTH, true),
            Expr::Bin(_, a, b) => vec![a, b],
            Expr::Csum(a, b, c, _) => vec![a, b, c],
            _ => return None,
        };
        let open: Vec<Vn> = parts.into_iter().filter(|part| self.values.number(*part).is_none()).collect();
        let [part] = open[..] else { return None };
        Some(1 + self.cost(part, 2, true)?)
    }
}
