//! The order of a program's blocks, and which blocks are on every path to a block.

use crate::program::{BlockId, Program, Term};

/// Blocks in topological order with their dominators. Entries have no dominator.
#[derive(Clone, Debug)]
pub struct Order {
    /// Every block that an entry reaches, each before those that may follow it.
    pub blocks: Vec<BlockId>,
    /// Edges that lead to each block; an entry has one more.
    pub preds: Vec<u32>,
    /// The number plus one of the last block that every path to a block leads through; 0 where there is none.
    above: Vec<u32>,
    /// First and last number of a block's subtree in a walk over the dominator tree.
    span: Vec<(u32, u32)>,
    /// The largest number of stage boundaries (lookups) on a path from an entry to a block.
    barriers: Vec<u32>,
}

/// Nodes are blocks by their number plus one; 0 is the root above the entries.
struct Tree {
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// A far ancestor: with it, finding a common ancestor takes logarithmic time in the depth.
    jump: Vec<u32>,
}

impl Tree {
    fn add(&mut self, node: u32, parent: u32) {
        let (at, up) = (node as usize, parent as usize);
        let far = self.jump[up] as usize;
        let even = self.depth[up] - self.depth[far] == self.depth[far] - self.depth[self.jump[far] as usize];
        self.parent[at] = parent;
        self.depth[at] = self.depth[up] + 1;
        self.jump[at] = if even { self.jump[far] } else { parent };
    }

    fn common(&self, mut a: u32, mut b: u32) -> u32 {
        if self.depth[a as usize] < self.depth[b as usize] {
            (a, b) = (b, a);
        }
        while self.depth[a as usize] > self.depth[b as usize] {
            let far = self.jump[a as usize];
            let fits = self.depth[far as usize] >= self.depth[b as usize];
            a = if fits { far } else { self.parent[a as usize] };
        }
        while a != b {
            let (far_a, far_b) = (self.jump[a as usize], self.jump[b as usize]);
            (a, b) = if far_a != far_b {
                (far_a, far_b)
            } else {
                (self.parent[a as usize], self.parent[b as usize])
            };
        }
        a
    }
}

impl Order {
    /// The order of a program without cycles, whose blocks exist.
    pub fn of(program: &Program) -> Order {
        Order::new(program, program.topological_order())
    }

    /// The same for a program whose lookups by prefix machine code does where they are: they are no stage
    /// boundaries.
    pub fn walked(program: &Program) -> Order {
        let is_barrier = |term: &Term| program.is_barrier(term, true);
        Order::with_barriers(program, program.topological_order(), is_barrier)
    }

    /// [`Order::of`], with a known order.
    pub fn new(program: &Program, blocks: Vec<BlockId>) -> Order {
        Order::with_barriers(program, blocks, Term::is_barrier)
    }

    fn with_barriers(program: &Program, blocks: Vec<BlockId>, is_barrier: impl Fn(&Term) -> bool) -> Order {
        let count = program.blocks.len();
        let mut barriers = vec![0u32; count];
        let mut dominator: Vec<Option<u32>> = vec![None; count];
        for entry in &program.entries {
            dominator[entry.index()] = Some(0);
        }
        let mut tree =
            Tree { parent: vec![0; count + 1], depth: vec![0; count + 1], jump: vec![0; count + 1] };
        for block in &blocks {
            let at = block.index();
            tree.add(at as u32 + 1, dominator[at].unwrap_or(0));
            let term = &program.blocks[at].term;
            let behind = barriers[at] + u32::from(is_barrier(term));
            for to in term.successors() {
                let to = to.index();
                barriers[to] = barriers[to].max(behind);
                let here = at as u32 + 1;
                dominator[to] = Some(dominator[to].map_or(here, |known| tree.common(known, here)));
            }
        }
        Order {
            above: dominator.iter().map(|dominator| dominator.unwrap_or(0)).collect(),
            span: spans(&blocks, &dominator),
            preds: edges_in(program, &blocks),
            blocks,
            barriers,
        }
    }

    /// The last block that every path to a block leads through.
    pub fn dominator(&self, of: BlockId) -> Option<BlockId> {
        self.above[of.index()].checked_sub(1).map(BlockId)
    }

    /// Whether every path to `below` leads through `above`.
    pub fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let (first, last) = self.span[above.index()];
        (first..=last).contains(&self.span[below.index()].0)
    }

    /// Whether there is no stage boundary between two blocks of which the first dominates the second.
    pub fn same_side(&self, above: BlockId, below: BlockId) -> bool {
        self.barriers[above.index()] == self.barriers[below.index()]
    }
}

