//! The handlers of a running chain: those of its elements, through the workers' mailboxes, and those of NFs
//! in processes of their own.
//!
//! A name is `ELEMENT.HANDLER`, and an argument of the handler may follow; `*.HANDLER` reads the handler of
//! every element that has it, and a name without a dot is a handler of the configuration. The elements of an
//! NF are called `NF/ELEMENT` in every execution mode. The caller waits for the answer and must not be a
//! packet thread.

use element::handler::{PATTERN, name_of, split_call, with_pattern};
use element::{Handler, HandlerAccess, Merge};
use nf_host::handlers::{LastWords, NfHandler, NfHandlers};
use std::collections::HashMap;
use std::sync::Arc;
use worker::Worker;
use worker::exchange::Exchange;
use worker::graph::Node;
use worker::mailbox::Mailbox;
use worker::stop_requests::StopRequests;

/// The handlers of a running chain.
pub struct Handlers {
    elements: Vec<ElementHandlers>,
    exchange: Arc<Exchange>,
    nfs: NfHandlers,
}

/// The handlers of an element.
struct ElementHandlers {
    name: String,
    own: Vec<Handler>,
    has_task: bool,
}

/// The location of a handler.
enum HandlerLocation<'a> {
    /// At a node of each worker.
    Here(usize),
    /// In an NF's process.
    There(NfHandler<'a>),
    /// Of the configuration.
    Configuration,
}

/// The merged value of all workers, with the rule for merging it further, or the reason why there is none.
pub type Merged = Result<(nf::Merge, String), String>;
/// Handlers to be read when their processes end.
pub(crate) type Asked = Vec<(String, LastWords)>;
/// Their values.
pub(crate) type Last = HashMap<String, Result<String, String>>;

/// The handler, of no element, by which a host asks an NF's process for the handlers that match a pattern.
const MATCHING: &str = "matching";

impl Handlers {
    /// The handlers of a graph whose elements are exchanged by `exchange`, and of NFs in processes.
    pub(crate) fn new(graph: &mut [Node], exchange: Arc<Exchange>, nfs: NfHandlers) -> Handlers {
        let of = |node: &mut Node| {
            let own = node.element.as_mut().map(|element| element.handlers().list()).unwrap_or_default();
            ElementHandlers { name: node.name.clone(), own, has_task: node.has_task }
        };
        Handlers { elements: graph.iter_mut().map(of).collect(), exchange, nfs }
    }

