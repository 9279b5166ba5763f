//! The jobs of a proof, spread over the machine's threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The most threads: each may need memory for questions of its own.
const MOST_THREADS: usize = 4;

/// The number of threads that jobs are spread over.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

/// Does two things at once: the first on one thread, and the second on those that are left, whose number it is told.
pub fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce(usize) -> B) -> (A, B) {
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second(threads().saturating_sub(1).max(1));
        match first.join() {
            Ok(first) => (first, second),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Does all jobs on at most that many threads. Each job has a weight here, and the hardest first, so that no thread is left alone
/// with it at the end. The results are in the order of the jobs, whichever thread had them. `make` makes what
/// the jobs of one thread share.
pub fn each<S, T: Send>(
    threads: usize,
    weights: &[usize],
    make: impl Fn() -> S + Sync,
    job: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(weights[*at]));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        let mut shared = None;
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((at, job(shared.get_or_insert_with(&make), at)));
        }
        done
    };
    let more = threads.min(weights.len()).saturating_sub(1);
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let others: Vec<_> = (0..more).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// The lowest job in which a difference was found: later ones need not be done, and all earlier ones are.
pub struct Lowest(AtomicUsize);

impl Default for Lowest {
    fn default() -> Lowest {
        Lowest(AtomicUsize::new(usize::MAX))
    }
}

impl Lowest {
    /// Whether one was found in an earlier job.
    pub fn is_before(&self, job: usize) -> bool {
        self.0.load(Ordering::Relaxed) < job
    }

    /// One was found in this job.
    pub fn found(&self, job: usize) {
        self.0.fetch_min(job, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let weights: Vec<usize> = (0..99).map(|at| at * 7 % 13).collect();
        let made = AtomicUsize::new(0);
        let make = || made.fetch_add(1, Ordering::Relaxed);
        let results = each(threads(), &weights, make, |_, at| at * 2);
        assert_eq!(results, (0..99).map(|at| at * 2).collect::<Vec<_>>());
        assert!((1..=threads()).contains(&made.load(Ordering::Relaxed)));
        assert!(each(threads(), &[], || (), |(), at| at).is_empty());
    }

    #[test]
    fn jobs_before_the_lowest_difference_are_done() {
        let lowest = Lowest::default();
        let done = each(
            threads(),
            &[1; 50],
            || (),
            |(), at| {
                if lowest.is_before(at) {
                    return false;
                }
                if at % 10 == 7 {
                    lowest.found(at);
                }
                true
            },
        );
        assert!(done[..=7].iter().all(|done| *done));
        assert!(lowest.is_before(8) && !lowest.is_before(7));
    }
}
