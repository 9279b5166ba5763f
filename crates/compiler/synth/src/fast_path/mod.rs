//! A fast path: the usual path through a chain of routers, as straight code in front of the program.
//!
//! A chain of routers asks each router's table for the same destination, and branches on each answer. What is
//! left to do on the usual path is little, and it hangs on few tests. [`add`] finds that path, the one with the
//! most lookups of one key that ends at a port, and puts a copy of it in front of the block where it begins:
//!
//! 1. tests of the packet (`guard`), each once, and of several lower bounds of a value only the largest;
//! 2. the lookups, one behind the other, each with the tests of its record's numbers;
//! 3. all effects: the packet's final state.
//!
//! Where the path does something that cannot be copied, as to sum a header that was written or to look a flow up, the
//! copy ends behind the lookups before it, and goes on in a copy of what follows; the path has another one behind
//! (`segments`).
//!
//! Nothing is changed before the last test. A packet that fails one goes on at the block as if there was no
//! fast path, so a copy needs nothing from the original but where it begins. Machine code does the lookups of
//! such a row as one ([`ir`] has no instruction for it: the row says what is looked up).
//!
//! There is no fast path where a path has fewer than two such lookups without something between that creates
//! records, changes them, sums what was written, or reads what only the machine knows. Paths are chosen by the program
//! alone, not by counts.

mod assemble;
mod counts;
mod frames;
mod packet_state;
mod prefix_lookup;
mod segments;
mod walk;

pub use counts::{Met, met};

use crate::optimize::{self, Known};
use assemble::Ends;
use ir::analysis::order::Order;
use ir::{BlockId, Program, Term, Verified};
use prefix_lookup::{LEAST_LOOKUPS, is_prefix_lookup};
use std::collections::{BTreeMap, BTreeSet};
use walk::Defined;

/// Longer paths have no fast path: the work is bounded.
const MOST_INSTS: usize = 5_000;
/// Copies for frames have at most this many instructions together, and at most twice those of the program.
const MOST_COPIED: usize = 20_000;

/// The program with a fast path for each entry that has one; `None` where none has. `known` is what the
/// program was optimised with. The result is for machine code that walks prefix tables itself.
pub fn add(program: &Verified, known: &Known) -> Option<Verified> {
    let direct = with_paths(program, &known.seldom, true);
    // Where it is known that packets are frames, a fast path may have more of the lookups.
    let framed = for_frames(program, known, direct.as_ref().map_or(&[], |direct| &direct.lookups));
    let of_frames = framed.as_ref().and_then(|program| with_paths(program, &known.seldom, true));
    let lookups = |with: &Option<WithPaths>| with.as_ref().map_or(0, |with| with.lookups.iter().sum());
    let best = match lookups(&of_frames) > lookups(&direct) {
        true => [of_frames, direct],
        false => [direct, of_frames],
    };
    let known = Known { is_walked: true, ..known.clone() };
    // What does not verify is as if there was no path; the optimiser's own results are always right. A copy behind a
    // segment may know less of where headers are than what it is a copy of: then paths are only those to a port.
    let finish = |with: WithPaths| optimize::finished(&Verified::new(with.program).ok()?, &known).ok();
    let to_ports = || {
        let of_frames = framed.as_ref().and_then(|program| with_paths(program, &known.seldom, false));
        [of_frames, with_paths(program, &known.seldom, false)].into_iter().flatten().find_map(finish)
    };
    best.into_iter().flatten().find_map(finish).or_else(to_ports)
}

/// A program with fast paths.
struct WithPaths {
    program: Program,
    /// For each entry, the lookups that its fast path does; 0 where it has none.
    lookups: Vec<usize>,
}

