//! Arithmetic.

use super::Lowering;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::analysis::interval::ones;
use ir::analysis::ones_complement::largest_fold;
use ir::program::{BinOp, Inst, Value};
use packet::checksum::Sum;

impl Lowering<'_, '_> {
    pub(super) fn arithmetic(&mut self, inst: Inst) -> clif::Value {
        match inst {
            Inst::Const(number) => self.f.ins().iconst(types::I64, number as i64),
            Inst::Bin(BinOp::Sub, a, b) if let Some(less) = self.bounds.constant(b) => {
                // An addition needs no copy of the left operand.
                let a = self.value(a);
                self.f.ins().iadd_imm_s(a, (less as i64).wrapping_neg())
            }
            Inst::Bin(op @ (BinOp::Eq | BinOp::Ne), a, b)
                if let Some((bytes, number)) = self.bounds.field_and_number(a, b) =>
            {
                self.compare_field(op, a, bytes, number)
            }
            Inst::Bin(op, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                self.binary(op, a, b)
            }
            Inst::Select(c, a, b) => {
                let (c, a, b) = (self.value(c), self.value(a), self.value(b));
                self.f.ins().select(c, a, b)
            }
            Inst::CsumUpdate(sum, old, new, bits) => self.checksum_update(sum, old, new, bits),
            _ => self.f.ins().iconst(types::I64, 0),
        }
    }

    /// What a branch tests: bits where they are, without shifting them first.
    pub(super) fn test(&mut self, value: Value) -> clif::Value {
        match self.bounds.masked(value) {
            Some((of, mask)) => {
                let of = self.value(of);
                self.f.ins().band_imm_s(of, mask as i64)
            }
            None => self.value(value),
        }
    }

    /// Whether a field has a value: in the packet's order of bytes, so that nothing is swapped for that.
    fn compare_field(&mut self, op: BinOp, value: Value, bytes: u8, number: u64) -> clif::Value {
        let value = self.value(value);
        let narrow = self.narrow(value, bytes);
        let as_read = self.f.ins().bswap(narrow);
        let number = number.swap_bytes() >> (64 - 8 * u32::from(bytes));
        let condition = if op == BinOp::Eq { IntCC::Equal } else { IntCC::NotEqual };
        let bit = self.f.ins().icmp_imm_u(condition, as_read, number as i64);
        self.f.ins().uextend(types::I64, bit)
    }

    fn compare(&mut self, condition: IntCC, a: clif::Value, b: clif::Value) -> clif::Value {
        let bit = self.f.ins().icmp(condition, a, b);
        self.f.ins().uextend(types::I64, bit)
    }

    fn binary(&mut self, op: BinOp, a: clif::Value, b: clif::Value) -> clif::Value {
        match op {
            BinOp::Add => self.f.ins().iadd(a, b),
            BinOp::Sub => self.f.ins().isub(a, b),
            BinOp::Mul => self.f.ins().imul(a, b),
            BinOp::Rem => self.remainder(a, b),
            BinOp::And => self.f.ins().band(a, b),
            BinOp::Or => self.f.ins().bor(a, b),
            BinOp::Xor => self.f.ins().bxor(a, b),
            BinOp::Shl => {
                let shifted = self.f.ins().ishl(a, b);
                self.zero_past_63(b, shifted)
            }
            BinOp::Shr => {
                let shifted = self.f.ins().ushr(a, b);
                self.zero_past_63(b, shifted)
            }
            BinOp::Eq => self.compare(IntCC::Equal, a, b),
            BinOp::Ne => self.compare(IntCC::NotEqual, a, b),
            BinOp::Lt => self.compare(IntCC::UnsignedLessThan, a, b),
            BinOp::Le => self.compare(IntCC::UnsignedLessThanOrEqual, a, b),
            BinOp::Min => self.f.ins().umin(a, b),
        }
    }

    /// The machine takes shift counts modulo 64; the IR does not.
    fn zero_past_63(&mut self, count: clif::Value, shifted: clif::Value) -> clif::Value {
        let zero = self.f.ins().iconst(types::I64, 0);
        let fits = self.f.ins().icmp_imm_s(IntCC::UnsignedLessThan, count, 64);
        self.f.ins().select(fits, shifted, zero)
    }

