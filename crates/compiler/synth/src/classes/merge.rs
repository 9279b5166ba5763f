//! Merges paths with the same behaviour.

use super::expr::{Id, Node, Pool};
use super::filter::Filter;
use super::path::{Done, Exit, Path};
use std::collections::HashMap;

/// Passes over the filters of paths with one behaviour.
const PASSES: usize = 8;
/// Filters that are compared with one another; with more, only neighbours are compared.
const MAX_COMPARED: usize = 400;

/// Joins filters that differ in one set, each with its data.
fn join_filters<T>(list: &mut Vec<(Filter, T)>, mut take: impl FnMut(&mut T, T)) {
    for _ in 0..PASSES {
        let before = list.len();
        let mut kept: Vec<(Filter, T)> = Vec::with_capacity(before);
        for (filter, what) in list.drain(..) {
            let from = kept.len().saturating_sub(MAX_COMPARED);
            let fits = kept[from..].iter().position(|(own, _)| own.joined(&filter).is_some());
            match fits.map(|at| at + from) {
                Some(at) => {
                    let (own, into) = &mut kept[at];
                    if let Some(joined) = own.joined(&filter) {
                        *own = joined;
                    }
                    take(into, what);
                }
                None => kept.push((filter, what)),
            }
        }
        *list = kept;
        if list.len() == before {
            return;
        }
    }
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

fn absorb(path: &mut Path, other: Path) {
    path.facts.join(&other.facts);
    path.counts.join(&other.counts);
    path.ways += other.ways;
    add_new(&mut path.wasted, other.wasted);
    add_new(&mut path.steps, other.steps);
}

/// Whether an expression depends on a table.
fn asks_tables(pool: &Pool, id: Id, seen: &mut HashMap<Id, bool>) -> bool {
    if let Some(known) = seen.get(&id) {
        return *known;
    }
    let asks = matches!(pool.node(id), Node::Found(_))
        || pool.children(id).into_iter().any(|child| asks_tables(pool, child, seen));
    seen.insert(id, asks);
    asks
}

/// Paths that reach one block: at most `apart` of those in the same state stay separate.
pub(super) fn arriving(pool: &Pool, paths: Vec<Path>, apart: usize) -> Vec<Path> {
    if paths.len() == 1 {
        return paths;
    }
    let mut groups: Vec<Vec<Path>> = vec![];
    let mut numbers = HashMap::new();
    for path in paths {
        let number = *numbers.entry((path.state.clone(), path.values.clone())).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(path),
            None => groups.push(vec![path]),
        }
    }
    let mut all = vec![];
    for group in groups {
        let mut list: Vec<(Filter, Path)> =
            group.into_iter().map(|path| (path.filter.clone(), path)).collect();
        join_filters(&mut list, absorb);
        let mut joined: Vec<Path> = list.into_iter().map(|(filter, path)| Path { filter, ..path }).collect();
        if joined.len() > apart {
            let filter =
                Filter::alternatives(joined.iter().map(|path| path.filter.clone()).collect(), |id| {
                    !asks_tables(pool, id, &mut HashMap::new())
                });
            let mut rest = joined.drain(..);
            if let Some(mut first) = rest.next() {
                rest.for_each(|path| absorb(&mut first, path));
                all.push(Path { filter, ..first });
            }
        } else {
            all.append(&mut joined);
        }
    }
    all
}

/// Paths that have ended: paths with the same exit and state are merged, as far as their filters allow.
pub(super) fn ended(pool: &Pool, done: Vec<Done>, apart: usize) -> Vec<Done> {
    let mut groups: Vec<(Exit, Vec<Path>)> = vec![];
    let mut numbers = HashMap::new();
    for Done { mut path, exit } in done {
        path.values.clear();
        let number = *numbers.entry((path.state.clone(), exit)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some((_, group)) => group.push(path),
            None => groups.push((exit, vec![path])),
        }
    }
    let ended = groups.into_iter().flat_map(|(exit, group)| {
        arriving(pool, group, apart).into_iter().map(move |path| Done { path, exit })
    });
    ended.collect()
}
