//! Lists of the lines of mappings that a flow cache holds.

use ir::HeldRecord;

/// Most lines in each of the lists.
pub(super) const MOST: usize = 8192;

/// What a flow cache has to know about the lines that it holds.
#[derive(Clone, Default, Debug)]
pub(super) struct HeldLines {
    /// Lines of mappings that were removed or changed, until they are taken.
    pub gone: Vec<HeldRecord>,
    /// How often that list overflowed.
    pub lost_count: u64,
    /// Lines whose numbers are wanted.
    pub asked: Vec<HeldRecord>,
    /// How many of those were not answered yet.
    pub unanswered: usize,
}

impl HeldLines {
    /// Moves the lines that are gone to a list.
    pub fn take_gone(&mut self, gone: &mut Vec<HeldRecord>) {
        gone.append(&mut self.gone);
    }

    /// Moves the lines whose numbers are wanted to a list.
    pub fn take_asked(&mut self, asked: &mut Vec<HeldRecord>) {
        asked.append(&mut self.asked);
    }
}
