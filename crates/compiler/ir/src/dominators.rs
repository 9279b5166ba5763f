//! Which blocks every way to a block passes.

use crate::program::{BlockId, Program};

/// The dominator tree of a program without cycles, whose blocks are all reached.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// When a walk over the tree comes to a block, and when it leaves it.
    walked: Vec<(u32, u32)>,
}

/// The tree's root, above all entries.
const ROOT: usize = usize::MAX;

impl Dominators {
    /// `order` has each block before those that may follow it.
    pub fn of(program: &Program, order: &[BlockId]) -> Dominators {
        let blocks = program.blocks.len();
        // The closest dominator of each block, and how deep it lies in the tree; of the root that is 0.
        let mut above: Vec<Option<usize>> = vec![None; blocks];
        let mut depth = vec![0u32; blocks];
        let meet = |above: &[Option<usize>], depth: &[u32], mut a: usize, mut b: usize| {
            while a != b {
                if a == ROOT || b == ROOT {
                    return ROOT;
                }
                let deeper = if depth[a] >= depth[b] { &mut a } else { &mut b };
                *deeper = above[*deeper].unwrap_or(ROOT);
            }
            a
        };
        for entry in &program.entries {
            above[entry.index()] = Some(ROOT);
        }
        for &block in order {
            let at = block.index();
            depth[at] = match above[at] {
                Some(ROOT) | None => 1,
                Some(parent) => depth[parent] + 1,
            };
            for to in program.block(block).term.successors() {
                let to = to.index();
                above[to] = Some(match above[to] {
                    None => at,
                    Some(other) => meet(&above, &depth, other, at),
                });
            }
        }
        let mut below: Vec<Vec<usize>> = vec![vec![]; blocks];
        let mut tops = vec![];
        for &block in order {
            match above[block.index()] {
                Some(ROOT) | None => tops.push(block.index()),
                Some(parent) => below[parent].push(block.index()),
            }
        }
        let (mut walked, mut time) = (vec![(0, 0); blocks], 0);
        let mut stack: Vec<(usize, bool)> = tops.into_iter().map(|top| (top, false)).collect();
        while let Some((at, done)) = stack.pop() {
            time += 1;
            if done {
                walked[at].1 = time;
                continue;
            }
            walked[at].0 = time;
            stack.push((at, true));
            stack.extend(below[at].iter().map(|next| (*next, false)));
        }
        Dominators { walked }
    }

    /// Whether every way to `block` passes `by`, which may be the block itself.
    pub fn dominates(&self, by: BlockId, block: BlockId) -> bool {
        let (by, block) = (self.walked[by.index()], self.walked[block.index()]);
        by.0 <= block.0 && block.1 <= by.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Block, Term, Value};
    use proptest::prelude::*;

    /// A program of such ways: from each block to later ones.
    fn program(ways: &[Vec<usize>], entries: &[usize]) -> Program {
        let block = |(at, to): (usize, &Vec<usize>)| {
            let later = |to: &usize| BlockId((at + 1 + to % (ways.len() - at).max(1)) as u32);
            let cases: Vec<(u64, BlockId)> = (0..).zip(to.iter().map(later)).collect();
            let term = match cases.last() {
                Some(&(_, last)) if at + 1 < ways.len() => {
                    let inside = cases.iter().filter(|case| case.1.index() < ways.len()).copied().collect();
                    Term::Switch(
                        Value(0),
                        inside,
                        if last.index() < ways.len() { last } else { BlockId(at as u32 + 1) },
                    )
                }
                _ => Term::Emit(0),
            };
            Block { params: vec![], insts: vec![], term }
        };
        Program {
            name: "ways".into(),
            outputs: 1,
            entries: entries.iter().map(|entry| BlockId((entry % ways.len()) as u32)).collect(),
            reasons: vec![],
            cells: vec![],
            tables: vec![],
            slow: vec![],
            blocks: ways.iter().enumerate().map(block).collect(),
        }
    }

    /// The blocks that are reached although one is not passed.
    fn reached(program: &Program, without: Option<BlockId>) -> Vec<bool> {
        let mut seen = vec![false; program.blocks.len()];
        let mut open: Vec<BlockId> = program.entries.clone();
        while let Some(block) = open.pop() {
            if Some(block) != without && !std::mem::replace(&mut seen[block.index()], true) {
                open.extend(program.block(block).term.successors());
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn a_dominator_is_on_every_way(
            ways in prop::collection::vec(prop::collection::vec(0usize..6, 0..4), 1..20),
            entries in prop::collection::vec(0usize..4, 1..3),
        ) {
            let program = program(&ways, &entries);
            let (order, all) = (program.topological_order(), reached(&program, None));
            let dominators = Dominators::of(&program, &order);
            for by in order.iter().copied() {
                let without = reached(&program, Some(by));
                for block in order.iter().copied() {
                    let expected = all[block.index()] && !without[block.index()];
                    prop_assert_eq!(dominators.dominates(by, block), expected, "{:?} {:?} {:?}", by, block, program);
                }
            }
        }
    }
}
