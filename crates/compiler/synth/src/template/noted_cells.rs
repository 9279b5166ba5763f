//! Cells that a program only notes the time in: that of the last packet, or of the first.
//!
//! Packets of a burst that have an entry run before the others. So an entry may write a cell only where all
//! that the program does with it comes to the same in any order: on every path it gets the present time, or
//! gets it while it is 0, and nothing else hangs on it.

use ir::{BinOp, Inst, Program, Value};

/// For each cell, whether it is such a one.
pub(super) fn noted_cells(program: &Program) -> Vec<bool> {
    let mut defined: Vec<Option<Inst>> = vec![None; program.value_count()];
    let insts = || program.blocks.iter().flat_map(|block| &block.insts);
    for (value, inst) in insts() {
        value.iter().for_each(|value| defined[value.0 as usize] = Some(*inst));
    }
    let of = |value: Value| defined[value.0 as usize];
    let cell_of = |value: Value| match of(value) {
        Some(Inst::CellLoad(cell)) => Some(cell),
        _ => None,
    };
    // Whether a value is a test of a cell for 0, or the cell itself as a truth.
    let tested = |value: Value| match of(value) {
        Some(Inst::Bin(BinOp::Eq, a, b)) if of(b) == Some(Inst::Const(0)) => cell_of(a),
        Some(Inst::Bin(BinOp::Eq, a, b)) if of(a) == Some(Inst::Const(0)) => cell_of(b),
        _ => cell_of(value),
    };
    // The cell whose time a value is: the present one, or that of the first packet.
    let first = |value: Value| match of(value) {
        Some(Inst::Select(c, a, b)) => {
            let cell = tested(c)?;
            let sides = [(a, b), (b, a)].into_iter();
            let is_first = |(time, old)| of(time) == Some(Inst::Now) && cell_of(old) == Some(cell);
            sides.into_iter().any(is_first).then_some(cell)
        }
        _ => None,
    };
    let mut noted = vec![true; program.cells.len()];
    let mut refuse = |cell: u16| noted[usize::from(cell)] = false;
    for (value, inst) in insts() {
        match *inst {
            Inst::CellAdd(cell, by) => {
                refuse(cell);
                tested(by).into_iter().chain(first(by)).for_each(&mut refuse);
            }
            Inst::CellStore(cell, time) => {
                if of(time) != Some(Inst::Now) && first(time) != Some(cell) {
                    refuse(cell);
                }
                if let Some(other) = tested(time).or_else(|| first(time)).filter(|other| *other != cell) {
                    refuse(other);
                }
                tested(time).into_iter().for_each(&mut refuse);
            }
            // Part of a time, which is looked at where it is stored.
            Inst::Select(..) if value.is_some_and(|value| first(value).is_some()) => {}
            Inst::Bin(BinOp::Eq, ..) if value.is_some_and(|value| tested(value).is_some()) => {}
            other => {
                let used = other.operands();
                used.into_iter()
                    .filter_map(|used| tested(used).or_else(|| first(used)))
                    .for_each(&mut refuse);
            }
        }
    }
    for block in &program.blocks {
        let used = block.term.operands();
        used.into_iter().filter_map(|used| tested(used).or_else(|| first(used))).for_each(&mut refuse);
    }
    noted
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::Builder;
    use ir::expr::{cell, now_ns, select};

    #[test]
    fn a_time_is_noted_and_nothing_hangs_on_it() {
        let mut f = Builder::new("Times", 2);
        let names = ["last", "first", "first by itself", "counted", "cleared", "decides", "copied", "copy"];
        let cells: Vec<u16> = names.iter().map(|name| f.cell(name, 0)).collect();
        let [last, first, other, counted, cleared, decides, copied, copy] = cells[..] else { unreachable!() };
        f.set_cell(last, now_ns());
        f.set_cell(first, select(cell(first).equals(0), now_ns(), cell(first)));
        f.set_cell(other, select(cell(other), cell(other), now_ns()));
        f.set_cell(counted, now_ns());
        f.add_to_cell(counted, 1);
        f.set_cell(copied, now_ns());
        f.set_cell(copy, cell(copied));
        f.set_cell(decides, now_ns());
        let (yes, no) = f.branch(cell(decides).equals(0));
        f.at(yes);
        f.set_cell(cleared, now_ns());
        f.emit(0);
        f.at(no);
        f.set_cell(cleared, 0);
        f.emit(1);
        let program = f.finish().expect("a program");
        assert_eq!(noted_cells(&program), [true, true, true, false, false, false, false, false]);
    }
}
