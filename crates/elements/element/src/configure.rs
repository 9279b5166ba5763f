//! What an element is made from: its name, arguments, wiring, worker, and the services of the host.

use crate::nf::NfLink;
use click::config::{Args, Names, unquote};
use diag::{DiagnosticBuilder, Diagnostics, Span, Spanned};
use packet::MacAddr;
pub use port::Direction;
use port::Port;
use port::interface::Interface;
use std::any::Any;
use std::sync::Arc;

/// Numbers of wired ports of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Input ports.
    pub inputs: usize,
    /// Output ports.
    pub outputs: usize,
}

/// Which elements share a state; see [`Configure::shared`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// Elements of one worker.
    Worker,
    /// Elements of all workers.
    AllWorkers,
}

/// What this machine lacks for a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingDevice {
    /// The fact, as a sentence.
    pub message: String,
    /// The remedy.
    pub help: String,
}

/// The services of the host for elements that are being made.
pub trait Services {
    /// Opens this worker's queue of a port. `name` is a port of the chain file, a device or a PCI address.
    /// Several elements may open the same port, one for each direction.
    ///
    /// # Errors
    /// A sentence that states what is missing and what to do.
    fn open_port(&mut self, name: &str, direction: Direction) -> Result<Box<dyn Port>, String>;

    /// What this machine lacks for the port that was opened last, in a check for another machine: the port
    /// opened nothing. Each device is returned once.
    fn take_missing(&mut self) -> Option<MissingDevice> {
        None
    }

    /// A link to this worker's instance of an NF in a process of its own.
    ///
    /// # Errors
    /// A sentence that states that there is no such NF.
    fn open_nf(&mut self, name: &str) -> Result<Box<dyn NfLink>, String> {
        Err(format!("there is no NF `{name}` in a process of its own: chain files say `runs = \"process\"`"))
    }

    /// The L3 interface of that name in the chain file, which resolves neighbours for NFs; `None` if there is
    /// none.
    fn l3_interface(&self, _name: &str) -> Option<Arc<Interface>> {
        None
    }

    /// The hardware address of a port that was opened.
    ///
    /// # Errors
    /// A sentence that states that it has none.
    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        Err(format!("port `{name}` has no hardware address"))
    }

    /// The capture file of a port in a direction, if the port is one.
    fn port_file(&self, _name: &str, _direction: Direction) -> Option<std::path::PathBuf> {
        None
    }

    /// The path of a file that the configuration names, relative to the configuration's folder.
    fn path(&self, name: &std::path::Path) -> std::path::PathBuf;

    /// The state registry: returns the state of the key, and makes it if there is none.
    fn shared_any(
        &mut self,
        scope: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Full name and class of an element in the flat configuration. The name is looked up from the element
    /// `from` outwards.
    fn element(&self, from: &str, name: &str) -> Option<(String, &'static str)>;

    /// Counts the mistake that is recorded next as one that the machine makes, not the configuration: what it
    /// names is busy, or a right is missing.
    fn count_refusal_by_machine(&mut self) {}

    /// Whether `name` is a compound element, seen from the element `from`.
    fn is_compound(&self, _from: &str, _name: &str) -> bool {
        false
    }

    /// Whether this is a check, in which elements open nothing.
    fn opens_nothing(&self) -> bool {
        false
    }

    /// Whether an element of class `class` names `element` (its full name) in its configuration.
    fn is_named_by(&self, _element: &str, _class: &str) -> bool {
        false
    }

    /// The number of the NF that an element belongs to, by its full name. Each instance of an NF has its own.
    fn nf(&self, _element: &str) -> usize {
        0
    }

    /// Whether elements of that class queue pushed packets until they are pulled.
    fn is_queue(&self, _class: &str) -> bool {
        false
    }

    /// The queues in which all packets end that an element pushes out of output 0, if all of them tell when they are
    /// full; none if packets may end elsewhere.
    fn queues_that_stop(&self, _element: &str) -> Vec<String> {
        vec![]
    }

    /// The queues next to an element, and whether they are downstream: the nearest downstream if it pushes
    /// packets out of output 0, the nearest upstream if they are pulled.
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
    /// The list of mistakes.
    pub diags: &'a mut Diagnostics,
    /// The services of the host.
    pub services: &'a mut dyn Services,
}

impl Configure<'_> {
    /// The arguments; declare each, then call `finish`.
    pub fn args(&mut self) -> Args<'_> {
        let what = self.name.to_string();
        Args::new(what, self.config, self.names, self.diags)
    }

    /// The arguments of an element that has a pattern for each output and no other arguments, and what `read`
    /// returns for each; `None` if there were mistakes.
    pub fn patterns<P>(
        &mut self,
        read: impl Fn(&Spanned, &dyn Names, &mut Diagnostics) -> Option<P>,
    ) -> Option<(Vec<Spanned>, Vec<P>)> {
        let errors = self.diags.errors();
        let mut args = self.args();
        let patterns = args.rest();
        if !args.finish() {
            return None;
        }
        if patterns.len() != self.shape.outputs {
            let message = format!("{} patterns for {} outputs", patterns.len(), self.shape.outputs);
            self.error(self.config.span, message).help("one pattern for each output");
        }
        let read: Vec<P> =
            patterns.iter().filter_map(|text| read(&unquote(text), self.names, self.diags)).collect();
        (self.diags.errors() == errors).then_some((patterns, read))
    }

    /// Records a mistake.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> DiagnosticBuilder<'_> {
        self.diags.error(span, message)
    }

    /// The value of a result, or records its error.
    pub fn accept<T>(&mut self, span: Span, result: Result<T, impl ToString>) -> Option<T> {
        result.inspect_err(|error| _ = self.error(span, error.to_string())).ok()
    }

    /// The flat name and the class of another element. Records that there is none.
    pub fn element(&mut self, name: &Spanned) -> Option<(String, &'static str)> {
        let found = self.services.element(self.name, name.as_str());
        if found.is_none() {
            self.error(name.span, format!("there is no element `{name}`"));
        }
        found
    }

    /// State that several elements share, by key and type: the first call makes it. Elements that belong
    /// together, such as a rewriter and its ICMP companion, use the flat name of one of them as the key.
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

    /// A link to an NF in a process of its own. Records why there is none.
    pub fn open_nf(&mut self, name: &Spanned) -> Option<Box<dyn NfLink>> {
        let opened = self.services.open_nf(name.as_str());
        self.accept(name.span, opened)
    }

    /// Opens a port. Records why it cannot be opened, or not on this machine.
    pub fn open_port(&mut self, name: &Spanned, direction: Direction) -> Option<Box<dyn Port>> {
        let opened = self.services.open_port(name.as_str(), direction);
        if let Some(missing) = self.services.take_missing() {
            self.diags.warning(name.span, missing.message).help(missing.help);
        }
        self.accept(name.span, opened)
    }
}
