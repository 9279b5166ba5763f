//! Ways that do the same become one.

use super::expr::{Id, Node, Pool};
use super::filter::Filter;
use super::walk::{Done, Way};
use std::collections::HashMap;

/// Passes over the filters of one behaviour.
const PASSES: usize = 8;
/// Filters that are compared with one another; of more, only neighbours are.
const MAX_COMPARED: usize = 400;

/// Joins filters that differ in one set, each with what belongs to it.
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

fn absorb(way: &mut Way, other: Way) {
    way.facts.join(&other.facts);
    way.counts.join(&other.counts);
    way.ways += other.ways;
    for wasted in other.wasted {
        if !way.wasted.contains(&wasted) {
            way.wasted.push(wasted);
        }
    }
    for step in other.steps {
        if !way.steps.contains(&step) {
            way.steps.push(step);
        }
    }
}

/// Whether an expression is about what a table says.
fn asks_tables(pool: &Pool, id: Id, seen: &mut HashMap<Id, bool>) -> bool {
    if let Some(known) = seen.get(&id) {
        return *known;
    }
    let asks = matches!(pool.node(id), Node::Found(_))
        || pool.children(id).into_iter().any(|child| asks_tables(pool, child, seen));
    seen.insert(id, asks);
    asks
}

/// Ways that come to one block: of those in the same state, at most `apart` stay apart.
pub(super) fn arriving(pool: &Pool, ways: Vec<Way>, apart: usize) -> Vec<Way> {
    if ways.len() == 1 {
        return ways;
    }
    let mut groups: Vec<Vec<Way>> = vec![];
    let mut numbers = HashMap::new();
    for way in ways {
        let number = *numbers.entry((way.state.clone(), way.values.clone())).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(way),
            None => groups.push(vec![way]),
        }
    }
    let mut all = vec![];
    for group in groups {
        let mut list: Vec<(Filter, Way)> = group.into_iter().map(|way| (way.filter.clone(), way)).collect();
        join_filters(&mut list, absorb);
        let mut joined: Vec<Way> = list.into_iter().map(|(filter, way)| Way { filter, ..way }).collect();
        if joined.len() > apart {
            let filter = Filter::alternatives(joined.iter().map(|way| way.filter.clone()).collect(), |id| {
                !asks_tables(pool, id, &mut HashMap::new())
            });
            let mut rest = joined.drain(..);
            if let Some(mut first) = rest.next() {
                rest.for_each(|way| absorb(&mut first, way));
                all.push(Way { filter, ..first });
            }
        } else {
            all.append(&mut joined);
        }
    }
    all
}

/// Ways that have ended: those with the same exit and state are one, as far as their filters allow.
pub(super) fn ended(pool: &Pool, done: Vec<Done>, apart: usize) -> Vec<Done> {
    let mut groups: Vec<(super::Exit, Vec<Way>)> = vec![];
    let mut numbers = HashMap::new();
    for Done { mut way, exit } in done {
        way.values.clear();
        let number = *numbers.entry((way.state.clone(), exit)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some((_, group)) => group.push(way),
            None => groups.push((exit, vec![way])),
        }
    }
    let ended = groups.into_iter().flat_map(|(exit, group)| {
        arriving(pool, group, apart).into_iter().map(move |way| Done { way, exit })
    });
    ended.collect()
}
