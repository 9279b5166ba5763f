//! Facts for the optimiser beside the program.

use std::collections::{BTreeMap, BTreeSet};

/// Facts about a program's packets and state that are not in the program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Known {
    /// The MAC header, where it is set at an entry, is the packet's first byte, as in frames that ports
    /// deliver.
    pub mac_at_data: bool,
    /// Cells that keep this value while the program runs. If a handler writes one, the program has to be
    /// compiled again.
    pub cells: BTreeMap<u16, u64>,
    /// Lookups by prefix are done by machine code where they are: values are carried past them at no cost.
    pub is_walked: bool,
    /// What a failed test for bytes says is used in further tests. It is worth knowing where the outcomes of tests have code
    /// of their own.
    pub has_copies: bool,
    /// Writes of neighbouring bytes become one: what comes last.
    pub joins_writes: bool,
    /// Reads of neighbouring fields become one: behind that.
    pub joins_reads: bool,
    /// Which pulls are delayed until a push cancels them: what comes last, too.
    pub delayed_pulls: DelayedPulls,
    /// Exits that few packets take: the fast path leads to others.
    pub seldom: BTreeSet<u16>,
}

/// Which pulls are delayed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DelayedPulls {
    /// None.
    #[default]
    None,
    /// Those of which the verifier knows, too, that their bytes are there: nothing that it knew is lost.
    Verified,
    /// All whose bytes are there. The verifier may refuse a push for which there is headroom.
    All,
}