/// Edges that lead to each block from these blocks; an entry has one more.
pub fn edges_in(program: &Program, blocks: &[BlockId]) -> Vec<u32> {
    let mut edges = vec![0; program.blocks.len()];
    let all = blocks.iter().flat_map(|block| program.block(*block).term.successors());
    all.chain(program.entries.iter().copied()).for_each(|to| edges[to.index()] += 1);
    edges
}

/// Numbers the dominator tree so that a subtree is an interval.
fn spans(blocks: &[BlockId], dominator: &[Option<u32>]) -> Vec<(u32, u32)> {
    let mut size = vec![1u32; dominator.len() + 1];
    for block in blocks.iter().rev() {
        let below = size[block.index() + 1];
        size[dominator[block.index()].unwrap_or(0) as usize] += below;
    }
    // The number of a node's next child.
    let mut next = vec![1u32; dominator.len() + 1];
    let mut span = vec![(0, 0); dominator.len()];
    for block in blocks {
        let (at, up) = (block.index(), dominator[block.index()].unwrap_or(0) as usize);
        let first = next[up];
        next[up] += size[at + 1];
        next[at + 1] = first + 1;
        span[at] = (first, first + size[at + 1] - 1);
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Block, Term, Value};
    use proptest::prelude::*;

    /// A program with these edges: from each block to later ones.
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
            blocks: ways.iter().enumerate().map(block).collect(),
            ..Program::default()
        }
    }

    /// The blocks that are reached without passing a given one.
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

    /// The program with lookups instead of switches in the blocks whose bit is set.
    fn with_barriers(mut program: Program, barriers: u32) -> Program {
        for (at, block) in program.blocks.iter_mut().enumerate() {
            if let (Term::Switch(_, cases, miss), true) = (&block.term, barriers >> (at % 32) & 1 == 1) {
                let hit = cases.first().map_or(*miss, |case| case.1);
                block.term = Term::Lookup {
                    table: 0,
                    key: vec![],
                    args: None,
                    rec: Value(1),
                    hit,
                    miss: *miss,
                    stage: None,
                };
            }
        }
        program
    }

    /// The largest number of stage boundaries on a path from a block to another.
    fn between(program: &Program, order: &Order, from: BlockId, to: BlockId) -> Option<u32> {
        let mut most: Vec<Option<u32>> = vec![None; program.blocks.len()];
        most[from.index()] = Some(0);
        for id in &order.blocks {
            let Some(here) = most[id.index()] else { continue };
            let term = &program.block(*id).term;
            for next in term.successors() {
                most[next.index()] = most[next.index()].max(Some(here + u32::from(term.is_barrier())));
            }
        }
        most[to.index()]
    }

    proptest! {
        #[test]
        fn two_blocks_are_on_the_same_side_where_no_border_lies_between(
            ways in prop::collection::vec(prop::collection::vec(0usize..6, 0..4), 1..20),
            entries in prop::collection::vec(0usize..4, 1..3),
            barriers: u32,
        ) {
            let program = with_barriers(program(&ways, &entries), barriers);
            let order = Order::of(&program);
            for (above, below) in order.blocks.iter().flat_map(|a| order.blocks.iter().map(move |b| (*a, *b))) {
                if order.dominates(above, below) {
                    let expected = between(&program, &order, above, below) == Some(0);
                    prop_assert_eq!(order.same_side(above, below), expected, "{:?} {:?}", above, below);
                }
            }
            for id in &order.blocks {
                let edges = order.blocks.iter().flat_map(|from| program.block(*from).term.successors());
                let all = edges.chain(program.entries.iter().copied());
                prop_assert_eq!(order.preds[id.index()] as usize, all.filter(|to| to == id).count());
            }
        }

        #[test]
        fn a_dominator_is_on_every_path(
            ways in prop::collection::vec(prop::collection::vec(0usize..6, 0..4), 1..20),
            entries in prop::collection::vec(0usize..4, 1..3),
        ) {
            let program = program(&ways, &entries);
            let (order, all) = (Order::of(&program), reached(&program, None));
            for by in order.blocks.iter().copied() {
                let without = reached(&program, Some(by));
                for block in order.blocks.iter().copied() {
                    let expected = all[block.index()] && !without[block.index()];
                    prop_assert_eq!(order.dominates(by, block), expected, "{:?} {:?} {:?}", by, block, program);
                }
            }
        }
    }
}
