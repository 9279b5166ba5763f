//! The bits of a packet that are written again before they are read.

use super::optimization_note::{Kind, OptimizationNote, Reads, Touch};
use super::optimizer_state::push_bounded;
use ir::Term;

/// Beyond this number ranges are discarded: the work per block stays bounded.
pub(super) const MOST_SPANS: usize = 32;

/// The bits that are written again before they are read.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Unread {
    /// If the packet is dropped on every path: the reads before the drop.
    dropped: Option<Vec<Touch>>,
    spans: Vec<Touch>,
    /// Bases that are set or cleared before they are used, by bit.
    pub(super) bases: u8,
}

impl Unread {
    fn dropped() -> Unread {
        Unread { dropped: Some(vec![]), spans: vec![], bases: !0 }
    }

    /// Whether bits are never read because the packet is dropped.
    fn is_dropped(&self, touch: &Touch) -> bool {
        let of_packet = matches!(touch.kind, Kind::Packet | Kind::Aside);
        let reads = self.dropped.as_ref().filter(|_| of_packet);
        reads.is_some_and(|reads| !reads.iter().any(|read| read.may_meet(touch)))
    }

    /// Whether the bits are never read as they are.
    pub(super) fn holds(&self, touch: &Touch) -> bool {
        self.is_dropped(touch) || self.is_written_again(touch)
    }

    /// Whether all the bits are written before they are read, on every path where the packet is not dropped.
    pub(super) fn is_written_again(&self, touch: &Touch) -> bool {
        let mut at = touch.lo;
        // Adjacent spans may cover it together.
        while at < touch.hi {
            let over = |span: &&Touch| span.anchor == touch.anchor && span.lo <= at && at < span.hi;
            match self.spans.iter().filter(over).map(|span| span.hi).max() {
                Some(end) => at = end,
                None => return false,
            }
        }
        true
    }

    fn meet(self, other: &Unread) -> Unread {
        let mut spans = vec![];
        // What one path knows about distances need not hold on the other.
        for span in &self.spans {
            if other.is_dropped(&span.anywhere()) {
                spans.push(span.anywhere());
                continue;
            }
            for theirs in other.spans.iter().filter(|theirs| theirs.anchor == span.anchor) {
                let (lo, hi) = (span.lo.max(theirs.lo), span.hi.min(theirs.hi));
                if lo < hi {
                    spans.push(span.part(lo, hi).by_either(&theirs.part(lo, hi)));
                }
            }
        }
        let dropped = other.spans.iter().map(|span| span.anywhere());
        spans.extend(dropped.filter(|span| self.is_dropped(span)));
        spans.truncate(MOST_SPANS);
        let both = self.dropped.zip(other.dropped.as_ref());
        let dropped =
            both.and_then(|(reads, theirs)| bounded([reads.as_slice(), theirs.as_slice()].concat()));
        Unread { dropped, spans, bases: self.bases & other.bases }
    }

    /// Passes an instruction, from behind: what it reads.
    pub(super) fn read(&mut self, note: &OptimizationNote) {
        match note.reads {
            Reads::Nothing => {}
            Reads::Bits(touch) => {
                if let Some(mut reads) = self.dropped.take() {
                    reads.push(touch);
                    self.dropped = bounded(reads);
                }
                self.spans.retain(|span| !span.may_meet(&touch));
            }
            Reads::Packet => {
                self.dropped = None;
                self.spans.retain(|span| span.kind != Kind::Packet);
            }
        }
        self.bases &= !note.uses;
    }

    /// Passes a write, from behind.
    pub(super) fn write(&mut self, touch: Touch) {
        if !self.holds(&touch) {
            push_bounded(&mut self.spans, touch, MOST_SPANS);
        }
    }
}

/// The reads, if they are few.
fn bounded(mut reads: Vec<Touch>) -> Option<Vec<Touch>> {
    reads.dedup();
    (reads.len() <= MOST_SPANS).then_some(reads)
}

/// The unread bits after a block's last instruction.
pub(super) fn at_end(term: &Term, starts: &[Option<Unread>]) -> Unread {
    let mut unread = match term {
        Term::Drop(_) => return Unread::dropped(),
        Term::Emit(_) | Term::Slow(_) | Term::EmitTo(..) => return Unread::default(),
        _ => {
            let mut all = term.successors().into_iter().map(|to| &starts[to.index()]);
            let first = all.next().cloned().flatten().unwrap_or_default();
            all.fold(first, |all, next| match next {
                Some(next) => all.meet(next),
                None => Unread::default(),
            })
        }
    };
    if let Term::Need { base, .. } = term {
        unread.bases &= !(1 << *base as u8);
    }
    if term.is_barrier() {
        unread.spans.retain(|span| matches!(span.kind, Kind::Packet | Kind::Aside));
    }
    unread
}
