//! Simplified values are equal to the originals: random expressions, evaluated both ways.

use crate::optimize::linear::linear;
use crate::optimize::value::{Expr, Facts, Values, Vn};
use ir::BinOp;
use ir::analysis::interval::Interval;
use ir::eval::checksum_update;
use proptest::prelude::*;

/// Numbers at the boundaries of checksum and field arithmetic.
const CORNERS: [u64; 14] =
    [0, 1, 2, 15, 0x45, 0xff, 0x100, 0xfffe, 0xffff, 0x1_0000, 0xffff_fffe, 0xffff_ffff, 1 << 63, u64::MAX];
const WIDTHS: [u64; 7] = [1, 15, 0xff, 0xffff, 0xffff_ffff, u64::MAX, 0x4f];

/// The next operation, with a number for it.
type Step = ((u8, u8, u8, u8), u64);

struct Both {
    values: Values,
    facts: Facts,
    /// Each value's number, and its expected result.
    assigned: Vec<(Vn, u64)>,
}

impl Both {
    /// The result of a value number, by its expression.
    fn worked_out(&self, number: Vn) -> u64 {
        let of = |part| self.worked_out(part);
        match self.values.expr(number) {
            Expr::Const(number) => number,
            Expr::Bin(op, a, b) => op.apply(of(a), of(b)),
            Expr::Select(a, b, c) => {
                if of(a) != 0 {
                    of(b)
                } else {
                    of(c)
                }
            }
            Expr::Csum(a, b, c, width) => checksum_update(of(a), of(b), of(c), width),
            _ => self.assigned.iter().find(|made| made.0 == number).expect("a leaf").1,
        }
    }

    fn leaf(&mut self, most: u64, number: u64) {
        let number = if most == u64::MAX { number } else { number % (most + 1) };
        let leaf = self.values.own(Interval::up_to(most));
        self.assigned.push((leaf, number));
    }

    fn step(&mut self, (what, a, b, c): (u8, u8, u8, u8), number: u64) {
        let pick = |at: u8| self.assigned[usize::from(at) % self.assigned.len()];
        let ((x, left), (y, right), (z, third)) = (pick(a), pick(b), pick(c));
        let made = match what % 24 {
            0..=5 => {
                let op = BinOp::ALL[usize::from(c) % BinOp::ALL.len()].0;
                (self.values.bin(op, x, y, &self.facts), op.apply(left, right))
            }
            6..=13 => {
                let op = BinOp::ALL[usize::from(c) % BinOp::ALL.len()].0;
                let number = match b % 4 {
                    0 => CORNERS[usize::from(b / 4) % CORNERS.len()],
                    1 => u64::from(b / 4),
                    2 => left.wrapping_add(u64::from(b / 4)),
                    _ => number >> (b / 4),
                };
                (self.values.bin_const(op, x, number, &self.facts), op.apply(left, number))
            }
            14 => {
                let value = if left != 0 { right } else { third };
                (self.values.select(x, y, z, &self.facts), value)
            }
            15..=18 => {
                let width = if what.is_multiple_of(2) { 16 } else { 32 };
                let value = checksum_update(left, right, third, width);
                (self.values.csum(x, y, z, width, &self.facts), value)
            }
            // The pattern that the rewriters use.
            19 => {
                let none = self.values.bin_const(BinOp::And, x, 0xffff, &self.facts);
                let delta = self.values.bin_const(BinOp::And, y, 0xffff, &self.facts);
                let sum = self.values.bin_const(BinOp::Xor, none, 0xffff, &self.facts);
                let sum = self.values.bin(BinOp::Add, sum, delta, &self.facts);
                let low = self.values.bin_const(BinOp::And, sum, 0xffff, &self.facts);
                let carry = self.values.bin_const(BinOp::Shr, sum, 16, &self.facts);
                let sum = self.values.bin(BinOp::Add, low, carry, &self.facts);
                let whole = (left & 0xffff ^ 0xffff) + (right & 0xffff);
                let whole = (whole & 0xffff) + (whole >> 16);
                (self.values.bin_const(BinOp::Xor, sum, 0xffff, &self.facts), whole ^ 0xffff)
            }
            20 | 21 => {
                assert!(self.values.assume(x, left != 0, &mut self.facts), "what is so is possible");
                return;
            }
            22 => {
                assert!(self.values.assume_not(x, left.wrapping_add(1), &mut self.facts));
                let range = Interval { lo: left - left % 8, hi: left | 7 };
                assert!(self.values.assume_range(x, range, &mut self.facts));
                return;
            }
            _ => {
                self.leaf(WIDTHS[usize::from(a) % WIDTHS.len()], number);
                return;
            }
        };
        self.assigned.push(made);
    }

