//! Joins paths that a condition parted and that differ in what they store into records and cells.
//!
//! A program that notes the flags of TCP in a flow's record, or that counts the packets of a wire, has two ways at each
//! element that do the same to the packet: n of them in a row are 2^n paths. Where both ways meet they become one path,
//! and what it stored is a [`Node::Select`] of what each of the two did. A number that one of them does not store keeps
//! the value that it has. Of two that differ by a constant, as counts do, the condition is a term of the sum: so it
//! does not matter in which order conditions are joined.

use super::expr::{Atom, Id, Node, Pool, RecWrite};
use super::filter::Factor;
use super::pairs::{Join, grouped, join_all};
use super::path::{Options, Path};
use super::path_state::PathState;
use super::simplify::Maker;
use ir::analysis::interval::IntervalSet;
use std::collections::{BTreeMap, BTreeSet};

/// Joins paths to one block.
pub(super) fn joined(pool: &mut Pool, paths: Vec<Path>, options: &Options<'_>) -> Vec<Path> {
    let besides = |path: &Path| {
        let state = PathState { records: vec![], cells: BTreeMap::new(), ..path.state.clone() };
        (state, path.values.clone())
    };
    let mut all = vec![];
    for mut group in grouped(paths, besides) {
        join_all(&mut group, &mut ByCondition(pool), options);
        all.append(&mut group);
    }
    all
}

/// Joins paths that one condition parted.
struct ByCondition<'p>(&'p mut Pool);

/// How two paths become one.
struct Parted {
    /// The place of the condition that parted them, in both filters.
    at: usize,
    /// The expression.
    of: Id,
    /// Its numbers on either path.
    sets: [IntervalSet; 2],
    /// What is stored: the records and places of the path that stores to more of them.
    places: Vec<RecWrite>,
}

impl Join for ByCondition<'_> {
    type How = Parted;

    fn how(&self, own: &Path, other: &Path) -> Option<Parted> {
        // Paths in one state have other ways to become one.
        if own.state == other.state {
            return None;
        }
        let at = own.filter.parted_by(&other.filter)?;
        let [Factor::Is(of, mine), Factor::Is(_, theirs)] = [&own.filter.0[at], &other.filter.0[at]] else {
            return None;
        };
        // What one path stores into a record that the other one does not have is no number of both.
        if matches!(self.0.node(*of), Node::Found(_)) {
            return None;
        }
        let (mine_stored, theirs_stored) = (&own.state.records, &other.state.records);
        let more = if mine_stored.len() < theirs_stored.len() { theirs_stored } else { mine_stored };
        let are_all = [mine_stored, theirs_stored].iter().all(|stored| are_among(stored, more));
        are_all.then(|| Parted { at, of: *of, sets: [mine.clone(), theirs.clone()], places: more.clone() })
    }

    fn join(&mut self, how: Parted, own: &mut Path, other: Path) {
        let Parted { at, of, sets: [mine, theirs], places } = how;
        let both = mine.union(&theirs);
        let states = [own.state.clone(), other.state.clone()];
        own.absorb(other);
        // The set with the least number decides, so that it does not matter which path came first.
        let is_mine_first = mine.min() < theirs.min();
        let (first, states) = match is_mine_first {
            true => (&mine, [&states[0], &states[1]]),
            false => (&theirs, [&states[1], &states[0]]),
        };
        let mut make = Maker { pool: &mut *self.0, facts: &own.facts };
        let is_first = make.is_in(of, first);
        let stored = places.into_iter().map(|place| {
            let [a, b] = states.map(|state| value(&mut make, state, &place));
            RecWrite { value: either(&mut make, is_first, a, b), ..place }
        });
        own.state.records = stored.collect();
        let cells: BTreeSet<u16> = states.iter().flat_map(|state| state.cells.keys().copied()).collect();
        let cells = cells.into_iter().map(|cell| {
            let [a, b] = states.map(|state| match state.cells.get(&cell) {
                Some(value) => *value,
                None => make.pool.atom(Atom::Cell(cell)),
            });
            (cell, either(&mut make, is_first, a, b))
        });
        own.state.cells = cells.collect();
        if both.covers(&IntervalSet::range(0, self.0.max(of))) {
            own.filter.0.remove(at);
        } else {
            own.filter.0[at] = Factor::Is(of, both);
        }
    }
}

/// One number where a condition holds, else the other.
fn either(make: &mut Maker<'_>, holds: Id, a: Id, b: Id) -> Id {
    let more = make.add(a, b, u64::MAX);
    match make.pool.constant(more) {
        Some(more) => make.add(b, holds, more),
        None => make.select(holds, a, b),
    }
}

/// Where a number is stored.
fn place(write: &RecWrite) -> (Id, u16, u16, u8) {
    (write.rec, write.table, write.offset, write.bytes)
}

/// Whether all of these places are stored to, in the same order.
fn are_among(stored: &[RecWrite], all: &[RecWrite]) -> bool {
    let mut all = all.iter();
    stored.iter().all(|write| all.any(|other| place(other) == place(write)))
}

/// What a path stores at a place; where it does not, what is there.
fn value(make: &mut Maker<'_>, state: &PathState, at: &RecWrite) -> Id {
    match state.records.iter().find(|write| place(write) == place(at)) {
        Some(write) => write.value,
        None => state.load_record(make, at.rec, at.table, at.offset, at.bytes),
    }
}
