//! Code of their own for ways that part: copies of what is behind the place where they meet again.
//!
//! Behind a test the ways of packets part, and they meet again before the next element: the rewriter of a chain updates
//! the checksum of TCP or that of UDP, and the next one asks again which it is. Where ways meet, only what holds on each of
//! them is known: fields are read and written again. [`outcomes`] gives each way a copy of what is behind, where a packet
//! then reads and writes less.
//!
//! A program has a copy of each block for what packets know there ([`by_knowledge`]): that takes one walk.
//!
//! A lookup and its copies are one stage boundary ([`ir::Term::Lookup`]), so packets keep the order that they have without
//! copies. Where these copies would be too many, or there are none, forks are tried one after the other, from the start of the program on,
//! and the optimiser shows what the copies behind each save: of the most that a packet meets, else of what packets meet on
//! average. Only forks are tried whose ways meet before a field that the packet that meets most reads or writes again.

mod by_knowledge;
mod knowledge;

use crate::copy::{InPlaceOf, copy_from};
use crate::optimize::{Known, Report, is_bare_exit, next_blocks, optimize_rounds, optimize_with};
use ir::analysis::order::Order;
use ir::{Block, BlockId, Inst, Program, Term, Verified};
use packet::field::Field;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// A program with copies has at most this many times the instructions, and [`MORE`] on top.
const GROWTH: usize = 4;
/// The same for copies by what packets know: most of their instructions are removed again.
const GROWTH_BY_KNOWLEDGE: usize = 6;
const MORE: usize = 400;
/// The most instructions of programs with copies that are tried: less than a second.
const MOST_TRIED: usize = 200_000;
/// A larger program has no copies: its classes would be so many that a proof takes more than some seconds. Of the field's
/// orders of three, the largest have 2,626 and 2,629, and are proven in 26 and 14 s.
const MOST_INSTS: usize = 2_650;
/// The most instructions that the copies behind one fork add for each read and write that they save of the most that
/// packets meet.
const MOST_FOR_ONE: usize = 400;
/// The share of the reads and writes that packets meet on average that they have to save otherwise, for the share of
/// instructions that they add: with them, copies behind other forks may save more.
const LEAST_GAIN: f64 = 0.03;
/// The share that all copies together have to save of the most that packets meet. What they cost is the time of a
/// compilation and of a proof.
const ENOUGH: f64 = 0.2;
/// The same if the program with copies has at most [`SMALL`] instructions.
const ENOUGH_OF_SMALL: f64 = 0.05;
const SMALL: usize = 2_000;

/// The program with copies, and what the optimiser removed from it last; `None` where they are not worth it. `known` is
/// what it was optimised with.
pub fn outcomes(program: &Verified, known: &Known) -> Option<(Verified, Report)> {
    let known = &Known { has_copies: true, ..known.clone() };
    let before = Copied::of(program.clone(), known);
    if before.size > MOST_INSTS {
        return None;
    }
    // What has too many of them, or none, has those that are searched for.
    if let Some(copied) = by_knowledge::copied(&before.program, GROWTH_BY_KNOWLEDGE * before.size + MORE) {
        let copied = Verified::new(copied).ok().and_then(|copied| optimize_with(&copied, known).ok());
        if copied.is_some() {
            return copied;
        }
    }
    let mut search = Search { known, most: GROWTH * before.size + MORE, left: MOST_TRIED };
    let mut best: Option<Copied> = None;
    // Blocks behind a fork change with its copies, those before do not.
    let (mut from, mut has_changed) = (0, false);
    while search.left > 0 {
        let now = best.as_ref().unwrap_or(&before);
        if search.left < MOST_TRIED / 2 && now.saved(&before) < ENOUGH / 2.0 {
            return None;
        }
        match next_fork(&now.program, &known.seldom, from) {
            Some((place, at)) => match search.better(now, at) {
                Some(next) => (best, from, has_changed) = (Some(next), place, true),
                None => from = place + 1,
            },
            // Once more from the start, if something has changed.
            None if has_changed => (from, has_changed) = (0, false),
            None => break,
        }
    }
    let best = best?;
    let enough = if best.size <= SMALL { ENOUGH_OF_SMALL } else { ENOUGH };
    if best.saved(&before) < enough {
        return None;
    }
    optimize_with(&best.program, known).ok()
}

