//! The optimiser of packet programs: the code that a person would write by hand for a whole chain. One
//! read, one write, one checksum update, no check done twice.
//!
//! [`optimize`] preserves, for every packet: its exit; its bytes, annotations, header bases and type if
//! it is emitted or takes a slow path (a dropped packet is not read); cells and records; and the lookups
//! in each table with their keys and arguments, except for a repeated lookup with no creation in between.
//! The result is verified.
//!
//! Each round walks forwards (`forward`: a known result is not computed again), backwards (`dead`: a
//! write that is not read is removed) and over the graph (`shape`). The work of a round is proportional
//! to the program: the facts at a block are bounded.

mod assume;
mod byte_range;
mod csum;
mod dead;
mod delay;
mod extent;
mod forward;
mod header;
mod join;
mod join_reads;
mod join_writes;
mod known;
mod late_pulls;
mod linear;
mod make;
mod optimization_note;
mod optimizer_state;
mod pulls;
mod read_fields;
mod relations;
mod report;
mod retain;
mod shape;
mod sink;
mod terminators;
mod unread;
mod value;
mod within;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use forward::is_bare_exit;
pub use known::{DelayedPulls, Known};
pub use report::{Counts, Report};
pub(crate) use sink::next_blocks;

use ir::Verified;
use ir::verify::VerifyError;

/// Each round changes less than the one before.
const MOST_ROUNDS: usize = 6;

/// The same program with fewer operations.
///
/// # Errors
/// When the result breaks the IR's invariants: a bug.
pub fn optimize(program: &Verified) -> Result<Verified, VerifyError> {
    optimize_with(program, &Known::default()).map(|(program, _)| program)
}

/// [`optimize`] with further facts; returns the report, too.
///
/// # Errors
/// When the result breaks the IR's invariants: a bug.
pub fn optimize_with(program: &Verified, known: &Known) -> Result<(Verified, Report), VerifyError> {
    let (after, rounds) = optimize_rounds(program, known, MOST_ROUNDS)?;
    let report = Report {
        before: Counts::of(program),
        after: Counts::of(&after),
        packet_before: Counts::at_most(program),
        packet_after: Counts::at_most(&after),
        rounds,
    };
    Ok((after, report))
}

/// The same program after at most that many walks over it, and the number of walks.
pub(crate) fn optimize_rounds(
    program: &Verified,
    known: &Known,
    most_rounds: usize,
) -> Result<(Verified, usize), VerifyError> {
    let mut now = program.clone().into_program();
    let mut rounds = 0;
    while rounds < most_rounds {
        rounds += 1;
        let mut rewritten = forward::rewrite(&now, known);
        dead::remove(&mut rewritten);
        late_pulls::delay(&mut rewritten.program, &mut rewritten.notes, known.delayed_pulls);
        let mut next = rewritten.program;
        shape::tidy(&mut next);
        if next == now {
            break;
        }
        now = next;
    }
    Ok((Verified::new(now)?, rounds))
}

/// [`optimize_with`], then [`with_joined_writes`] and [`with_joined_reads`].
///
/// # Errors
/// When the result breaks the IR's invariants: a bug.
pub fn finished(program: &Verified, known: &Known) -> Result<Verified, VerifyError> {
    let (program, _) = optimize_with(program, known)?;
    with_joined_reads(&with_joined_writes(&program, known)?, known)
}

/// An optimised program in which one write does those of neighbouring bytes, and no bytes are pulled for which others are
/// pushed. It comes last: what only some paths write again is moved and removed one by one.
///
/// # Errors
/// When the result breaks the IR's invariants: a bug.
pub fn with_joined_writes(program: &Verified, known: &Known) -> Result<Verified, VerifyError> {
    let delaying = |delayed_pulls| {
        let known = Known { joins_writes: true, delayed_pulls, ..known.clone() };
        optimize_rounds(program, &known, 2).map(|(program, _)| program)
    };
    match delaying(DelayedPulls::All) {
        Err(VerifyError::Headroom(..) | VerifyError::Bounds(..)) => delaying(DelayedPulls::Verified),
        joined => joined,
    }
}

/// One in which one read does those of neighbouring fields, too. What a flow's entry is made from is the program before: a
/// field of the flow's key is a value by itself there.
///
/// # Errors
/// When the result breaks the IR's invariants: a bug.
pub fn with_joined_reads(program: &Verified, known: &Known) -> Result<Verified, VerifyError> {
    let known = Known { joins_writes: true, joins_reads: true, ..known.clone() };
    optimize_rounds(program, &known, 2).map(|(program, _)| program)
}
