//! Numbers that a filter says: of records, wholly or of some of their bits, of updated checksums and of sums.

use super::super::expr::{Id, Node};
use super::Settler;
use ir::analysis::interval::IntervalSet;
use std::collections::BTreeMap;

/// A record may be found by a number of another one: how many are followed.
const PIN_ROUNDS: usize = 3;

impl Settler<'_> {
    /// A number of a record that the filter says, as it is.
    pub(super) fn unpinned(&mut self, id: Id) -> Id {
        match *self.pool.node(id) {
            Node::Slice(of, low, width) => {
                let of = self.again(of);
                self.make().slice(of, low, width)
            }
            _ => self.again(id),
        }
    }

    /// An expression, with the numbers that the filter says of some of its bits.
    pub(super) fn with_pinned_bits(&mut self, id: Id) -> Id {
        let settled = self.again(id);
        if let Some(number) = self.pinned.get(&settled) {
            return self.pool.number(*number);
        }
        let known = [id, settled].iter().find_map(|id| self.pinned_bits.get(id));
        let Some(pinned) = known.cloned() else { return settled };
        let (mut parts, mut at, bits) = (vec![], 0, self.pool.width(settled));
        for (low, (width, number)) in pinned {
            if low < at {
                continue;
            }
            if at < low {
                parts.push((at, self.make().slice(settled, at, low - at)));
            }
            parts.push((low, self.pool.number(number)));
            at = low + width;
        }
        if at < bits {
            parts.push((at, self.make().slice(settled, at, bits - at)));
        }
        self.make().cat(&parts)
    }

    /// Notes updated checksums that conditions say are one number: a program may write that number.
    pub(super) fn pin_sums(&mut self, required: &BTreeMap<Id, IntervalSet>) {
        let sums = required.iter().filter(|(id, _)| matches!(self.pool.node(**id), Node::Csum(..)));
        self.pinned.extend(sums.filter_map(|(id, set)| Some((*id, set.only()?))));
    }

    /// Notes the numbers of records by the forms that their expressions have here, too: two filters may say where a
    /// record is from in two ways, and one that bits of the packet are one number where others know what was written
    /// there.
    pub(super) fn pin_settled(&mut self, required: &BTreeMap<Id, IntervalSet>) {
        let is_read = |id: &Id| matches!(self.pool.node(*id), Node::Read(..));
        let reads = required.iter().filter(|(id, _)| is_read(id));
        let reads: Vec<(Id, u64)> = reads.filter_map(|(id, set)| Some((*id, set.only()?))).collect();
        for _ in 0..PIN_ROUNDS {
            let mut pinned: Vec<(Id, u64)> = self.pinned.iter().map(|(id, number)| (*id, *number)).collect();
            pinned.extend(&reads);
            pinned.sort_unstable();
            let forms: Vec<(Id, u64)> =
                pinned.into_iter().map(|(id, number)| (self.unpinned(id), number)).collect();
            let count = self.pinned.len();
            for (form, number) in forms {
                self.pin(form, number);
            }
            if self.pinned.len() == count {
                return;
            }
            self.known.clear();
            self.logs.clear();
        }
    }

    /// Notes a number of a record, or of some of its bits; what else is one number is not put in its place.
    pub(super) fn pin(&mut self, id: Id, number: u64) {
        match *self.pool.node(id) {
            Node::Slice(of, low, width) if matches!(self.pool.node(of), Node::RecLoad(..)) => {
                self.pinned_bits.entry(of).or_default().insert(low, (width, number));
            }
            Node::RecLoad(..) => {}
            _ => return,
        }
        self.pinned.insert(id, number);
    }

    /// Notes what conditions say of sums, in their form here.
    pub(super) fn note_sums(&mut self, required: &BTreeMap<Id, IntervalSet>) {
        for (id, set) in required {
            if !matches!(self.pool.node(*id), Node::Sum(..)) {
                continue;
            }
            let of = self.id(*id);
            let holds = self.is_in(of, set);
            if let Node::In(of, set) = self.pool.node(holds) {
                let said = self.sums.entry(*of).or_insert_with(IntervalSet::full);
                *said = said.intersection(set);
            }
        }
    }
}
