//! A copy of each block for each thing that packets may know there ([`Knowledge`]): where paths meet, they know the same.
//!
//! The result does what the program does. Where a value has a name of its own in each copy of the block that defines it,
//! and the copies meet, it is a parameter. A record can be none: copies in which another lookup found it stay apart as long
//! as it is used.

use super::knowledge::{Knowledge, Outlook};
use crate::copy::share_stages;
use ir::analysis::live::live_in;
use ir::{Block, BlockId, Inst, Program, Term, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How many copies a block may have: more packets are as if they knew nothing. The first number is taken with which the
/// program is not too large.
const MOST_COPIES: [usize; 4] = [256, 48, 16, 6];

/// What a copy of a block is for: what packets know, and for each record that is still used which copy found it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct CopyFor {
    knowledge: Knowledge,
    records: Vec<(Value, usize)>,
}

/// A copy of a block.
struct Copied {
    of: BlockId,
    /// The copies that lead to it.
    from: Vec<usize>,
    /// The copies that it leads to, by what they are of.
    to: Vec<(BlockId, usize)>,
}

/// The plan of a program with copies.
struct CopyPlan {
    /// In topological order of what they are of.
    copies: Vec<Copied>,
    entries: Vec<usize>,
}

/// A program with copies that has at most so many instructions; `None` if it would be larger, or the same.
pub(super) fn copied(program: &Program, most: usize) -> Option<Program> {
    let order = program.topological_order();
    let live = live_in(program, &order);
    let plan = MOST_COPIES.into_iter().find_map(|copies| plan(program, &order, &live, (most, copies)))?;
    if plan.copies.len() == order.len() {
        return None;
    }
    let mut program = program.clone();
    let mut count = vec![0usize; program.blocks.len()];
    plan.copies.iter().for_each(|copy| count[copy.of.index()] += 1);
    let several: Vec<BlockId> = order.iter().copied().filter(|id| count[id.index()] > 1).collect();
    share_stages(&mut program, &several, false);
    Some(Build::of(&program, &live, &plan).finish(program, &plan))
}

fn plan(
    program: &Program,
    order: &[BlockId],
    live: &[BTreeSet<Value>],
    (most, copies_of_one): (usize, usize),
) -> Option<CopyPlan> {
    let outlook = Outlook::of(program, order);
    let matters: Vec<Knowledge> =
        (0..program.blocks.len()).map(|at| outlook.matters(BlockId(at as u32))).collect();
    // The states of each block, with the edges that lead there.
    let mut states: Vec<Vec<(CopyFor, Vec<usize>)>> = vec![vec![]; program.blocks.len()];
    let reach = |states: &mut Vec<Vec<(CopyFor, Vec<usize>)>>,
                 to: BlockId,
                 mut state: CopyFor,
                 from: Option<usize>| {
        state.knowledge = state.knowledge.within(matters[to.index()]);
        state.records.retain(|(record, _)| live[to.index()].contains(record));
        let of_block = &mut states[to.index()];
        if of_block.len() >= copies_of_one && !of_block.iter().any(|(known, _)| *known == state) {
            state.knowledge = Knowledge::default();
        }
        match of_block.iter_mut().find(|(known, _)| *known == state) {
            Some((_, edges)) => edges.extend(from),
            None => of_block.push((state, from.into_iter().collect())),
        }
    };
    for entry in &program.entries {
        reach(&mut states, *entry, CopyFor::default(), None);
    }
    let (mut copies, mut size): (Vec<Copied>, usize) = (vec![], 0);
    let mut entries: Vec<Option<usize>> = vec![None; program.entries.len()];
    for id in order {
        let block = program.block(*id);
        for (state, mut from) in std::mem::take(&mut states[id.index()]) {
            size += block.insts.len() + 1;
            if size > most {
                return None;
            }
            let number = copies.len();
            if state == CopyFor::default() {
                let is_it = |(entry, of): (&mut Option<usize>, &BlockId)| {
                    if of == id {
                        *entry = Some(number);
                    }
                };
                entries.iter_mut().zip(&program.entries).for_each(is_it);
            }
            let knowledge = outlook.behind(program, *id, state.knowledge);
            let mut records = state.records;
            if let Term::Lookup { rec, .. } = &block.term {
                let at = records.partition_point(|(record, _)| record < rec);
                records.insert(at, (*rec, number));
            }
            let mut next = block.term.successors();
            next.sort_unstable();
            next.dedup();
            for to in next {
                reach(&mut states, to, CopyFor { knowledge, records: records.clone() }, Some(number));
            }
            from.sort_unstable();
            from.dedup();
            for before in &from {
                copies[*before].to.push((*id, number));
            }
            copies.push(Copied { of: *id, from, to: vec![] });
        }
    }
    let entries = entries.into_iter().collect::<Option<Vec<usize>>>()?;
    Some(CopyPlan { copies, entries })
}

