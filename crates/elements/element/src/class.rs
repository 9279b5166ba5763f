//! Element classes.

use crate::configure::Configure;
use crate::element::{BoxElement, Opaque, Transparent};
pub use click::PortCodes;
use click::config::Args;

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
    /// What its ports are like.
    pub codes: PortCodes,
    /// Who owns its state.
    pub state: StateScope,
    /// Makes an element from its configuration; `None` when that has mistakes, which are recorded.
    pub make: fn(&mut Configure<'_>) -> Option<BoxElement>,
}

impl Class {
    /// Whether its elements keep packets that others push until they are pulled.
    pub fn is_queue(&self) -> bool {
        self.codes.processing.starts_with("h/l")
    }
}

impl Configure<'_> {
    /// Makes the transparent element that `read` gives for the arguments; `None` when there were mistakes. That all
    /// arguments were read is checked, too.
    pub fn transparent<E: Transparent + 'static>(
        &mut self,
        read: impl FnOnce(&mut Args<'_>) -> Option<E>,
    ) -> Option<BoxElement> {
        self.read(read).map(BoxElement::transparent)
    }

    /// Makes the opaque element that `read` gives for the arguments, in the same way.
    pub fn opaque<E: Opaque + 'static>(
        &mut self,
        read: impl FnOnce(&mut Args<'_>) -> Option<E>,
    ) -> Option<BoxElement> {
        self.read(read).map(BoxElement::opaque)
    }

    fn read<E>(&mut self, read: impl FnOnce(&mut Args<'_>) -> Option<E>) -> Option<E> {
        let mut args = self.args();
        let element = read(&mut args);
        let fine = args.finish();
        element.filter(|_| fine)
    }
}

/// The class with that name, in lists of classes.
pub fn find(lists: &[&[&'static Class]], name: &str) -> Option<&'static Class> {
    lists.iter().flat_map(|list| list.iter().copied()).find(|class| class.name == name)
}
