//! What a packet of the fast path meets.

use super::ahead;
use super::prefix_lookup::{LEAST_LOOKUPS, is_prefix_lookup};
use crate::optimize::Counts;
use ir::analysis::order::Order;
use ir::{BlockId, Program, Term, Verified};
use std::collections::BTreeSet;

/// The shortest path from a block to a port, by the number of lookups of prefixes on it: its instructions and
/// the next block.
type Shortest = Vec<Option<(usize, Option<BlockId>)>>;

/// What a packet that passes all tests of a fast path meets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Met {
    /// What it meets.
    pub counts: Counts,
    /// The tables of prefixes that are asked, in order.
    pub tables: Vec<u16>,
    /// Its exit.
    pub port: u16,
}

/// For each entry, what a packet that passes all tests of its fast path meets; `None` where there is none. `fast` is
/// what [`super::add`] made of `program`, or has lookups in unions in their place, `weight` says of how many tables a
/// table of prefixes is one, and `seldom` are the exits that few packets take. The fast path has the lookups of the
/// path that it is a copy of, and of all paths with so many, the fewest instructions.
pub fn met(
    program: &Verified,
    fast: &Verified,
    weight: impl Fn(u16) -> usize,
    seldom: &BTreeSet<u16>,
) -> Vec<Option<Met>> {
    let usual = ahead(program, &Order::of(program), seldom);
    let lookups = program.entries.iter().map(|entry| usual[entry.index()].map_or(0, |ahead| ahead.lookups));
    let lookups: Vec<usize> = lookups.collect();
    let own = |term: &Term| match term {
        Term::Lookup { table, .. } if is_prefix_lookup(fast, term) => weight(*table),
        _ => 0,
    };
    let shortest = shortest(fast, lookups.iter().copied().max().unwrap_or(0), &own, seldom);
    let met = |(entry, lookups): (&BlockId, usize)| {
        (lookups >= LEAST_LOOKUPS).then(|| along(fast, *entry, lookups, &own, &shortest))?
    };
    fast.entries.iter().zip(lookups).map(met).collect()
}

/// For each block, the shortest paths with up to `most` lookups.
fn shortest(
    program: &Program,
    most: usize,
    own: &impl Fn(&Term) -> usize,
    seldom: &BTreeSet<u16>,
) -> Vec<Shortest> {
    let mut shortest: Vec<Shortest> = vec![vec![None; most + 1]; program.blocks.len()];
    for id in program.topological_order().into_iter().rev() {
        let block = program.block(id);
        let own = own(&block.term);
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

/// The shortest path with so many lookups.
fn along(
    program: &Program,
    entry: BlockId,
    lookups: usize,
    own: &impl Fn(&Term) -> usize,
    shortest: &[Shortest],
) -> Option<Met> {
    let mut met = Met { counts: Counts::default(), tables: vec![], port: 0 };
    let (mut id, mut left) = (entry, lookups);
    loop {
        let block = program.block(id);
        met.counts = met.counts.plus(&Counts::of_block(block));
        let (_, next) = (*shortest[id.index()].get(left)?)?;
        match block.term {
            Term::Emit(port) => return Some(Met { port, ..met }),
            Term::Lookup { table, .. } if is_prefix_lookup(program, &block.term) => met.tables.push(table),
            _ => {}
        }
        left = left.checked_sub(own(&block.term))?;
        id = next?;
    }
}
