//! Values modulo 0xffff, as sums of the packet's bytes: their effect on one's complement checksums.

use super::code::Code;
use super::term::{Is, TermUse};
use ir::analysis::interval::ones;
use ir::analysis::ones_complement::{MODULUS, Residue, weight};
use ir::program::Value;
use ir::{BinOp, Inst};
use packet::field::{Base, Field};
use rustc_hash::FxHashMap;

const ONES: u64 = 0xffff;
/// The depth to which values are examined.
const DEPTH: u32 = 24;

/// A sum of bytes, each with a factor, and a number, modulo 0xffff. Bytes are identified by their offsets in
/// the packet as it arrived.
pub(super) type Linear = Residue<u16>;

/// The bytes of a field that a mask of whole bytes keeps.
fn bytes_of(field: Field, mask: u64) -> Option<Linear> {
    if field.base != Base::Data || !field.is_byte_aligned() {
        return None;
    }
    let mut linear = Linear::default();
    for at in 0..field.byte_len() {
        let place = field.byte_len() - 1 - at;
        match mask >> (8 * place) & 0xff {
            0 => {}
            0xff => linear.add_term(field.first_byte() + at, weight(8 * u32::from(place))),
            _ => return None,
        }
    }
    Some(linear)
}

/// Values that equal `fold(a + k)`, or are only congruent to it.
#[derive(Default)]
pub(super) struct Folded(pub FxHashMap<Value, (TermUse, TermUse, bool)>);

impl Folded {
    /// The number that depends on the packet and the number of the flow whose sum modulo 0xffff is a value.
    fn addends(&self, value: Value) -> Option<(TermUse, TermUse)> {
        self.0.get(&value).map(|(a, k, _)| (*a, *k))
    }

    /// A value as a sum of bytes; `None` if it is not one.
    pub fn linear(&self, code: &Code, seen: TermUse) -> Option<Linear> {
        match seen.is {
            Is::Same | Is::Flow(_) => Some(Linear::number(seen.number)),
            Is::Packet(value) => self.of_value(code, value, DEPTH),
            Is::Changing(_) | Is::Record(_) => None,
        }
    }

    fn of_value(&self, code: &Code, value: Value, depth: u32) -> Option<Linear> {
        let depth = depth.checked_sub(1)?;
        if let Some(known) = code.origin(value) {
            return Some(Linear::number(known.number));
        }
        if let Some((a, k)) = self.addends(value) {
            let mut sum = self.linear(code, a)?;
            sum.add_number(k.number);
            return Some(sum);
        }
        let of = |value: Value| self.of_value(code, value, depth);
        match code.inst(value) {
            Inst::Load(field) => bytes_of(field, u64::MAX),
            Inst::Bin(BinOp::Add, x, y) if code.at(value).bits < 64 => Some(of(x)?.plus(&of(y)?, 1)),
            // It has fewer bits only if it is known not to wrap.
            Inst::Bin(BinOp::Sub, x, y) if code.at(value).bits < 64 => {
                Some(of(x)?.plus(&of(y)?, MODULUS - 1))
            }
            Inst::Bin(BinOp::Xor, x, y) if code.constant(y) == Some(ONES) && code.bits(x) <= 16 => {
                Some(Linear::default().plus(&of(x)?, MODULUS - 1))
            }
            Inst::Bin(BinOp::And, x, y) => match code.inst(x) {
                Inst::Load(field) => bytes_of(field, code.constant(y)?),
                _ => None,
            },
            Inst::Bin(BinOp::Shl, x, y) if code.at(value).bits < 64 => {
                Some(Linear::default().plus(&of(x)?, weight((code.constant(y)? % 16) as u32)))
            }
            Inst::Bin(BinOp::Or, x, y) if self.apart(code, x, y) || self.apart(code, y, x) => {
                Some(of(x)?.plus(&of(y)?, 1))
            }
            _ => None,
        }
    }

    /// Whether two values never have a common bit: the second one is masked so that the first one fits.
    fn apart(&self, code: &Code, x: Value, y: Value) -> bool {
        let low = match code.inst(x) {
            Inst::Bin(BinOp::Shl, _, by) => code.origin(by).map_or(0, |by| by.number.min(63) as u8),
            _ => 0,
        };
        let taken = ones(code.bits(x)) & !ones(low);
        match code.inst(y) {
            Inst::Bin(BinOp::And, _, mask) => code.constant(mask).is_some_and(|mask| mask & taken == 0),
            _ => ones(code.bits(y)) & taken == 0,
        }
    }
}
