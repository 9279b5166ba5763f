//! Exponentially weighted moving averages inside programs, as Click's `rate` handlers return.
//!
//! Time is divided into *epochs* of 2^20 ns, about a millisecond (Click: a jiffy). At the end of an epoch the
//! average moves by a 16th of its distance to the count of the epoch. An epoch without packets lowers it by a
//! 16th; the next packet applies all idle epochs at once.

use ir::expr::{cell, now_ns, select};
use ir::{Builder, Value};

/// Binary logarithm of an epoch's nanoseconds.
const EPOCH_SHIFT: u64 = 20;
/// Bits of an average behind the point.
pub(super) const SCALE: u32 = 10;
/// Binary logarithm of the part by which the average moves.
const STABILITY: u64 = 4;
/// Bits behind the point of the decay factors.
const FACTOR_SHIFT: u64 = 24;
/// Longer idle times decay as much as this one: (15/16)^255 is 7e-8.
const MOST_IDLE: u64 = 255;

/// The part of an average that is left after 1, 2, 4, ... 128 idle epochs.
const FACTORS: [u64; 8] = {
    let one = 1u128 << 32;
    let mut factor = one / 16 * 15;
    let mut factors = [0; 8];
    let mut at = 0;
    while at < factors.len() {
        factors[at] = (factor >> (32 - FACTOR_SHIFT)) as u64;
        factor = factor * factor / one;
        at += 1;
    }
    factors
};

/// The cells of an average. The element has the cell of its total.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    /// The total's cell.
    total: u16,
    /// The total when the epoch began.
    mark: u16,
    /// The average for an epoch, scaled.
    average: u16,
}

impl Average {
    /// The average of the total in a cell; its other values are in the cell `own` and the one after it.
    pub const fn new(total: u16, own: u16) -> Average {
        Average { total, mark: own, average: own + 1 }
    }

    /// Declares the cells; their numbers must be those that were reserved.
    pub(super) fn declare(self, f: &mut Builder) {
        let cells = (f.cell("mark", 0), f.cell("average", 0));
        debug_assert_eq!(cells, (self.mark, self.average));
    }

    /// The scaled average per second at a time; `epoch` is the epoch in the cells.
    pub(super) fn rate(self, cells: &[u64], epoch: u64, now_ns: u64) -> Option<u64> {
        let cell = |number: u16| cells.get(usize::from(number)).copied();
        let mut average = cell(self.average)?;
        if now_ns >> EPOCH_SHIFT > epoch {
            let counted = cell(self.total)?.wrapping_sub(cell(self.mark)?);
            average = average - (average >> STABILITY) + (counted << (u64::from(SCALE) - STABILITY));
            let idle = ((now_ns >> EPOCH_SHIFT) - epoch - 1).min(MOST_IDLE);
            for (bit, factor) in FACTORS.iter().enumerate().filter(|(bit, _)| idle >> bit & 1 == 1) {
                debug_assert!(bit < FACTORS.len());
                average = (average * factor) >> FACTOR_SHIFT;
            }
        }
        Some(((u128::from(average) * 1_000_000_000) >> EPOCH_SHIFT) as u64)
    }
}

/// Ends the epoch in the cell if a new one has begun, and continues in a new block. Must be called before the
/// packet is counted.
pub(super) fn turn(f: &mut Builder, epoch_cell: u16, averages: &[Average]) {
    let now = f.eval(now_ns() >> EPOCH_SHIFT);
    let then = f.eval(cell(epoch_cell));
    let (go_on, next) = f.branch(now.equals(then));
    f.at(next);
    let idle = f.eval((now - then - 1).min(MOST_IDLE));
    averages.iter().for_each(|average| close(f, *average, idle));
    f.set_cell(epoch_cell, now);
    f.jump(go_on);
    f.at(go_on);
}

/// Adds an epoch and the idle ones after it to an average.
fn close(f: &mut Builder, average: Average, idle: Value) {
    let (total, old) = (f.eval(cell(average.total)), f.eval(cell(average.average)));
    let counted = (total - cell(average.mark)) << (u64::from(SCALE) - STABILITY);
    let mut value = f.eval(old - (old >> STABILITY) + counted);
    for (bit, factor) in FACTORS.into_iter().enumerate() {
        value = f.eval(select(idle & (1 << bit), (value * factor) >> FACTOR_SHIFT, value));
    }
    f.set_cell(average.average, value);
    f.set_cell(average.mark, total);
}
