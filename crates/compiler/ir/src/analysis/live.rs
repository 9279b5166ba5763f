//! The values that each block needs from the blocks before it.

use crate::program::{BlockId, Program, Value};
use std::collections::BTreeSet;

/// For each block of an order, in which each precedes its successors: the values that it, or a block after
/// it, reads and that are defined before it.
pub fn live_in(program: &Program, order: &[BlockId]) -> Vec<BTreeSet<Value>> {
    let mut live = vec![BTreeSet::new(); program.blocks.len()];
    for id in order.iter().rev() {
        let block = program.block(*id);
        let after = block.term.successors().into_iter().flat_map(|to| &live[to.index()]);
        let mut needed: BTreeSet<Value> = after.copied().collect();
        if let Some(record) = block.term.defines() {
            needed.remove(&record);
        }
        needed.extend(block.term.operands());
        for (value, inst) in block.insts.iter().rev() {
            if let Some(value) = value {
                needed.remove(value);
            }
            needed.extend(inst.operands());
        }
        for param in &block.params {
            needed.remove(param);
        }
        live[id.index()] = needed;
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{BinOp, Block, Inst, Term};
    use proptest::prelude::*;

    /// Few, so that blocks use and define the same ones.
    const VALUES: u32 = 6;

    type Shape = (Option<u32>, Vec<(u32, u32, u32)>, u32, usize);

    /// A program whose blocks branch to later ones, or look a record up: parameter, sums, what the end reads,
    /// and where it leads.
    fn program(shapes: &[Shape]) -> Program {
        let block = |(at, (param, sums, read, to)): (usize, &Shape)| {
            let later = |to: usize| BlockId((at + 1 + to % (shapes.len() - at - 1).max(1)) as u32);
            let insts = sums
                .iter()
                .map(|(made, a, b)| (Some(Value(*made)), Inst::Bin(BinOp::Add, Value(*a), Value(*b))))
                .collect();
            let (read, hit, miss) = (Value(*read), later(*to), later(to / 7));
            let term = match at + 1 < shapes.len() {
                false => Term::Emit(0),
                true if to % 3 == 0 => {
                    let rec = Value((read.0 + 1) % VALUES);
                    Term::Lookup { table: 0, key: vec![read], args: None, rec, hit, miss, stage: None }
                }
                true => Term::Switch(read, vec![(1, hit)], miss),
            };
            Block { params: param.iter().copied().map(Value).collect(), insts, term }
        };
        Program {
            name: "live".into(),
            outputs: 1,
            entries: vec![BlockId(0)],
            blocks: shapes.iter().enumerate().map(block).collect(),
            ..Program::default()
        }
    }

    /// Whether a value is read on some path from the start of a block before anything defines it.
    fn is_read_first(program: &Program, at: BlockId, value: Value) -> bool {
        let block = program.block(at);
        if block.params.contains(&value) {
            return false;
        }
        for (made, inst) in &block.insts {
            if inst.operands().into_iter().any(|operand| operand == value) {
                return true;
            }
            if *made == Some(value) {
                return false;
            }
        }
        block.term.operands().into_iter().any(|operand| operand == value)
            || block.term.defines() != Some(value)
                && block.term.successors().into_iter().any(|to| is_read_first(program, to, value))
    }

    proptest! {
        #[test]
        fn what_a_path_reads_first_is_live(shapes in proptest::collection::vec(
            (
                proptest::option::of(0..VALUES),
                proptest::collection::vec((0..VALUES, 0..VALUES, 0..VALUES), 0..3),
                0..VALUES,
                any::<usize>(),
            ),
            1..9,
        )) {
            let program = program(&shapes);
            let order: Vec<BlockId> = (0..shapes.len() as u32).map(BlockId).collect();
            let live = live_in(&program, &order);
            for &at in &order {
                for value in (0..VALUES).map(Value) {
                    prop_assert_eq!(live[at.index()].contains(&value), is_read_first(&program, at, value));
                }
            }
        }
    }
}
