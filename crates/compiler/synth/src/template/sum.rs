//! Checksums: a sequence of changes by numbers of the flow becomes one change.
//!
//! `fold` here is one end-around carry: the low 16 bits of a sum of two 16-bit words plus the bits above
//! them. It yields 0 only for 0 plus 0, and otherwise the one number from 1 to 0xffff that is congruent
//! to the sum modulo 0xffff. So `fold(fold(a + k) + l)` is `fold(a + fold(k + l))`. UDP replaces a
//! checksum of 0 by 0xffff. If that happens in between, the results are equal once it is done again.

use super::code::Code;
use super::linear::{Folded, Linear};
use super::term::{Is, Recorded, TermSource, TermUse};
use ir::analysis::interval::ones;
use ir::analysis::ones_complement::{INVERSE, MOST_QUOTIENT};
use ir::eval::{checksum_update, fold};
use ir::program::Value;
use ir::{BinOp, Inst};
use rustc_hash::FxHashMap;

const ONES: u64 = 0xffff;

/// The facts about sums on a packet's path.
#[derive(Default)]
pub(super) struct Sums {
    folded: Folded,
    /// The checksum of `fold(a + k)`, with 0 written as 0xffff.
    never_zero: FxHashMap<Value, (TermUse, TermUse)>,
    /// The complement of such a checksum.
    complements: FxHashMap<Value, (TermUse, TermUse)>,
    /// Sums of IP headers: the folded value, and the sum before folding.
    headers: FxHashMap<Value, Header>,
    /// Headers whose sums are known to be correct.
    right: Vec<Linear>,
}

/// The sum of a header's words, and its residue modulo 0xffff.
#[derive(Clone)]
struct Header {
    all: TermUse,
    linear: Option<Linear>,
}

impl Code {
    fn halves(&mut self, sum: TermUse) -> Recorded<TermUse> {
        let low = self.bin(BinOp::And, sum, TermUse::same(ONES))?;
        let high = self.bin(BinOp::Shr, sum, TermUse::same(16))?;
        let folded = self.bin(BinOp::Add, low, high)?;
        // The sum of two words of 16 bits.
        let bits = if sum.bits <= 17 { 16 } else { folded.bits };
        if let Some(value) = folded.on_packet() {
            self.narrow(value, bits);
        }
        Ok(TermUse { bits, ..folded })
    }

    /// `fold(k + l)` of numbers of the flow.
    fn flow_fold(&mut self, k: TermUse, l: TermUse) -> TermUse {
        let number = fold(k.number + l.number);
        if k.is == Is::Same && l.is == Is::Same {
            return TermUse::same(number);
        }
        self.flow(TermSource::Computed, number, 16)
    }
}

impl Sums {
    /// Discards everything, but keeps the memory.
    pub fn clear(&mut self) {
        self.folded.0.clear();
        self.never_zero.clear();
        self.complements.clear();
        self.headers.clear();
        self.right.clear();
    }

    /// `fold(a + k)`.
    fn fold(&mut self, code: &mut Code, a: TermUse, k: TermUse) -> Recorded<TermUse> {
        let sum = code.bin(BinOp::Add, a, k)?;
        let folded = code.halves(sum)?;
        if let Some(value) = folded.on_packet() {
            self.folded.0.insert(value, (a, k, true));
        }
        Ok(folded)
    }

    /// The operands of a sum of a number that depends on the packet and one of the flow, both of 16 bits.
    fn words(&self, code: &Code, sum: Value) -> Option<(Value, TermUse)> {
        let Inst::Bin(BinOp::Add, x, y) = code.inst(sum) else { return None };
        let (a, k) = match (code.origin(x), code.origin(y)) {
            (None, Some(k)) => (x, k),
            (Some(k), None) => (y, k),
            _ => return None,
        };
        (k.bits <= 16).then_some((a, k))
    }

    /// The sum of two values; if it ends a fold, as one of fewer words.
    pub fn add(&mut self, code: &mut Code, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        let plain = code.bin(BinOp::Add, a, b)?;
        let fold = || {
            let (low, high) = (a.on_packet()?, b.on_packet()?);
            let Inst::Bin(BinOp::And, sum, mask) = code.inst(low) else { return None };
            let Inst::Bin(BinOp::Shr, same, by) = code.inst(high) else { return None };
            let is_fold = sum == same && code.constant(mask) == Some(ONES) && code.constant(by) == Some(16);
            self.words(code, sum).filter(|_| is_fold)
        };
        let (Some((word, k)), Some(value)) = (fold(), plain.on_packet()) else { return Ok(plain) };
        if let Some(&(a, l, is_exact)) = self.folded.0.get(&word) {
            let all = code.flow_fold(l, k);
            if is_exact {
                return self.fold(code, a, all);
            }
            self.folded.0.insert(value, (a, all, false));
        } else if let Some(&(a, l)) = self.complements.get(&word) {
            let all = code.flow_fold(l, k);
            self.folded.0.insert(value, (a, all, false));
        } else if code.at(word).bits <= 16 {
            self.folded.0.insert(value, (code.at(word), k, true));
        } else {
            return Ok(plain);
        }
        code.narrow(value, 16);
        Ok(TermUse { bits: 16, ..plain })
    }