    fn check(&mut self) {
        for (number, value) in self.assigned.clone() {
            assert_eq!(self.worked_out(number), value, "{:?}", self.values.expr(number));
            let range = self.values.range(number, &self.facts);
            assert!(
                range.lo <= value && value <= range.hi,
                "{:?} {value:#x} {range:?}",
                self.values.expr(number)
            );
            assert_eq!(value & !self.values.bits(number), 0, "{:?}", self.values.expr(number));
            let sum = linear(&mut self.values, number, &self.facts);
            assert_eq!(
                sum.worked_out(|part| self.worked_out(part)),
                value % 0xffff,
                "{:?}",
                self.values.expr(number)
            );
        }
    }
}

fn run(leaves: &[(usize, u64)], steps: &[Step]) {
    let mut both = Both { values: Values::default(), facts: Facts::default(), assigned: vec![] };
    for &(width, number) in leaves {
        let most = WIDTHS[width % WIDTHS.len()];
        both.leaf(most, if number % 3 == 0 { CORNERS[number as usize / 3 % CORNERS.len()] } else { number });
    }
    steps.iter().for_each(|(what, number)| both.step(*what, *number));
    both.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
    #[test]
    fn a_value_is_what_it_was(
        leaves in prop::collection::vec((0..7usize, any::<u64>()), 1..5),
        steps in prop::collection::vec((any::<(u8, u8, u8, u8)>(), any::<u64>()), 0..24),
    ) {
        run(&leaves, &steps);
    }
}

/// Every checksum, updated twice: by constants and by words that the optimiser does not know.
#[test]
fn two_updates_as_one_are_exact_for_every_checksum() {
    let words = [0, 1, 0x100, 0x7fff, 0xfffe, 0xffff];
    let none = Facts::default();
    for (first, second) in [(16, 16), (16, 32), (32, 16), (32, 32)] {
        for at in 0..6usize.pow(4) {
            let [a, b, c, d] = [at % 6, at / 6 % 6, at / 36 % 6, at / 216].map(|at| words[at]);
            for unknown in [0, 0b1111, 0b0110, 0b0011] {
                let mut values = Values::default();
                let sum = values.own(Interval::up_to(0xffff));
                let mut known = vec![];
                let parts = [a, b, c, d].map(|word| {
                    let which = known.len();
                    let part = if unknown >> which & 1 == 1 {
                        // The second and the third are one word: it is written and read again.
                        if which == 2 && unknown == 0b0110 {
                            known[1]
                        } else {
                            (values.own(Interval::up_to(0xffff_ffff)), word)
                        }
                    } else {
                        (values.constant(word), word)
                    };
                    known.push(part);
                    part
                });
                let once = values.csum(sum, parts[0].0, parts[1].0, first, &none);
                let twice = values.csum(once, parts[2].0, parts[3].0, second, &none);
                let step = if unknown == 0 { 1 } else { 0x0fff };
                if unknown == 0 && at % 7 != 0 {
                    continue;
                }
                let mut both = Both { values, facts: Facts::default(), assigned: known };
                both.assigned.push((sum, 0));
                let last = both.assigned.len() - 1;
                for start in (0..0x1_0000u64).step_by(step).chain([1, 0xfffe, 0xffff]) {
                    both.assigned[last].1 = start;
                    let wanted = checksum_update(start, parts[0].1, parts[1].1, first);
                    let wanted = checksum_update(wanted, parts[2].1, parts[3].1, second);
                    let found = both.worked_out(twice);
                    assert_eq!(found, wanted, "{start:#x}, {parts:?}, {first}, {second}");
                }
            }
        }
    }
}
