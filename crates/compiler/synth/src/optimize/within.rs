//! Writes of a number within an earlier write of a number: one write does both.
//!
//! The NF that answers a frame writes to addresses that the NF before has just written.

use super::optimization_note::{Notes, OptimizationNote, Touch};
use ir::{Block, Inst, Program, Value};

/// Later writes are looked for among so many instructions: the work stays bounded.
const MOST_BEHIND: usize = 64;

/// Makes writes of numbers part of earlier ones in the same block that cover them.
pub(super) fn merge(program: &mut Program, notes: &mut Notes) {
    let mut numbers: Vec<Option<u64>> = vec![None; program.value_count()];
    for (value, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
        if let (Some(value), Inst::Const(number)) = (value, inst) {
            numbers[value.0 as usize] = Some(*number);
        }
    }
    for (block, notes) in program.blocks.iter_mut().zip(notes) {
        let mut at = 0;
        while at < block.insts.len() {
            if let Some((number, parts)) = with_parts(block, notes, at, &numbers)
                && let Inst::Store(field, _) = block.insts[at].1
            {
                for part in parts.iter().rev() {
                    block.insts.remove(*part);
                    notes.remove(*part);
                }
                let value = Value(numbers.len() as u32);
                numbers.push(Some(number));
                block.insts[at].1 = Inst::Store(field, value);
                block.insts.insert(at, (Some(value), Inst::Const(number)));
                notes.insert(at, OptimizationNote::PURE);
                at += 1;
            }
            at += 1;
        }
    }
}

/// The number that a write and the later ones within it leave, and where those are; `None` if there are none.
fn with_parts(
    block: &Block,
    notes: &[OptimizationNote],
    at: usize,
    numbers: &[Option<u64>],
) -> Option<(u64, Vec<usize>)> {
    let write = |at: usize| -> Option<(Touch, u64)> {
        let Inst::Store(_, value) = block.insts[at].1 else { return None };
        notes[at].writes.zip(numbers[value.0 as usize])
    };
    let (whole, mut number) = write(at)?;
    let mut parts = vec![];
    for (later, note) in notes.iter().enumerate().skip(at + 1).take(MOST_BEHIND) {
        match write(later) {
            Some((part, of_part)) if whole.contains(&part) => {
                let (by, mask) = whole.place_of(&part);
                number = number & !(mask << by) | (of_part & mask) << by;
                parts.push(later);
            }
            _ if note.meets(&whole) => break,
            _ => {}
        }
    }
    (!parts.is_empty()).then_some((number, parts))
}
