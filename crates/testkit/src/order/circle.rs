//! Circles: files, or sibling modules, that use each other.

use super::module::{Module, Written, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Some that use each other, directly or through others of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Circle {
    /// Files (from the crate's folder of sources), or modules (from the crate).
    pub members: BTreeSet<String>,
    /// The arrows between them, each with one name that makes it.
    pub arrows: Vec<String>,
}

/// An arrow's two ends.
type Ends = (String, String);

/// The circles of a crate: first those of files, then those of sibling modules that no circle of files shows.
///
/// # Panics
/// When a file of the crate cannot be read.
pub fn circles(root: &Path) -> Vec<Circle> {
    let modules = read(root);
    let folder = root.parent().expect("a file lies in a folder");
    let shown = |module: usize| {
        let file = modules[module].file.strip_prefix(folder).unwrap_or(&modules[module].file);
        file.display().to_string()
    };
    let mut files: BTreeMap<Ends, String> = BTreeMap::new();
    let mut siblings: BTreeMap<Ends, String> = BTreeMap::new();
    for (from, to, name) in arrows(&modules) {
        let ends = (shown(from), shown(to));
        if ends.0 != ends.1 {
            files.entry(ends).or_insert_with(|| name.clone());
        }
        if let Some(ends) = below_common(&modules, from, to) {
            siblings.entry(ends).or_insert(name);
        }
    }
    let mut found = components(&files);
    found.extend(components(&siblings));
    found
}

/// From which module to which, and by which name.
fn arrows(modules: &[Module]) -> Vec<(usize, usize, String)> {
    let mut all = vec![];
    for (from, module) in modules.iter().enumerate() {
        for path in &module.named {
            let to = defined_in(modules, from, path, 0);
            let name = path.last().cloned().unwrap_or_default();
            all.extend(to.into_iter().filter(|to| *to != from).map(|to| (from, to, name.clone())));
        }
    }
    all
}

/// What a path's segments led to so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Module(usize),
    ItemOf(usize),
}

/// The modules that may define what a path names; a path that ends at a module names nothing yet.
fn defined_in(modules: &[Module], from: usize, path: &Written, depth: usize) -> BTreeSet<usize> {
    let reached = resolve(modules, from, path, depth);
    reached
        .into_iter()
        .filter_map(|reached| match reached {
            Reached::ItemOf(module) => Some(module),
            Reached::Module(_) => None,
        })
        .collect()
}

fn resolve(modules: &[Module], from: usize, path: &Written, depth: usize) -> BTreeSet<Reached> {
    let Some((first, rest)) = path.split_first() else { return BTreeSet::new() };
    let mut reached: BTreeSet<Reached> = match first.as_str() {
        "crate" => BTreeSet::from([Reached::Module(0)]),
        "self" => BTreeSet::from([Reached::Module(from)]),
        "super" => BTreeSet::from([Reached::Module(modules[from].parent)]),
        name => look_up(modules, from, name, depth),
    };
    for segment in rest {
        let mut next = BTreeSet::new();
        for place in reached {
            match place {
                Reached::ItemOf(_) => drop(next.insert(place)),
                Reached::Module(module) if segment == "super" => {
                    next.insert(Reached::Module(modules[module].parent));
                }
                Reached::Module(module) => next.extend(look_up(modules, module, segment, depth)),
            }
        }
        reached = next;
    }
    reached
}

/// What a name may stand for in a module.
fn look_up(modules: &[Module], module: usize, name: &str, depth: usize) -> BTreeSet<Reached> {
    let mut found = BTreeSet::new();
    // Names that are brought in from each other's modules would be followed for ever.
    if depth > 16 {
        return found;
    }
    let here = &modules[module];
    found.extend(here.children.get(name).map(|child| Reached::Module(*child)));
    if here.items.contains(name) {
        found.insert(Reached::ItemOf(module));
    }
    for path in here.aliases.get(name).into_iter().flatten() {
        // `use a::a`: the name inside is another one.
        if path.len() > 1 || path.first().is_some_and(|first| first != name) {
            found.extend(resolve(modules, module, path, depth + 1));
        }
    }
    if found.is_empty() {
        for glob in &here.globs {
            for place in resolve(modules, module, glob, depth + 1) {
                if let Reached::Module(other) = place
                    && other != module
                {
                    found.extend(look_up(modules, other, name, depth + 1));
                }
            }
        }
    }
    found
}

/// The two modules, around or at `from` and `to`, that stand beside each other; none where one is around the
/// other.
fn below_common(modules: &[Module], from: usize, to: usize) -> Option<Ends> {
    let way = |mut module: usize| {
        let mut way = vec![];
        while module != 0 {
            way.push(module);
            module = modules[module].parent;
        }
        way.reverse();
        way
    };
    let (from, to) = (way(from), way(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let shown = |way: &[usize]| {
        let names: Vec<&str> = way.iter().map(|module| modules[*module].name.as_str()).collect();
        names.join("::")
    };
    (common < from.len() && common < to.len()).then(|| (shown(&from[..=common]), shown(&to[..=common])))
}

/// The sets of at least two that reach each other.
fn components(arrows: &BTreeMap<Ends, String>) -> Vec<Circle> {
    let mut forward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut backward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        forward.entry(from).or_default().push(to);
        backward.entry(to).or_default().push(from);
    }
    let reach = |start: &str, along: &BTreeMap<&str, Vec<&str>>| {
        let mut seen = BTreeSet::from([start.to_owned()]);
        let mut waiting = vec![start.to_owned()];
        while let Some(at) = waiting.pop() {
            for next in along.get(at.as_str()).into_iter().flatten() {
                if seen.insert((*next).to_owned()) {
                    waiting.push((*next).to_owned());
                }
            }
        }
        seen
    };
    let mut done = BTreeSet::new();
    let mut circles = vec![];
    for start in forward.keys() {
        if done.contains(*start) {
            continue;
        }
        let members: BTreeSet<String> =
            reach(start, &forward).intersection(&reach(start, &backward)).cloned().collect();
        done.extend(members.iter().cloned());
        if members.len() > 1 {
            let inside =
                arrows.iter().filter(|((from, to), _)| members.contains(from) && members.contains(to));
            let arrows = inside.map(|((from, to), name)| format!("{from} -> {to}: {name}")).collect();
            circles.push(Circle { members, arrows });
        }
    }
    circles
}

#[cfg(test)]
mod tests;
