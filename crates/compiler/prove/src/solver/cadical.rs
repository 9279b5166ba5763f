//! [CaDiCaL](https://github.com/arminbiere/cadical), in C++.

use super::interface::{Bit, Solver};
use std::time::Instant;
use synth::deadline::Deadline;

/// CaDiCaL.
pub struct Cadical {
    solver: cadical::Solver<Until>,
    bits: u32,
    clauses: u64,
    deadline: Deadline,
    /// The bits of the solution that was found last: the library forgets it with the next clause.
    found: Vec<bool>,
}

/// When a question ends.
struct Until {
    at: Instant,
    deadline: Deadline,
}

impl Until {
    fn is_over(&self) -> bool {
        self.deadline.is_stopped() || Instant::now() >= self.at
    }
}

impl cadical::Callbacks for Until {
    fn terminate(&mut self) -> bool {
        self.is_over()
    }
}

impl Cadical {
    /// Without clauses.
    pub fn new(deadline: &Deadline) -> Cadical {
        let (solver, deadline) = (cadical::Solver::new(), deadline.clone());
        Cadical { solver, bits: 0, clauses: 0, deadline, found: vec![] }
    }
}

/// A bit as CaDiCaL has it: numbered from 1, and negative for its negation.
fn own(bit: &Bit) -> i32 {
    let number = bit.number() as i32 + 1;
    if bit.is_plain() { number } else { -number }
}

impl Solver for Cadical {
    fn fresh(&mut self) -> Bit {
        self.bits += 1;
        Bit::new(self.bits - 1, true)
    }

    fn clause(&mut self, bits: &[Bit]) {
        self.clauses += 1;
        self.solver.add_clause(bits.iter().map(own));
    }

    fn clauses(&self) -> u64 {
        self.clauses
    }

    fn solve(&mut self, bits: &[Bit], until: Instant) -> Option<bool> {
        let until = Until { at: until, deadline: self.deadline.clone() };
        // It looks only once it has begun to search.
        if until.is_over() {
            return None;
        }
        self.solver.set_callbacks(Some(until));
        let answer = self.solver.solve_with(bits.iter().map(own))?;
        if answer {
            let values = (1..=self.bits as i32).map(|number| self.solver.value(number) == Some(true));
            self.found = values.collect();
        }
        Some(answer)
    }

    fn value(&self, bit: Bit) -> Option<bool> {
        self.found.get(bit.number() as usize).map(|value| *value == bit.is_plain())
    }
}
