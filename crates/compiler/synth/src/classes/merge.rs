//! Merges paths with the same behaviour.

use super::expr::{Id, Node, Pool};
use super::filter::Filter;
use super::pairs::{Join, grouped, join_all};
use super::path::{Done, Options, Path};
use rustc_hash::FxHashMap;

/// Joins paths whose filters differ in one set.
struct OneSet;

impl Join for OneSet {
    type How = Filter;

    fn how(&self, own: &Path, other: &Path) -> Option<Filter> {
        own.filter.joined(&other.filter)
    }

    fn join(&mut self, filter: Filter, own: &mut Path, other: Path) {
        own.filter = filter;
        own.absorb(other);
    }
}

/// Whether an expression depends on a table.
fn asks_tables(pool: &Pool, id: Id, seen: &mut FxHashMap<Id, bool>) -> bool {
    if let Some(known) = seen.get(&id) {
        return *known;
    }
    let asks = matches!(pool.node(id), Node::Found(_))
        || pool.children(id).into_iter().any(|child| asks_tables(pool, child, seen));
    seen.insert(id, asks);
    asks
}

/// Paths that reach one block: at most `max_paths_apart` of those in the same state stay separate.
pub(super) fn arriving(pool: &mut Pool, mut paths: Vec<Path>, options: &Options<'_>) -> Vec<Path> {
    if paths.len() == 1 {
        return paths;
    }
    if options.stores_by_condition {
        paths = super::stores::joined(pool, paths, options);
    }
    let mut all = vec![];
    for mut joined in grouped(paths, |path| (path.state.clone(), path.values.clone())) {
        join_all(&mut joined, &mut OneSet, options);
        if joined.len() > options.max_paths_apart {
            let filters = joined.iter().map(|path| path.filter.clone()).collect();
            let filter =
                Filter::alternatives(filters, |id| !asks_tables(pool, id, &mut FxHashMap::default()));
            let mut rest = joined.drain(..);
            if let Some(mut first) = rest.next() {
                rest.for_each(|path| first.absorb(path));
                all.push(Path { filter, ..first });
            }
        } else {
            all.append(&mut joined);
        }
    }
    all
}

/// Paths that have ended: paths with the same exit and state are merged, as far as their filters allow.
pub(super) fn ended(pool: &mut Pool, mut done: Vec<Done>, options: &Options<'_>) -> Vec<Done> {
    done.iter_mut().for_each(|done| done.path.values.clear());
    // States that differ in what they store may become one.
    let state = |path: &Path| (!options.stores_by_condition).then(|| path.state.clone());
    let groups = grouped(done, |done| (state(&done.path), done.exit)).into_iter();
    let ended = groups.flat_map(|group| {
        let exit = group[0].exit;
        let paths = group.into_iter().map(|done| done.path).collect();
        arriving(pool, paths, options).into_iter().map(move |path| Done { path, exit })
    });
    ended.collect()
}
