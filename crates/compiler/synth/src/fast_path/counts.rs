//! What a packet of the fast path meets.

use super::{ahead, is_prefix_lookup};
use crate::optimize::Counts;
use ir::analysis::order::Order;
use ir::{BlockId, Program, Term, Verified};

/// The shortest path from a block to a port, by the number of lookups of prefixes on it: its instructions and
/// the next block.
type Shortest = Vec<Option<(usize, Option<BlockId>)>>;

/// What a packet that passes all tests of the fast path meets, the most of all entries. `fast` is what
/// [`super::add`] made of `program`: the fast path has the lookups of the path that it is a copy of, and of all
/// paths with so many, the fewest instructions.
pub fn counts(program: &Verified, fast: &Verified) -> Option<Counts> {
    let usual = ahead(program, &Order::of(program));
    let lookups = program.entries.iter().map(|entry| usual[entry.index()].map_or(0, |ahead| ahead.lookups));
    let lookups: Vec<usize> = lookups.collect();
    let most = lookups.iter().copied().max().filter(|most| *most >= super::LEAST_LOOKUPS)?;
    let shortest = shortest(fast, most);
    let entries = fast.entries.iter().zip(&lookups).filter(|(_, lookups)| **lookups >= super::LEAST_LOOKUPS);
    let met = entries.map(|(entry, lookups)| along(fast, *entry, *lookups, &shortest));
    met.reduce(|most, one| most.max(&one))
}

/// For each block, the shortest paths with up to `most` lookups.
fn shortest(program: &Program, most: usize) -> Vec<Shortest> {
    let mut shortest: Vec<Shortest> = vec![vec![None; most + 1]; program.blocks.len()];
    for id in program.topological_order().into_iter().rev() {
        let block = program.block(id);
        let own = usize::from(is_prefix_lookup(program, &block.term));
        let length = block.insts.len() + 1;
        let mut best: Shortest = vec![None; most + 1];
        if let Term::Emit(_) = block.term {
            best[0] = Some((length, None));
        }
        for to in block.term.successors() {
            for (lookups, behind) in shortest[to.index()].iter().enumerate() {
                let Some((insts, _)) = behind else { continue };
                let Some(best) = best.get_mut(lookups + own) else { continue };
                if best.is_none_or(|(known, _)| insts + length < known) {
                    *best = Some((insts + length, Some(to)));
                }
            }
        }
        shortest[id.index()] = best;
    }
    shortest
}

/// The counts of the shortest path with so many lookups.
fn along(program: &Program, entry: BlockId, lookups: usize, shortest: &[Shortest]) -> Counts {
    let (mut at, mut left, mut met) = (Some(entry), lookups, Counts::default());
    while let Some(id) = at {
        let block = program.block(id);
        met = met.plus(&Counts::of_block(block));
        at = shortest[id.index()].get(left).and_then(|best| *best).and_then(|(_, next)| next);
        left = left.saturating_sub(usize::from(is_prefix_lookup(program, &block.term)));
    }
    met
}
