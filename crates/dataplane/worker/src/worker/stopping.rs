//! The end of the run: at the request of elements or of the caller, and when nothing is left to do.
//!
//! The first worker has the scripts. It passes requests on to those that decide about the end of their NFs,
//! and ends the run between two turns: the scripts execute their rest, every worker notes the values of
//! handlers that are wanted of the end, and only then workers stop and elements drop what they hold.

use super::Worker;
use crate::ending::LastValue;
use crate::graph::Node;
use std::sync::atomic::Ordering;

impl Worker {
    /// Whether a script holds the run, of an NF that has not requested its end.
    pub(crate) fn holds_run(&self) -> bool {
        self.nodes.iter().any(|node| self.stop_requests.can_hold(node.nf) && is_active(node))
    }

    /// Takes the request of an element to end its NF.
    pub(crate) fn take_stop_request(&mut self, node: usize) {
        let nf = self.nodes[node].nf;
        match self.ending.deciders.contains(&node) {
            true => self.stop_requests.request(nf),
            false => self.stop_requests.ask(nf, node, self.number),
        }
        self.pass_stops_on();
        self.heed_stop_requests();
        // At the end of this turn: now packets may be in the middle of the graph.
        if self.stop_requests.is_to_end() {
            self.mailbox.knock();
        }
    }

    /// Updates whether a script of this worker holds the run.
    pub(crate) fn heed_stop_requests(&mut self) {
        self.stop_requests.set_held(self.number, self.holds_run());
    }

    /// Passes requests on to the scripts that decide. One that is running gets them later.
    fn pass_stops_on(&mut self) {
        for at in 0..self.ending.deciders.len() {
            let node = self.ending.deciders[at];
            if self.nodes[node].element.is_none() {
                continue;
            }
            for _ in 0..self.stop_requests.take_steps(self.nodes[node].nf) {
                self.with_element(node, |element, work| element.take_stop(false, work));
            }
        }
    }

    /// Passes requests of other workers on, and ends the run when it is to end. Called between turns.
    pub(crate) fn end_scripts(&mut self) {
        self.pass_stops_on();
        self.heed_dryness();
        self.end_run();
    }

    /// Tells the scripts that decide when nothing is left to do, and waits until they have reacted.
    fn heed_dryness(&mut self) {
        if self.number != 0 || !self.quiescence.is_held() || !self.quiescence.is_dry() {
            return;
        }
        // A script that has a step, or waits for a time, goes on by itself.
        if self.ending.deciders.iter().any(|node| is_active(&self.nodes[*node])) {
            return;
        }
        self.ending.is_over = self.ending.is_dry || self.ending.deciders.is_empty();
        if !std::mem::replace(&mut self.ending.is_dry, true) {
            for at in 0..self.ending.deciders.len() {
                let node = self.ending.deciders[at];
                self.with_element(node, |element, work| element.take_stop(true, work));
            }
        }
    }

    /// Ends the run if it is to end: scripts first, then all workers note last values, then all stop.
    pub(crate) fn end_run(&mut self) {
        let is_to_end = || match self.quiescence.is_kept_open() {
            true => self.stop_requests.is_halted(),
            false => self.ending.is_over || self.stop_requests.is_to_end(),
        };
        if self.number == 0 && !self.stop_requests.is_ending() && is_to_end() {
            for at in 0..self.ending.deciders.len() {
                let node = self.ending.deciders[at];
                let deferred_start = self.deferred.len();
                self.with_element(node, |element, work| element.end_script(work));
                self.flush_deferred(node, deferred_start);
            }
            self.stop_requests.set_ending();
        }
        if !self.stop_requests.is_ending() {
            return;
        }
        if !std::mem::replace(&mut self.ending.is_noted, true) {
            // The last wishes may have come with the request to end.
            self.answer_calls();
            for at in 0..self.ending.last.len() {
                let LastValue { node, handler, .. } = &self.ending.last[at];
                let (node, handler) = (*node, handler.clone());
                let element = self.nodes[node].element.as_ref();
                if element.is_some_and(|element| element.counts_until_stopped(&handler)) {
                    continue;
                }
                let value = diag::caught(|| self.read_here(node, &handler)).unwrap_or_else(Err);
                self.ending.last[at].value = Some(value);
            }
            self.mailbox.set_noted();
        }
        let others = self.exchange.as_ref().map(|exchange| &exchange.mailboxes);
        if others.is_none_or(|mailboxes| mailboxes.iter().all(|mailbox| mailbox.has_noted())) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Has the value of a handler noted when the run ends.
    pub(crate) fn note_last(&mut self, node: usize, handler: String) {
        self.ending.last.push(LastValue { node, handler, value: None });
    }

    /// Reads a handler of a node of this worker after the end: the value that was noted before elements
    /// dropped what they held, or the value now.
    ///
    /// # Errors
    /// As [`Worker::read_here`].
    pub fn read_last(&mut self, node: usize, handler: &str) -> Result<String, String> {
        let mut noted = self.ending.last.iter();
        let noted = noted.find(|last| last.node == node && last.handler == handler);
        match noted.and_then(|last| last.value.clone()) {
            Some(value) => value,
            None => self.read_here(node, handler),
        }
    }
}

/// Whether a script runs or waits for a time. An element that is taken out is running.
fn is_active(node: &Node) -> bool {
    node.element.as_ref().is_none_or(|element| element.holds_run())
}
