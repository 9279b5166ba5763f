//! Requests of elements to end the run, and whether the run ends.
//!
//! An element requests the end of its own NF, as if the NF ran alone: a script with `stop`, a source with
//! `STOP true`. The run ends when an NF has requested it and no script of another NF holds the run; a chain
//! file may select other NFs ([`EndsWith`]). A script that waits for a step holds nothing: the step may never
//! be given, because the script that would give it has stopped.
//!
//! Where an NF has a script that decides about its end, the requests of its other elements are steps for that
//! script, which may go on, as in Click. The NF's request is that of the script.
//!
//! A run that ends is ending first: scripts execute their rest and requested handlers are read while packets
//! still wait in their elements. Then all workers stop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    /// For each NF with a script that decides, the requests that the script has not taken.
    steps: Vec<Option<AtomicUsize>>,
    /// The requests of each element on each worker, in NFs with such a script.
    asked: Mutex<HashMap<(usize, usize), usize>>,
    /// For each worker, whether a script of an NF that counts and has not requested the end holds the run.
    held: Vec<AtomicBool>,
    /// Whether the caller ends the run.
    halted: AtomicBool,
    is_ending: AtomicBool,
}

impl StopRequests {
    /// No requests yet. `decides` states for each NF whether it has a script that decides about its end,
    /// `held` for each worker whether a script holds the run.
    pub fn new(
        ends_with: EndsWith,
        decides: impl IntoIterator<Item = bool>,
        held: impl IntoIterator<Item = bool>,
    ) -> StopRequests {
        let steps: Vec<_> = decides.into_iter().map(|decides| decides.then(|| AtomicUsize::new(0))).collect();
        StopRequests {
            ends_with,
            requested: steps.iter().map(|_| AtomicBool::new(false)).collect(),
            steps,
            asked: Mutex::default(),
            held: held.into_iter().map(AtomicBool::new).collect(),
            halted: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        }
    }

    /// Records the request of an element of an NF on a worker: a step for the NF's script, if that decides.
    /// The workers' copies of an element are one element: a request that another worker's copy has made is
    /// none.
    pub(crate) fn ask(&self, nf: usize, element: usize, worker: usize) {
        let Some(Some(steps)) = self.steps.get(nf) else { return self.request(nf) };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let most = asked.iter().filter(|((of, _), _)| *of == element).map(|(_, count)| *count).max();
        let count = asked.entry((element, worker)).or_insert(0);
        *count += 1;
        if *count > most.unwrap_or(0) {
            steps.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Takes the steps for an NF's script.
    pub(crate) fn take_steps(&self, nf: usize) -> usize {
        let steps = self.steps.get(nf).and_then(Option::as_ref);
        steps.map_or(
            0,
            |steps| if steps.load(Ordering::Acquire) == 0 { 0 } else { steps.swap(0, Ordering::AcqRel) },
        )
    }

    /// Ends the run, whatever its NFs request.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Release);
    }

    /// Whether the run was ended by its caller.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    /// Whether the run was ended by its caller, or ends at the request of its NFs.
    pub(crate) fn is_to_end(&self) -> bool {
        self.is_halted() || self.is_met()
    }

    /// Records that the scripts have executed their rest.
    pub(crate) fn set_ending(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Whether the scripts have executed their rest.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
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
    fn requests_are_steps_for_a_script_that_decides() {
        let requests = StopRequests::new(EndsWith::All, [true, false], [false]);
        requests.ask(0, 5, 0);
        // The same element on another worker, and another element.
        requests.ask(0, 5, 1);
        requests.ask(0, 6, 1);
        assert!(!requests.is_requested());
        assert_eq!((requests.take_steps(0), requests.take_steps(0), requests.take_steps(1)), (2, 0, 0));
        requests.ask(0, 5, 1);
        requests.ask(0, 5, 0);
        assert_eq!(requests.take_steps(0), 1);
        requests.request(0);
        assert!(requests.is_requested_by(0) && requests.is_to_end());
        let plain = StopRequests::new(EndsWith::Caller, [false], [false]);
        plain.ask(0, 5, 0);
        assert!(plain.is_requested() && !plain.is_to_end());
        plain.halt();
        assert!(plain.is_to_end() && !plain.is_ending());
    }

    #[test]
    fn a_run_ends_with_the_last_nf_whose_script_holds_it() {
        let requests = StopRequests::new(EndsWith::All, [false; 3], [true, false]);
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
        let first = StopRequests::new(EndsWith::First, [false; 2], [true]);
        assert!(!first.is_met());
        first.request(0);
        assert!(first.is_met());
        let named = StopRequests::new(EndsWith::Nfs(vec![1]), [false; 2], [false]);
        named.request(0);
        assert!(!named.is_met() && !named.can_hold(0) && named.can_hold(1));
        named.request(1);
        assert!(named.is_met());
        let caller = StopRequests::new(EndsWith::Caller, [false], [false]);
        caller.request(0);
        assert!(caller.is_requested() && !caller.is_met());
        caller.request(7);
    }
}
