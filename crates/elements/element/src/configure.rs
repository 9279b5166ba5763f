//! What an element learns when it is made: its name, arguments, wiring, worker, and the services of
//! the host.

use crate::nf::NfLink;
use click::config::{Args, Names};
use diag::{DiagnosticBuilder, Diagnostics, Span, Spanned};
use packet::MacAddr;
pub use port::Direction;
use port::Port;
use port::interface::Interface;
use std::any::Any;
use std::sync::Arc;

/// How many ports of an element are wired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Input ports.
    pub inputs: usize,
    /// Output ports.
    pub outputs: usize,
}

/// Who shares a piece of state; see [`Configure::shared`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// Elements of one worker.
    Worker,
    /// Elements of all workers.
    AllWorkers,
}

/// What the host offers to elements that are being made.
pub trait Services {
    /// Opens this worker's queue of a port. `name` is what the configuration says: a port of the chain
    /// file, a device, a PCI address. Several elements may open the same port, one for each direction.
    ///
    /// # Errors
    /// A sentence that says what is missing and what to do.
    fn open_port(&mut self, name: &str, direction: Direction) -> Result<Box<dyn Port>, String>;

    /// A way to this worker's instance of an NF that runs in a process of its own.
    ///
    /// # Errors
    /// A sentence that says that there is no such NF.
    fn open_nf(&mut self, name: &str) -> Result<Box<dyn NfLink>, String> {
        Err(format!("there is no NF `{name}` in a process of its own: chain files say `runs = \"process\"`"))
    }

    /// The station of that name in the chain file, which its NFs ask about neighbours; `None` where there is no such.
    fn l3_interface(&self, _name: &str) -> Option<Arc<Interface>> {
        None
    }

    /// The hardware address of a port that was opened.
    ///
    /// # Errors
    /// A sentence that says that it has none.
    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        Err(format!("port `{name}` has no hardware address"))
    }

    /// The capture file behind a port, in a direction, where it is one.
    fn port_file(&self, _name: &str, _direction: Direction) -> Option<std::path::PathBuf> {
        None
    }

    /// A file that the configuration names, relative to where the configuration lies.
    fn path(&self, name: &std::path::Path) -> std::path::PathBuf;

    /// The state registry: returns what stands under the key, or puts `made` there.
    fn shared_any(
        &mut self,
        scope: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Class of the element with that name in the flat configuration, looked up from the element
    /// `from` outwards; with its full name.
    fn element(&self, from: &str, name: &str) -> Option<(String, &'static str)>;

    /// Whether elements of that class keep packets that others push until they are pulled.
    fn is_queue(&self, _class: &str) -> bool {
        false
    }

    /// The queues next to the element with that name: the nearest downstream where it pushes its packets out
    /// of output 0, the nearest upstream where they are pulled; and whether they are downstream.
    fn queues_near(&self, _element: &str) -> (Vec<String>, bool) {
        (vec![], true)
    }
}

/// What an element is made from.
pub struct Configure<'a> {
    /// Its flat name.
    pub name: &'a str,
    /// Its configuration string.
    pub config: &'a Spanned,
    /// Where it is declared.
    pub span: Span,
    /// Its wired ports.
    pub shape: Shape,
    /// Number of the worker that it is made for.
    pub worker: usize,
    /// Number of workers.
    pub workers: usize,
    /// Names of addresses, ports and protocols.
    pub names: &'a dyn Names,
    /// Where mistakes go.
    pub diags: &'a mut Diagnostics,
    /// What the host offers.
    pub services: &'a mut dyn Services,
}

impl Configure<'_> {
    /// The arguments; declare each, then call `finish`.
    pub fn args(&mut self) -> Args<'_> {
        let what = self.name.to_string();
        Args::new(what, self.config, self.names, self.diags)
    }

    /// The arguments of an element that has a pattern for each output, and no other arguments. What is wrong with
    /// their number is recorded; `None` where there are others.
    pub fn patterns(&mut self) -> Option<Vec<Spanned>> {
        let mut args = self.args();
        let patterns = args.rest();
        if !args.finish() {
            return None;
        }
        if patterns.len() != self.shape.outputs {
            let message = format!("{} patterns for {} outputs", patterns.len(), self.shape.outputs);
            self.error(self.config.span, message).help("one pattern for each output");
        }
        Some(patterns)
    }

    /// Records a mistake.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> DiagnosticBuilder<'_> {
        self.diags.error(span, message)
    }

    /// The value of a result, or records its error.
    pub fn accept<T>(&mut self, span: Span, result: Result<T, impl ToString>) -> Option<T> {
        result.map_err(|error| drop(self.error(span, error.to_string()))).ok()
    }

    /// State that several elements share, by key: the first who asks makes it. Elements that belong
    /// together (a rewriter and its ICMP companion) use the flat name of one of them as the key. `None`
    /// when somebody else keeps state of another type under it.
    pub fn shared<T: Any + Send + Sync>(
        &mut self,
        scope: Scope,
        key: &str,
        make: impl FnOnce() -> T,
    ) -> Option<Arc<T>> {
        let mut make = Some(make);
        let key = format!("{key}: {}", std::any::type_name::<T>());
        let state = self.services.shared_any(scope, &key, &mut || match make.take() {
            Some(make) => Arc::new(make()),
            None => Arc::new(()),
        });
        state.downcast().ok()
    }

    /// A result's value; records its error at `span`.
    pub fn recorded<T>(&mut self, result: Result<T, impl ToString>, span: Span) -> Option<T> {
        self.accept(span, result)
    }

    /// A link to an NF in a process of its own. Records why there is none.
    pub fn open_nf(&mut self, name: &Spanned) -> Option<Box<dyn NfLink>> {
        let opened = self.services.open_nf(name.as_str());
        self.accept(name.span, opened)
    }

    /// Opens a port. Records why it cannot be opened.
    pub fn open_port(&mut self, name: &Spanned, direction: Direction) -> Option<Box<dyn Port>> {
        let opened = self.services.open_port(name.as_str(), direction);
        self.accept(name.span, opened)
    }
}