    /// Division by zero traps on the machine and is 0 in the IR.
    fn remainder(&mut self, a: clif::Value, b: clif::Value) -> clif::Value {
        let (zero, one) = (self.f.ins().iconst(types::I64, 0), self.f.ins().iconst(types::I64, 1));
        let safe = self.f.ins().select(b, b, one);
        let remainder = self.f.ins().urem(a, safe);
        self.f.ins().select(b, remainder, zero)
    }

    fn fold_once(&mut self, sum: clif::Value) -> clif::Value {
        let low = self.f.ins().band_imm_s(sum, 0xffff);
        let high = self.f.ins().ushr_imm_s(sum, 16);
        self.f.ins().iadd(low, high)
    }

    /// A value's low bits, all of them up to `mask`: unchanged if it has no others.
    pub(super) fn low_bits(&mut self, value: Value, mask: u64) -> clif::Value {
        let (native, most) = (self.value(value), self.bounds.most(value));
        if most <= mask { native } else { self.f.ins().band_imm_s(native, mask as i64) }
    }

    /// RFC 1624 equation 3.
    fn checksum_update(&mut self, sum: Value, old: Value, new: Value, bits: u8) -> clif::Value {
        let mask = ones(bits);
        if let (Some(old), Some(new)) = (self.bounds.constant(old), self.bounds.constant(new)) {
            let step = Sum::ZERO.add32((!old & mask) as u32).add32((new & mask) as u32);
            return self.checksum_step(sum, step);
        }
        let most_old = self.bounds.constant(old).map_or(mask, |number| !number & mask);
        let most = 0xffff + most_old + self.bounds.most(new).min(mask);
        let sum = self.low_bits(sum, 0xffff);
        let sum = self.f.ins().bxor_imm_s(sum, 0xffff);
        let old = self.low_bits(old, mask);
        let old = self.f.ins().bxor_imm_s(old, mask as i64);
        let new = self.low_bits(new, mask);
        let total = self.f.ins().iadd(sum, old);
        let total = self.f.ins().iadd(total, new);
        let folded = self.fold(total, most);
        self.f.ins().bxor_imm_s(folded, 0xffff)
    }

    /// The same for a constant change: `step` is its one's complement sum. With it, the equation is an
    /// addition with an end-around carry, in any byte order (RFC 1071 section 2 B). It is done in the
    /// packet's byte order, so that a checksum that is read from the packet and written back is not swapped.
    fn checksum_step(&mut self, sum: Value, step: Sum) -> clif::Value {
        let sum = self.value(sum);
        let sum = self.swap_16(sum);
        let stepped = self.f.ins().iadd_imm_s(sum, i64::from(step.checksum().swap_bytes()));
        let next = self.f.ins().iadd_imm_s(stepped, 1);
        let carry = self.f.ins().ushr_imm_s(next, 16);
        let sum = self.f.ins().iadd(stepped, carry);
        self.swap_16(sum)
    }

    /// A value's low two bytes, swapped.
    pub(super) fn swap_16(&mut self, value: clif::Value) -> clif::Value {
        let narrow = self.f.ins().ireduce(types::I16, value);
        let swapped = self.f.ins().bswap(narrow);
        self.f.ins().uextend(types::I64, swapped)
    }

    /// Folds a sum that is at most `most` to 16 bits, in as few steps as necessary.
    fn fold(&mut self, mut sum: clif::Value, mut most: u64) -> clif::Value {
        while most > 0xffff {
            sum = self.fold_once(sum);
            most = largest_fold(most);
        }
        sum
    }

    /// Folds a sum of up to 64 bits to 16.
    pub(super) fn fold_64(&mut self, sum: clif::Value) -> clif::Value {
        let low = self.f.ins().band_imm_s(sum, 0xffff_ffff);
        let high = self.f.ins().ushr_imm_s(sum, 32);
        let sum = self.f.ins().iadd(low, high);
        (0..3).fold(sum, |sum, _| self.fold_once(sum))
    }
}
