//! The jobs of a proof, spread over the machine's threads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The most threads: each may need memory for questions of its own.
pub const MOST_THREADS: usize = 4;

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

/// Does all jobs on at most that many threads, and what they leave: a thread that has no job does that while others still
/// have theirs. Returns the results of the jobs, in their order, each with those of what it left, in the order in which
/// it did.
pub fn each_leaving<T: Send, W: Send, R: Send>(
    threads: usize,
    jobs: usize,
    job: impl Fn(usize, &mut dyn FnMut(W)) -> T + Sync,
    rest: impl Fn(W) -> R + Sync,
) -> Vec<(T, Vec<R>)> {
    let shared = Leaving { state: Mutex::new(LeavingState::default()), changed: Condvar::new() };
    let work = |_: &mut (), _: usize| {
        let (mut done, mut rests) = (vec![], vec![]);
        loop {
            match shared.next(jobs) {
                Next::Job(at) => {
                    let _running = Running(&shared);
                    let mut nth = 0;
                    let mut leave = |work: W| {
                        shared.state().left.push_back(((at, nth), work));
                        shared.changed.notify_one();
                        nth += 1;
                    };
                    done.push((at, job(at, &mut leave)));
                }
                Next::Rest(of, work) => rests.push((of, rest(work))),
                Next::End => return (done, rests),
            }
        }
    };
    let all = each(threads, &vec![1; threads], || (), work);
    let (mut done, mut rests) = (BTreeMap::new(), BTreeMap::new());
    for (some, of_some) in all {
        done.extend(some);
        rests.extend(of_some);
    }
    let mut rests = rests.into_iter().peekable();
    let with_rests = done.into_iter().map(|(at, result)| {
        let own = std::iter::from_fn(|| rests.next_if(|((job, _), _)| *job == at));
        (result, own.map(|(_, rest)| rest).collect())
    });
    with_rests.collect()
}

/// What threads share that do jobs and what these leave.
struct Leaving<W> {
    state: Mutex<LeavingState<W>>,
    changed: Condvar,
}

struct LeavingState<W> {
    begun: usize,
    running: usize,
    left: VecDeque<((usize, usize), W)>,
}

impl<W> Default for LeavingState<W> {
    fn default() -> LeavingState<W> {
        LeavingState { begun: 0, running: 0, left: VecDeque::new() }
    }
}

/// With so many things left, they are done before another job begins.
const MOST_LEFT: usize = 8;

enum Next<W> {
    Job(usize),
    Rest((usize, usize), W),
    End,
}

impl<W> Leaving<W> {
    fn state(&self) -> MutexGuard<'_, LeavingState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, jobs: usize) -> Next<W> {
        let mut state = self.state();
        loop {
            // What is left keeps what it is about in memory, so there is little of it at once.
            if state.begun < jobs && state.left.len() < MOST_LEFT {
                state.begun += 1;
                state.running += 1;
                return Next::Job(state.begun - 1);
            }
            if let Some((of, work)) = state.left.pop_front() {
                return Next::Rest(of, work);
            }
            if state.running == 0 {
                return Next::End;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A job that runs: others wait for what it leaves, until it ends in whatever way.
struct Running<'s, W>(&'s Leaving<W>);

impl<W> Drop for Running<'_, W> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.changed.notify_all();
    }
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

    /// What jobs leave is done once, also by the thread of the last job, and comes back in its order.
    #[test]
    fn what_jobs_leave_is_done() {
        for threads in 1..=3 {
            let job = |at: usize, leave: &mut dyn FnMut(usize)| {
                (0..at).for_each(|nth| leave(at * 10 + nth));
                at
            };
            let results = each_leaving(threads, 5, job, |work| work + 1000);
            let wanted: Vec<(usize, Vec<usize>)> =
                (0..5).map(|at| (at, (0..at).map(|nth| 1000 + at * 10 + nth).collect())).collect();
            assert_eq!(results, wanted);
        }
        assert!(each_leaving(2, 0, |_, _: &mut dyn FnMut(u8)| (), |_| ()).is_empty());
    }

    /// Threads that wait for what a job may leave do not wait for one that panicked.
    #[test]
    fn a_panic_ends_all_threads() {
        let job = |at: usize, _: &mut dyn FnMut(u8)| assert_ne!(at, 1, "a panic on purpose");
        let ended = std::panic::catch_unwind(|| each_leaving(2, 2, job, |_| ()));
        assert!(ended.is_err());
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
