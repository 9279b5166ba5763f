//! What a packet of the fast path meets.

use super::{ahead, is_prefix_lookup};
use crate::optimize::Counts;
use ir::analysis::order::Order;
use ir::{BlockId, Program, Term, Verified};
use std::collections::BTreeSet;

/// The shortest path from a block to a port, by the number of lookups of prefixes on it: its instructions and
/// the next block.
type Shortest = Vec<Option<(usize, Option<BlockId>)>>;

/// For each entry, what a packet that passes all tests of the fast path meets; `None` where there is none. `fast`
/// is what [`super::add`] made of `program`, and `seldom` are the exits that few packets take. The fast path has
/// the lookups of the path that it is a copy of, and of all paths with so many, the fewest instructions.
pub fn met(program: &Verified, fast: &Verified, seldom: &BTreeSet<u16>) -> Vec<Option<Counts>> {
    let usual = ahead(program, &Order::of(program), seldom);
    let lookups = program.entries.iter().map(|entry| usual[entry.index()].map_or(0, |ahead| ahead.lookups));
    let lookups: Vec<usize> = lookups.collect();
    let shortest = shortest(fast, lookups.iter().copied().max().unwrap_or(0), seldom);
    let met = |(entry, lookups): (&BlockId, usize)| {
        (lookups >= super::LEAST_LOOKUPS).then(|| along(fast, *entry, lookups, &shortest))
    };
    fast.entries.iter().zip(lookups).map(met).collect()
}

/// For each block, the shortest paths with up to `most` lookups.
fn shortest(program: &Program, most: usize, seldom: &BTreeSet<u16>) -> Vec<Shortest> {
    let mut shortest: Vec<Shortest> = vec![vec![None; most + 1]; program.blocks.len()];
    for id in program.topological_order().into_iter().rev() {
        let block = program.block(id);
        let own = usize::from(is_prefix_lookup(program, &block.term));
        let length = block.insts.len() + 1;
        let mut best: Shortest = vec![None; most + 1];
        if matches!(&block.term, Term::Emit(port) if !seldom.contains(port)) {
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
