//! The order of a program's blocks, and which blocks lie on every way to a block.

use ir::{BlockId, Program};

/// Blocks in topological order with their dominators. The entries' dominator is no block.
pub struct Order {
    /// Every block that an entry reaches, each before those that may follow it.
    pub blocks: Vec<BlockId>,
    /// Edges that lead to each block; an entry has one more.
    pub preds: Vec<u32>,
    /// First and last place of a block's subtree in a walk over the tree of dominators.
    span: Vec<(u32, u32)>,
    /// The most borders between an entry and a block.
    borders: Vec<u32>,
}

/// Nodes are blocks by their number plus one; 0 is the root above the entries.
struct Tree {
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// A far ancestor: finding a common one takes a logarithm of the depth.
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
    /// The order of a verified program.
    pub fn of(program: &Program) -> Order {
        let count = program.blocks.len();
        let blocks = program.topological_order();
        let mut preds = vec![0; count];
        let mut borders = vec![0u32; count];
        let mut dominator: Vec<Option<u32>> = vec![None; count];
        for entry in &program.entries {
            preds[entry.index()] += 1;
            dominator[entry.index()] = Some(0);
        }
        let mut tree =
            Tree { parent: vec![0; count + 1], depth: vec![0; count + 1], jump: vec![0; count + 1] };
        for block in &blocks {
            let at = block.index();
            tree.add(at as u32 + 1, dominator[at].unwrap_or(0));
            let term = &program.blocks[at].term;
            let behind = borders[at] + u32::from(term.is_border());
            for to in term.successors() {
                let to = to.index();
                preds[to] += 1;
                borders[to] = borders[to].max(behind);
                let here = at as u32 + 1;
                dominator[to] = Some(dominator[to].map_or(here, |known| tree.common(known, here)));
            }
        }
        Order { span: spans(&blocks, &dominator), blocks, preds, borders }
    }

    /// Whether every way to `below` leads through `above`.
    pub fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let (first, last) = self.span[above.index()];
        (first..=last).contains(&self.span[below.index()].0)
    }

    /// Whether no border lies between two blocks of which the first dominates the second.
    pub fn same_side(&self, above: BlockId, below: BlockId) -> bool {
        self.borders[above.index()] == self.borders[below.index()]
    }
}

/// Numbers the tree of dominators so that a subtree is an interval.
fn spans(blocks: &[BlockId], dominator: &[Option<u32>]) -> Vec<(u32, u32)> {
    let mut size = vec![1u32; dominator.len() + 1];
    for block in blocks.iter().rev() {
        let below = size[block.index() + 1];
        size[dominator[block.index()].unwrap_or(0) as usize] += below;
    }
    // Where the next child of a node starts.
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
