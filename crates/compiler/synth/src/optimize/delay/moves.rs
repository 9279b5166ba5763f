//! The moves of delayed writes: they are removed where they were, and done where they are needed.

use super::super::optimization_note::{Notes, OptimizationNote};
use super::super::sink::split_edge;
use super::super::unread::Unread;
use super::{Delay, Location, Target};
use ir::{BlockId, Program, Term, Value};

impl Delay<'_> {
    /// Moves the writes of the webs that are left.
    pub(super) fn apply(
        self,
        program: &mut Program,
        notes: &mut Notes,
        starts: &mut Vec<Option<Unread>>,
        (location, next): (&Location, &mut u32),
    ) {
        let Delay { order, comes, leaves, from, targets, .. } = self;
        let mut values: [Vec<Option<Value>>; 2] = [vec![None; comes.len()], vec![None; comes.len()]];
        for id in order {
            let at = id.index();
            if comes[at].is_some() {
                let handed: Vec<(BlockId, Value)> =
                    from[at].iter().filter_map(|from| Some((*from, values[1][from.index()]?))).collect();
                values[0][at] = Some(joined(program, notes, starts, next, *id, &handed));
            }
            values[1][at] = match leaves[at].map(|delayed| delayed.own) {
                Some(Some(own)) => program.block(*id).insts[own].1.operands().first().copied(),
                Some(None) => values[0][at],
                None => None,
            };
        }
        let inst = |value: Value| {
            let mut inst = location.inst;
            inst.map_operands(|operand| *operand = value);
            (None, inst)
        };
        let mut edits: Vec<Edit> = vec![];
        for block in order {
            let own = leaves[block.index()].and_then(|one| one.own);
            edits.extend(own.map(|at| Edit { block: *block, at, write: None }));
        }
        let mut edges = vec![];
        for (_, target) in targets {
            match target {
                Target::Before(block, at) => {
                    let is_out = at == program.block(block).insts.len() && leaves[block.index()].is_some();
                    let one = if is_out { leaves[block.index()] } else { comes[block.index()] };
                    let value = values[usize::from(is_out)][block.index()];
                    let write = value.zip(one.map(|one| one.touches));
                    edits.extend(write.map(|write| Edit { block, at, write: Some(write) }));
                }
                Target::Edge(id, to) => {
                    let one = values[1][id.index()].zip(leaves[id.index()]);
                    edges.extend(one.map(|(value, one)| (id, to, value, one.touches)));
                }
            }
        }
        // From the end of each block on.
        edits.sort_by_key(|edit| (edit.block, std::cmp::Reverse(edit.at)));
        for Edit { block, at, write } in edits {
            let (insts, notes) = (&mut program.blocks[block.index()].insts, &mut notes[block.index()]);
            match write {
                Some((value, note)) => {
                    insts.insert(at, inst(value));
                    notes.insert(at, note);
                }
                None => {
                    insts.remove(at);
                    notes.remove(at);
                }
            }
        }
        for (id, to, value, note) in edges {
            let split = split_edge(&mut program.blocks, notes, (id, to));
            program.blocks[split.index()].insts.push(inst(value));
            notes[split.index()].push(note);
            starts.push(starts[to.index()].clone());
        }
    }
}

/// A change of a block's instructions at a place: a delayed write is added, or one that is delayed removed.
struct Edit {
    block: BlockId,
    at: usize,
    write: Option<(Value, OptimizationNote)>,
}

/// The value at a block, of those on the paths to it.
fn joined(
    program: &mut Program,
    notes: &mut Notes,
    starts: &mut Vec<Option<Unread>>,
    next: &mut u32,
    id: BlockId,
    handed: &[(BlockId, Value)],
) -> Value {
    if handed.iter().all(|(_, value)| *value == handed[0].1) {
        return handed[0].1;
    }
    let arg = |from: BlockId, at: usize| match &program.block(from).term {
        Term::Jump(_, args) => args.get(at).copied(),
        _ => None,
    };
    let known = (0..program.block(id).params.len())
        .find(|at| handed.iter().all(|(from, value)| arg(*from, *at) == Some(*value)));
    if let Some(known) = known {
        return program.block(id).params[known];
    }
    let param = Value(*next);
    *next += 1;
    program.blocks[id.index()].params.push(param);
    for (from, value) in handed {
        let jump = match program.block(*from).term {
            Term::Jump(..) => *from,
            _ => {
                starts.push(starts[id.index()].clone());
                split_edge(&mut program.blocks, notes, (*from, id))
            }
        };
        if let Term::Jump(_, args) = &mut program.blocks[jump.index()].term {
            args.push(*value);
        }
    }
    param
}
