//! Writes that are never read, and values that are never used.
//!
//! A write is dead if on every path the same bits are written again before any read. After a drop the
//! packet is not read; at any other exit the receiver may read all of it. Cells and records outlive the
//! packet. At a stage boundary the packet keeps its content, but other packets may read cells and
//! records.
//!
//! A write that is dead on some paths only is moved to the start of the other paths ([`sink`]).

use super::forward::Rewritten;
use super::optimization_note::{Kind, Notes, OptimizationNote, Reads, Touch};
use super::optimizer_state::push_bounded;
use ir::analysis::order::edges_in;
use ir::{Block, BlockId, Inst, Program, Term};
use packet::field::Base;

/// Beyond this number ranges are discarded: the work per block stays bounded.
const MOST_SPANS: usize = 32;
/// Blocks that sinking may add, per block of the program.
const MOST_SPLITS: usize = 1;

/// The bits that are written again before they are read.
#[derive(Clone, Default, PartialEq, Debug)]
struct Unread {
    /// If the packet is dropped on every path: the reads before the drop.
    dropped: Option<Vec<Touch>>,
    spans: Vec<Touch>,
    /// Bases that are set or cleared before they are used, by bit.
    bases: u8,
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

    fn holds(&self, touch: &Touch) -> bool {
        if self.is_dropped(touch) {
            return true;
        }
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
        for span in &self.spans {
            if other.is_dropped(span) {
                spans.push(*span);
                continue;
            }
            for theirs in other.spans.iter().filter(|theirs| theirs.anchor == span.anchor) {
                let (lo, hi) = (span.lo.max(theirs.lo), span.hi.min(theirs.hi));
                // The facts about the position of one of the two are valid for a part of it, too.
                if lo < hi {
                    spans.push(span.part(lo, hi));
                }
            }
        }
        spans.extend(other.spans.iter().filter(|span| self.is_dropped(span)));
        spans.truncate(MOST_SPANS);
        let both = self.dropped.zip(other.dropped.as_ref());
        let dropped =
            both.and_then(|(reads, theirs)| bounded([reads.as_slice(), theirs.as_slice()].concat()));
        Unread { dropped, spans, bases: self.bases & other.bases }
    }