    pub fn xor(&mut self, code: &mut Code, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        let result = code.bin(BinOp::Xor, a, b)?;
        if let (Some(value), Some(new)) = (a.on_packet(), result.on_packet())
            && b.is_same(ONES)
            && let Some(&sum) = self.never_zero.get(&value)
        {
            self.complements.insert(new, sum);
        }
        Ok(result)
    }

    pub fn select(&mut self, code: &mut Code, c: TermUse, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        // UDP: a packet with a checksum still has one.
        if c.on_packet().is_some_and(|value| self.never_zero.contains_key(&value)) && a.is != c.is {
            return Ok(a);
        }
        let is_never_zero = a.is == c.is && b.is_same(ONES);
        if is_never_zero
            && let Some(value) = c.on_packet()
            && let Inst::Bin(BinOp::Xor, sum, ones) = code.inst(value)
            && code.constant(ones) == Some(ONES)
            && let Some(&(start, k, _)) = self.folded.0.get(&sum)
        {
            let number = if c.number != 0 { c.number } else { ONES };
            let folded = self.fold(code, start, k)?;
            let checksum = code.bin(BinOp::Xor, folded, TermUse::same(ONES))?;
            let (x, ones) = (code.value(checksum)?, code.value(TermUse::same(ONES))?);
            let result = code.seen(Inst::Select(x, x, ones), number, 16)?;
            if let Some(value) = result.on_packet() {
                self.never_zero.insert(value, (start, k));
            }
            return Ok(result);
        }
        code.select(c, a, b)
    }

    /// See [`Inst::CsumUpdate`].
    pub fn update(&mut self, code: &mut Code, [sum, old, new]: [TermUse; 3], bits: u8) -> Recorded<TermUse> {
        let number = checksum_update(sum.number, old.number, new.number, bits);
        let (old, new) = (code.steady(old)?, code.steady(new)?);
        if old.on_packet().is_some() || new.on_packet().is_some() || code.steady(sum)?.bits > 16 {
            let [x, y, z] = [code.value(sum)?, code.value(old)?, code.value(new)?];
            return code.seen(Inst::CsumUpdate(x, y, z, bits), number, 16);
        }
        let mask = ones(bits);
        let complement = code.bin(BinOp::Xor, old, TermUse::same(u64::MAX))?;
        let away = code.bin(BinOp::And, complement, TermUse::same(mask))?;
        let there = code.bin(BinOp::And, new, TermUse::same(mask))?;
        let change = code.flow_fold(away, there);
        let start = code.bin(BinOp::Xor, sum, TermUse::same(ONES))?;
        if start.on_packet().is_none() {
            let all = code.flow_fold(start, change);
            return code.bin(BinOp::Xor, all, TermUse::same(ONES));
        }
        let folded = match start.on_packet().and_then(|value| self.folded.0.get(&value)) {
            Some(&(a, k, true)) => {
                let all = code.flow_fold(k, change);
                self.fold(code, a, all)?
            }
            _ => self.fold(code, start, change)?,
        };
        code.bin(BinOp::Xor, folded, TermUse::same(ONES))
    }

    /// The sum of an IP header's words of 32 bits, as [`Inst::IpSum`] defines it.
    ///
    /// `halves` are the same words by halves.
    pub fn header(&mut self, code: &mut Code, words: &[TermUse], halves: &[TermUse]) -> Recorded<TermUse> {
        let (mut all, mut of_flow) = (TermUse::same(0), TermUse::same(0));
        for word in words {
            let sum = if word.on_packet().is_some() { &mut all } else { &mut of_flow };
            *sum = code.bin(BinOp::Add, *sum, *word)?;
        }
        all = code.bin(BinOp::Add, all, of_flow)?;
        let mut linear = Some(Linear::default());
        for half in halves {
            let half = self.folded.linear(code, *half);
            linear = linear.zip(half).map(|(sum, half)| sum.plus(&half, 1));
        }
        let mut folded = all;
        for _ in 0..3 {
            folded = code.halves(folded)?;
        }
        if let Some(value) = folded.on_packet() {
            self.headers.insert(value, Header { all, linear });
        }
        Ok(TermUse { number: fold(all.number), bits: 16, ..folded })
    }

    /// Whether two values are equal; whether a header's sum is correct is tested by one multiplication.
    pub fn equal(&mut self, code: &mut Code, op: BinOp, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        let header = a.on_packet().filter(|_| b.is_same(ONES)).and_then(|value| self.headers.get(&value));
        let (Some(Header { all, linear }), BinOp::Eq) = (header.cloned(), op) else {
            return code.bin(op, a, b);
        };
        // A header is correct if an earlier test found it correct and the changes since then cancel out
        // in this flow.
        if linear.as_ref().is_some_and(|linear| self.right.contains(linear)) {
            code.decided += 1;
            return Ok(TermUse::same(1));
        }
        let product = code.bin(BinOp::Mul, all, TermUse::same(INVERSE))?;
        // The sum of a header with a version other than 0 is not 0.
        let is_right = code.bin(BinOp::Le, product, TermUse::same(MOST_QUOTIENT))?;
        if let (Some(value), Some(linear), true) = (is_right.on_packet(), linear, is_right.number != 0) {
            code.guard(value, true);
            self.right.push(linear);
        }
        Ok(is_right)
    }
}
