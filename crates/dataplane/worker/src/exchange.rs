//! Exchanges elements of a running chain for elements with another configuration.
//!
//! Writing the handler `config` of an element without state builds another element of its class with its
//! program and tables, on the thread of the caller. Each worker exchanges the element between two bursts;
//! until then packets run through the old one. No other element is rebuilt. The fused region that contains
//! the element is compiled again only if the program differs ([`crate::fusion`]): other rules in its tables
//! need no new program.

use crate::graph::{Lowered, Node};
use crate::mailbox::{Mailbox, Replacement};
use crate::texts::ConfigurationTexts;
use click::config::NameTable;
use codegen::Engine;
use diag::{Diagnostics, SourceMap, Spanned};
use element::configure::Direction;
use element::{BoxElement, Class, Configure, Handler, HandlerAccess, Scope, Services, Shape, StateScope};
use ir::{Program, Verified};
use port::Port;
use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// The longest time between two bursts; a worker that needs longer is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// A state that elements share.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// The state that elements of a chain share, by worker (if it belongs to one) and key.
#[derive(Default)]
pub struct SharedState(HashMap<(Option<usize>, String), Shared>);

impl SharedState {
    /// The state with this key, in the scope of this worker; the first caller makes it.
    pub fn get(
        &mut self,
        worker: usize,
        scope: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Shared,
    ) -> Shared {
        let owner = (scope == Scope::Worker).then_some(worker);
        Arc::clone(self.0.entry((owner, key.to_string())).or_insert_with(make))
    }
}

/// The context for building elements of a chain again.
pub struct Live {
    names: NameTable,
    folder: PathBuf,
    workers: usize,
    is_evaluated: bool,
    elements: Vec<Option<LiveElement>>,
    texts: ConfigurationTexts,
}

/// An element that can be exchanged.
struct LiveElement {
    name: String,
    class: &'static Class,
    shape: Shape,
    /// The first program: new programs must fit the graph that was built for it.
    program: Arc<Verified>,
}

/// Exchanges elements at all workers.
pub struct Exchange {
    live: Arc<Live>,
    /// The mailbox of each worker.
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// One exchange at a time, so that all workers end with the same element.
    turn: Mutex<()>,
}

/// The context of elements that are built while others run.
struct Late<'a> {
    folder: &'a Path,
    shared: SharedState,
    worker: usize,
}

impl Services for Late<'_> {
    fn open_port(&mut self, name: &str, _direction: Direction) -> Result<Box<dyn Port>, String> {
        Err(format!("port `{name}` cannot be opened while the chain runs"))
    }

    fn path(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    fn shared_any(&mut self, scope: Scope, key: &str, make: &mut dyn FnMut() -> Shared) -> Shared {
        self.shared.get(self.worker, scope, key, make)
    }

    fn element(&self, _from: &str, _name: &str) -> Option<(String, &'static str)> {
        None
    }
}

impl Live {
    /// The context for a graph whose elements are described in `folder` under these names.
    pub fn new(
        nodes: &mut [Node],
        names: NameTable,
        texts: ConfigurationTexts,
        folder: &Path,
        workers: usize,
        evaluator: bool,
    ) -> Live {
        let live = |node: &mut Node| {
            let program = Arc::clone(&node.lowered.as_ref()?.program);
            let can = !keeps_state(node) && !program.entries.is_empty() && !node.has_task;
            let shape = Shape { inputs: node.inputs.len(), outputs: node.outputs.len() };
            can.then(|| LiveElement { name: node.name.clone(), class: node.class, shape, program })
        };
        Live {
            elements: nodes.iter_mut().map(live).collect(),
            names,
            folder: folder.to_path_buf(),
            workers,
            is_evaluated: evaluator,
            texts,
        }
    }

