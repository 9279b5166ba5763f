//! Handlers and stops, from other threads.
//!
//! Other threads put requests into a worker's [`Mailbox`]; the worker answers them between bursts. It
//! looks at one flag in each turn, so that nobody pays for handlers that nobody calls.

use crate::graph::Lowered;
use element::Element;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// An element for the place of another.
pub struct Replacement {
    pub(crate) config: String,
    pub(crate) element: Box<dyn Element>,
    pub(crate) lowered: Lowered,
}

/// What another thread wants of a worker.
pub(crate) enum Request {
    /// Of a handler.
    Call {
        node: usize,
        handler: String,
        /// The value to write; a read where there is none.
        value: Option<String>,
        reply: Sender<Result<String, String>>,
    },
    /// That an element takes the place of another one, which goes to who asked.
    Replace { node: usize, by: Replacement, old: Sender<Replacement> },
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

    pub(crate) fn take(&self) -> Vec<Request> {
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
        self.leave(Request::Call { node, handler: handler.to_string(), value, reply })?;
        answer.recv().unwrap_or_else(|_| Err("the run has ended".into()))
    }

    /// Leaves an element for the place of another one, which comes back when the worker has taken it in.
    ///
    /// # Errors
    /// When the worker has ended.
    pub(crate) fn replace(&self, node: usize, by: Replacement) -> Result<Receiver<Replacement>, String> {
        let (old, answer) = channel();
        self.leave(Request::Replace { node, by, old })?;
        Ok(answer)
    }

    fn leave(&self, request: Request) -> Result<(), String> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            return Err("the run has ended".into());
        }
        requests.push(request);
        drop(requests);
        self.waiting.store(true, Ordering::Relaxed);
        Ok(())
    }
}
