//! What a fast path does of the work that an entry of the flow cache would save.

use codegen::lookup_row::{self, LookupRow};
use ir::Verified;
use std::collections::BTreeSet;
use synth::template::Saved;

/// The work of packets of an entry that take its fast path, where all rows of lookups have unions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastWork {
    /// Lookups of prefixes that it does in rows.
    lookups: usize,
    /// The rows.
    rows: usize,
    /// Its decisions, but for those about records of a row.
    decisions: usize,
}

impl FastWork {
    /// For each entry of a program that was made from `program` and has a fast path; `seldom` are the exits that
    /// few packets take.
    pub(crate) fn of(program: &Verified, fast: &Verified, seldom: &BTreeSet<u16>) -> Vec<Option<FastWork>> {
        let rows = lookup_row::merge(fast).map(|(_, rows)| rows).unwrap_or_default();
        let tests = |row: &LookupRow| row.parts.iter().map(|part| part.tests.len()).sum::<usize>();
        let tests: usize = rows.iter().map(tests).sum();
        let of_entry = |met: Option<synth::optimize::Counts>| {
            let met = met.filter(|_| !rows.is_empty())?;
            let decisions = met.branches.saturating_sub(tests);
            Some(FastWork { lookups: met.lookups, rows: rows.len(), decisions })
        };
        synth::fast_path::met(program, fast, seldom).into_iter().map(of_entry).collect()
    }

    /// What an entry saves a packet, if the packet takes the fast path otherwise.
    pub(crate) fn beside(&self, saved: &Saved) -> Saved {
        match saved.prefixes.checked_sub(self.lookups) {
            Some(others) => Saved {
                prefixes: others + self.rows,
                decisions: saved.decisions.min(self.decisions),
                ..*saved
            },
            // A packet with fewer lookups does not take it.
            None => *saved,
        }
    }
}