    fn read(&mut self, note: &OptimizationNote) {
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

    fn write(&mut self, touch: Touch) {
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
fn at_end(term: &Term, starts: &[Option<Unread>]) -> Unread {
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

/// Removes dead writes, and moves those that are dead on some paths.
pub fn remove(rewritten: &mut Rewritten) {
    let Rewritten { program, notes } = rewritten;
    let order = program.topological_order();
    let mut starts: Vec<Option<Unread>> = vec![None; program.blocks.len()];
    for &id in order.iter().rev() {
        let block = &mut program.blocks[id.index()];
        let mut unread = at_end(&block.term, &starts);
        let mut keep = vec![true; block.insts.len()];
        for (at, note) in notes[id.index()].iter().enumerate().rev() {
            if let Some(touch) = note.writes {
                if unread.holds(&touch) {
                    keep[at] = false;
                    continue;
                }
                unread.write(touch);
            }
            if let Some(base) = note.moves.filter(|base| *base != Base::Data) {
                if unread.bases >> base as u8 & 1 == 1 {
                    keep[at] = false;
                    continue;
                }
                unread.bases |= 1 << base as u8;
            }
            unread.read(note);
        }
        retain(&mut block.insts, &keep);
        retain(&mut notes[id.index()], &keep);
        starts[id.index()] = Some(unread);
    }
    sink(program, notes, &starts, &order);
    remove_unused(program, notes);
}

fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| keep.next().copied().unwrap_or(true));
}

/// Moves writes that are dead on one edge out of their block to its other edges.
fn sink(program: &mut Program, notes: &mut Notes, starts: &[Option<Unread>], order: &[BlockId]) {
    let in_edges = edges_in(program, order);
    let mut splits = program.blocks.len() * MOST_SPLITS + 8;
    for &id in order {
        let term = &program.block(id).term;
        let fits =
            matches!(term, Term::Branch(..) | Term::Need { .. } | Term::Room { .. } | Term::Switch(..));
        let mut next = term.successors();
        next.sort_unstable();
        next.dedup();
        if !fits || next.len() < 2 {
            continue;
        }
        let moved = movable(program.block(id), &notes[id.index()], &next, starts);
        let Some(moved) = (!moved.is_empty()).then_some(moved) else { continue };
        for to in next {
            let live: Vec<usize> = moved
                .iter()
                .copied()
                .filter(|at| is_live(&starts[to.index()], &notes[id.index()][*at]))
                .collect();
            if live.is_empty() {
                continue;
            }
            let insts: Vec<_> = live.iter().map(|at| program.block(id).insts[*at]).collect();
            let moved_notes: Vec<OptimizationNote> = live.iter().map(|at| notes[id.index()][*at]).collect();
            let target = if in_edges[to.index()] == 1 {
                to
            } else {
                // A new block on the edge.
                splits = splits.saturating_sub(1);
                let split = BlockId(program.blocks.len() as u32);
                program.blocks.push(Block { params: vec![], insts: vec![], term: Term::Jump(to, vec![]) });
                notes.push(vec![]);
                program.blocks[id.index()].term.map_successors(|old| if old == to { split } else { old });
                split
            };
            program.blocks[target.index()].insts.splice(0..0, insts);
            notes[target.index()].splice(0..0, moved_notes);
        }
        let keep: Vec<bool> = (0..program.block(id).insts.len()).map(|at| !moved.contains(&at)).collect();
        retain(&mut program.blocks[id.index()].insts, &keep);
        retain(&mut notes[id.index()], &keep);
        if splits == 0 {
            return;
        }
    }
}

fn is_live(start: &Option<Unread>, note: &OptimizationNote) -> bool {
    note.writes.is_none_or(|touch| !start.as_ref().is_some_and(|start| start.holds(&touch)))
}

/// The writes of a block that can be moved to its end, and are dead on one edge out of it.
fn movable(
    block: &Block,
    notes: &[OptimizationNote],
    next: &[BlockId],
    starts: &[Option<Unread>],
) -> Vec<usize> {
    let mut moved = vec![];
    // The instructions after it that stay in the block.
    let mut behind: Vec<&OptimizationNote> = vec![];
    for (at, note) in notes.iter().enumerate().rev() {
        let sinks = note.writes.is_some_and(|touch| {
            matches!(touch.kind, Kind::Packet | Kind::Aside)
                && matches!(block.insts[at].1, Inst::Store(..) | Inst::StoreAnno(..) | Inst::SetPacketType(_))
                && behind.iter().all(|later| may_swap(note, &touch, later))
                && next.iter().any(|to| !is_live(&starts[to.index()], note))
        });
        if sinks {
            moved.push(at);
        } else if *note != OptimizationNote::PURE {
            behind.push(note);
        }
        if behind.len() > MOST_SPANS {
            break;
        }
    }
    moved.reverse();
    moved
}

/// Whether a write can be moved after another instruction.
fn may_swap(note: &OptimizationNote, touch: &Touch, later: &OptimizationNote) -> bool {
    let reads = match later.reads {
        Reads::Nothing => false,
        Reads::Bits(read) => read.may_meet(touch),
        Reads::Packet => touch.kind == Kind::Packet,
    };
    let writes = later.writes.is_some_and(|written| written.may_meet(touch));
    let moves = later.moves.is_some_and(|base| note.uses >> base as u8 & 1 == 1);
    !reads && !writes && !moves
}

/// Removes instructions and parameters whose value is not used.
fn remove_unused(program: &mut Program, notes: &mut [Vec<OptimizationNote>]) {
    let mut used = vec![false; program.value_count()];
    let order = program.topological_order();
    // Uses follow definitions, except for arguments of jumps to parameters: those are walked first.
    for &id in order.iter().rev() {
        let Block { insts, term, .. } = &program.blocks[id.index()];
        let operands = match term {
            Term::Jump(to, args) => {
                let params = &program.block(*to).params;
                args.iter()
                    .zip(params)
                    .filter(|(_, param)| used[param.0 as usize])
                    .map(|pair| *pair.0)
                    .collect()
            }
            term => term.operands(),
        };
        operands.into_iter().for_each(|value| used[value.0 as usize] = true);
        for (value, inst) in insts.iter().rev() {
            if value.is_none_or(|value| used[value.0 as usize]) {
                inst.operands().into_iter().for_each(|value| used[value.0 as usize] = true);
            }
        }
    }
    let keeps: Vec<Vec<bool>> = program
        .blocks
        .iter()
        .map(|block| block.params.iter().map(|param| used[param.0 as usize]).collect())
        .collect();
    for (at, block) in program.blocks.iter_mut().enumerate() {
        let keep: Vec<bool> =
            block.insts.iter().map(|(value, _)| value.is_none_or(|value| used[value.0 as usize])).collect();
        retain(&mut block.insts, &keep);
        retain(&mut notes[at], &keep);
        retain(&mut block.params, &keeps[at]);
        if let Term::Jump(to, args) = &mut block.term {
            retain(args, &keeps[to.index()]);
        }
    }
}
