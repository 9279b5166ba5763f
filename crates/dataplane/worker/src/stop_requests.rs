//! Requests of elements to end the run, and whether the run ends.
//!
//! An element requests the end of its own NF, as if the NF ran alone: a script with `stop`, a source with
//! `STOP true`. The run ends when an NF has requested it and no script of another NF holds the run; a chain
//! file may select other NFs ([`EndsWith`]). A script that waits for a step holds nothing: the step may never
//! be given, because the script that would give it has stopped.

use std::sync::atomic::{AtomicBool, Ordering};

/// The NFs whose requests end a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum EndsWith {
    /// All that have scripts: the run ends with the last one.
    #[default]
    All,
    /// The first that requests it.
    First,
    /// Those with these numbers: the run ends with the last of them.
    Nfs(Vec<usize>),
    /// None: the caller reads the requests and ends the run.
    Caller,
}

/// The requests of all NFs of a run. Shared by its workers.
#[derive(Debug)]
pub struct StopRequests {
    ends_with: EndsWith,
    /// For each NF, whether it has requested the end.
    requested: Vec<AtomicBool>,
    /// For each worker, whether a script of an NF that counts and has not requested the end holds the run.
    held: Vec<AtomicBool>,
}

impl StopRequests {
    /// No requests yet, of this number of NFs. `held` states for each worker whether a script holds the run.
    pub fn new(ends_with: EndsWith, nfs: usize, held: impl IntoIterator<Item = bool>) -> StopRequests {
        StopRequests {
            ends_with,
            requested: (0..nfs).map(|_| AtomicBool::new(false)).collect(),
            held: held.into_iter().map(AtomicBool::new).collect(),
        }
    }

    /// Records the request of an NF.
    pub(crate) fn request(&self, nf: usize) {
        if let Some(requested) = self.requested.get(nf) {
            requested.store(true, Ordering::Release);
        }
    }

    /// Whether an NF has requested the end.
    pub(crate) fn is_requested_by(&self, nf: usize) -> bool {
        self.requested.get(nf).is_some_and(|requested| requested.load(Ordering::Acquire))
    }

    /// The NFs that have requested the end.
    pub(crate) fn requested(&self) -> impl Iterator<Item = usize> {
        (0..self.requested.len()).filter(|nf| self.is_requested_by(*nf))
    }

    /// Whether any NF has requested the end.
    pub fn is_requested(&self) -> bool {
        self.requested().next().is_some()
    }

    /// Whether a script of an NF can hold the run now.
    pub(crate) fn can_hold(&self, nf: usize) -> bool {
        self.counts(nf) && !self.is_requested_by(nf)
    }

    /// Sets whether a script of a worker holds the run.
    pub(crate) fn set_held(&self, worker: usize, is_held: bool) {
        if let Some(held) = self.held.get(worker) {
            held.store(is_held, Ordering::Release);
        }
    }

    /// Whether a script of any worker holds the run; up to a millisecond old.
    pub fn is_held(&self) -> bool {
        self.held.iter().any(|held| held.load(Ordering::Acquire))
    }

    /// Whether the run ends now.
    pub(crate) fn is_met(&self) -> bool {
        let mut counting = (0..self.requested.len()).filter(|nf| self.counts(*nf));
        match self.ends_with {
            EndsWith::Caller => false,
            EndsWith::First => self.is_requested(),
            EndsWith::All | EndsWith::Nfs(_) => {
                counting.clone().any(|nf| self.is_requested_by(nf))
                    && (counting.all(|nf| self.is_requested_by(nf)) || !self.is_held())
            }
        }
    }

    /// Whether requests of the NF count.
    fn counts(&self, nf: usize) -> bool {
        match &self.ends_with {
            EndsWith::Nfs(nfs) => nfs.contains(&nf),
            EndsWith::All | EndsWith::First | EndsWith::Caller => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_the_last_nf_whose_script_holds_it() {
        let requests = StopRequests::new(EndsWith::All, 3, [true, false]);
        assert!(!requests.is_met() && !requests.is_requested());
        requests.request(1);
        assert!(requests.is_requested() && !requests.is_met(), "a script of another NF holds the run");
        assert!(requests.can_hold(0) && !requests.can_hold(1));
        requests.set_held(0, false);
        assert!(requests.is_met(), "NF 2 has no script, and its request is not needed");
        requests.set_held(1, true);
        assert!(!requests.is_met());
        (0..3).for_each(|nf| requests.request(nf));
        assert!(requests.is_met(), "all have requested it, whatever a worker said before");
    }

    #[test]
    fn other_nfs_may_be_selected() {
        let first = StopRequests::new(EndsWith::First, 2, [true]);
        assert!(!first.is_met());
        first.request(0);
        assert!(first.is_met());
        let named = StopRequests::new(EndsWith::Nfs(vec![1]), 2, [false]);
        named.request(0);
        assert!(!named.is_met() && !named.can_hold(0) && named.can_hold(1));
        named.request(1);
        assert!(named.is_met());
        let caller = StopRequests::new(EndsWith::Caller, 1, [false]);
        caller.request(0);
        assert!(caller.is_requested() && !caller.is_met());
        caller.request(7);
    }
}
