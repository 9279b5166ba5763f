//! Handlers and stops, from other threads.
//!
//! Other threads put requests into a worker's [`Mailbox`]; the worker answers them between bursts. It
//! looks at one flag in each turn, so that nobody pays for handlers that nobody calls.

use crate::worker::Worker;
use element::HandlerAccess;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

/// What another thread wants of a worker.
pub struct Request {
    node: usize,
    handler: String,
    /// The value to write; a read where there is none.
    value: Option<String>,
    reply: Sender<Result<String, String>>,
}

/// Requests that wait for a worker.
#[derive(Default)]
pub struct Mailbox {
    waiting: AtomicBool,
    closed: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

impl Mailbox {
    /// Whether there are requests.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes no more requests.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn take(&self) -> Vec<Request> {
        self.waiting.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads or writes a handler of a node and waits for the answer.
    ///
    /// # Errors
    /// A sentence that says why not; also when the worker has ended.
    pub fn ask(&self, node: usize, handler: &str, value: Option<&str>) -> Result<String, String> {
        let (reply, answer) = channel();
        let value = value.map(str::to_string);
        {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            if self.closed.load(Ordering::SeqCst) {
                return Err("the run has ended".into());
            }
            requests.push(Request { node, handler: handler.to_string(), value, reply });
        }
        self.waiting.store(true, Ordering::Relaxed);
        answer.recv().unwrap_or_else(|_| Err("the run has ended".into()))
    }
}

impl Worker {
    pub(crate) fn answer_requests(&mut self) {
        let mailbox = std::sync::Arc::clone(&self.mailbox);
        for Request { node, handler, value, reply } in mailbox.take() {
            let answer = match value {
                None => self.read_here(node, &handler),
                Some(value) => self.write_here(node, &handler, &value).map(|()| String::new()),
            };
            // Who asked may have given up waiting.
            let _ = reply.send(answer);
        }
    }

    /// Finds `element.handler`, looked up from a node's compound outwards, or a handler of the node
    /// itself.
    pub(crate) fn find_handler(&self, from: usize, handler: &str) -> Result<(usize, String), String> {
        let Some((element, handler)) = handler.rsplit_once('.') else {
            return Ok((from, handler.to_string()));
        };
        let mut context = self.nodes[from].name.as_str();
        loop {
            context = context.rsplit_once('/').map_or("", |(outer, _)| outer);
            let full = if context.is_empty() { element.to_string() } else { format!("{context}/{element}") };
            if let Some(node) = self.nodes.iter().position(|node| node.name == full) {
                return Ok((node, handler.to_string()));
            }
            if context.is_empty() {
                return Err(self.no_element(element));
            }
        }
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

    /// Reads a handler of a node of this worker.
    pub(crate) fn read_here(&self, node: usize, handler: &str) -> Result<String, String> {
        let this = self.nodes.get(node).ok_or("there is no such element")?;
        let value =
            this.element.as_ref().and_then(|element| element.read(handler, &self.cells[this.cells.clone()]));
        let own = || match handler {
            "name" => Some(this.name.clone()),
            "class" => Some(this.class.name.to_string()),
            "config" => Some(this.config.clone()),
            "drops" => Some(this.books.dropped.iter().map(super::node::Count::get).sum::<u64>().to_string()),
            "handlers" => {
                let mut text = "name\tr\nclass\tr\nconfig\tr\nhandlers\tr".to_string();
                for handler in this.element.as_ref().map_or(&[][..], |element| element.handlers()) {
                    let access = match handler.access {
                        HandlerAccess::Read => "r",
                        HandlerAccess::Write => "w",
                        HandlerAccess::ReadWrite => "rw",
                    };
                    text += &format!("\n{}\t{access}", handler.name);
                }
                Some(text)
            }
            _ => None,
        };
        value.or_else(own).ok_or_else(|| format!("`{}` has no read handler `{handler}`", this.name))
    }

    /// Writes a handler of a node of this worker.
    pub(crate) fn write_here(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String> {
        let this = self.nodes.get_mut(node).ok_or("there is no such element")?;
        let element = this.element.as_mut().ok_or("an element cannot write its own handlers")?;
        let written = element.write(handler, value, &mut self.cells[this.cells.clone()]);
        self.follow_cells();
        written
    }
}
