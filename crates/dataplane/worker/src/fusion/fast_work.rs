//! What a fast path does of the work that an entry of the flow cache would save.

use codegen::lookup_row;
use ir::Verified;
use std::collections::BTreeSet;
use synth::fast_path::Met;
use synth::template::Saved;

/// The work of packets of an entry that take its fast path, where all rows of lookups have unions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastWork {
    /// The tables of its rows.
    tables: usize,
    /// The rows.
    rows: usize,
    /// Its decisions.
    decisions: usize,
    /// Its exit.
    port: u16,
}

impl FastWork {
    /// For each entry of a program that was made from `program` and has a fast path; `seldom` are the exits that
    /// few packets take.
    pub(crate) fn of(program: &Verified, fast: &Verified, seldom: &BTreeSet<u16>) -> Vec<Option<FastWork>> {
        let Some((united, rows)) = lookup_row::merge(fast) else { return vec![] };
        // Unions follow the program's own tables.
        let row = |table: u16| rows.get(usize::from(table).checked_sub(fast.tables.len())?);
        let weight = |table: u16| row(table).map_or(1, |row| row.parts.len());
        let of_entry = |met: Met| {
            let of_rows = || met.tables.iter().filter_map(|table| row(*table));
            FastWork {
                tables: of_rows().map(|row| row.parts.len()).sum(),
                rows: of_rows().count(),
                decisions: met.counts.branches,
                port: met.port,
            }
        };
        let met = synth::fast_path::met(program, &united, weight, seldom);
        met.into_iter().map(|met| met.map(of_entry).filter(|work| work.rows > 0)).collect()
    }

    /// Whether it is for packets that leave by this port.
    pub fn is_to(&self, port: u16) -> bool {
        self.port == port
    }

    /// What an entry saves a packet, if the packet takes the fast path otherwise.
    pub(crate) fn beside(&self, saved: &Saved) -> Saved {
        match saved.prefixes.checked_sub(self.tables) {
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
