//! How programs change the numbers in a table's records: what of it may be counted elsewhere and merged later.
//!
//! This is what the instructions say, see [`crate::Lasting`]. A table knows more: which numbers are never
//! written for a record, and which others change.

use crate::program::{BinOp, Inst, Program, Term, Value};
use crate::table::{Lasting, Merge};

/// The numbers of a table's records that a program writes: offset and how they change. All others are fixed.
pub type Written = Vec<(u16, Lasting)>;

/// For each table of a program, the numbers that it writes to records.
pub fn written(program: &Program) -> Vec<Written> {
    let mut insts: Vec<Option<Inst>> = vec![None; program.value_count()];
    let mut tables: Vec<Option<u16>> = vec![None; program.value_count()];
    for block in &program.blocks {
        for (value, inst) in &block.insts {
            value.iter().for_each(|value| insts[value.0 as usize] = Some(*inst));
        }
        if let Term::Lookup { table, rec, .. } = &block.term {
            tables[rec.0 as usize] = Some(*table);
        }
    }
    let mut written: Vec<Written> = vec![vec![]; program.tables.len()];
    for (_, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
        let Inst::RecStore(rec, offset, bytes, value) = *inst else { continue };
        let Some(table) = tables[rec.0 as usize] else { continue };
        let how = change_of(&insts, Inst::RecLoad(rec, offset, bytes), value);
        let of_table = &mut written[usize::from(table)];
        match of_table.iter_mut().find(|(known, _)| *known == offset) {
            Some((_, known)) if *known == how => {}
            Some((_, known)) => *known = Lasting::Moving,
            None => of_table.push((offset, how)),
        }
    }
    written
}

/// How a value changes the number that `old` reads.
fn change_of(insts: &[Option<Inst>], old: Inst, value: Value) -> Lasting {
    let of = |value: Value| insts[value.0 as usize];
    let is_old = |value: Value| of(value) == Some(old);
    let number = |value: Value| match of(value) {
        Some(Inst::Const(number)) => Some(number),
        _ => None,
    };
    let merge = match of(value) {
        Some(Inst::Bin(BinOp::Or, a, b)) if is_old(a) || is_old(b) => Some(Merge::Or),
        Some(Inst::Bin(BinOp::Min, a, b)) => [(a, b), (b, a)].into_iter().find_map(|(sum, most)| {
            let Some(Inst::Bin(BinOp::Add, x, y)) = of(sum) else { return None };
            let counts = is_old(x) && number(y) == Some(1) || is_old(y) && number(x) == Some(1);
            let most = u8::try_from(number(most)?).ok()?;
            counts.then_some(Merge::SumTo(most))
        }),
        _ if is_time(insts, old, value) => Some(Merge::Max),
        _ => None,
    };
    merge.map_or(Lasting::Moving, Lasting::Merged)
}

/// Whether a value is the present time or the number as it was.
fn is_time(insts: &[Option<Inst>], old: Inst, value: Value) -> bool {
    match insts[value.0 as usize] {
        Some(Inst::Now) => true,
        Some(Inst::Select(_, a, b)) => is_time(insts, old, a) && is_time(insts, old, b),
        inst => inst == Some(old),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use crate::expr::{binary, load, now_ns, record, select};
    use packet::field::{Base, Field};

    #[test]
    fn each_change_is_known_by_its_form() {
        let mut f = Builder::new("Counts", 1);
        let (short, miss) = (f.drop_block("short"), f.drop_block("miss"));
        let table = f.table("t", 1, 64);
        f.need(Base::Data, 1, short);
        let byte = f.eval(load(Field::bytes(Base::Data, 0, 1)));
        let rec = f.create(table, &[byte], &[], miss);
        f.store_record(rec, 0, 8, now_ns());
        f.store_record(rec, 8, 8, select(byte, now_ns(), record(rec, 8, 8)));
        f.store_record(rec, 16, 1, record(rec, 16, 1) | byte);
        f.store_record(rec, 17, 1, (record(rec, 17, 1) + 1).min(3));
        f.store_record(rec, 18, 1, record(rec, 18, 1) + 1);
        // The time of another number, and a number that changes in two ways.
        f.store_record(rec, 24, 8, select(byte, now_ns(), record(rec, 0, 8)));
        f.store_record(rec, 32, 1, record(rec, 32, 1) | byte);
        f.store_record(rec, 32, 1, binary(BinOp::Min, record(rec, 32, 1) + 1, 3));
        f.emit(0);
        let program = f.finish().expect("a program");
        let merged = |offset, how| (offset, Lasting::Merged(how));
        let wanted = [
            merged(0, Merge::Max),
            merged(8, Merge::Max),
            merged(16, Merge::Or),
            merged(17, Merge::SumTo(3)),
            (18, Lasting::Moving),
            (24, Lasting::Moving),
            (32, Lasting::Moving),
        ];
        assert_eq!(written(&program), [wanted]);
    }
}
