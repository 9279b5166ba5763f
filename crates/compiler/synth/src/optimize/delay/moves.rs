//! The moves of delayed writes: they are removed where they were, and done where they are needed.

use super::super::optimization_note::{Notes, OptimizationNote, Touch};
use super::super::sink::{end_of_edge, split_edge};
use super::super::unread::Unread;
use super::{Delay, Location, Target};
use ir::{BinOp, BlockId, Inst, Program, Term, Value};

impl Delay<'_> {
    /// Moves the writes of the webs that are left.
    pub(super) fn apply(
        self,
        program: &mut Program,
        notes: &mut Notes,
        starts: &mut Vec<Option<Unread>>,
        (location, next): (&Location, &mut u32),
    ) {
        let Delay { order, comes, leaves, from, targets, parts, .. } = self;
        let mut edits: Vec<Edit> = vec![];
        let mut values: [Vec<Option<Value>>; 2] = [vec![None; comes.len()], vec![None; comes.len()]];
        for id in order {
            let at = id.index();
            if comes[at].is_some() {
                let handed: Vec<(BlockId, Value)> =
                    from[at].iter().filter_map(|from| Some((*from, values[1][from.index()]?))).collect();
                values[0][at] = Some(joined(program, notes, starts, next, *id, &handed));
            }
            let delayed = leaves[at].or(comes[at]);
            let own = delayed.and_then(|delayed| delayed.own);
            values[1][at] = match own {
                Some(own) => program.block(*id).insts[own].1.operands().first().copied(),
                None => values[0][at],
            };
            let whole = delayed.and_then(|delayed| delayed.touches.writes);
            for part in &parts[at].1 {
                let (Some(value), Some(whole)) = (values[1][at], whole) else { break };
                let (insts, value) = put_in(program, notes, (*id, *part), (value, &whole), next);
                values[1][at] = Some(value);
                edits.push(Edit { block: *id, at: *part, change: Change::Computed(insts) });
            }
        }
        let inst = |value: Value| {
            let mut inst = location.inst;
            inst.map_operands(|operand| *operand = value);
            (None, inst)
        };
        for block in order {
            let own = leaves[block.index()].and_then(|one| one.own);
            edits.extend(own.map(|at| Edit { block: *block, at, change: Change::Nothing }));
        }
        let mut edges = vec![];
        for (_, target) in targets {
            match target {
                Target::Before(block, at) => {
                    let is_end = at == program.block(block).insts.len();
                    let one = leaves[block.index()].filter(|_| is_end).or(comes[block.index()]);
                    let value = values[usize::from(is_end)][block.index()];
                    let write = value.zip(one).map(|(value, one)| Change::Written(value, one.touches));
                    edits.extend(write.map(|change| Edit { block, at, change }));
                }
                Target::Edge(id, to) => {
                    let one = values[1][id.index()].zip(leaves[id.index()]);
                    edges.extend(one.map(|(value, one)| (id, to, value, one.touches)));
                }
            }
        }
        // From the end of each block on.
        edits.sort_by_key(|edit| (edit.block, std::cmp::Reverse(edit.at)));
        for Edit { block, at, change } in edits {
            let (insts, notes) = (&mut program.blocks[block.index()].insts, &mut notes[block.index()]);
            let (old, new, note) = match change {
                Change::Nothing => (1, vec![], OptimizationNote::PURE),
                Change::Written(value, note) => (0, vec![inst(value)], note),
                Change::Computed(new) => (1, new, OptimizationNote::PURE),
            };
            notes.splice(at..at + old, vec![note; new.len()]);
            insts.splice(at..at + old, new);
        }
        for (id, to, value, note) in edges {
            let split = split_edge(&mut program.blocks, notes, (id, to));
            program.blocks[split.index()].insts.push(inst(value));
            notes[split.index()].push(note);
            starts.push(starts[to.index()].clone());
        }
    }
}

/// A change of a block's instructions at a place.
struct Edit {
    block: BlockId,
    at: usize,
    change: Change,
}

/// What it becomes.
enum Change {
    /// The write there is delayed.
    Nothing,
    /// A delayed write is done before it.
    Written(Value, OptimizationNote),
    /// The write there, to a part of the location, is part of the value that these compute.
    Computed(Vec<(Option<Value>, Inst)>),
}

/// The value with what an instruction writes to a part of its bits, and the instructions that compute it.
fn put_in(
    program: &Program,
    notes: &Notes,
    (block, at): (BlockId, usize),
    (value, whole): (Value, &Touch),
    next: &mut u32,
) -> (Vec<(Option<Value>, Inst)>, Value) {
    let (part, inst) = (notes[block.index()][at].writes, program.block(block).insts[at].1);
    let (Some(part), Some(&new)) = (part, inst.operands().first()) else { return (vec![], value) };
    let (by, mask) = whole.place_of(&part);
    let mut insts = vec![];
    let mut add = |inst: Inst| {
        let value = Value(*next);
        *next += 1;
        insts.push((Some(value), inst));
        value
    };
    let (others, own, by) = (add(Inst::Const(!(mask << by))), add(Inst::Const(mask)), add(Inst::Const(by)));
    let (kept, new) = (add(Inst::Bin(BinOp::And, value, others)), add(Inst::Bin(BinOp::And, new, own)));
    let moved = add(Inst::Bin(BinOp::Shl, new, by));
    let value = add(Inst::Bin(BinOp::Or, kept, moved));
    (insts, value)
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
        let jump = end_of_edge(&mut program.blocks, notes, (*from, id));
        if jump != *from {
            starts.push(starts[id.index()].clone());
        }
        if let Term::Jump(_, args) = &mut program.blocks[jump.index()].term {
            args.push(*value);
        }
    }
    param
}
