//! The element classes that configurations may name.

use click::PortCodes;
use element::Class;
use std::collections::HashMap;
use std::sync::LazyLock;

/// All classes.
pub fn all() -> impl Iterator<Item = &'static Class> {
    elements::CLASSES.iter().chain(elements_click::CLASSES).flat_map(|folder| folder.iter().copied())
}

/// The class with that name.
pub fn find(name: &str) -> Option<&'static Class> {
    static BY_NAME: LazyLock<HashMap<&str, &Class>> =
        LazyLock::new(|| all().map(|class| (class.name, class)).collect());
    BY_NAME.get(name).copied()
}

/// Whether elements of that class store pushed packets until they are pulled.
pub fn is_queue(class: &str) -> bool {
    find(class).is_some_and(Class::is_queue)
}

/// Whether elements of that class stop sources while they are full, as those of Click that have a full notifier.
pub fn stops_sources(class: &str) -> bool {
    matches!(class, "Queue" | "FullNoteQueue" | "QuickNoteQueue" | "ThreadSafeQueue")
}

/// Classes of Click and FastClick that have another name here, or no use here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("LookupIPRoute", "Click calls it RadixIPLookup today: use that, or DirectIPLookup"),
    ("LookupIPRouteMP", "use RadixIPLookup: every worker has the whole table"),
    ("AverageCounterMP", "use AverageCounter: every worker counts for itself, and handlers add up"),
];

/// The replacement for a class of Click or FastClick that does not exist here.
pub fn instead_of(name: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(class, _)| *class == name).map(|(_, remedy)| *remedy)
}

/// The names of all classes.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|class| class.name)
}

/// The element classes as the configuration language looks them up.
pub struct KnownClasses;

impl click::Classes for KnownClasses {
    fn is_known(&self, name: &str) -> bool {
        find(name).is_some()
    }

    fn names(&self) -> Vec<String> {
        names().map(str::to_string).collect()
    }

    fn instead_of(&self, name: &str) -> Option<String> {
        instead_of(name).map(str::to_string)
    }

    fn codes(&self, name: &str) -> Option<PortCodes> {
        find(name).map(|class| class.codes)
    }

    fn keeps_flows(&self, name: &str) -> bool {
        let rewrites = elements::rewrite::CLASSES.iter().any(|known| known.name == name);
        (rewrites && name.ends_with("Rewriter")) || name == "IPReassembler"
    }
}
