//! Paths that become one, two by two: what paths with one behaviour and paths that differ in what they store have in
//! common.

use super::path::{Options, Path};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Passes over a list.
const PASSES: usize = 8;
/// Paths that are compared with one another; with more, only neighbours are compared.
const MAX_COMPARED: usize = 400;

/// A way for two paths to become one.
pub(super) trait Join {
    /// How they do.
    type How;

    /// How two paths become one; `None` if they do not.
    fn how(&self, own: &Path, other: &Path) -> Option<Self::How>;

    /// Adds a path to another one.
    fn join(&mut self, how: Self::How, own: &mut Path, other: Path);
}

/// Joins paths, until none becomes one with another or the deadline is over.
pub(super) fn join_all(list: &mut Vec<Path>, by: &mut impl Join, options: &Options<'_>) {
    for _ in 0..PASSES {
        let before = list.len();
        let mut kept: Vec<Path> = Vec::with_capacity(before);
        for path in list.drain(..) {
            let from = if options.is_over() { kept.len() } else { kept.len().saturating_sub(MAX_COMPARED) };
            match kept[from..].iter_mut().find_map(|own| Some((by.how(own, &path)?, own))) {
                Some((how, own)) => by.join(how, own, path),
                None => kept.push(path),
            }
        }
        *list = kept;
        if list.len() == before {
            return;
        }
    }
}

/// Groups of equal keys, in the order of their first members.
pub(super) fn grouped<T, K: Eq + Hash>(all: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = vec![];
    let mut numbers = FxHashMap::default();
    for one in all {
        let number = *numbers.entry(key(&one)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}