    fn find(&self, element: &str, handler: &str) -> Result<HandlerLocation<'_>, String> {
        if element.is_empty() {
            return Ok(HandlerLocation::Configuration);
        }
        let node = self.elements.iter().position(|known| known.name == element);
        match node {
            Some(node) => {
                let is_here = self.own(node, handler).is_some() || Worker::is_own_handler(handler);
                let there = if is_here { None } else { self.nfs.of_program(element, handler) };
                Ok(there.map_or(HandlerLocation::Here(node), HandlerLocation::There))
            }
            None => self.nfs.of_element(element, handler).map(HandlerLocation::There),
        }
    }

    fn own(&self, node: usize, handler: &str) -> Option<&Handler> {
        let handler = name_of(handler);
        self.elements[node].own.iter().find(|known| known.name == handler)
    }

    /// The value of a handler that names no element.
    fn of_configuration(&self, handler: &str, value: Option<&str>) -> Merged {
        if value.is_some() {
            return Err(format!("the configuration has no write handler `{}`", name_of(handler)));
        }
        let text = match handler.split_once(' ') {
            Some((MATCHING, pattern)) => Some(self.matching(pattern).join("\n")),
            _ => {
                self.exchange.texts().read(handler, self.elements.iter().map(|element| element.name.as_str()))
            }
        };
        let none = || {
            format!(
                "there is no handler `{0}` of the configuration; those of elements are `ELEMENT.{0}`",
                handler
            )
        };
        text.map(|text| (nf::Merge::First, text)).ok_or_else(none)
    }

    /// The calls that a pattern, `*.HANDLER` with `*` and `?` in its element's name, stands for: one for each
    /// element that has the read handler. Any other call stands for itself, and so does a pattern that no
    /// element matches.
    pub(crate) fn calls(&self, call: &str) -> Vec<String> {
        if !is_pattern(call) {
            return vec![call.to_string()];
        }
        let mut calls = self.matching(call);
        for there in self.nfs.of_configurations(&format!("{MATCHING} {call}")) {
            there.await_up();
            if let Ok((_, found)) = there.call(None) {
                calls.extend(found.lines().map(str::to_string));
            }
        }
        if calls.is_empty() { vec![call.to_string()] } else { calls }
    }

    /// The same for this process's elements only.
    fn matching(&self, pattern: &str) -> Vec<String> {
        let (pattern, handler) = split_call(pattern);
        let has = |(node, element): (usize, &ElementHandlers)| {
            let own = self.own(node, handler).is_some_and(|own| own.access != HandlerAccess::Write);
            let has = own || Worker::has_own_handler(handler, element.has_task);
            (has && matches(pattern, &element.name)).then(|| format!("{}.{handler}", element.name))
        };
        self.elements.iter().enumerate().filter_map(has).collect()
    }

    /// Reads or writes a handler; returns the merged value of all workers and the merge rule.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn call(&self, name: &str, value: Option<&str>) -> Merged {
        if is_pattern(name) {
            return self.call_all(name, value);
        }
        let (element, handler) = split_call(name);
        match self.find(element, handler)? {
            HandlerLocation::There(there) => there.call(value),
            HandlerLocation::Configuration => self.of_configuration(handler, value),
            HandlerLocation::Here(node) => {
                let config = match (handler, value) {
                    ("config", Some(config)) => Some(config.to_string()),
                    (_, Some(pattern))
                        if handler.starts_with(PATTERN)
                            && self.exchange.is_live(node)
                            && self.own(node, handler).is_some() =>
                    {
                        let config = self.read(&format!("{element}.config"))?;
                        with_pattern(&config, handler, pattern)
                    }
                    _ => None,
                };
                if let Some(config) = config {
                    self.exchange.replace(node, &config)?;
                    return Ok((nf::Merge::First, String::new()));
                }
                let ask = |mailbox: &Arc<Mailbox>| mailbox.ask(node, handler, value);
                let values =
                    self.exchange.mailboxes.iter().map(ask).collect::<Result<Vec<String>, String>>()?;
                Ok(self.as_one(node, element, handler, &values))
            }
        }
    }

    /// Reads all handlers that a pattern matches, each with its name in front, as Click prints them.
    fn call_all(&self, pattern: &str, value: Option<&str>) -> Merged {
        if value.is_some() {
            return Err(format!("`{pattern}` stands for several elements: write to one of them"));
        }
        let calls = self.calls(pattern);
        if calls.iter().all(|call| is_pattern(call)) {
            return Err(no_match(pattern));
        }
        let read = |call: &String| self.read(call).map(|value| format!("{call}:\n{}\n", value.trim_end()));
        let texts = calls.iter().map(read).collect::<Result<Vec<String>, String>>()?;
        Ok((nf::Merge::First, texts.join("\n")))
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
        let (element, handler) = split_call(name);
        match self.find(element, handler).ok()? {
            HandlerLocation::There(there) => Some(there),
            HandlerLocation::Here(_) | HandlerLocation::Configuration => None,
        }
    }

    /// Ends the run, through the first worker.
    pub(crate) fn halt(&self, requests: &StopRequests) {
        if let Some(first) = self.exchange.mailboxes.first() {
            first.halt(requests);
        }
    }

    /// Requests that these handlers are read at the end: by the workers, and by NFs in processes.
    pub(crate) fn ask_last(&self, names: &[String]) -> Asked {
        for name in names {
            let (element, handler) = split_call(name);
            if let Ok(HandlerLocation::Here(node)) = self.find(element, handler) {
                // Handlers of workers that have ended are read later.
                self.exchange.mailboxes.iter().for_each(|mailbox| drop(mailbox.note_last(node, handler)));
            }
        }
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
        if is_pattern(name) {
            return Err(no_match(name));
        }
        let (element, handler) = split_call(name);
        let node = match self.find(element, handler)? {
            HandlerLocation::Here(node) => node,
            HandlerLocation::Configuration => return self.of_configuration(handler, None),
            HandlerLocation::There(_) => {
                let nf = element.split_once('/').map_or(element, |(nf, _)| nf);
                return Err(format!("NF `{nf}` has ended: its handlers are there while it is up"));
            }
        };
        let values = workers.iter_mut().map(|worker| worker.read_last(node, handler));
        Ok(self.as_one(node, element, handler, &values.collect::<Result<Vec<String>, String>>()?))
    }

    /// The merged value of the workers' nodes, and the merge rule.
    fn as_one(&self, node: usize, element: &str, handler: &str, values: &[String]) -> (nf::Merge, String) {
        // What each worker dropped is counted by itself; the other handlers of every element are alike.
        let of_all = if handler == "drops" { Merge::Sum } else { Merge::First };
        let merge = nf_merge(self.own(node, handler).map_or(of_all, |own| own.merge));
        let mut text = merge.merge(values);
        if handler == "handlers" {
            text += &self.nfs.list(element);
        }
        (merge, text)
    }
}

/// Whether a call is a pattern for the handlers of several elements.
fn is_pattern(call: &str) -> bool {
    split_call(call).0.contains(['*', '?'])
}

fn no_match(pattern: &str) -> String {
    let (elements, handler) = split_call(pattern);
    format!("no element that `{elements}` matches has a read handler `{}`", name_of(handler))
}

/// Whether a pattern matches a name: `*` stands for any text, `?` for any character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where to go on when what follows the last star does not match: behind the star, one character later.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[of] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((star_at, seen)) = star else { return false };
                star = Some((star_at, seen + 1));
                (at, of) = (star_at + 1, seen + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, does) in [
            ("*", "c", true),
            ("*", "", true),
            ("fw/*", "fw/c", true),
            ("fw/*", "nat/c", false),
            ("c?", "c1", true),
            ("c?", "c", false),
            ("*a*b", "xaab", true),
            ("*a*b", "xaabc", false),
            ("**", "abc", true),
            ("a*", "ba", false),
        ] {
            assert_eq!(matches(pattern, name), does, "{pattern} {name}");
        }
        // What would need exponential time if each star tried every place for itself.
        assert!(!matches(&"*a".repeat(40), &"a".repeat(39)));
        assert!(is_pattern("*.count") && !is_pattern("c.lookup *.1") && !is_pattern("list"));
    }
}
