//! The stage boundaries of a program: its lookups, where those with one number are one
//! ([`Term::Lookup`]).

use crate::program::{BlockId, Program, Term};
use std::collections::BTreeMap;

/// The blocks that end with the lookups of each boundary, each boundary behind all that lead to it; the block where
/// that is impossible, if lookups of one number lead to each other or are of different kinds.
pub fn stages(program: &Program, order: &[BlockId]) -> Result<Vec<Vec<BlockId>>, BlockId> {
    let mut stages: Vec<Vec<BlockId>> = vec![];
    let mut of_number: BTreeMap<u16, usize> = BTreeMap::new();
    let mut of_block: BTreeMap<BlockId, usize> = BTreeMap::new();
    for &id in order {
        let Term::Lookup { stage, .. } = &program.block(id).term else { continue };
        let next = stages.len();
        let at = stage.map_or(next, |number| *of_number.entry(number).or_insert(next));
        match stages.get_mut(at) {
            Some(stage) if kind(program, stage[0]) != kind(program, id) => return Err(id),
            Some(stage) => stage.push(id),
            None => stages.push(vec![id]),
        }
        of_block.insert(id, at);
    }
    // Each alone: the order of the blocks is one.
    if stages.len() == of_block.len() {
        return Ok(stages);
    }
    let levels = levels(program, order, &of_block, stages.len())?;
    let mut sorted: Vec<usize> = (0..stages.len()).collect();
    sorted.sort_by_key(|at| levels[*at]);
    Ok(sorted.into_iter().map(|at| std::mem::take(&mut stages[at])).collect())
}

/// What lookups of one stage have in common.
fn kind(program: &Program, block: BlockId) -> Option<(u16, Option<usize>)> {
    match &program.block(block).term {
        Term::Lookup { table, args, .. } => Some((*table, args.as_ref().map(Vec::len))),
        _ => None,
    }
}

/// The most stages that packets pass before each stage; a block with a lookup, where there is no such number.
fn levels(
    program: &Program,
    order: &[BlockId],
    of_block: &BTreeMap<BlockId, usize>,
    count: usize,
) -> Result<Vec<usize>, BlockId> {
    let mut levels = vec![0; count];
    loop {
        let mut has_changed = false;
        let mut passed = vec![0; program.blocks.len()];
        for &id in order {
            let mut here = passed[id.index()];
            if let Some(&stage) = of_block.get(&id) {
                has_changed |= here > levels[stage];
                levels[stage] = here.max(levels[stage]);
                here = levels[stage] + 1;
                if here > count {
                    return Err(id);
                }
            }
            for to in program.block(id).term.successors() {
                passed[to.index()] = here.max(passed[to.index()]);
            }
        }
        if !has_changed {
            return Ok(levels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    const TWO: &str = "program P outputs 1\n\
        table a key 1 record 8\n\
        table b key 1 record 8\n\
        entries b0\n\
        b0:\n  v0 = const 1\n  branch v0 b1 b2\n\
        b1:\n  v1 = lookup 0 v0 -> b3 b5 stage 1\n\
        b2:\n  v2 = lookup 0 v0 -> b4 b5 stage 1\n\
        b3:\n  v3 = lookup 1 v0 -> b5 b5 stage 2\n\
        b4:\n  v4 = lookup 1 v0 -> b5 b5 stage 2\n\
        b5:\n  emit 0\n";

    fn of(text: &str) -> Result<Vec<Vec<u32>>, u32> {
        let program = parse(text).expect("parses");
        let found = stages(&program, &program.topological_order()).map_err(|block| block.0)?;
        Ok(found.into_iter().map(|stage| stage.into_iter().map(|block| block.0).collect()).collect())
    }

    #[test]
    fn lookups_of_one_number_are_one_stage() {
        assert_eq!(
            of(TWO).map(|mut stages| {
                stages.iter_mut().for_each(|s| s.sort_unstable());
                stages
            }),
            Ok(vec![vec![1, 2], vec![3, 4]])
        );
        let alone = TWO.replace(" stage 1", "").replace(" stage 2", "");
        assert_eq!(of(&alone).map(|stages| stages.len()), Ok(4));
    }

    #[test]
    fn a_stage_does_not_lead_to_itself() {
        assert!(of(&TWO.replace("lookup 1 v0 -> b5 b5 stage 2", "lookup 0 v0 -> b5 b5 stage 1")).is_err());
        // Two stages, each before the other.
        let crossed = TWO
            .replace("lookup 0 v0 -> b4 b5 stage 1", "lookup 1 v0 -> b4 b5 stage 2")
            .replace("v4 = lookup 1 v0 -> b5 b5 stage 2", "v4 = lookup 0 v0 -> b5 b5 stage 1");
        assert!(of(&crossed).is_err());
    }

    #[test]
    fn a_stage_is_of_one_table() {
        assert!(of(&TWO.replace("lookup 0 v0 -> b4", "lookup 1 v0 -> b4")).is_err());
        assert!(of(&TWO.replace("lookup 0 v0 -> b4 b5", "create 0 v0 with v0 -> b4 b5")).is_err());
    }
}
