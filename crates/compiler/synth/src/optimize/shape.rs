//! Simplifies the graph of blocks: jumps to jumps, chains of blocks, unreachable blocks.

use ir::analysis::order::edges_in;
use ir::{Block, BlockId, Program, Term, Value};
use std::collections::BTreeMap;

/// Simplifies a program: unreachable blocks are removed, chains become one block, and values are
/// renumbered.
pub fn tidy(program: &mut Program) {
    thread(program);
    merge(program);
    compact(program);
    leave_stages(program);
}

/// A lookup without others of its stage has none.
fn leave_stages(program: &mut Program) {
    let mut count: BTreeMap<u16, usize> = BTreeMap::new();
    for block in &program.blocks {
        if let Term::Lookup { stage: Some(stage), .. } = block.term {
            *count.entry(stage).or_default() += 1;
        }
    }
    for block in &mut program.blocks {
        if let Term::Lookup { stage, .. } = &mut block.term
            && stage.is_some_and(|stage| count.get(&stage) == Some(&1))
        {
            *stage = None;
        }
    }
}

/// Redirects edges past blocks that only jump.
fn thread(program: &mut Program) {
    let order = program.topological_order();
    // For each block: itself, or the target of its lone jump.
    let mut target: Vec<BlockId> = (0..program.blocks.len() as u32).map(BlockId).collect();
    for &id in order.iter().rev() {
        let mut term = std::mem::replace(&mut program.blocks[id.index()].term, Term::Emit(0));
        // A jump with arguments needs the parameters of the block that it was written for.
        term.map_successors(|to| target[to.index()]);
        if let Term::Branch(_, yes, no)
        | Term::Need { then: yes, els: no, .. }
        | Term::Room { then: yes, els: no, .. } = term
            && yes == no
        {
            term = Term::Jump(yes, vec![]);
        }
        if let Term::Jump(to, args) = &term {
            let next = program.block(*to);
            let exits = matches!(next.term, Term::Emit(_) | Term::Drop(_) | Term::Slow(_));
            if args.is_empty() && exits && next.insts.is_empty() && *to != id {
                term = next.term.clone();
            }
        }
        let block = &mut program.blocks[id.index()];
        block.term = term;
        if let Term::Jump(to, args) = &block.term
            && args.is_empty()
            && block.insts.is_empty()
            && block.params.is_empty()
        {
            target[id.index()] = *to;
        }
    }
    program.entries.iter_mut().for_each(|entry| *entry = target[entry.index()]);
}

/// Joins two blocks if the first one has no other successor and the second no other predecessor.
fn merge(program: &mut Program) {
    let order = program.topological_order();
    let in_edges = edges_in(program, &order);
    let mut renamed: Vec<Option<Value>> = vec![None; program.value_count()];
    let mut gone = vec![false; program.blocks.len()];
    for &id in &order {
        if gone[id.index()] {
            continue;
        }
        let mut block = take(program, id);
        while let Term::Jump(to, args) = &block.term
            && in_edges[to.index()] == 1
        {
            gone[to.index()] = true;
            let args = args.clone();
            let next = take(program, *to);
            for (param, arg) in next.params.iter().zip(args) {
                let arg = renamed[arg.0 as usize].unwrap_or(arg);
                renamed[param.0 as usize] = Some(arg);
            }
            block.insts.extend(next.insts);
            block.term = next.term;
        }
        program.blocks[id.index()] = block;
    }
    // Blocks that nothing leads to may read what is no longer defined; they go next.
    for id in order {
        let block = &mut program.blocks[id.index()];
        rename(block, |value| renamed[value.0 as usize].unwrap_or(value));
    }
}

fn take(program: &mut Program, id: BlockId) -> Block {
    let empty = Block { params: vec![], insts: vec![], term: Term::Emit(0) };
    std::mem::replace(&mut program.blocks[id.index()], empty)
}

/// Replaces every value that a block reads.
fn rename(block: &mut Block, name: impl Fn(Value) -> Value) {
    let mut each = |value: &mut Value| *value = name(*value);
    block.insts.iter_mut().for_each(|(_, inst)| inst.map_operands(&mut each));
    block.term.map_operands(each);
}

/// Removes unreachable blocks, and numbers blocks and values without gaps.
fn compact(program: &mut Program) {
    let order = program.topological_order();
    program.keep(&order);
    let mut value_of: Vec<Option<Value>> = vec![None; program.value_count()];
    let mut next = 0;
    let mut define = |value: &mut Value| {
        value_of[value.0 as usize] = Some(Value(next));
        *value = Value(next);
        next += 1;
    };
    for block in &mut program.blocks {
        block.params.iter_mut().for_each(&mut define);
        block.insts.iter_mut().filter_map(|inst| inst.0.as_mut()).for_each(&mut define);
        if let Term::Lookup { rec, .. } = &mut block.term {
            define(rec);
        }
    }
    for block in &mut program.blocks {
        rename(block, |value| value_of.get(value.0 as usize).copied().flatten().unwrap_or(value));
    }
}
