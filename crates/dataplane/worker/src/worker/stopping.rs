//! The end of the run at the request of elements.

use super::Worker;
use crate::graph::Node;
use std::sync::atomic::Ordering;

impl Worker {
    /// Whether a script holds the run, of an NF that has not requested its end.
    pub(crate) fn holds_run(&self) -> bool {
        // An element that is taken out is running.
        let holds = |node: &Node| node.element.as_ref().is_none_or(|element| element.holds_run());
        self.nodes.iter().any(|node| self.stop_requests.can_hold(node.nf) && holds(node))
    }

    /// Ends the run if the NFs that decide about its end have requested it and nothing holds it any more.
    pub(crate) fn heed_stop_requests(&mut self) {
        self.stop_requests.set_held(self.number, self.holds_run());
        if self.stop_requests.is_met() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the scripts of NFs that have requested it while the run goes on.
    pub(crate) fn end_scripts(&mut self) {
        if !self.stop_requests.is_requested() || self.stop.load(Ordering::Relaxed) {
            return;
        }
        let nfs = self.stop_requests.requested().filter(|nf| !self.ended_nfs.contains(nf));
        let nfs: Vec<usize> = nfs.collect();
        for node in 0..self.nodes.len() {
            if nfs.contains(&self.nodes[node].nf) {
                let deferred_start = self.deferred.len();
                self.with_element(node, |element, work| element.end_script(work));
                self.flush_deferred(node, deferred_start);
            }
        }
        self.ended_nfs.extend(nfs);
    }
}