    /// Builds an element for each worker from another configuration.
    ///
    /// # Errors
    /// The errors of the configuration, one a line.
    fn make(&self, node: usize, config: &str) -> Result<Vec<Replacement>, String> {
        let Some(Some(live)) = self.elements.get(node) else {
            return Err("its configuration is read only: it keeps state. Change the chain's text, and `millrace chain swap`".into());
        };
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let source = map.add(format!("{}.config", live.name), config);
        let spanned = Spanned::verbatim(config, map.whole(source));
        let mut services = Late { folder: &self.folder, shared: SharedState::default(), worker: 0 };
        let mut made: Vec<(BoxElement, Verified)> = vec![];
        for worker in 0..self.workers {
            services.worker = worker;
            let mut cx = Configure {
                name: &live.name,
                config: &spanned,
                span: map.whole(source),
                shape: live.shape,
                worker,
                workers: self.workers,
                names: &self.names.scoped(&live.name),
                diags: &mut diags,
                services: &mut services,
            };
            let element = (live.class.make)(&mut cx);
            let Some(element) = element.filter(|_| !diags.has_errors()) else {
                return Err(diags.render_short(&map).trim_end().to_string());
            };
            let program = match element.lower(live.shape) {
                Some(Ok(program)) => program,
                Some(Err(error)) => return Err(format!("{}: its program is invalid: {error}", live.name)),
                None => return Err(does_not_fit(live)),
            };
            if !fits(&live.program, &program) {
                return Err(does_not_fit(live));
            }
            made.push((element, program));
        }
        // The programs of all workers are the same.
        let Some((_, program)) = made.first() else { return Ok(vec![]) };
        let program = Arc::new(program.clone());
        let engine = match self.is_evaluated {
            true => Engine::Evaluator(Arc::clone(&program)),
            false => Engine::native(&program).map_err(|error| error.to_string())?,
        };
        let own_reasons = program.reasons.len();
        let replacement = |(element, _)| Replacement {
            config: config.to_string(),
            element,
            lowered: Lowered { program: Arc::clone(&program), engine: engine.clone(), own_reasons },
        };
        Ok(made.into_iter().map(replacement).collect())
    }
}

/// Whether an element keeps more than its configuration. What each worker has of an element is its configuration where
/// all its handlers can be written: they set its arguments, and none counts.
fn keeps_state(node: &mut Node) -> bool {
    let tables = node.lowered.as_ref().map_or(0, |lowered| lowered.program.tables.len());
    let handlers = node.element.as_mut().map(|element| element.handlers().list()).unwrap_or_default();
    let is_set = |handler: &Handler| handler.access == HandlerAccess::ReadWrite;
    match node.class.state {
        StateScope::None => false,
        StateScope::PerWorker => tables > 0 || handlers.is_empty() || !handlers.iter().all(is_set),
        _ => true,
    }
}

/// Whether a program can run in place of another: counters, cells and slow paths are equal, and the new
/// program does not write packets if the old one did not.
fn fits(old: &Program, new: &Program) -> bool {
    old.reasons == new.reasons
        && old.cells.len() == new.cells.len()
        && old.slow == new.slow
        && old.outputs == new.outputs
        && old.entries.len() == new.entries.len()
        && (old.writes() || !new.writes())
}

fn does_not_fit(live: &LiveElement) -> String {
    let class = live.class.name;
    format!(
        "this {class} counts or writes what the other one did not: change the chain's text, and `millrace chain swap`"
    )
}

impl Exchange {
    /// An exchange for the workers of these mailboxes.
    pub fn new(live: Arc<Live>, mailboxes: Vec<Arc<Mailbox>>) -> Exchange {
        Exchange { live, mailboxes, turn: Mutex::new(()) }
    }

    /// The configuration, as its handlers show it.
    pub fn texts(&self) -> &ConfigurationTexts {
        &self.live.texts
    }

    /// Whether an element can be exchanged.
    pub fn is_live(&self, node: usize) -> bool {
        self.live.elements.get(node).is_some_and(Option::is_some)
    }

    /// Exchanges an element at all workers, and waits until all of them use the new one.
    ///
    /// # Errors
    /// The errors of the configuration. Then no worker has changed.
    pub fn replace(&self, node: usize, config: &str) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.live.make(node, config)?;
        let asked: Vec<_> =
            self.mailboxes.iter().zip(made).map(|(mailbox, made)| mailbox.replace(node, made)).collect();
        // The old elements are dropped here and not on a packet thread: tables may be large.
        asked.into_iter().try_for_each(|old| match old?.recv_timeout(PATIENCE) {
            Ok(old) => {
                drop(old);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Err("a worker does not answer".to_string()),
            Err(RecvTimeoutError::Disconnected) => Err("the run has ended".to_string()),
        })
    }

    /// The same for the thread of worker `own`, which cannot wait for itself: returns its own replacement.
    pub fn replace_from(&self, own: usize, node: usize, config: &str) -> Result<Replacement, String> {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(_)) => None,
            Err(TryLockError::WouldBlock) => {
                return Err("its configuration is being changed by somebody else".into());
            }
        };
        let mut mine = Err("the run has ended".to_string());
        for (worker, made) in self.live.make(node, config)?.into_iter().enumerate() {
            match self.mailboxes.get(worker) {
                _ if worker == own => mine = Ok(made),
                // A worker that has ended needs none.
                Some(mailbox) => drop(mailbox.replace(node, made)),
                None => {}
            }
        }
        mine
    }
}
