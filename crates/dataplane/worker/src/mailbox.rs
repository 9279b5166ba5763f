//! Requests to a worker from other threads: handler calls and exchanges of elements.
//!
//! Other threads put requests into a worker's [`Mailbox`]; the worker answers them between bursts. In each
//! turn the worker reads one flag only, so that unused handlers cost nearly nothing.

use crate::graph::Lowered;
use crate::stop_requests::StopRequests;
use element::BoxElement;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// An element that replaces another one.
pub struct Replacement {
    pub(crate) config: String,
    pub(crate) element: BoxElement,
    pub(crate) lowered: Lowered,
}

/// A request to a worker.
pub(crate) enum Request {
    /// Reads or writes a handler.
    Call {
        node: usize,
        handler: String,
        /// The value to write; `None` reads.
        value: Option<String>,
        reply: Sender<Result<String, String>>,
    },
    /// Notes the value of a handler when the run ends, before elements drop what they hold.
    NoteLast { node: usize, handler: String },
    /// Exchanges an element; the old one is sent to the caller.
    Replace { node: usize, by: Replacement, old: Sender<Replacement> },
}

/// The requests that a worker has not answered yet.
#[derive(Default)]
pub struct Mailbox {
    waiting: AtomicBool,
    closed: AtomicBool,
    /// Whether the worker has noted the last values of handlers.
    noted: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

impl Mailbox {
    /// Whether there are requests.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Closes the mailbox: further requests fail.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Ends the run of the worker, which is the first one.
    pub fn halt(&self, requests: &StopRequests) {
        requests.halt();
        self.knock();
    }

    /// Has the worker look for what it has to do at the end of its turn.
    pub(crate) fn knock(&self) {
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// Records that the worker has noted the last values of handlers.
    pub(crate) fn set_noted(&self) {
        self.noted.store(true, Ordering::Release);
    }

    /// Whether the worker has noted them, or has ended.
    pub(crate) fn has_noted(&self) -> bool {
        self.noted.load(Ordering::Acquire) || self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn take(&self) -> Vec<Request> {
        self.waiting.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads or writes a handler of a node and waits for the answer.
    ///
    /// # Errors
    /// The reason for the refusal as a sentence; also when the worker has ended.
    pub fn ask(&self, node: usize, handler: &str, value: Option<&str>) -> Result<String, String> {
        let (reply, answer) = channel();
        let value = value.map(str::to_string);
        self.leave(Request::Call { node, handler: handler.to_string(), value, reply })?;
        answer.recv().unwrap_or_else(|_| Err("the run has ended".into()))
    }

    /// Has the value of a handler noted when the run ends.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn note_last(&self, node: usize, handler: &str) -> Result<(), String> {
        self.leave(Request::NoteLast { node, handler: handler.to_string() })
    }

    /// Requests the exchange of an element. The worker sends the old element once it has taken the new one.
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
