//! The SAT solver, as a part that can be exchanged: what [`crate::gates`] needs of one.

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};
use std::cell::Cell;
use std::ops::Not;
use std::rc::Rc;
use std::time::Instant;
use synth::deadline::Deadline;

/// A bit, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bit(u32);

impl Bit {
    /// The bit with this number, or its negation.
    pub fn new(number: u32, is_plain: bool) -> Bit {
        Bit(number * 2 + u32::from(!is_plain))
    }

    /// The number of the bit that this is, or is the negation of.
    pub fn number(self) -> u32 {
        self.0 / 2
    }

    /// Whether it is no negation.
    pub fn is_plain(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

impl Not for Bit {
    type Output = Bit;

    fn not(self) -> Bit {
        Bit(self.0 ^ 1)
    }
}

/// A SAT solver to which clauses are added between questions.
pub trait Solver {
    /// A further free bit: they are numbered from 0.
    fn fresh(&mut self) -> Bit;

    /// Adds the clause that at least one of the bits is 1.
    fn clause(&mut self, bits: &[Bit]);

    /// The number of clauses.
    fn clauses(&self) -> u64;

    /// Whether all of these bits can be 1 at once; `None` where that is not decided until then.
    fn solve(&mut self, bits: &[Bit], until: Instant) -> Option<bool>;

    /// A bit of the solution that was found last, where it matters.
    fn value(&self, bit: Bit) -> Option<bool>;
}

/// The solver that is used. It ends a question when its deadline is told to.
pub fn default(deadline: &Deadline) -> Box<dyn Solver> {
    Box::new(Batsat::new(deadline))
}

/// MiniSat in Rust.
struct Batsat {
    solver: BasicSolver,
    until: Rc<Cell<Instant>>,
    /// The bits of a call, in the solver's own type.
    bits: Vec<Lit>,
}

impl Batsat {
    fn new(deadline: &Deadline) -> Batsat {
        let until = Rc::new(Cell::new(Instant::now()));
        let mut callbacks = batsat::BasicCallbacks::new();
        let (stop, signal) = (Rc::clone(&until), deadline.clone());
        callbacks.set_stop(move || signal.is_stopped() || Instant::now() >= stop.get());
        let solver = BasicSolver::new(batsat::SolverOpts::default(), callbacks);
        Batsat { solver, until, bits: vec![] }
    }

    fn take(&mut self, bits: &[Bit]) {
        self.bits.clear();
        let own = |bit: &Bit| Lit::new(Var::unsafe_from_idx(bit.number()), bit.is_plain());
        self.bits.extend(bits.iter().map(own));
    }
}

impl Solver for Batsat {
    fn fresh(&mut self) -> Bit {
        Bit::new(self.solver.new_var_default().idx(), true)
    }

    fn clause(&mut self, bits: &[Bit]) {
        self.take(bits);
        self.solver.add_clause_reuse(&mut self.bits);
    }

    fn clauses(&self) -> u64 {
        self.solver.num_clauses()
    }

    fn solve(&mut self, bits: &[Bit], until: Instant) -> Option<bool> {
        self.until.set(until);
        self.take(bits);
        match self.solver.solve_limited(&self.bits) {
            answer if answer == lbool::FALSE => Some(false),
            answer if answer == lbool::TRUE => Some(true),
            _ => None,
        }
    }

    fn value(&self, bit: Bit) -> Option<bool> {
        // A bit that is in no clause has no value.
        let value = *self.solver.get_model().get(bit.number() as usize)?;
        Some((value == lbool::TRUE) == bit.is_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use std::time::Duration;

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

    /// Both answer each of many questions alike, between which clauses are added, and a solution is one.
    #[test]
    fn answers_are_those_of_trying_everything() {
        let mut rng = Pcg64::seed_from_u64(1);
        let mut answers = [0, 0];
        for _ in 0..60 {
            let (mut every, mut solver) = (Exhaustive::default(), default(&Deadline::default()));
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
}
