//! The SAT solver, as a part that can be exchanged: what [`crate::gates`] needs of one.
//!
//! It is batsat, or with the feature `cadical` CaDiCaL, which takes a C++ compiler.

#[cfg(any(test, not(feature = "cadical")))]
mod batsat;
#[cfg(feature = "cadical")]
mod cadical;
mod interface;

pub use interface::{Bit, Solver};

use synth::deadline::Deadline;

/// The name of the solver that is used.
pub const NAME: &str = if cfg!(feature = "cadical") { "CaDiCaL" } else { "batsat" };

/// The solver that is used. It ends a question when its deadline is told to.
pub fn default(deadline: &Deadline) -> Box<dyn Solver> {
    #[cfg(feature = "cadical")]
    return Box::new(cadical::Cadical::new(deadline));
    #[cfg(not(feature = "cadical"))]
    return Box::new(batsat::Batsat::new(deadline));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// A solver that tries every value of its few bits.
    #[derive(Default)]
    struct Exhaustive {
        bits: u32,
        clauses: Vec<Vec<Bit>>,
        found: u32,
    }

    impl Exhaustive {
        fn holds(values: u32, bit: Bit) -> bool {
            (values >> bit.number() & 1 == 1) == bit.is_plain()
        }
    }

    impl Solver for Exhaustive {
        fn fresh(&mut self) -> Bit {
            self.bits += 1;
            Bit::new(self.bits - 1, true)
        }

        fn clause(&mut self, bits: &[Bit]) {
            self.clauses.push(bits.to_vec());
        }

        fn clauses(&self) -> u64 {
            self.clauses.len() as u64
        }

        fn solve(&mut self, bits: &[Bit], _until: Instant) -> Option<bool> {
            let holds = |values: u32, bit: &Bit| Exhaustive::holds(values, *bit);
            let found = (0..1 << self.bits).find(|values| {
                bits.iter().all(|bit| holds(*values, bit))
                    && self.clauses.iter().all(|clause| clause.iter().any(|bit| holds(*values, bit)))
            });
            self.found = found.unwrap_or_default();
            Some(found.is_some())
        }

        fn value(&self, bit: Bit) -> Option<bool> {
            Some(Exhaustive::holds(self.found, bit))
        }
    }

    /// Each solver answers each of many questions as trying everything does. Clauses are added between the questions,
    /// and a solution is one.
    #[test]
    fn answers_are_those_of_trying_everything() {
        answers_are_right(|| Box::new(batsat::Batsat::new(&Deadline::default())));
        #[cfg(feature = "cadical")]
        answers_are_right(|| Box::new(cadical::Cadical::new(&Deadline::default())));
    }

    fn answers_are_right(make: impl Fn() -> Box<dyn Solver>) {
        let mut rng = Pcg64::seed_from_u64(1);
        let mut answers = [0, 0];
        for _ in 0..60 {
            let (mut every, mut solver) = (Exhaustive::default(), make());
            for _ in 0..9 {
                assert_eq!(every.fresh(), solver.fresh());
            }
            for _ in 0..12 {
                let mut some = |most: usize| -> Vec<Bit> {
                    let bit = |rng: &mut Pcg64| Bit::new(rng.random_range(0..9), rng.random());
                    (0..most).map(|_| bit(&mut rng)).collect()
                };
                for _ in 0..4 {
                    let clause = some(3);
                    every.clause(&clause);
                    solver.clause(&clause);
                }
                let question = some(2);
                let until = Instant::now() + Duration::from_secs(99);
                let answer = solver.solve(&question, until);
                assert_eq!(answer, every.solve(&question, until), "{question:?} {:?}", every.clauses);
                answers[usize::from(answer == Some(true))] += 1;
                if answer == Some(true) {
                    let is_one = |bit: &Bit| solver.value(*bit) != Some(false);
                    assert!(question.iter().all(is_one));
                    assert!(every.clauses.iter().all(|clause| clause.iter().any(is_one)));
                }
            }
        }
        assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
    }

    /// A solution stays while the next question's bits are made, and a question ends when it is told to.
    #[test]
    fn solutions_stay_and_questions_end() {
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::new(Instant::now() + Duration::from_secs(99), Arc::clone(&stop));
        #[cfg_attr(not(feature = "cadical"), expect(unused_mut, reason = "CaDiCaL is added"))]
        let mut solvers: Vec<Box<dyn Solver>> = vec![Box::new(batsat::Batsat::new(&deadline))];
        #[cfg(feature = "cadical")]
        solvers.push(Box::new(cadical::Cadical::new(&deadline)));
        for mut solver in solvers {
            stop.store(false, Ordering::Relaxed);
            let far = Instant::now() + Duration::from_secs(99);
            let (a, b) = (solver.fresh(), solver.fresh());
            solver.clause(&[a, b]);
            assert_eq!(solver.solve(&[!a], far), Some(true));
            let c = solver.fresh();
            solver.clause(&[c, !b]);
            assert_eq!([a, b, !b].map(|bit| solver.value(bit)), [Some(false), Some(true), Some(false)]);
            assert_eq!((solver.value(c), solver.clauses() > 0), (None, true));
            // More pigeons than holes: nothing that is decided at once.
            let holes: Vec<Vec<Bit>> = (0..12).map(|_| (0..11).map(|_| solver.fresh()).collect()).collect();
            for (at, pigeon) in holes.iter().enumerate() {
                solver.clause(pigeon);
                for other in &holes[..at] {
                    pigeon.iter().zip(other).for_each(|(mine, theirs)| solver.clause(&[!*mine, !*theirs]));
                }
            }
            let soon = Instant::now() + Duration::from_millis(30);
            assert_eq!(solver.solve(&[], soon), None);
            stop.store(true, Ordering::Relaxed);
            assert_eq!(solver.solve(&[], far), None);
        }
    }
}
