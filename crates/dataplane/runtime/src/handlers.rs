//! The handlers of a running chain: those of its elements, through the workers' mailboxes, and those of NFs
//! in processes of their own.
//!
//! A name is `ELEMENT.HANDLER`. The elements of an NF are called `NF/ELEMENT` in every execution mode. The
//! caller waits for the answer and must not be a packet thread.

use element::Merge;
use nf_host::handlers::{LastWords, NfHandler, NfHandlers};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use worker::Worker;
use worker::exchange::Exchange;
use worker::graph::Node;
use worker::mailbox::Mailbox;

/// The handlers of a running chain.
pub struct Handlers {
    elements: Vec<ElementHandlers>,
    exchange: Arc<Exchange>,
    nfs: NfHandlers,
}

/// The handlers of an element.
struct ElementHandlers {
    name: String,
    merges: Vec<(Cow<'static, str>, Merge)>,
}

/// The location of a handler.
enum HandlerLocation<'a> {
    /// At a node of each worker.
    Here(usize),
    /// In an NF's process.
    There(NfHandler<'a>),
}

/// The merged value of all workers, with the rule for merging it further, or the reason why there is none.
pub type Merged = Result<(nf::Merge, String), String>;
/// Handlers to be read when their processes end.
pub(crate) type Asked = Vec<(String, LastWords)>;
/// Their values.
pub(crate) type Last = HashMap<String, Result<String, String>>;

/// The handlers of every element (see [`Worker::read_here`]).
const OF_ALL: [&str; 5] = ["name", "class", "config", "drops", "handlers"];

fn split(name: &str) -> Result<(&str, &str), String> {
    name.rsplit_once('.').ok_or_else(|| format!("`{name}` is not `element.handler`"))
}

impl Handlers {
    /// The handlers of a graph whose elements are exchanged by `exchange`, and of NFs in processes.
    pub(crate) fn new(graph: &mut [Node], exchange: Arc<Exchange>, nfs: NfHandlers) -> Handlers {
        let of = |node: &mut Node| {
            let handlers = node.element.as_mut().map(|element| element.handlers().list());
            let merges =
                handlers.into_iter().flatten().map(|handler| (handler.name, handler.merge)).collect();
            ElementHandlers { name: node.name.clone(), merges }
        };
        Handlers { elements: graph.iter_mut().map(of).collect(), exchange, nfs }
    }

    fn find(&self, element: &str, handler: &str) -> Result<HandlerLocation<'_>, String> {
        let node = self.elements.iter().position(|known| known.name == element);
        match node {
            Some(node) => {
                let is_here = self.merge(node, handler).is_some() || OF_ALL.contains(&handler);
                let there = if is_here { None } else { self.nfs.of_program(element, handler) };
                Ok(there.map_or(HandlerLocation::Here(node), HandlerLocation::There))
            }
            None => self.nfs.of_element(element, handler).map(HandlerLocation::There),
        }
    }

    fn merge(&self, node: usize, handler: &str) -> Option<Merge> {
        self.elements[node].merges.iter().find(|(name, _)| *name == handler).map(|(_, merge)| *merge)
    }

    /// Reads or writes a handler; returns the merged value of all workers and the merge rule.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn call(&self, name: &str, value: Option<&str>) -> Merged {
        let (element, handler) = split(name)?;
        match self.find(element, handler)? {
            HandlerLocation::There(there) => there.call(value),
            HandlerLocation::Here(node) => {
                if let ("config", Some(config)) = (handler, value) {
                    self.exchange.replace(node, config)?;
                    return Ok((nf::Merge::First, String::new()));
                }
                let ask = |mailbox: &Arc<Mailbox>| mailbox.ask(node, handler, value);
                let values =
                    self.exchange.mailboxes.iter().map(ask).collect::<Result<Vec<String>, String>>()?;
                Ok(self.as_one(node, element, handler, &values))
            }
        }
    }

    /// Reads `element.handler`, merged over the workers.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn read(&self, name: &str) -> Result<String, String> {
        self.call(name, None).map(|(_, text)| text)
    }

    /// Writes `element.handler` at all workers.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn write(&self, name: &str, value: &str) -> Result<(), String> {
        self.call(name, Some(value)).map(drop)
    }

    /// The handler of that name, if it is in an NF's process.
    fn there(&self, name: &str) -> Option<NfHandler<'_>> {
        let (element, handler) = split(name).ok()?;
        match self.find(element, handler).ok()? {
            HandlerLocation::There(there) => Some(there),
            HandlerLocation::Here(_) => None,
        }
    }

    /// Requests that handlers of NFs in processes are read when those end; others can be read after the end.
    pub(crate) fn ask_last(&self, names: &[String]) -> Asked {
        let there = |name: &String| Some((name.clone(), self.there(name)?.read_last()));
        names.iter().filter_map(there).collect()
    }

    /// The values of these handlers, once the processes have ended.
    pub(crate) fn hear_last(&self, asked: Asked) -> Last {
        let said = |(name, words): (String, LastWords)| {
            let said = self.there(&name)?.last(words);
            Some((name, said))
        };
        asked.into_iter().filter_map(said).collect()
    }

    /// Reads a handler of workers that have ended; returns the merged value and the merge rule.
    pub(crate) fn read_ended(&self, workers: &mut [Worker], name: &str) -> Merged {
        let (element, handler) = split(name)?;
        let HandlerLocation::Here(node) = self.find(element, handler)? else {
            let nf = element.split_once('/').map_or(element, |(nf, _)| nf);
            return Err(format!("NF `{nf}` has ended: its handlers are there while it is up"));
        };
        let values = workers.iter_mut().map(|worker| worker.read_here(node, handler));
        Ok(self.as_one(node, element, handler, &values.collect::<Result<Vec<String>, String>>()?))
    }

    /// The merged value of the workers' nodes, and the merge rule.
    fn as_one(&self, node: usize, element: &str, handler: &str, values: &[String]) -> (nf::Merge, String) {
        let merge = nf_merge(self.merge(node, handler).unwrap_or(Merge::First));
        let mut text = merge.merge(values);
        if handler == "handlers" {
            text += &self.nfs.list(element);
        }
        (merge, text)
    }
}

/// The merge rule in the protocol between an NF and its host.
fn nf_merge(merge: Merge) -> nf::Merge {
    match merge {
        Merge::Sum => nf::Merge::Sum,
        Merge::Max => nf::Merge::Max,
        Merge::First => nf::Merge::First,
        Merge::Concat => nf::Merge::Concat,
        Merge::Named => nf::Merge::Named,
    }
}
