//! Reads and writes handlers of elements on the worker's thread: for other threads between bursts, and for
//! scripts.

use super::Worker;
use crate::mailbox::{Replacement, Request};
use element::handler::{PATTERN, split_call, with_pattern};
use ir::Tables;
use std::sync::Arc;

/// The most writes that wait for elements that run.
const MOST_LATE_WRITES: usize = 1 << 10;

impl Worker {
    pub(crate) fn answer_requests(&mut self) {
        self.answer_calls();
        self.end_run();
    }

    pub(super) fn answer_calls(&mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        for request in mailbox.take() {
            // The caller may have stopped waiting.
            let _gone = match request {
                Request::Call { node, handler, value, reply } => {
                    // A panic in a handler must not end the worker, and with it the chain.
                    let answer = diag::caught(|| match value {
                        None => self.read_here(node, &handler),
                        Some(value) => self.write_here(node, &handler, &value).map(|()| String::new()),
                    });
                    reply.send(answer.unwrap_or_else(Err)).is_err()
                }
                Request::NoteLast { node, handler } => {
                    self.note_last(node, handler);
                    false
                }
                Request::Replace { node, by, old } => old.send(self.replace_here(node, by)).is_err(),
            };
        }
    }

    /// Exchanges the element of a node for another of its class, and returns the old one.
    fn replace_here(&mut self, node: usize, mut by: Replacement) -> Replacement {
        self.exchanges += 1;
        let this = &mut self.nodes[node];
        if let (Some(element), Some(lowered)) = (&mut this.element, &mut this.lowered) {
            std::mem::swap(&mut this.config, &mut by.config);
            let cells = by.lowered.program.cells.iter().map(|cell| cell.init);
            self.cells[this.cells.clone()].iter_mut().zip(cells).for_each(|(cell, init)| *cell = init);
            std::mem::swap(element, &mut by.element);
            std::mem::swap(lowered, &mut by.lowered);
            let program = Arc::clone(&lowered.program);
            for region in &mut self.regions {
                region.replace(node, &program, &mut self.nodes, self.now_ns);
            }
        }
        self.with_element(node, |element, work| element.start(work));
        self.follow_cells();
        self.find_callers();
        by
    }

    /// Finds `element.handler`, looked up from a node's compound outwards, or a handler of the node
    /// itself.
    pub(crate) fn find_handler(&self, from: usize, handler: &str) -> Result<(usize, String), String> {
        let (element, handler) = split_call(handler);
        if element.is_empty() {
            return Ok((from, handler.to_string()));
        }
        let found = click::scopes(&self.nodes[from].name).find_map(|scope| {
            let full = format!("{scope}{element}");
            self.nodes.iter().position(|node| node.name == full)
        });
        found.map(|node| (node, handler.to_string())).ok_or_else(|| self.no_element(element))
    }

    fn no_element(&self, element: &str) -> String {
        let process = element.split_once('/').map(|(nf, _)| (nf, format!("{nf}/process")));
        match process.filter(|(_, process)| self.nodes.iter().any(|node| node.name == *process)) {
            Some((nf, _)) => format!(
                "`{element}` is not here: NF `{nf}` runs in a process of its own, whose elements others do not reach"
            ),
            None => format!("there is no element `{element}`"),
        }
    }

    /// Merges what flow caches counted for the tables of a node, before a handler uses them.
    fn merge_counts_of(&mut self, node: usize) {
        let Some(this) = self.nodes.get_mut(node) else { return };
        let tables = this.lowered.as_ref().map_or(0, |lowered| lowered.program.tables.len());
        let Some(element) = &mut this.element else { return };
        let is_held = |table: &mut dyn ir::Table| table.cache_validity().is_some_and(|it| it.gone.is_some());
        if (0..tables).any(|table| element.table(table).is_some_and(is_held)) {
            self.merge_caches(|region| region.parts.contains(&node));
        }
    }

    /// Reads a handler of a node of this worker; an argument may follow its name.
    pub fn read_here(&mut self, node: usize, handler: &str) -> Result<String, String> {
        if !Worker::is_own_handler(handler) {
            self.merge_counts_of(node);
        }
        let this = self.nodes.get_mut(node).ok_or("there is no such element")?;
        let handlers = this.element.as_mut().map(|element| element.handlers()).unwrap_or_default();
        let value = handlers.read(handler, &self.cells[this.cells.clone()]);
        drop(handlers);
        let value = value.or_else(|| self.read_own(node, handler)).map(Ok);
        let value = value.or_else(|| self.ask_element(node, handler, None));
        value.unwrap_or_else(|| Err(format!("`{}` has no read handler `{handler}`", self.nodes[node].name)))
    }

    /// The answer of an element to a call of a handler that it does not list, if it answers such calls.
    fn ask_element(
        &mut self,
        node: usize,
        handler: &str,
        value: Option<&str>,
    ) -> Option<Result<String, String>> {
        let (mut answer, start) = (None, self.deferred.len());
        self.with_element(node, |element, work| answer = element.answer_call(handler, value, work));
        self.flush_deferred(node, start);
        answer
    }

    /// The configuration of a node that can be exchanged, with another text for the pattern that a handler names.
    fn with_pattern(&mut self, node: usize, handler: &str, pattern: &str) -> Option<String> {
        let can_be = handler.starts_with(PATTERN)
            && self.exchange.as_ref().is_some_and(|exchange| exchange.is_live(node));
        let this = self.nodes.get_mut(node).filter(|_| can_be)?;
        let handlers = this.element.as_mut()?.handlers().list();
        let has = handlers.iter().any(|known| known.name == handler);
        has.then(|| with_pattern(&this.config, handler, pattern))?
    }

    /// Writes a handler of a node of this worker.
    pub(crate) fn write_here(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String> {
        let config = match handler {
            "config" => Some(value.to_string()),
            _ => self.with_pattern(node, handler, value),
        };
        if let (Some(config), Some(exchange)) = (config, self.exchange.clone()) {
            // A script on this thread: its packets are in the middle of the graph.
            if self.nodes.get(node).is_some_and(|this| this.element.is_none()) {
                return Err("an element cannot replace itself while it runs".into());
            }
            let by = exchange.replace_from(self.number, node, &config)?;
            drop(self.replace_here(node, by));
            return Ok(());
        }
        self.merge_counts_of(node);
        let this = self.nodes.get_mut(node).ok_or("there is no such element")?;
        let Some(element) = this.element.as_mut() else {
            // It runs: this write is its own, or one of an element that it pulls from.
            if self.late_writes.len() >= MOST_LATE_WRITES {
                return Err(format!("{MOST_LATE_WRITES} writes wait already for elements to return"));
            }
            self.late_writes.push((node, handler.to_string(), value.to_string()));
            return Ok(());
        };
        let mut written = element.handlers().write(handler, value, &mut self.cells[this.cells.clone()]);
        if written.is_err() && !element.handlers().list().iter().any(|known| known.name == handler) {
            let answer = self.ask_element(node, handler, Some(value));
            written = answer.map_or(written, |answer| answer.map(drop));
        }
        self.follow_cells();
        self.wake_tasks();
        self.find_callers();
        written
    }
}