/// The names of values.
type Names = FxHashMap<Value, Value>;

/// The copies, as they are made.
struct Build {
    blocks: Vec<Block>,
    next: u32,
}

impl Build {
    fn of(program: &Program, live: &[BTreeSet<Value>], plan: &CopyPlan) -> Build {
        let mut build = Build { blocks: vec![], next: program.value_count() as u32 };
        let insts = program.blocks.iter().flat_map(|block| &block.insts);
        // What is the same number in each copy is no parameter: the program may have to know it.
        let numbers: FxHashMap<Value, u64> = insts
            .filter_map(|(value, inst)| match inst {
                Inst::Const(number) => Some(((*value)?, *number)),
                _ => None,
            })
            .collect();
        let splits = plan.copies.len();
        let mut split: Vec<Block> = vec![];
        let mut seen = vec![false; program.blocks.len()];
        // The names of values behind each copy.
        let mut behind: Vec<Names> = Vec::with_capacity(plan.copies.len());
        for copy in &plan.copies {
            let mut block = program.block(copy.of).clone();
            let mut names = Names::default();
            let mut handed: Vec<Vec<Value>> = vec![vec![]; copy.from.len()];
            let (mut params, mut constants) = (vec![], vec![]);
            for value in &live[copy.of.index()] {
                let of: Vec<Value> = copy
                    .from
                    .iter()
                    .map(|from| behind[*from].get(value).copied().unwrap_or(*value))
                    .collect();
                let name = match of.split_first() {
                    None => *value,
                    Some((first, rest)) if rest.iter().all(|other| other == first) => *first,
                    Some(_) if numbers.contains_key(value) => {
                        let name = build.name();
                        constants.push((Some(name), Inst::Const(numbers[value])));
                        name
                    }
                    Some(_) => {
                        handed.iter_mut().zip(&of).for_each(|(handed, value)| handed.push(*value));
                        let param = build.name();
                        params.push(param);
                        param
                    }
                };
                names.insert(*value, name);
            }
            let again = std::mem::replace(&mut seen[copy.of.index()], true);
            build.define(&mut block, &mut names, again);
            block.params.extend(params);
            block.insts.splice(0..0, constants);
            let number = BlockId(build.blocks.len() as u32);
            block.term.map_successors(|to| {
                let found = copy.to.iter().find(|(of, _)| *of == to);
                found.map_or(to, |(_, copy)| BlockId(*copy as u32))
            });
            build.blocks.push(block);
            for (from, args) in copy.from.iter().zip(handed).filter(|(_, args)| !args.is_empty()) {
                match &mut build.blocks[*from].term {
                    Term::Jump(_, known) => known.extend(args),
                    term => {
                        let between = BlockId((splits + split.len()) as u32);
                        term.map_successors(|to| if to == number { between } else { to });
                        split.push(Block { params: vec![], insts: vec![], term: Term::Jump(number, args) });
                    }
                }
            }
            behind.push(names);
        }
        build.blocks.extend(split);
        build
    }

    fn name(&mut self) -> Value {
        self.next += 1;
        Value(self.next - 1)
    }

    /// Gives values their names in a block; those that it defines get new ones if they were defined before.
    fn define(&mut self, block: &mut Block, names: &mut Names, again: bool) {
        let mut defined = |names: &mut Names, value: &mut Value| {
            let name = if again { self.name() } else { *value };
            names.insert(*value, name);
            *value = name;
        };
        block.params.iter_mut().for_each(|param| defined(names, param));
        for (result, inst) in &mut block.insts {
            let inst: &mut Inst = inst;
            inst.map_operands(|value| *value = names.get(value).copied().unwrap_or(*value));
            if let Some(result) = result {
                defined(names, result);
            }
        }
        block.term.map_operands(|value| *value = names.get(value).copied().unwrap_or(*value));
        if let Term::Lookup { rec, .. } = &mut block.term {
            defined(names, rec);
        }
    }

    fn finish(self, mut program: Program, plan: &CopyPlan) -> Program {
        program.blocks = self.blocks;
        program.entries = plan.entries.iter().map(|entry| BlockId(*entry as u32)).collect();
        let order = program.topological_order();
        program.keep(&order);
        program
    }
}
