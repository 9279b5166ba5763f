//! Recognizes what a program does to a record's number that packets change, as far as a tally can count it.

use super::code::Code;
use super::tally::Tally;
use super::term::{CELL, Change, Changing, Is, Recorded, Refusal, TermUse};
use ir::program::Value;
use ir::{BinOp, Inst, Merge};

const NEVER: Refusal = Refusal::Never("it hangs on a number that packets change");

impl Changing {
    fn with(self, change: Change) -> Is {
        Is::Changing(Changing { change, ..self })
    }
}

/// Arithmetic with a changing number: only what a tally can count.
pub(super) fn bin(code: &mut Code, op: BinOp, a: TermUse, b: TermUse) -> Recorded<TermUse> {
    let (changing, other) = match (a.is, b.is) {
        (Is::Changing(_), Is::Changing(_)) => return Err(NEVER),
        (Is::Changing(changing), _) => (changing, b),
        (_, Is::Changing(changing)) => (changing, a),
        _ => return code.bin(op, a, b),
    };
    let is = match (op, changing.change) {
        (BinOp::Add, Change::Nothing) if other.is_same(1) => changing.with(Change::Counted),
        (BinOp::Min, Change::Counted) if other.is == Is::Same => {
            changing.with(Change::CountedTo(u8::try_from(other.number).map_err(|_| NEVER)?))
        }
        (BinOp::Eq, Change::Nothing) if changing.record == CELL && other.is_same(0) => {
            changing.with(Change::IsZero)
        }
        (BinOp::Or, Change::Nothing) => changing.with(Change::Bits(code.value(other)?)),
        _ => return Err(NEVER),
    };
    Ok(TermUse { number: op.apply(a.number, b.number), is, bits: 64 })
}

/// A choice between a changing number and the present time; `None` if it is another.
pub(super) fn select(code: &Code, c: TermUse, a: TermUse, b: TermUse) -> Recorded<Option<TermUse>> {
    if let Is::Changing(test) = c.is {
        return first(code, test, [c, a, b]).map(Some);
    }
    let (changing, time, is_set) = match (a.is, b.is) {
        (Is::Changing(changing), _) => (changing, b, false),
        (_, Is::Changing(changing)) => (changing, a, true),
        _ => return Ok(None),
    };
    let number = if c.number != 0 { a.number } else { b.number };
    let Some(value) = code.steady(c)?.on_packet() else {
        return Ok(Some(if c.number != 0 { a } else { b }));
    };
    match (changing.change, is_now(code, time)) {
        (Change::Nothing, true) => {
            Ok(Some(TermUse { number, is: changing.with(Change::NowIf(value, is_set)), bits: 64 }))
        }
        _ => Err(NEVER),
    }
}

/// The time of the first packet that a cell notes: the present time where it is 0.
fn first(code: &Code, test: Changing, [c, a, b]: [TermUse; 3]) -> Recorded<TermUse> {
    let (time, cell) = match test.change {
        Change::IsZero => (a, b),
        Change::Nothing => (b, a),
        _ => return Err(NEVER),
    };
    let is = Is::Changing(Changing { change: Change::Nothing, ..test });
    if test.record != CELL || cell.is != is || !is_now(code, time) {
        return Err(NEVER);
    }
    let number = if c.number != 0 { a.number } else { b.number };
    Ok(TermUse { number, is: test.with(Change::First), bits: 64 })
}

/// The value of a number that is stored into a cell. Packets of a burst may run in another order than they
/// came in, some by their entries and others through the whole program: the result must be the same in any.
pub(super) fn into_cell(code: &mut Code, cell: u16, value: TermUse) -> Recorded<Value> {
    match value.is {
        Is::Changing(Changing { record: CELL, offset, change: Change::First }) if offset == cell => {
            let now = code.emit(Inst::Now, value.number, 64)?;
            let old = code.emit(Inst::CellLoad(cell), value.number, 64)?;
            code.emit(Inst::Select(old, old, now), value.number, 64)
        }
        Is::Packet(time) if is_now(code, value) => Ok(time),
        _ => Err(NEVER),
    }
}

fn is_now(code: &Code, seen: TermUse) -> bool {
    seen.on_packet().is_some_and(|value| code.inst(value) == Inst::Now)
}

/// A number that is stored into a record's changing number.
pub(super) enum Stored {
    /// It stays.
    Nothing,
    /// The entry's time of its last packet is merged into it.
    Last,
    /// A tally is merged into it.
    Tally(Tally),
}

/// What a tally has to count for a store.
pub(super) fn stored(code: &Code, to: (u32, u16), bytes: u8, how: Merge, value: TermUse) -> Recorded<Stored> {
    let own = match value.is {
        Is::Changing(changing) if (changing.record, changing.offset) == to => changing.change,
        _ if how == Merge::Max && bytes == 8 && is_now(code, value) => return Ok(Stored::Last),
        _ => return Err(NEVER),
    };
    match (how, own) {
        (_, Change::Nothing) => Ok(Stored::Nothing),
        (Merge::Max, Change::NowIf(value, is_set)) if bytes == 8 => {
            Ok(Stored::Tally(Tally::LastIf(value, is_set)))
        }
        (Merge::Or, Change::Bits(value)) if bytes == 1 && code.bits(value) <= 8 => {
            Ok(Stored::Tally(Tally::Bits(value)))
        }
        (Merge::SumTo(most), Change::CountedTo(same)) if bytes == 1 && most == same => {
            Ok(Stored::Tally(Tally::Packets(most)))
        }
        _ => Err(NEVER),
    }
}