/// What limits the search for copies.
struct Search<'k> {
    known: &'k Known,
    /// The most instructions of a program with copies.
    most: usize,
    /// The instructions that may still be tried.
    left: usize,
}

impl Search<'_> {
    /// A program with copies for the ways behind one more fork, if it is better than without.
    fn better(&mut self, than: &Copied, at: Fork) -> Option<Copied> {
        let starts = starts(&than.program, at);
        let copied = starts.iter().skip(1).map(|start| than.program.order_from(&[*start]));
        let copied: usize = copied.map(|blocks| than.program.instructions(blocks)).sum();
        // The optimiser leaves most of it. What only one way leads to is copied, too, and removed at once.
        let too_large = self.most + self.most / 4;
        if copied > 2 * too_large {
            self.left = self.left.saturating_sub(than.size);
            return None;
        }
        let mut copied = Program::clone(&than.program);
        separate(&mut copied, at, &starts);
        let order = copied.topological_order();
        let size = copied.instructions(order.iter().copied());
        self.left = self.left.saturating_sub(if size > too_large { size / 8 } else { size });
        if size > too_large {
            return None;
        }
        copied.keep(&order);
        // The first walk shows whether anything is saved, the second one how much.
        let first = self.optimized(&Verified::new(copied).ok()?)?;
        if first.most >= than.most && first.mean >= than.mean {
            return None;
        }
        let next = self.optimized(&first.program)?;
        (next.size <= self.most && next.is_better_than(than)).then_some(next)
    }

    fn optimized(&self, program: &Verified) -> Option<Copied> {
        let (program, _) = optimize_rounds(program, self.known, 1).ok()?;
        Some(Copied::of(program, self.known))
    }
}

/// Where the ways of packets part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fork {
    /// They enter by different inputs.
    Entries,
    /// The test at the end of a block.
    Test(BlockId),
}

/// The next fork, from that place in the order on, whose ways meet again on the way of a packet that meets most reads and
/// writes, where it reads or writes something again behind that; and its place.
fn next_fork(program: &Program, seldom: &BTreeSet<u16>, from: usize) -> Option<(usize, Fork)> {
    let order = Order::of(program);
    let is_join = |id: BlockId| order.preds[id.index()] > 1 && !is_bare_exit(program.block(id));
    let mut forks: FxHashSet<Option<BlockId>> = FxHashSet::default();
    let ahead = ahead(program, &order.blocks, seldom);
    for path in program.entries.iter().map(|entry| path_from(&ahead, *entry)) {
        let joins =
            path.iter().zip(again_behind(program, &path)).filter(|(id, again)| *again && is_join(**id));
        forks.extend(joins.map(|(id, _)| order.dominator(*id)));
    }
    let all = [None].into_iter().chain(order.blocks.iter().copied().map(Some)).enumerate().skip(from);
    let (place, fork) = all.into_iter().find(|(_, fork)| forks.contains(fork))?;
    Some((place, fork.map_or(Fork::Entries, Fork::Test)))
}

/// For each block of a path, whether the path reads something there or behind it that it has read or written before, or
/// writes what it has written before.
fn again_behind(program: &Program, path: &[BlockId]) -> Vec<bool> {
    // The first and the last block with an access to a field, the second of which might be saved.
    let mut known: FxHashMap<(Field, bool), usize> = FxHashMap::default();
    let mut is_again = vec![false; path.len()];
    for (at, id) in path.iter().enumerate() {
        for (_, inst) in &program.block(*id).insts {
            let (field, writes) = match *inst {
                Inst::Load(field) => (field, false),
                Inst::Store(field, _) => (field, true),
                _ => continue,
            };
            if let Some(before) = known.insert((field, writes), at) {
                is_again[before + 1..=at].fill(true);
            }
            if writes {
                known.insert((field, false), at);
            }
        }
    }
    is_again
}

/// What lies ahead of a block on the path to a port that meets most.
#[derive(Clone, Copy)]
struct Ahead {
    /// Reads and writes, those of the block included.
    touches: usize,
    next: Option<BlockId>,
}

