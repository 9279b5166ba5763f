//! Faults that tests plant into templates, to show that such a fault would be found.
//!
//! A process has at most one. Without the feature `fuzzing` none can be planted, and a program has nothing of
//! them.

use super::model::Template;
use super::tally::Tally;
use ir::eval::Exit;
use ir::{Inst, Merge};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A fault in the entries of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// An entry does not know the mappings that it stands for, and outlives them.
    ForgottenExpiry = 1,
    /// The flow's addresses are written in each other's place, as on the way back.
    SwappedWay,
    /// The checksums of two headers are written in each other's place.
    SwappedSums,
    /// Packets of another protocol share the entry.
    KeyWithoutProtocol,
    /// Packets that come in by another input share the entry: the zones of two networks.
    KeyWithoutInput,
    /// Nothing is asked of a packet beside its flow: neither TCP's flags nor fragments, lengths or time to
    /// live.
    NoGuards,
    /// Packets leave by another output.
    OtherExit,
    /// An element counts no packets.
    LostCount,
    /// That a flow goes on is merged into no mapping, which expires too early.
    LastNotMerged,
    /// That payload was seen, or how many packets, is merged into no mapping.
    SeenNotMerged,
    /// Packets without payload keep a closed connection open, and those with payload do not.
    OpenWithoutPayload,
    /// What an entry counts for one mapping is merged into one that another element has.
    OtherMapping,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 12] = [
        Fault::ForgottenExpiry,
        Fault::SwappedWay,
        Fault::SwappedSums,
        Fault::KeyWithoutProtocol,
        Fault::KeyWithoutInput,
        Fault::NoGuards,
        Fault::OtherExit,
        Fault::LostCount,
        Fault::LastNotMerged,
        Fault::SeenNotMerged,
        Fault::OpenWithoutPayload,
        Fault::OtherMapping,
    ];

    /// Plants a fault, in place of any other.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn plant(fault: Option<Fault>) {
        PLANTED.store(fault.map_or(0, |fault| fault as u8), Relaxed);
    }

    /// Whether this fault is planted.
    pub(super) fn is_planted(self) -> bool {
        cfg!(any(test, feature = "fuzzing")) && PLANTED.load(Relaxed) == self as u8
    }
}

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Puts the planted fault into what was recorded of a packet that may leave by that many outputs: the template,
/// the flow's numbers and its records.
pub(super) fn spoil(template: &mut Template, numbers: &mut [u64], lines: &mut Vec<u64>, outputs: u16) {
    let Some(fault) = Fault::ALL.into_iter().find(|fault| fault.is_planted()) else { return };
    match fault {
        Fault::ForgottenExpiry => {
            template.lines.clear();
            template.merges.clear();
            lines.clear();
        }
        Fault::SwappedWay => {
            let pairs = template.params.iter().zip(numbers).filter(|((_, bytes), _)| *bytes == 8);
            pairs.for_each(|(_, number)| *number = number.rotate_left(32));
        }
        Fault::SwappedSums => {
            let is_word = |inst: &&mut Inst| matches!(inst, Inst::Store(field, _) if field.width == 16);
            let mut sums = template.effects.iter_mut().filter(is_word);
            if let (Some(Inst::Store(_, first)), Some(Inst::Store(_, second))) = (sums.next(), sums.next()) {
                std::mem::swap(first, second);
            }
        }
        Fault::KeyWithoutProtocol | Fault::KeyWithoutInput => {}
        Fault::NoGuards => template.guards.clear(),
        Fault::OtherExit => {
            if let Exit::Emit(port) = &mut template.exit {
                *port = (*port + 1) % outputs;
            }
        }
        Fault::LostCount => {
            let count = template.effects.iter().position(|inst| matches!(inst, Inst::CellAdd(..)));
            count.map(|at| template.effects.remove(at));
        }
        Fault::LastNotMerged => template.merges.retain(|merging| merging.how != Merge::Max),
        Fault::SeenNotMerged => template.merges.retain(|merging| merging.how == Merge::Max),
        Fault::OpenWithoutPayload => {
            for (tally, _) in &mut template.tallies {
                if let Tally::LastIf(_, is_set) = tally {
                    *is_set = !*is_set;
                }
            }
        }
        Fault::OtherMapping => {
            let most = template.lines.len().saturating_sub(1) as u16;
            template.merges.iter_mut().for_each(|merging| merging.line = most - merging.line.min(most));
        }
    }
}
