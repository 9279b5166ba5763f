//! Writes that are dead on some paths, moved to the other paths.
//!
//! [`behind_tests`] moves writes from the end of a block to those of its successors that need them.
//! [`behind_joins`] moves a write as far as nothing reads or changes what it writes, past joins of paths and
//! lookups, where some later path writes the same again (partial dead code elimination: Knoop, Ruething,
//! Steffen, PLDI 1994). So of the writes of several rewriters the last remains, and each packet that a slow path
//! takes in between is written there.

use super::optimization_note::{Kind, Notes, OptimizationNote, Touch};
use super::retain::retain;
use super::unread::{MOST_SPANS, Unread, at_end};
use ir::analysis::order::edges_in;
use ir::{Block, BlockId, Inst, Program, Term};

/// Blocks that sinking may add, per block of the program.
const MOST_SPLITS: usize = 1;

/// Copies of a write that moving it may make.
const MOST_COPIES: usize = 12;

/// Moves writes that are dead on one edge out of their block to its other edges.
pub(super) fn behind_tests(
    program: &mut Program,
    notes: &mut Notes,
    starts: &[Option<Unread>],
    order: &[BlockId],
) {
    let in_edges = edges_in(program, order);
    let mut splits = program.blocks.len() * MOST_SPLITS + 8;
    for &id in order {
        let term = &program.block(id).term;
        let fits =
            matches!(term, Term::Branch(..) | Term::Need { .. } | Term::Room { .. } | Term::Switch(..));
        let mut next = term.successors();
        next.sort_unstable();
        next.dedup();
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

/// Whether an instruction does nothing but write to the packet, to annotations or its type.
fn is_movable(inst: &Inst) -> bool {
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
                && behind.iter().all(|later| may_swap(note, &touch, later))
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
fn may_swap(note: &OptimizationNote, touch: &Touch, later: &OptimizationNote) -> bool {
    let moves = later.moves.is_some_and(|base| note.uses >> base as u8 & 1 == 1);
    !later.meets(touch) && !moves
}

/// A point where a moved write is put: before an instruction of a block, or at the end of the block.
#[derive(Clone, Copy, Debug)]
enum Target {
    Before(BlockId, usize),
    End(BlockId),
    /// On an edge from a block with other successors to one with other predecessors.
    Edge(BlockId, BlockId),
}

/// The order of a program's blocks, and the edges that lead to each.
struct Graph {
    order: Vec<BlockId>,
    in_edges: Vec<u32>,
    /// For each block, its index in the order.
    position: Vec<usize>,
}

impl Graph {
    fn of(program: &Program) -> Graph {
        let order = program.topological_order();
        let mut position = vec![0; program.blocks.len()];
        order.iter().enumerate().for_each(|(at, id)| position[id.index()] = at);
        Graph { in_edges: edges_in(program, &order), position, order }
    }
}

/// Moves writes past joins and lookups to where they are needed, if there is a path on which they are written
/// again first.
pub(super) fn behind_joins(program: &mut Program, notes: &mut Notes, starts: &mut Vec<Option<Unread>>) {
    let mut splits = program.blocks.len() * MOST_SPLITS + 8;
    // Of blocks that [`behind_tests`] has added nothing is known: what is written there counts as read.
    starts.resize(program.blocks.len(), None);
    let written: Vec<Touch> = notes.iter().flatten().filter_map(|note| note.writes).collect();
    let mut graph = Graph::of(program);
    // The last writes first: a later one to the same bits would be in the way.
    for id in graph.order.clone().into_iter().rev() {
        for at in (0..notes[id.index()].len()).rev() {
            let note = notes[id.index()][at];
            let is_write = is_movable(&program.block(id).insts[at].1);
            let Some(touch) = note.writes.filter(|_| is_write) else { continue };
            let is_same = |other: &&Touch| other.anchor == touch.anchor && other.may_meet(&touch);
            if written.iter().filter(is_same).nth(1).is_none() {
                continue;
            }
            let Some(targets) = targets((program, &graph), notes, starts, (id, at), &touch) else { continue };
            let edges = targets.iter().filter(|target| matches!(target, Target::Edge(..))).count();
            if targets.len() > MOST_COPIES || edges > splits {
                continue;
            }
            splits -= edges;
            put(program, notes, starts, (id, at), &targets);
            if edges > 0 {
                graph = Graph::of(program);
            }
        }
    }
}

/// Where a write has to be done if it is moved as far as possible; `None` if that saves no packet a write.
fn targets(
    (program, graph): (&Program, &Graph),
    notes: &Notes,
    starts: &[Option<Unread>],
    (from, at): (BlockId, usize),
    touch: &Touch,
) -> Option<Vec<Target>> {
    let note = &notes[from.index()][at];
    let Graph { order, in_edges, position } = graph;
    // The edges into each block over which the write comes along; the blocks that it passes wholly.
    let mut comes = vec![0u32; program.blocks.len()];
    let mut passed = vec![];
    let (mut targets, mut is_saved) = (vec![], false);
    for &id in &order[position[from.index()]..] {
        if id != from && (comes[id.index()] == 0 || comes[id.index()] != in_edges[id.index()]) {
            continue;
        }
        let (block, notes_of) = (program.block(id), &notes[id.index()]);
        let first = if id == from { at + 1 } else { 0 };
        match (first..notes_of.len()).find(|later| !may_swap(note, touch, &notes_of[*later])) {
            Some(_) if id == from => return None,
            Some(blocker) => {
                let unread = before(block, notes_of, starts, blocker);
                is_saved |= unread.is_written_again(touch);
                targets.extend((!unread.holds(touch)).then_some(Target::Before(id, blocker)));
                continue;
            }
            None => {}
        }
        match block.term {
            Term::Drop(_) => {}
            Term::Emit(_) | Term::Slow(_) | Term::EmitTo(..) => targets.push(Target::End(id)),
            _ => {
                block.term.successors().into_iter().for_each(|to| comes[to.index()] += 1);
                passed.push(id);
            }
        }
    }
    // Blocks that other paths lead to as well end its way.
    for id in passed {
        let mut next = program.block(id).term.successors();
        next.sort_unstable();
        next.dedup();
        let is_only = next.len() == 1;
        for to in next.into_iter().filter(|to| comes[to.index()] != in_edges[to.index()]) {
            let unread = starts[to.index()].as_ref();
            is_saved |= unread.is_some_and(|unread| unread.is_written_again(touch));
            if unread.is_none_or(|unread| !unread.holds(touch)) {
                targets.push(if is_only { Target::End(id) } else { Target::Edge(id, to) });
            }
        }
    }
    is_saved.then_some(targets)
}

/// The unread bits before an instruction of a block.
fn before(block: &Block, notes: &[OptimizationNote], starts: &[Option<Unread>], at: usize) -> Unread {
    let mut unread = at_end(&block.term, starts);
    for note in notes[at..].iter().rev() {
        note.writes.into_iter().for_each(|touch| unread.write(touch));
        unread.read(note);
    }
    unread
}

/// Takes a write from its block and puts it where it is needed.
fn put(
    program: &mut Program,
    notes: &mut Notes,
    starts: &mut Vec<Option<Unread>>,
    (from, at): (BlockId, usize),
    targets: &[Target],
) {
    let inst = program.blocks[from.index()].insts.remove(at);
    let note = notes[from.index()].remove(at);
    for target in targets {
        match *target {
            Target::Before(id, at) => {
                program.blocks[id.index()].insts.insert(at, inst);
                notes[id.index()].insert(at, note);
            }
            Target::End(id) => {
                program.blocks[id.index()].insts.push(inst);
                notes[id.index()].push(note);
            }
            Target::Edge(id, to) => {
                let split = split_edge(&mut program.blocks, notes, (id, to));
                program.blocks[split.index()].insts.push(inst);
                notes[split.index()].push(note);
                starts.push(starts[to.index()].clone());
            }
        }
    }
}
