//! Programs whose packets are frames as ports deliver them: the MAC header is the packet's first byte.
//!
//! Elements that write a MAC header, wherever it is, may write into the IPv4 header behind it, for all that a
//! program knows: its sum is then computed again, and what was read of it is read again. In the copy that
//! [`split`] makes, it is known where the MAC header is.

use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::field::Base;
use rustc_hash::FxHashMap;

/// Leads the packets of an entry through a test of where the MAC header is, and those whose first byte it is to
/// a copy of the program. `left` is the number of instructions that may still be copied; `None` where the copy
/// would be larger.
pub(super) fn split(program: &mut Program, entry: usize, left: &mut usize) -> Option<()> {
    let start = program.entries[entry];
    let reached = program.order_from(&[start]);
    *left = left.checked_sub(reached.iter().map(|id| program.block(*id).insts.len() + 1).sum())?;
    let mut names = Names { next: program.value_count() as u32, of: FxHashMap::default() };
    let first = program.blocks.len() as u32;
    let mut place = vec![BlockId(u32::MAX); program.blocks.len()];
    reached.iter().zip(first..).for_each(|(id, to)| place[id.index()] = BlockId(to));
    for id in &reached {
        let mut block = program.block(*id).clone();
        names.rename(&mut block);
        block.term.map_successors(|to| place[to.index()]);
        program.blocks.push(block);
    }
    let value = |at: u32| Value(names.next + at);
    // The position is set once more to what it is, so that the verifier knows it, too.
    let insts = vec![(Some(value(3)), Inst::Const(0)), (None, Inst::SetBase(Base::Mac, value(3)))];
    let copy = push(program, insts, Term::Jump(place[start.index()], vec![]));
    let insts = vec![
        (Some(value(0)), Inst::Offset(Base::Mac)),
        (Some(value(1)), Inst::Const(0)),
        (Some(value(2)), Inst::Bin(BinOp::Eq, value(0), value(1))),
    ];
    program.entries[entry] = push(program, insts, Term::Branch(value(2), copy, start));
    Some(())
}

fn push(program: &mut Program, insts: Vec<(Option<Value>, Inst)>, term: Term) -> BlockId {
    program.blocks.push(Block { params: vec![], insts, term });
    BlockId(program.blocks.len() as u32 - 1)
}

/// The numbers of a copy's values.
struct Names {
    next: u32,
    of: FxHashMap<Value, Value>,
}

impl Names {
    fn name(&mut self, value: &mut Value) {
        *value = *self.of.entry(*value).or_insert_with(|| {
            self.next += 1;
            Value(self.next - 1)
        });
    }

    /// Gives a block's values other numbers.
    fn rename(&mut self, block: &mut Block) {
        block.params.iter_mut().for_each(|value| self.name(value));
        for (result, inst) in &mut block.insts {
            result.iter_mut().for_each(|value| self.name(value));
            inst.map_operands(|value| self.name(value));
        }
        block.term.map_operands(|value| self.name(value));
        if let Term::Lookup { rec, .. } = &mut block.term {
            self.name(rec);
        }
    }
}
