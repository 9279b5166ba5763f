//! [`batsat`], MiniSat in Rust.

use super::interface::{Bit, Solver};
use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;
use synth::deadline::Deadline;

/// MiniSat in Rust.
pub struct Batsat {
    solver: BasicSolver,
    until: Rc<Cell<Instant>>,
    /// The bits of a call, in the solver's own type.
    bits: Vec<Lit>,
}

impl Batsat {
    /// Without clauses.
    pub fn new(deadline: &Deadline) -> Batsat {
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