/// That of each block; `None` where no port is ahead but those of `seldom`.
fn ahead(program: &Program, order: &[BlockId], seldom: &BTreeSet<u16>) -> Vec<Option<Ahead>> {
    let mut ahead: Vec<Option<Ahead>> = vec![None; program.blocks.len()];
    for id in order.iter().rev() {
        let block = program.block(*id);
        let is_end = match &block.term {
            Term::Emit(port) => !seldom.contains(port),
            Term::EmitTo(..) => true,
            _ => false,
        };
        let end = is_end.then_some(Ahead { touches: 0, next: None });
        let next = block.term.successors().into_iter();
        let next = next.filter_map(|to| ahead[to.index()].map(|behind| Ahead { next: Some(to), ..behind }));
        let best = next.chain(end).max_by_key(|ahead| ahead.touches);
        ahead[id.index()] = best.map(|best| Ahead { touches: best.touches + touches(block), ..best });
    }
    ahead
}

/// The blocks of that path; none where no such port is ahead.
fn path_from(ahead: &[Option<Ahead>], start: BlockId) -> Vec<BlockId> {
    let next = |id: &BlockId| ahead[id.index()].and_then(|ahead| ahead.next);
    let start = ahead[start.index()].map(|_| start);
    std::iter::successors(start, next).collect()
}

/// Reads and writes of a block.
fn touches(block: &Block) -> usize {
    block.insts.iter().filter(|(_, inst)| matches!(inst, Inst::Load(_) | Inst::Store(..))).count()
}

/// A program with copies.
struct Copied {
    program: Verified,
    size: usize,
    /// The most reads and writes that packets meet: the sum over the entries.
    most: usize,
    /// Those that packets meet on average, likewise.
    mean: f64,
}

impl Copied {
    fn of(program: Verified, known: &Known) -> Copied {
        let order = program.topological_order();
        let ahead = ahead(&program, &order, &known.seldom);
        let most = program.entries.iter().filter_map(|entry| ahead[entry.index()]);
        Copied {
            size: program.instructions(order.iter().copied()),
            most: most.map(|ahead| ahead.touches).sum(),
            mean: mean(&program, &order, &ahead),
            program,
        }
    }

    /// The share that it saves of the most reads and writes that packets meet.
    fn saved(&self, of: &Copied) -> f64 {
        1.0 - self.most as f64 / of.most as f64
    }

    /// The share of instructions that it has more than another one.
    fn growth(&self, than: &Copied) -> f64 {
        self.size as f64 / than.size as f64 - 1.0
    }

    fn is_better_than(&self, other: &Copied) -> bool {
        let added = self.size.saturating_sub(other.size);
        if self.most < other.most && added <= MOST_FOR_ONE * (other.most - self.most) {
            return true;
        }
        let gain = 1.0 - self.mean / other.mean;
        self.most <= other.most && gain > (LEAST_GAIN * self.growth(other)).max(0.001)
    }
}

/// The reads and writes that a packet meets on its way to a port that packets usually take, if each of a test's outcomes
/// that lead to one is as frequent as the others.
fn mean(program: &Program, order: &[BlockId], ahead: &[Option<Ahead>]) -> f64 {
    let mut shares = vec![0.0; program.blocks.len()];
    for entry in &program.entries {
        shares[entry.index()] += 1.0;
    }
    let mut sum = 0.0;
    for id in order {
        let (block, share) = (program.block(*id), shares[id.index()]);
        sum += share * touches(block) as f64;
        let mut next = next_blocks(&block.term);
        next.retain(|to| ahead[to.index()].is_some());
        for to in &next {
            shares[to.index()] += share / next.len() as f64;
        }
    }
    sum
}

/// Where the ways behind a fork begin.
fn starts(program: &Program, at: Fork) -> Vec<BlockId> {
    match at {
        Fork::Entries => BTreeSet::from_iter(program.entries.iter().copied()).into_iter().collect(),
        Fork::Test(block) => next_blocks(&program.block(block).term),
    }
}

/// Gives each way behind a fork but the first code of its own.
fn separate(program: &mut Program, at: Fork, starts: &[BlockId]) {
    let copies: Vec<(BlockId, BlockId)> = starts
        .iter()
        .skip(1)
        .map(|start| (*start, copy_from(program, *start, InPlaceOf::default(), false)))
        .collect();
    let to = |id: BlockId| copies.iter().find(|(of, _)| *of == id).map_or(id, |(_, copy)| *copy);
    match at {
        Fork::Entries => program.entries.iter_mut().for_each(|entry| *entry = to(*entry)),
        Fork::Test(block) => program.blocks[block.index()].term.map_successors(to),
    }
}
