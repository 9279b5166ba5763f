//! Writes of neighbouring bytes, done by one write of 2, 4 or 8 bytes.
//!
//! Of a ping's answer the TTL and the checksum are written, and between them is the protocol, which is ICMP: all of it is
//! one write of four bytes. That comes last: writes that only some paths do again are moved and removed one by one, and of
//! bytes that are written together none can be.

use super::byte_range::ByteRange;
use super::forward::Forward;
use super::optimization_note::{OptimizationNote, Touch};
use super::sink::may_swap;
use super::value::Vn;
use ir::Inst;
use packet::field::Field;

/// Earlier writes are looked for among so many instructions: the work stays bounded.
const MOST_BEFORE: usize = 48;
/// The depth of the expression of what one write writes.
const DEPTH: u32 = 6;
/// The most instructions that put a value together, for each write that is saved.
const COST: u32 = 3;
/// Widths of one machine instruction, in bits.
const WIDTHS: [u8; 3] = [16, 32, 64];

/// One write for several.
struct Joined {
    field: Field,
    place: ByteRange,
    number: Vn,
    /// The instructions of this block that are those writes.
    writes: Vec<usize>,
}

impl Forward<'_> {
    /// Makes the last instruction, a write to the packet, one with earlier ones of this block, where one write can do what
    /// they do.
    pub(super) fn join_writes(&mut self) {
        let Some((last, earlier)) = self.joinable() else { return };
        let mut best: Option<Joined> = None;
        for place in windows(&last, &earlier) {
            let inside = |(_, touch): &&(usize, Touch)| place.bit <= touch.lo && touch.hi <= place.end();
            let writes: Vec<usize> = earlier.iter().filter(inside).map(|(at, _)| *at).collect();
            let saved = writes.len();
            if saved == 0 || best.as_ref().is_some_and(|best| best.writes.len() >= saved) {
                continue;
            }
            let Some(field) = self.field_at(place) else { continue };
            let Some(number) = self.state.held(place, &mut self.values, &self.anchors) else { continue };
            if self.cost(number, DEPTH, true).is_some_and(|cost| cost <= COST * saved as u32) {
                best = Some(Joined { field, place, number, writes });
            }
        }
        let Some(Joined { field, place, number, mut writes }) = best else { return };
        let block = self.here.index();
        writes.push(self.out[block].insts.len() - 1);
        let value = self.value(number);
        for at in writes.into_iter().rev() {
            self.out[block].insts.remove(at);
            self.notes[block].remove(at);
        }
        let inst = Inst::Store(field, value);
        self.act_write(place, inst);
        self.state.record_load(place, number, &self.anchors);
    }

    /// The last instruction's write, and those before that can be done here as well, the first one first.
    fn joinable(&self) -> Option<(Touch, Vec<(usize, Touch)>)> {
        let block = self.here.index();
        let (insts, notes) = (&self.out[block].insts, &self.notes[block]);
        let last =
            insts.last().filter(|(_, inst)| matches!(inst, Inst::Store(..))).and(notes.last()?.writes)?;
        let (mut between, mut earlier): (Vec<&OptimizationNote>, Vec<(usize, Touch)>) = (vec![], vec![]);
        for at in (0..insts.len().saturating_sub(1)).rev().take(MOST_BEFORE) {
            let note = &notes[at];
            match (insts[at].1, note.writes) {
                (Inst::Store(..), Some(touch))
                    if touch.anchor == last.anchor && between.iter().all(|later| may_swap(note, later)) =>
                {
                    earlier.push((at, touch));
                }
                _ if *note != OptimizationNote::PURE => between.push(note),
                _ => {}
            }
        }
        earlier.reverse();
        (!earlier.is_empty()).then_some((last, earlier))
    }
}

/// Places of some bytes that one instruction writes, which contain the last write and begin or end with one, the
/// narrowest first.
fn windows(last: &Touch, earlier: &[(usize, Touch)]) -> Vec<ByteRange> {
    let all: Vec<&Touch> = earlier.iter().map(|(_, touch)| touch).chain([last]).collect();
    let mut windows = vec![];
    for width in WIDTHS {
        let starts = all.iter().flat_map(|touch| [touch.lo, touch.hi - i64::from(width)]);
        let mut starts: Vec<i64> = starts.filter(|lo| lo % 8 == 0).collect();
        starts.sort_unstable();
        starts.dedup();
        let places = starts.into_iter().map(|bit| ByteRange { anchor: last.anchor, bit, width });
        windows.extend(places.filter(|place| place.bit <= last.lo && last.hi <= place.end()));
    }
    windows
}
