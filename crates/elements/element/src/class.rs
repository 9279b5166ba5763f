//! Element classes.

use crate::configure::Configure;
use crate::element::{BoxElement, Opaque, Transparent};
pub use click::PortCodes;
use click::config::Args;

/// Who owns an element's state when a chain runs on several workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateScope {
    /// There is no state.
    None,
    /// Each worker has its own state; handlers add the values up.
    PerWorker,
    /// Each worker has the state of its own flows: both directions of a flow must reach its owner worker.
    PerFlow,
    /// All workers share one state.
    Shared,
    /// One worker has the state: other workers hand their packets over to it.
    OneWorker,
}

/// An element class: its description for the configuration language, and its constructor.
pub struct Class {
    /// Its name in configurations.
    pub name: &'static str,
    /// One line for the list of classes.
    pub summary: &'static str,
    /// Its page: purpose, ports, arguments, annotations, handlers, drop reasons, and each difference
    /// to Click with its reason. Markdown.
    pub page: &'static str,
    /// Its port counts, processing and flow codes.
    pub codes: PortCodes,
    /// Who owns its state.
    pub state: StateScope,
    /// Makes an element from its configuration; `None` if that has mistakes, which are recorded.
    pub make: fn(&mut Configure<'_>) -> Option<BoxElement>,
}

impl Class {
    /// Whether its elements queue pushed packets until they are pulled.
    pub fn is_queue(&self) -> bool {
        self.codes.processing.starts_with("h/l")
    }
}

impl Configure<'_> {
    /// Makes the transparent element that `read` returns for the arguments. `None` if there were mistakes; an
    /// argument that `read` does not read is one.
    pub fn transparent<E: Transparent + 'static>(
        &mut self,
        read: impl FnOnce(&mut Args<'_>) -> Option<E>,
    ) -> Option<BoxElement> {
        self.read(read).map(BoxElement::transparent)
    }

    /// Makes the opaque element that `read` returns for the arguments, in the same way.
    pub fn opaque<E: Opaque + 'static>(
        &mut self,
        read: impl FnOnce(&mut Args<'_>) -> Option<E>,
    ) -> Option<BoxElement> {
        self.read(read).map(BoxElement::opaque)
    }

    /// What `read` returns for the arguments, in the same way.
    pub fn read<E>(&mut self, read: impl FnOnce(&mut Args<'_>) -> Option<E>) -> Option<E> {
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
