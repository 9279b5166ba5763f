//! Writes that are dead on some paths behind a test, moved to the other paths.
//!
//! Writes at the end of a block go to those of its successors that need them. How a write moves past joins and
//! lookups: [`super::delay`].

use super::optimization_note::{Kind, Notes, OptimizationNote};
use super::retain::retain;
use super::unread::{MOST_SPANS, Unread};
use ir::analysis::order::edges_in;
use ir::{Block, BlockId, Inst, Program, Term};

/// Blocks that moving writes may add to a program: as many as it has, and some to a small one.
pub(super) fn most_splits(program: &Program) -> usize {
    program.blocks.len() + 8
}

/// Moves writes that are dead on one edge out of their block to its other edges.
pub(super) fn behind_tests(
    program: &mut Program,
    notes: &mut Notes,
    starts: &[Option<Unread>],
    order: &[BlockId],
) {
    let in_edges = edges_in(program, order);
    let mut splits = most_splits(program);
    for &id in order {
        let term = &program.block(id).term;
        let fits =
            matches!(term, Term::Branch(..) | Term::Need { .. } | Term::Room { .. } | Term::Switch(..));
        let next = next_blocks(term);
        if !fits || next.len() < 2 {
            continue;
        }
        let moved = movable(program.block(id), &notes[id.index()], &next, starts);
        let Some(moved) = (!moved.is_empty()).then_some(moved) else { continue };
        for to in next {
            let live: Vec<usize> = moved
                .iter()
                .copied()
                .filter(|at| is_live(&starts[to.index()], &notes[id.index()][*at]))
                .collect();
            if live.is_empty() {
                continue;
            }
            let insts: Vec<_> = live.iter().map(|at| program.block(id).insts[*at]).collect();
            let moved_notes: Vec<OptimizationNote> = live.iter().map(|at| notes[id.index()][*at]).collect();
            let target = if in_edges[to.index()] == 1 {
                to
            } else {
                splits = splits.saturating_sub(1);
                split_edge(&mut program.blocks, notes, (id, to))
            };
            program.blocks[target.index()].insts.splice(0..0, insts);
            notes[target.index()].splice(0..0, moved_notes);
        }
        let keep: Vec<bool> = (0..program.block(id).insts.len()).map(|at| !moved.contains(&at)).collect();
        retain(&mut program.blocks[id.index()].insts, &keep);
        retain(&mut notes[id.index()], &keep);
        if splits == 0 {
            return;
        }
    }
}

/// The blocks that may be next, each once.
pub(crate) fn next_blocks(term: &Term) -> Vec<BlockId> {
    let mut next = term.successors();
    next.sort_unstable();
    next.dedup();
    next
}

/// Adds an empty block on the edges from a block to another one.
pub(super) fn split_edge(
    blocks: &mut Vec<Block>,
    notes: &mut Notes,
    (from, to): (BlockId, BlockId),
) -> BlockId {
    let split = BlockId(blocks.len() as u32);
    blocks.push(Block { params: vec![], insts: vec![], term: Term::Jump(to, vec![]) });
    notes.push(vec![]);
    blocks[from.index()].term.map_successors(|old| if old == to { split } else { old });
    split
}

/// The block at whose end only one edge goes on: the block that it leaves, if that jumps, else a new one on the edge.
pub(super) fn end_of_edge(
    blocks: &mut Vec<Block>,
    notes: &mut Notes,
    (from, to): (BlockId, BlockId),
) -> BlockId {
    match blocks[from.index()].term {
        Term::Jump(..) => from,
        _ => split_edge(blocks, notes, (from, to)),
    }
}

/// Whether an instruction does nothing but write to the packet, to annotations or its type.
pub(super) fn is_movable(inst: &Inst) -> bool {
    matches!(inst, Inst::Store(..) | Inst::StoreAnno(..) | Inst::SetPacketType(_))
}

fn is_live(start: &Option<Unread>, note: &OptimizationNote) -> bool {
    note.writes.is_none_or(|touch| !start.as_ref().is_some_and(|start| start.holds(&touch)))
}

/// The writes of a block that can be moved to its end, and are dead on one edge out of it.
fn movable(
    block: &Block,
    notes: &[OptimizationNote],
    next: &[BlockId],
    starts: &[Option<Unread>],
) -> Vec<usize> {
    let mut moved = vec![];
    // The instructions after it that stay in the block.
    let mut behind: Vec<&OptimizationNote> = vec![];
    for (at, note) in notes.iter().enumerate().rev() {
        let sinks = note.writes.is_some_and(|touch| {
            matches!(touch.kind, Kind::Packet | Kind::Aside)
                && is_movable(&block.insts[at].1)
                && behind.iter().all(|later| may_swap(note, later))
                && next.iter().any(|to| !is_live(&starts[to.index()], note))
        });
        if sinks {
            moved.push(at);
        } else if *note != OptimizationNote::PURE {
            behind.push(note);
        }
        if behind.len() > MOST_SPANS {
            break;
        }
    }
    moved.reverse();
    moved
}

/// Whether a write can be moved after another instruction.
pub(super) fn may_swap(note: &OptimizationNote, later: &OptimizationNote) -> bool {
    let moves = later.moves.is_some_and(|base| note.uses >> base as u8 & 1 == 1);
    note.writes.is_none_or(|touch| !later.meets(&touch)) && !moves
}
