//! Upper bounds of values, and what else says of them that machine code may omit work.

use crate::lookup_region::LookupRegion;
use ir::analysis::interval::{Interval, yields};
use ir::program::{BinOp, Inst, Program, Value};
use std::collections::BTreeMap;

/// Bounds of a region's values.
#[derive(Default)]
pub(super) struct Bounds {
    intervals: BTreeMap<Value, Interval>,
    constants: BTreeMap<Value, u64>,
    /// Values shifted by a constant.
    shifted: BTreeMap<Value, (BinOp, Value, u64)>,
    /// Values whose low bits are those of another one with its halves exchanged, with the bits of a half.
    exchanged: BTreeMap<Value, (Value, u64)>,
    /// Values that are bits of another one, shifted: that one, and where its bits are.
    masked: BTreeMap<Value, (Value, u64)>,
    /// Fields of the packet of two or four bytes, with those.
    read: BTreeMap<Value, u8>,
}

impl Bounds {
    /// Bounds of all values that the region defines.
    pub fn of(program: &Program, region: &LookupRegion) -> Bounds {
        let mut bounds = Bounds::default();
        // Topological order: operands come first.
        for &(result, inst) in region.blocks.iter().flat_map(|block| &program.block(*block).insts) {
            if let Some(result) = result {
                let interval = yields(inst, |value| bounds.interval(value));
                bounds.intervals.insert(result, interval);
            }
            match (result, inst) {
                (Some(result), Inst::Const(number)) => {
                    bounds.constants.insert(result, number);
                }
                (Some(result), Inst::Bin(op, a, b)) => bounds.note_bits(result, op, a, b),
                (Some(result), Inst::Load(field))
                    if field.is_byte_aligned() && [16, 32].contains(&field.width) =>
                {
                    bounds.read.insert(result, field.width / 8);
                }
                _ => {}
            }
        }
        bounds
    }

    fn note_bits(&mut self, result: Value, op: BinOp, a: Value, b: Value) {
        match op {
            BinOp::Shl | BinOp::Shr => {
                if let Some(by) = self.constant(b) {
                    self.shifted.insert(result, (op, a, by));
                }
            }
            BinOp::Or => {
                let of = [a, b].map(|part| self.shifted.get(&part).copied());
                if let [Some((left, one, by)), Some((right, other, same))] = of
                    && left != right
                    && (one, by) == (other, same)
                    && (by == 32 || [8, 16].contains(&by) && self.most(one) < 1 << (2 * by))
                {
                    self.exchanged.insert(result, (one, by));
                }
            }
            BinOp::And => {
                if let Some((BinOp::Shr, of, by)) = self.shifted.get(&a).copied()
                    && let Some(mask) = self.constant(b).filter(|mask| by < 64 && mask << by >> by == *mask)
                {
                    self.masked.insert(result, (of, mask << by));
                }
            }
            _ => {}
        }
    }

    /// The value of which a value is these bits, shifted.
    pub fn masked(&self, value: Value) -> Option<(Value, u64)> {
        self.masked.get(&value).copied()
    }

    /// The bytes of the field that a value was read from, if those are two or four, and the constant of that many bytes that
    /// another value is.
    pub fn field_and_number(&self, value: Value, other: Value) -> Option<(u8, u64)> {
        let (bytes, number) = (*self.read.get(&value)?, self.constant(other)?);
        (number >> (8 * bytes) == 0).then_some((bytes, number))
    }

    /// The value whose halves of that many bits a value's low bits are, exchanged.
    pub fn exchanged(&self, value: Value) -> Option<(Value, u64)> {
        self.exchanged.get(&value).copied()
    }

    fn interval(&self, value: Value) -> Interval {
        self.intervals.get(&value).copied().unwrap_or(Interval::ALL)
    }

    /// The upper bound of a value.
    pub fn most(&self, value: Value) -> u64 {
        self.interval(value).hi
    }

    /// The value, where it is a constant.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.constants.get(&value).copied()
    }
}
