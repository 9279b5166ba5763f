//! Copies of what lies behind a block, for packets of which more is known.

use ir::{Block, BlockId, Program, Term, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What stands in the place of values, by their names.
pub(crate) type InPlaceOf = FxHashMap<Value, Value>;

/// Appends a copy of a block and of all that follows it; `known` stands in the place of values that are defined
/// before, and of the block's arguments. Returns the copy of the block. A lookup that is a stage boundary shares it
/// with its copy, so that packets of both keep their order; with `walked`, those by prefix are none.
pub(crate) fn copy_from(program: &mut Program, start: BlockId, known: InPlaceOf, walked: bool) -> BlockId {
    let reached = program.order_from(&[start]);
    share_stages(program, &reached, walked);
    let (mut names, mut next) = (known, program.value_count() as u32);
    let mut name = |value: &Value| {
        names.entry(*value).or_insert_with(|| {
            next += 1;
            Value(next - 1)
        });
    };
    let first = program.blocks.len() as u32;
    let mut place = vec![BlockId(u32::MAX); program.blocks.len()];
    for (id, to) in reached.iter().zip(first..) {
        place[id.index()] = BlockId(to);
        let block = program.block(*id);
        block.params.iter().for_each(&mut name);
        block.insts.iter().filter_map(|(value, _)| value.as_ref()).for_each(&mut name);
        if let Term::Lookup { rec, .. } = &block.term {
            name(rec);
        }
    }
    let rename = |value: &mut Value| *value = names.get(value).copied().unwrap_or(*value);
    for id in &reached {
        let mut block = program.block(*id).clone();
        if *id == start {
            block.params.clear();
        }
        block.params.iter_mut().for_each(rename);
        for (result, inst) in &mut block.insts {
            result.iter_mut().for_each(rename);
            inst.map_operands(rename);
        }
        block.term.map_operands(rename);
        if let Term::Lookup { rec, .. } = &mut block.term {
            rename(rec);
        }
        block.term.map_successors(|to| place[to.index()]);
        program.blocks.push(block);
    }
    place[start.index()]
}

/// Gives each lookup of some blocks a stage that a copy of it can share. With more than there are numbers, the program
/// does not verify, and stays as it was.
pub(crate) fn share_stages(program: &mut Program, blocks: &[BlockId], walked: bool) {
    let of = |block: &Block| match &block.term {
        Term::Lookup { stage, .. } => *stage,
        _ => None,
    };
    let mut next = program.blocks.iter().filter_map(of).max().map_or(0, |last| last.saturating_add(1));
    for id in blocks {
        if !program.is_barrier(&program.block(*id).term, walked) {
            continue;
        }
        if let Term::Lookup { stage: stage @ None, .. } = &mut program.blocks[id.index()].term {
            *stage = Some(next);
            next = next.saturating_add(1);
        }
    }
}

/// The values that a block and what follows it use.
pub(crate) fn used_from(program: &Program, start: BlockId) -> FxHashSet<Value> {
    let mut used = FxHashSet::default();
    for id in program.order_from(&[start]) {
        let block = program.block(id);
        used.extend(block.insts.iter().flat_map(|(_, inst)| inst.operands()));
        used.extend(block.term.clone().operands());
    }
    used
}
