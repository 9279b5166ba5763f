//! Element classes, and the list of all of them.

use crate::configure::Configure;
use crate::element::Element;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Who owns an element's state when a chain runs on several workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateScope {
    /// There is none.
    None,
    /// Each worker has its own; handlers add them up.
    PerWorker,
    /// Each worker has that of its own flows: packets of a flow, in both directions, must come to the worker that has it.
    PerFlow,
    /// All workers see one.
    Shared,
    /// One worker has it: packets of other workers are handed over to that one.
    OneWorker,
}

/// An element class: what the configuration language needs to know of it, and how to make one.
pub struct Class {
    /// Its name in configurations.
    pub name: &'static str,
    /// One line that says what it is for.
    pub summary: &'static str,
    /// Its page: purpose, ports, arguments, annotations, handlers, drop reasons, and each difference
    /// to Click with its reason. Markdown.
    pub page: &'static str,
    /// Click's port count code, such as `1/1-2` (`PORTS_1_1`, …).
    pub ports: &'static str,
    /// Click's processing code, such as `a/ah`.
    pub processing: &'static str,
    /// Click's flow code, such as `x/x`.
    pub flow: &'static str,
    /// Who owns its state.
    pub state: StateScope,
    /// Makes an element from its configuration; `None` when that has mistakes, which are recorded.
    pub make: fn(&mut Configure<'_>) -> Option<Box<dyn Element>>,
}

/// The classes, by folder.
const FOLDERS: &[&[&Class]] = &[
    crate::basic::CLASSES,
    crate::device::CLASSES,
    crate::ether::CLASSES,
    crate::filter::CLASSES,
    crate::io::CLASSES,
    crate::ip::CLASSES,
    crate::ip6::CLASSES,
    crate::queue::CLASSES,
    crate::resolve::CLASSES,
    crate::rewrite::CLASSES,
    crate::route::CLASSES,
    crate::script::CLASSES,
    crate::steer::CLASSES,
];

/// All classes.
pub fn all() -> impl Iterator<Item = &'static Class> {
    FOLDERS.iter().flat_map(|folder| folder.iter().copied())
}

/// The class with that name.
pub fn find(name: &str) -> Option<&'static Class> {
    static BY_NAME: LazyLock<HashMap<&str, &Class>> =
        LazyLock::new(|| all().map(|class| (class.name, class)).collect());
    BY_NAME.get(name).copied()
}

/// Whether elements of that class keep packets that others push until they are pulled.
pub fn is_queue(class: &str) -> bool {
    find(class).is_some_and(|class| class.processing.starts_with("h/l"))
}

/// Classes of Click and FastClick that have another name here, or nothing that they would do.
const ELSEWHERE: &[(&str, &str)] = &[
    ("LookupIPRoute", "Click calls it RadixIPLookup today: use that, or DirectIPLookup"),
    ("LookupIPRouteMP", "use RadixIPLookup: every worker has the whole table"),
    ("LookupIP6Route", "use RadixIP6Lookup or another of the lookups that `millrace elements` lists"),
    ("CounterMP", "use Counter: every worker counts for itself, and handlers add up"),
    ("AverageCounterMP", "use AverageCounter: every worker counts for itself, and handlers add up"),
    ("ToHost", "use ToDevice with an interface that the host has: `ToDevice(\"net_tap0,iface=tap0\")`"),
    ("FromHost", "use FromDevice with an interface that the host has: `FromDevice(\"net_tap0,iface=tap0\")`"),
    ("PollDevice", "use FromDevice: devices are always polled"),
];

/// What to use in place of a class of Click or FastClick that is not here.
pub fn instead_of(name: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(class, _)| *class == name).map(|(_, remedy)| *remedy)
}

/// The names of all classes.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|class| class.name)
}
