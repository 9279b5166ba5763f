//! Programs whose packets are frames as ports deliver them: the MAC header is the packet's first byte.
//!
//! Elements that write a MAC header, wherever it is, may write into the IPv4 header behind it, for all that a
//! program knows: its sum is then computed again, and what was read of it is read again. In the copy that
//! [`split`] makes, it is known where the MAC header is.

use crate::copy::{InPlaceOf, copy_from};
use crate::link::mac_at_start;
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::field::Base;

/// Leads the packets of an entry through a test of where the MAC header is, and those whose first byte it is to
/// a copy of the program. `left` is the number of instructions that may still be copied; `None` where the copy
/// would be larger.
pub(super) fn split(program: &mut Program, entry: usize, left: &mut usize) -> Option<()> {
    let start = program.entries[entry];
    *left = left.checked_sub(program.instructions(program.order_from(&[start])))?;
    let copied = copy_from(program, start, InPlaceOf::default(), true);
    let next = program.value_count() as u32;
    let value = |at: u32| Value(next + at);
    let copy = push(program, mac_at_start(value(3), copied));
    let insts = vec![
        (Some(value(0)), Inst::Offset(Base::Mac)),
        (Some(value(1)), Inst::Const(0)),
        (Some(value(2)), Inst::Bin(BinOp::Eq, value(0), value(1))),
    ];
    let term = Term::Branch(value(2), copy, start);
    program.entries[entry] = push(program, Block { params: vec![], insts, term });
    Some(())
}

fn push(program: &mut Program, block: Block) -> BlockId {
    program.blocks.push(block);
    BlockId(program.blocks.len() as u32 - 1)
}
