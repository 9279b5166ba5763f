//! Boolean questions: shared gates over a SAT solver.
//!
//! Numbers are lists of bits, lowest first; missing bits are 0. This module uses no code of the
//! synthesiser but its deadline, so that it checks its results independently.
//!
//! Making gates takes time and memory, too: once the deadline is over, or there are too many clauses, no more
//! are made, and every question is answered with [`Answer::Unknown`]. Bits that were made then mean nothing.

use crate::parallel;
use crate::solver::{self, Solver};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use synth::deadline::Deadline;

/// Clauses are made until there are this many on all threads: some 2 GB of gates and solvers.
const MOST_CLAUSES: u64 = 12_000_000;
/// Bits that are made between two looks at the clock.
const BETWEEN_LOOKS: u32 = 1024;

pub use crate::solver::Bit;

/// A number, lowest bit first.
pub type Word = Vec<Bit>;

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Impossible.
    Never,
    /// Possible; [`Gates::bit`] returns the bits of a solution.
    Found,
    /// Not decided in time.
    Unknown,
}

/// Gates over a solver.
pub struct Gates {
    solver: Box<dyn Solver>,
    yes: Bit,
    ands: HashMap<(Bit, Bit), Bit>,
    xors: HashMap<(Bit, Bit), Bit>,
    anys: HashMap<Box<[Bit]>, Bit>,
    deadline: Deadline,
    is_over: bool,
    most_clauses: u64,
    fresh_bits: u32,
    /// Number of questions.
    pub questions: usize,
}

impl Gates {
    /// No gates yet.
    pub fn new(deadline: &Deadline) -> Gates {
        let mut solver = solver::default(deadline);
        let yes = solver.fresh();
        solver.clause(&[yes]);
        Gates {
            solver,
            yes,
            ands: HashMap::new(),
            xors: HashMap::new(),
            anys: HashMap::new(),
            deadline: deadline.clone(),
            is_over: deadline.is_over(),
            // Two at least: one for what is done beside the other.
            most_clauses: MOST_CLAUSES / parallel::threads().max(2) as u64,
            fresh_bits: 0,
            questions: 0,
        }
    }