/// The program with fast paths, if it can have some; without `has_segments`, only with those that end at a port.
fn with_paths(program: &Verified, seldom: &BTreeSet<u16>, has_segments: bool) -> Option<WithPaths> {
    let mut now: Program = Program::clone(program);
    let order = Order::of(program);
    let ahead = ahead(program, &order, seldom);
    let insts = program.blocks.iter().flat_map(|block| &block.insts);
    let defined: Defined = insts.filter_map(|(value, inst)| Some(((*value)?, *inst))).collect();
    let mut left = most_copied(program);
    // The first blocks of fast paths, by where they begin.
    let mut heads: BTreeMap<BlockId, BlockId> = BTreeMap::new();
    let mut lookups = vec![];
    for entry in &program.entries {
        let path = best_path(program, *entry, &ahead);
        let mut done = 0;
        // From the last one: what follows the others is copied with those behind it.
        for segment in segments::segments(program, &defined, &path, &order).into_iter().rev() {
            let number = segment.walk.in_rows();
            if heads.contains_key(&segment.start) {
                done += number;
                continue;
            }
            let ends = match segment.end {
                None => Ends::AtPort,
                Some(_) if !has_segments => continue,
                Some(end) => {
                    let end = heads.get(&end).copied().unwrap_or(end);
                    let Some(rest) = left.checked_sub(now.instructions(now.order_from(&[end]))) else {
                        continue;
                    };
                    left = rest;
                    Ends::Before(end)
                }
            };
            done += number;
            heads.insert(segment.start, assemble::prepend(&mut now, segment.start, segment.walk, ends)?);
        }
        lookups.push(done);
    }
    (!heads.is_empty()).then_some(WithPaths { program: now, lookups })
}

/// How many instructions may be copied.
fn most_copied(program: &Program) -> usize {
    MOST_COPIED.min(2 * program.instructions(program.topological_order()))
}

/// The program with a copy for frames of each entry that is worth a fast path, and has none with all lookups of
/// its best path; `have` are the lookups of those that there are. `None` where there is no such entry.
fn for_frames(program: &Verified, known: &Known, have: &[usize]) -> Option<Verified> {
    let mut now: Program = Program::clone(program);
    let ahead = ahead(program, &Order::of(program), &known.seldom);
    let is_wanted = |entry: &usize| {
        let start = program.entries[*entry];
        let best = ahead[start.index()].as_ref().map_or(0, |ahead| ahead.lookups);
        have.get(*entry).copied().unwrap_or(0) < best && !best_path(program, start, &ahead).is_empty()
    };
    let wanted = (0..program.entries.len()).filter(is_wanted);
    let mut left = most_copied(program);
    let split = wanted.filter(|entry| frames::split(&mut now, *entry, &mut left).is_some()).count();
    if split == 0 {
        return None;
    }
    optimize::optimize_with(&Verified::new(now).ok()?, known).ok().map(|(program, _)| program)
}

/// What lies ahead of a block on its best path to a port: lookups of prefixes, and instructions with the ends
/// of blocks.
#[derive(Clone, Copy)]
struct Ahead {
    lookups: usize,
    insts: usize,
    next: Option<BlockId>,
}

impl Ahead {
    fn is_better_than(&self, other: &Ahead) -> bool {
        (self.lookups, other.insts) > (other.lookups, self.insts)
    }
}

/// For each block, its best path to a port that is not one of those that few packets take; `None` where no such
/// port is ahead.
fn ahead(program: &Program, order: &Order, seldom: &BTreeSet<u16>) -> Vec<Option<Ahead>> {
    let mut ahead: Vec<Option<Ahead>> = vec![None; program.blocks.len()];
    for id in order.blocks.iter().rev() {
        let block = program.block(*id);
        let mut next = block.term.successors();
        if let Term::Lookup { hit, .. } = block.term {
            next = vec![hit];
        }
        let is_end = matches!(&block.term, Term::Emit(port) if !seldom.contains(port));
        let mut best: Option<Ahead> = is_end.then_some(Ahead { lookups: 0, insts: 0, next: None });
        for to in next {
            let Some(behind) = ahead[to.index()] else { continue };
            let this = Ahead { next: Some(to), ..behind };
            if best.is_none_or(|best| this.is_better_than(&best)) {
                best = Some(this);
            }
        }
        ahead[id.index()] = best.map(|best| Ahead {
            lookups: best.lookups + usize::from(is_prefix_lookup(program, &block.term)),
            insts: best.insts + block.insts.len() + 1,
            ..best
        });
    }
    ahead
}

/// The blocks of the best path from an entry; empty where it has none that is worth it.
fn best_path(program: &Program, entry: BlockId, ahead: &[Option<Ahead>]) -> Vec<BlockId> {
    let is_worth_it = |ahead: &Ahead| ahead.lookups >= LEAST_LOOKUPS && ahead.insts <= MOST_INSTS;
    if !ahead[entry.index()].as_ref().is_some_and(is_worth_it) {
        return vec![];
    }
    let next = |id: &BlockId| ahead[id.index()].and_then(|ahead| ahead.next);
    let path: Vec<BlockId> = std::iter::successors(Some(entry), next).collect();
    debug_assert!(path.last().is_some_and(|last| matches!(program.block(*last).term, Term::Emit(_))));
    path
}
