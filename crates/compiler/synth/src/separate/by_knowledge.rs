//! A copy of each block for each thing that packets may know there ([`Knowledge`]): where paths meet, they know the same.
//!
//! The result does what the program does. Where a value has a name of its own in each copy of the block that defines it,
//! and the copies meet, it is a parameter. A record can be none: copies in which another lookup found it stay apart as long
//! as it is used.

use super::knowledge::{Knowledge, Outlook};
use crate::copy::share_stages;
use crate::optimize::next_blocks;
use ir::analysis::live::live_in;
use ir::{Block, BlockId, Inst, Program, Term, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How many copies a block may have; what more packets know is reduced to what others know, too. The first number is taken
/// with which the program is not too large.
const MOST_COPIES: [usize; 6] = [256, 48, 24, 16, 10, 6];

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
    let outlook = Outlook::of(program, &order);
    let plan = |copies| plan(program, &order, (&live, &outlook), (most, copies));
    let plan = MOST_COPIES.into_iter().find_map(plan)?;
    if plan.copies.len() == order.len() {
        return None;
    }
    let mut program = program.clone();
    let mut count = vec![0usize; program.blocks.len()];
    plan.copies.iter().for_each(|copy| count[copy.of.index()] += 1);
    let several: Vec<BlockId> = order.iter().copied().filter(|id| count[id.index()] > 1).collect();
    share_stages(&mut program, &several, false);
    Some(Build::of(&program, &live, &plan).finish(&plan))
}

