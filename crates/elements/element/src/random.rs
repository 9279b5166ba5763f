//! Random numbers inside programs.
//!
//! Marsaglia's xorshift (64 bits; shifts 13, 7, 17) in a state cell. Each element and worker has its own
//! sequence, which is the same in every run.

use crate::configure::Configure;
use ir::expr::cell;
use ir::{Builder, Expr};

/// A seed that depends on the element's name and worker only. Never 0.
pub fn seed(cx: &Configure<'_>) -> u64 {
    // FNV-1a; the lowest bit is set, so that the seed is not 0.
    let bytes = cx.name.bytes().chain(cx.worker.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
        | 1
}

/// The next number of a sequence outside of programs.
#[inline]
pub fn next_number(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The next number as a fraction, from 0 to below 1.
pub fn next_unit(state: &mut u64) -> f64 {
    // 53 bits: the fraction of an `f64`.
    (next_number(state) >> 11) as f64 / (1u64 << 53) as f64
}

/// The next number as a whole number below a limit.
pub fn next_below(state: &mut u64, below: u64) -> u64 {
    (next_number(state) >> 11) % below.max(1)
}

/// The next number of the sequence in a cell, without the low bits of xorshift, which are less random.
pub fn next(f: &mut Builder, state_cell: u16) -> Expr {
    let state = f.eval(cell(state_cell));
    let state = f.eval(state ^ (state << 13));
    let state = f.eval(state ^ (state >> 7));
    let state = f.eval(state ^ (state << 17));
    f.set_cell(state_cell, state);
    state >> 11
}
