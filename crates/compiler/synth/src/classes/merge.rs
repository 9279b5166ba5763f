//! Merges paths with the same behaviour.

use super::expr::{Id, Node, Pool};
use super::filter::Filter;
use super::path::{Done, Options, Path};
use std::collections::HashMap;
use std::hash::Hash;

/// Passes over the filters of paths with one behaviour.
const PASSES: usize = 8;
/// Filters that are compared with one another; with more, only neighbours are compared.
const MAX_COMPARED: usize = 400;

/// Joins paths whose filters differ in one set, until the deadline is over.
fn join_filters(list: &mut Vec<Path>, options: &Options<'_>) {
    for _ in 0..PASSES {
        let before = list.len();
        let mut kept: Vec<Path> = Vec::with_capacity(before);
        for path in list.drain(..) {
            if options.is_over() {
                kept.push(path);
                continue;
            }
            let from = kept.len().saturating_sub(MAX_COMPARED);
            let joined =
                kept[from..].iter_mut().find_map(|own| Some((own.filter.joined(&path.filter)?, own)));
            match joined {
                Some((filter, own)) => {
                    own.filter = filter;
                    absorb(own, path);
                }
                None => kept.push(path),
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
    path.met = path.met.max(&other.met);
    // A chain of sixteen firewalls has more paths than a number has room for.
    path.merged_paths = path.merged_paths.saturating_add(other.merged_paths);
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

/// Groups of equal keys, in the order of their first members.
fn grouped<T, K: Eq + Hash>(all: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = vec![];
    let mut numbers = HashMap::new();
    for one in all {
        let number = *numbers.entry(key(&one)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Paths that reach one block: at most `max_paths_apart` of those in the same state stay separate.
pub(super) fn arriving(pool: &Pool, paths: Vec<Path>, options: &Options<'_>) -> Vec<Path> {
    if paths.len() == 1 {
        return paths;
    }
    let mut all = vec![];
    for mut joined in grouped(paths, |path| (path.state.clone(), path.values.clone())) {
        join_filters(&mut joined, options);
        if joined.len() > options.max_paths_apart {
            let filters = joined.iter().map(|path| path.filter.clone()).collect();
            let filter = Filter::alternatives(filters, |id| !asks_tables(pool, id, &mut HashMap::new()));
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
pub(super) fn ended(pool: &Pool, mut done: Vec<Done>, options: &Options<'_>) -> Vec<Done> {
    done.iter_mut().for_each(|done| done.path.values.clear());
    let groups = grouped(done, |done| (done.path.state.clone(), done.exit)).into_iter();
    let ended = groups.flat_map(|group| {
        let exit = group[0].exit;
        let paths = group.into_iter().map(|done| done.path).collect();
        arriving(pool, paths, options).into_iter().map(move |path| Done { path, exit })
    });
    ended.collect()
}