    /// Whether no more gates are made: the deadline is over, or there are too many.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn look(&mut self) {
        self.is_over |= self.deadline.is_over() || self.solver.clauses() > self.most_clauses;
    }

    /// The constant 1.
    pub fn yes(&self) -> Bit {
        self.yes
    }

    /// The constant 0.
    pub fn no(&self) -> Bit {
        !self.yes
    }

    /// A constant.
    pub fn constant(&self, bit: bool) -> Bit {
        if bit { self.yes } else { !self.yes }
    }

    /// The value of a bit, if it is constant.
    pub fn known(&self, bit: Bit) -> Option<bool> {
        (bit.number() == self.yes.number()).then_some(bit == self.yes)
    }

    /// The number of clauses.
    pub fn clauses(&self) -> usize {
        self.solver.clauses() as usize
    }

    /// A free bit.
    pub fn fresh(&mut self) -> Bit {
        self.fresh_bits = self.fresh_bits.wrapping_add(1);
        if self.fresh_bits.is_multiple_of(BETWEEN_LOOKS) {
            self.look();
        }
        if self.is_over {
            return self.no();
        }
        self.solver.fresh()
    }

    /// That many free bits.
    pub fn fresh_word(&mut self, width: usize) -> Word {
        (0..width).map(|_| self.fresh()).collect()
    }

    /// Adds the clause that at least one of the bits is 1.
    pub fn clause(&mut self, bits: &[Bit]) {
        if self.is_over {
            return;
        }
        self.solver.clause(bits);
    }

    /// 1 if both are 1.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        if self.is_over {
            return self.no();
        }
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(false)) => return self.no(),
            (Some(true), _) => return b,
            (_, Some(true)) => return a,
            _ if a == b => return a,
            _ if a == !b => return self.no(),
            _ => {}
        }
        if let Some(&known) = self.ands.get(&(a, b)) {
            return known;
        }
        let out = self.fresh();
        self.clause(&[!out, a]);
        self.clause(&[!out, b]);
        self.clause(&[out, !a, !b]);
        self.ands.insert((a, b), out);
        out
    }

    /// 1 if at least one is 1.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    /// 1 if exactly one is 1.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        if self.is_over {
            return self.no();
        }
        let turned = a.is_plain() != b.is_plain();
        let (a, b) = (Bit::new(a.number(), true), Bit::new(b.number(), true));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let out = match (self.known(a), self.known(b)) {
            _ if a == b => self.no(),
            (Some(true), _) => !b,
            (Some(false), _) => b,
            (_, Some(true)) => !a,
            (_, Some(false)) => a,
            _ => match self.xors.get(&(a, b)) {
                Some(&known) => known,
                None => {
                    let out = self.fresh();
                    self.clause(&[!out, a, b]);
                    self.clause(&[!out, !a, !b]);
                    self.clause(&[out, !a, b]);
                    self.clause(&[out, a, !b]);
                    self.xors.insert((a, b), out);
                    out
                }
            },
        };
        if turned { !out } else { out }
    }

    /// `a` if `c` is 1, else `b`.
    pub fn choose(&mut self, c: Bit, a: Bit, b: Bit) -> Bit {
        if a == b {
            return a;
        }
        match self.known(c) {
            Some(true) => return a,
            Some(false) => return b,
            None => {}
        }
        let (yes, no) = (self.and(c, a), self.and(!c, b));
        self.or(yes, no)
    }

    /// 1 if all are 1.
    pub fn all(&mut self, bits: &[Bit]) -> Bit {
        bits.iter().fold(self.yes, |all, bit| self.and(all, *bit))
    }

    /// 1 if any is 1.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        if self.is_over {
            return self.no();
        }
        // As one gate: there may be hundreds of bits.
        let mut open: Vec<Bit> = bits.iter().copied().filter(|bit| *bit != self.no()).collect();
        if open.contains(&self.yes) {
            return self.yes;
        }
        open.sort_unstable();
        open.dedup();
        // A bit and its negation are neighbours.
        if open.windows(2).any(|pair| pair[0] == !pair[1]) {
            return self.yes;
        }
        match *open.as_slice() {
            [] => return self.no(),
            [only] => return only,
            [a, b] => return self.or(a, b),
            _ => {}
        }
        if let Some(&known) = self.anys.get(open.as_slice()) {
            return known;
        }
        let out = self.fresh();
        for bit in &open {
            self.clause(&[out, !*bit]);
        }
        let key = open.clone().into_boxed_slice();
        open.push(!out);
        self.clause(&open);
        self.anys.insert(key, out);
        out
    }

    /// A bit that may be 1 where at least one of the bits is: one clause, for questions that ask for it.
    pub fn any_if_asked(&mut self, bits: &[Bit]) -> Bit {
        let out = self.fresh();
        let clause: Vec<Bit> = bits.iter().copied().chain([!out]).collect();
        self.clause(&clause);
        out
    }

    /// A constant number.
    pub fn number(&self, number: u64) -> Word {
        (0..64 - number.leading_zeros()).map(|at| self.constant(number >> at & 1 == 1)).collect()
    }

    /// A bit of a number.
    pub fn at(&self, word: &[Bit], bit: usize) -> Bit {
        word.get(bit).copied().unwrap_or(self.no())
    }

    /// The value, where it is constant.
    pub fn constant_of(&self, word: &[Bit]) -> Option<u64> {
        word.iter().enumerate().try_fold(0, |sum, (at, bit)| Some(sum | u64::from(self.known(*bit)?) << at))
    }

    /// Removes leading zeros.
    pub fn trimmed(&self, mut word: Word) -> Word {
        while word.last() == Some(&self.no()) {
            word.pop();
        }
        word
    }

    /// Bits of a number from `low` on, as a number.
    pub fn slice(&self, word: &[Bit], low: usize, width: usize) -> Word {
        self.trimmed(word.iter().skip(low).take(width).copied().collect())
    }

    /// Applies a gate to each pair of bits.
    pub fn each(&mut self, a: &[Bit], b: &[Bit], gate: impl Fn(&mut Gates, Bit, Bit) -> Bit) -> Word {
        let width = a.len().max(b.len());
        let bits = (0..width).map(|at| {
            let (a, b) = (self.at(a, at), self.at(b, at));
            gate(self, a, b)
        });
        let bits = bits.collect();
        self.trimmed(bits)
    }

    /// `a` if `c` is 1, else `b`.
    pub fn select(&mut self, c: Bit, a: &[Bit], b: &[Bit]) -> Word {
        self.each(a, b, |gates, a, b| gates.choose(c, a, b))
    }

    /// The sum with a carry, of at most 64 bits, and the carry out.
    fn sum(&mut self, a: &[Bit], b: &[Bit], mut carry: Bit) -> (Word, Bit) {
        let mut sum = Vec::with_capacity(64);
        for at in 0..64 {
            if at >= a.len().max(b.len()) && carry == self.no() {
                break;
            }
            let (a, b) = (self.at(a, at), self.at(b, at));
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            let (both, through) = (self.and(a, b), self.and(half, carry));
            carry = self.or(both, through);
        }
        (self.trimmed(sum), carry)
    }

    /// `a + b`.
    pub fn add(&mut self, a: &[Bit], b: &[Bit]) -> Word {
        self.sum(a, b, self.no()).0
    }

    /// `a - b`.
    pub fn sub(&mut self, a: &[Bit], b: &[Bit]) -> Word {
        let not: Word = (0..64).map(|at| !self.at(b, at)).collect();
        self.sum(a, &not, self.yes).0
    }

    /// `a * b`.
    pub fn mul(&mut self, a: &[Bit], b: &[Bit]) -> Word {
        // Needs few gates if one is constant.
        let (a, b) = if self.constant_of(b).is_some() { (b, a) } else { (a, b) };
        let mut sum = vec![];
        for (at, bit) in a.iter().copied().enumerate() {
            if bit == self.no() {
                continue;
            }
            let mut row = vec![self.no(); at];
            for other in b.iter().take(64 - at) {
                row.push(self.and(bit, *other));
            }
            sum = self.add(&sum, &row);
        }
        sum
    }

    /// `a % b`; 0 for `b` of 0.
    pub fn rem(&mut self, a: &[Bit], b: &[Bit]) -> Word {
        let mut rest: Word = vec![];
        for bit in a.iter().copied().rev() {
            rest.insert(0, bit);
            let over = self.at_most(b, &rest);
            let less = self.sub(&rest, b);
            rest = self.select(over, &less, &rest);
        }
        let zero = self.is_zero(b);
        self.select(zero, &[], &rest)
    }

    /// Whether a number is 0.
    pub fn is_zero(&mut self, a: &[Bit]) -> Bit {
        !self.any(a)
    }

    /// Whether two numbers are equal.
    pub fn equal(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let differ = self.each(a, b, Gates::xor);
        !self.any(&differ)
    }

    /// Adds the clause that two numbers are equal, or `unless` is 1.
    pub fn equate_unless(&mut self, unless: Bit, a: &[Bit], b: &[Bit]) {
        let equal = self.equal(a, b);
        self.clause(&[unless, equal]);
    }

    /// `a <= b`.
    pub fn at_most(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let mut more = self.no();
        for at in 0..a.len().max(b.len()) {
            let (a, b) = (self.at(a, at), self.at(b, at));
            let differ = self.xor(a, b);
            more = self.choose(differ, a, more);
        }
        !more
    }

    /// A shift by a variable number of bits; 0 for 64 and more.
    pub fn shift(&mut self, a: &[Bit], by: &[Bit], left: bool) -> Word {
        let mut now: Word = (0..64).map(|at| self.at(a, at)).collect();
        for step in 0..6usize {
            let (by, far) = (self.at(by, step), 1usize << step);
            now = (0..64)
                .map(|at: usize| {
                    let from = if left { at.checked_sub(far) } else { Some(at + far) };
                    let moved = from.map_or(self.no(), |from| self.at(&now, from));
                    self.choose(by, moved, now[at])
                })
                .collect();
        }
        let far: Word = by.iter().skip(6).copied().collect();
        let far = self.any(&far);
        self.select(far, &[], &now)
    }

    /// Asks whether all the bits can be 1 at once.
    pub fn ask(&mut self, bits: &[Bit], time: Duration) -> Answer {
        self.look();
        if self.is_over {
            return Answer::Unknown;
        }
        self.questions += 1;
        match self.solver.solve(bits, self.deadline.soonest(Instant::now() + time)) {
            Some(false) => Answer::Never,
            Some(true) => Answer::Found,
            None => Answer::Unknown,
        }
    }

    /// A bit of the solution.
    pub fn bit(&self, bit: Bit) -> bool {
        self.solver.value(bit).unwrap_or(false)
    }

    /// A number of the solution.
    pub fn value(&self, word: &[Bit]) -> u64 {
        word.iter().enumerate().fold(0, |sum, (at, bit)| sum | u64::from(self.bit(*bit)) << at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Each gate, on constants and on bits with a fixed value.
    #[test]
    fn gates_do_arithmetic() {
        let numbers = [0u64, 1, 2, 3, 5, 7, 16, 63, 64, 65, 255, 0xffff, 1 << 40, u64::MAX];
        type Gate = fn(&mut Gates, &[Bit], &[Bit]) -> Word;
        let gates: [(ir::BinOp, Gate); 8] = [
            (ir::BinOp::Add, Gates::add),
            (ir::BinOp::Sub, Gates::sub),
            (ir::BinOp::Rem, Gates::rem),
            (ir::BinOp::Mul, Gates::mul),
            (ir::BinOp::Shl, |gates, a, b| gates.shift(a, b, true)),
            (ir::BinOp::Shr, |gates, a, b| gates.shift(a, b, false)),
            (ir::BinOp::Le, |gates, a, b| vec![gates.at_most(a, b)]),
            (ir::BinOp::Eq, |gates, a, b| vec![gates.equal(a, b)]),
        ];
        for (op, gate) in gates {
            let mut all = Gates::new(&Deadline::default());
            let (x, y) = (all.fresh_word(64), all.fresh_word(64));
            // A product or remainder of two free numbers is large, so one is a constant.
            let both = if matches!(op, ir::BinOp::Rem | ir::BinOp::Mul) {
                None
            } else {
                Some(gate(&mut all, &x, &y))
            };
            for a in numbers {
                for b in numbers {
                    let (number_a, number_b) = (all.number(a), all.number(b));
                    let constant = gate(&mut all, &number_a, &number_b);
                    assert_eq!(all.constant_of(&constant), Some(op.apply(a, b)), "{op:?} {a} {b}");
                    let Some(both) = &both else { continue };
                    let (is_a, is_b) = (all.equal(&x, &number_a), all.equal(&y, &number_b));
                    let wanted = all.number(op.apply(a, b));
                    let right = all.equal(both, &wanted);
                    assert_eq!(all.ask(&[is_a, is_b, !right], Duration::from_secs(9)), Answer::Never);
                    assert_eq!(all.ask(&[is_a, is_b], Duration::from_secs(9)), Answer::Found);
                    assert_eq!(all.value(both), op.apply(a, b));
                }
            }
        }
    }

    /// The same bits in any order are one gate, and a bit and its negation are none.
    #[test]
    fn the_same_bits_are_one_gate() {
        let mut gates = Gates::new(&Deadline::default());
        let bits = gates.fresh_word(4);
        let any = gates.any(&bits);
        let clauses = gates.clauses();
        assert_eq!(gates.any(&[bits[2], bits[0], gates.no(), bits[3], bits[1], bits[0]]), any);
        assert_eq!(gates.any(&[bits[2], bits[0], !bits[2]]), gates.yes());
        assert_eq!((gates.any(&[bits[1], bits[1]]), gates.any(&[])), (bits[1], gates.no()));
        assert_eq!(gates.clauses(), clauses);
        let none: Vec<Bit> = bits.iter().map(|bit| !*bit).collect();
        let ask =
            |gates: &mut Gates, any: Bit| gates.ask(&[&none[1..], &[any]].concat(), Duration::from_secs(9));
        assert_eq!(ask(&mut gates, any), Answer::Found);
        assert!(gates.bit(bits[0]));
        gates.clause(&[none[0]]);
        assert_eq!(ask(&mut gates, any), Answer::Never);
    }

    #[test]
    fn nothing_is_decided_behind_the_deadline() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut gates = Gates::new(&Deadline::default().at_the_latest(Instant::now()));
        let bit = gates.fresh();
        assert_eq!(gates.ask(&[bit], Duration::from_secs(9)), Answer::Unknown);
        assert!(gates.is_over() && gates.questions == 0);
        // A product of free numbers ends, however large it would be.
        let far = Instant::now() + Duration::from_secs(99);
        let mut gates = Gates::new(&Deadline::new(far, Arc::clone(&stop)));
        let bit = gates.fresh();
        assert_eq!(gates.ask(&[bit], Duration::from_secs(9)), Answer::Found);
        stop.store(true, Ordering::Relaxed);
        let (x, y) = (gates.fresh_word(64), gates.fresh_word(64));
        gates.mul(&x, &y);
        assert!(gates.is_over() && gates.clauses() < 10_000, "{}", gates.clauses());
    }
}