fn plan(
    program: &Program,
    order: &[BlockId],
    (live, outlook): (&[BTreeSet<Value>], &Outlook),
    (most, copies_of_one): (usize, usize),
) -> Option<CopyPlan> {
    let matters: Vec<Knowledge> =
        (0..program.blocks.len()).map(|at| outlook.matters(BlockId(at as u32))).collect();
    // The states of each block, with the edges that lead there.
    let mut states: Vec<Reached> = vec![vec![]; program.blocks.len()];
    let reach = |states: &mut Vec<Reached>, to: BlockId, mut state: CopyFor, from: Option<usize>| {
        state.knowledge = state.knowledge.within(matters[to.index()]);
        state.records.retain(|(record, _)| live[to.index()].contains(record));
        add(&mut states[to.index()], state, from.into_iter().collect());
    };
    for entry in &program.entries {
        reach(&mut states, *entry, CopyFor::default(), None);
    }
    let (mut copies, mut size): (Vec<Copied>, usize) = (vec![], 0);
    for id in order {
        let block = program.block(*id);
        for (state, mut from) in at_most(copies_of_one, std::mem::take(&mut states[id.index()])) {
            size += block.insts.len() + 1;
            if size > most {
                return None;
            }
            let number = copies.len();
            let knowledge = outlook.behind(program, *id, state.knowledge);
            let mut records = state.records;
            if let Term::Lookup { rec, .. } = &block.term {
                let at = records.partition_point(|(record, _)| record < rec);
                records.insert(at, (*rec, number));
            }
            for to in next_blocks(&block.term) {
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
    // Packets that enter are in the first copy.
    let first = |entry: &BlockId| copies.iter().position(|copy| copy.of == *entry);
    let entries = program.entries.iter().filter_map(first).collect();
    Some(CopyPlan { copies, entries })
}

/// What copies of a block are for, with the copies that lead to each.
type Reached = Vec<(CopyFor, Vec<usize>)>;

/// Of more states than this, the last one goes first: all pairs would be too many.
const MANY: usize = 200;

/// So many copies of a block at most, if the same copies found their records: of those that lose least by it, packets know
/// what they knew in both.
fn at_most(most: usize, mut reached: Reached) -> Reached {
    while reached.len() > most {
        let last = reached.len() - 1;
        let of_last = (last >= MANY).then(|| nearest(&reached, last)).flatten();
        let Some((a, b)) = of_last.or_else(|| nearest(&reached, 1)) else { break };
        // The lower place stays: that of a state that packets enter with is the first. No third state is what both knew: it
        // would have been nearer.
        let (gone, edges) = reached.swap_remove(b);
        let (state, from) = &mut reached[a];
        state.knowledge = state.knowledge.within(gone.knowledge);
        from.extend(edges);
    }
    reached
}

/// The two states that lose least if they become one: by their places, the second one not before a place.
fn nearest(reached: &Reached, from: usize) -> Option<(usize, usize)> {
    let pairs = (from..reached.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let alike = pairs.filter(|(a, b)| reached[*a].0.records == reached[*b].0.records);
    alike.min_by_key(|(a, b)| reached[*a].0.knowledge.apart(reached[*b].0.knowledge))
}

/// Adds what packets know that come from some copies.
fn add(reached: &mut Reached, state: CopyFor, from: Vec<usize>) {
    match reached.iter_mut().find(|(known, _)| *known == state) {
        Some((_, edges)) => edges.extend(from),
        None => reached.push((state, from)),
    }
}

/// The names of values.
type Names = FxHashMap<Value, Value>;

/// The copies, as they are made.
struct Build<'p> {
    program: &'p Program,
    /// What is the same number in each copy is no parameter: the program may have to know it.
    numbers: FxHashMap<Value, u64>,
    blocks: Vec<Block>,
    /// The names of values behind each copy.
    behind: Vec<Names>,
    /// Blocks on edges, which hand values over: their numbers are behind those of all copies.
    edges: Vec<Block>,
    has_copy: Vec<bool>,
    next: u32,
}

/// The values at the start of a copy.
#[derive(Default)]
struct Start {
    names: Names,
    params: Vec<Value>,
    /// For each copy that leads there, the values of the parameters.
    args: Vec<Vec<Value>>,
    constants: Vec<(Option<Value>, Inst)>,
}

impl<'p> Build<'p> {
    fn of(program: &'p Program, live: &[BTreeSet<Value>], plan: &CopyPlan) -> Build<'p> {
        let insts = program.blocks.iter().flat_map(|block| &block.insts);
        let number = |(value, inst): &(Option<Value>, Inst)| match inst {
            Inst::Const(number) => Some(((*value)?, *number)),
            _ => None,
        };
        let mut build = Build {
            program,
            numbers: insts.filter_map(number).collect(),
            blocks: vec![],
            behind: vec![],
            edges: vec![],
            has_copy: vec![false; program.blocks.len()],
            next: program.value_count() as u32,
        };
        for copy in &plan.copies {
            let start = build.start(copy, &live[copy.of.index()]);
            build.add(copy, start, plan.copies.len());
        }
        let edges = std::mem::take(&mut build.edges);
        build.blocks.extend(edges);
        build
    }

    fn start(&mut self, copy: &Copied, live: &BTreeSet<Value>) -> Start {
        let mut start = Start { args: vec![vec![]; copy.from.len()], ..Start::default() };
        for value in live {
            let known = |from: &usize| self.behind[*from].get(value).copied().unwrap_or(*value);
            let known: Vec<Value> = copy.from.iter().map(known).collect();
            let first = known.first().copied().unwrap_or(*value);
            let name = if known.iter().all(|other| *other == first) {
                first
            } else if let Some(number) = self.numbers.get(value).copied() {
                let name = self.name();
                start.constants.push((Some(name), Inst::Const(number)));
                name
            } else {
                start.args.iter_mut().zip(&known).for_each(|(args, value)| args.push(*value));
                let name = self.name();
                start.params.push(name);
                name
            };
            start.names.insert(*value, name);
        }
        start
    }

    /// Adds a copy of a block, to one of so many.
    fn add(&mut self, copy: &Copied, start: Start, copies: usize) {
        let Start { mut names, params, args, constants } = start;
        let mut block = self.program.block(copy.of).clone();
        let again = std::mem::replace(&mut self.has_copy[copy.of.index()], true);
        self.define(&mut block, &mut names, again);
        block.params.extend(params);
        block.insts.splice(0..0, constants);
        let number = BlockId(self.blocks.len() as u32);
        block.term.map_successors(|to| {
            let found = copy.to.iter().find(|(of, _)| *of == to);
            found.map_or(to, |(_, copy)| BlockId(*copy as u32))
        });
        self.blocks.push(block);
        self.behind.push(names);
        for (from, args) in copy.from.iter().zip(args).filter(|(_, args)| !args.is_empty()) {
            match &mut self.blocks[*from].term {
                Term::Jump(_, known) => known.extend(args),
                term => {
                    let edge = BlockId((copies + self.edges.len()) as u32);
                    term.map_successors(|to| if to == number { edge } else { to });
                    self.edges.push(Block { params: vec![], insts: vec![], term: Term::Jump(number, args) });
                }
            }
        }
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

    fn finish(self, plan: &CopyPlan) -> Program {
        let mut program = Program { blocks: self.blocks, ..self.program.clone() };
        program.entries = plan.entries.iter().map(|entry| BlockId(*entry as u32)).collect();
        let order = program.topological_order();
        program.keep(&order);
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of too many states, the nearest become one, with what is known in both; never those with records of their own.
    #[test]
    fn states_that_lose_least_become_one() {
        let state = |known, records: &[usize]| CopyFor {
            knowledge: Knowledge { known, written: known >> 4 },
            records: records.iter().map(|copy| (Value(7), *copy)).collect(),
        };
        let reached = |states: &[(u128, &[usize])]| -> Reached {
            let number =
                |(at, (known, records)): (usize, &(u128, &[usize]))| (state(*known, records), vec![at]);
            states.iter().enumerate().map(number).collect()
        };
        let sorted = |most, states: &[(u128, &[usize])]| {
            let mut left = at_most(most, reached(states));
            left.iter_mut().for_each(|(_, from)| from.sort_unstable());
            left.sort_by(|a, b| a.1.cmp(&b.1));
            left
        };
        let three: [(u128, &[usize]); 3] = [(0b1110, &[]), (0b0001, &[]), (0b0110, &[])];
        assert_eq!(sorted(3, &three), reached(&three));
        assert_eq!(sorted(2, &three), vec![(state(0b0110, &[]), vec![0, 2]), (state(0b0001, &[]), vec![1])]);
        assert_eq!(sorted(1, &three), vec![(state(0, &[]), vec![0, 1, 2])]);
        // What two know together is what a third one knows.
        let joined: [(u128, &[usize]); 4] = [(0b110, &[]), (0b1111 << 60, &[]), (0b100, &[]), (0b101, &[])];
        let all_of_three = (state(0b100, &[]), vec![0, 2, 3]);
        assert_eq!(sorted(2, &joined), vec![all_of_three, (state(0b1111 << 60, &[]), vec![1])]);
        let apart: [(u128, &[usize]); 3] = [(0b1110, &[1]), (0b1110, &[2]), (0b0001, &[1])];
        assert_eq!(sorted(1, &apart), vec![(state(0, &[1]), vec![0, 2]), (state(0b1110, &[2]), vec![1])]);
        // Of many, the last ones go first, and no edge is lost.
        let many: Vec<(u128, &[usize])> = (0..MANY as u128 + 50).map(|known| (known, &[][..])).collect();
        let left = sorted(6, &many);
        assert_eq!(left.len(), 6);
        assert_eq!(left.iter().map(|(_, from)| from.len()).sum::<usize>(), many.len());
    }
}
