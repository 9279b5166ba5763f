//! Bytes that a pull removes from a packet's front are removed as late as possible: where the next NF pushes a header
//! of its own in their place, the two cancel, and nothing between moves the packet's start.
//!
//! A pull is delayed past instructions that do not count from the packet's first byte, and past those that can count from
//! another one; past tests and lookups, too, while a push may come on some path behind. It is done where none comes any
//! more, where paths meet that have delayed different numbers of bytes, and before the packet is handed on. Paths to a drop
//! do without.

use super::dead::remove_unused;
use super::known::DelayedPulls;
use super::optimization_note::{Notes, OptimizationNote};
use super::sink::{end_of_edge, most_splits};
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::field::Base;

/// As many bytes are delayed at most: more than a few headers have.
const MOST_BYTES: u16 = 256;

/// What comes behind a point of a program.
#[derive(Clone, Copy, Default)]
struct Behind {
    /// Whether some path has a push before anything that needs the packet's start to be where it is.
    pushes: bool,
    /// Whether some path asks where the packet starts.
    asks: bool,
}

/// What an instruction is to a delayed pull.
enum Role {
    /// It does not depend on where the packet starts.
    Free,
    /// It counts from the packet's first byte, and can count from one ahead of it.
    Counts,
    /// A pull of so many bytes, which are there.
    Pulls(u16),
    /// A push.
    Pushes(u16),
    /// The packet has to start where it does.
    Holds,
}

/// A block as it becomes.
#[derive(Default)]
struct Rewriting {
    insts: Vec<(Option<Value>, Inst)>,
    notes: Vec<OptimizationNote>,
}

impl Rewriting {
    fn add(&mut self, inst: (Option<Value>, Inst), note: OptimizationNote) {
        self.insts.push(inst);
        self.notes.push(note);
    }
}

struct LatePulls {
    which: DelayedPulls,
    constants: Vec<Option<u64>>,
    /// The number of the next value.
    next: u32,
    /// What comes behind the start of each block.
    starts: Vec<Behind>,
    /// The bytes that are delayed on each edge to a block, and the block it leaves; none for an entry.
    coming: Vec<Vec<(Option<BlockId>, u16)>>,
    /// The edges on which bytes are pulled.
    edges: Vec<(BlockId, BlockId, u16)>,
}

/// Delays the pulls of a rewritten program that pushes may cancel.
pub(super) fn delay(program: &mut Program, notes: &mut Notes, which: DelayedPulls) {
    if which == DelayedPulls::None {
        return;
    }
    let has = |wanted: fn(&Inst) -> bool| {
        program.blocks.iter().any(|block| block.insts.iter().any(|(_, inst)| wanted(inst)))
    };
    if !has(|inst| matches!(inst, Inst::Pull(_))) || !has(|inst| matches!(inst, Inst::Push(_))) {
        return;
    }
    let order = program.topological_order();
    let mut late = LatePulls::of(program, notes, &order, which);
    let blocks: Vec<(Rewriting, Term)> =
        order.iter().map(|id| late.block(*id, program.block(*id), &notes[id.index()])).collect();
    if late.edges.len() > most_splits(program) {
        return;
    }
    for (id, (Rewriting { insts, notes: its }, term)) in order.into_iter().zip(blocks) {
        let block = &mut program.blocks[id.index()];
        (block.insts, block.term) = (insts, term);
        notes[id.index()] = its;
    }
    for (from, to, bytes) in std::mem::take(&mut late.edges) {
        let at = end_of_edge(&mut program.blocks, notes, (from, to));
        let mut on_edge = Rewriting::default();
        late.pull(&mut on_edge, bytes);
        program.blocks[at.index()].insts.extend(on_edge.insts);
        notes[at.index()].extend(on_edge.notes);
    }
    remove_unused(program, notes);
}

impl LatePulls {
    fn of(program: &Program, notes: &Notes, order: &[BlockId], which: DelayedPulls) -> LatePulls {
        let count = program.blocks.len();
        let mut constants = vec![None; program.value_count()];
        for (value, inst) in order.iter().flat_map(|id| &program.block(*id).insts) {
            if let (Some(value), Inst::Const(number)) = (value, inst) {
                constants[value.0 as usize] = Some(*number);
            }
        }
        let next = constants.len() as u32;
        let (starts, coming) = (vec![Behind::default(); count], vec![vec![]; count]);
        let mut late = LatePulls { which, constants, next, starts, coming, edges: vec![] };
        for entry in &program.entries {
            late.coming[entry.index()].push((None, 0));
        }
        for id in order.iter().rev() {
            late.starts[id.index()] = late.behind(program.block(*id), &notes[id.index()])[0];
        }
        late
    }

    fn constant(&self, value: Value) -> Option<u64> {
        self.constants.get(value.0 as usize).copied().flatten()
    }

    fn role(&self, inst: Inst, note: &OptimizationNote, block: &Block) -> Role {
        let is_small = |bytes: &u64| *bytes <= MOST_BYTES.into();
        match inst {
            Inst::Push(bytes) => Role::Pushes(bytes),
            Inst::Pull(by) => match self.constant(by).filter(is_small) {
                Some(bytes) if note.whole == DelayedPulls::Verified || note.whole == self.which => {
                    Role::Pulls(bytes as u16)
                }
                _ => Role::Holds,
            },
            Inst::SetBase(_, by) if self.constant(by).filter(is_small).is_some() => Role::Counts,
            Inst::Load(field) | Inst::Store(field, _) if field.base == Base::Data => {
                match field.bit.checked_add(8 * MOST_BYTES) {
                    Some(_) => Role::Counts,
                    None => Role::Holds,
                }
            }
            // Machine code knows a test for a single segment by these two.
            Inst::Avail(Base::Data) if block.insts.iter().any(|(_, inst)| *inst == Inst::Len) => Role::Holds,
            Inst::Len | Inst::Avail(Base::Data) => Role::Counts,
            Inst::SetBase(..) | Inst::Offset(_) | Inst::Take(_) => Role::Holds,
            _ => Role::Free,
        }
    }

    /// What comes behind each instruction of a block with the instruction itself, and behind its last one.
    fn behind(&self, block: &Block, notes: &[OptimizationNote]) -> Vec<Behind> {
        let mut behind = self.at_end(&block.term);
        let mut all = vec![behind];
        for ((_, inst), note) in block.insts.iter().zip(notes).rev() {
            behind = match self.role(*inst, note, block) {
                Role::Free | Role::Pulls(_) => behind,
                Role::Counts => Behind { asks: true, ..behind },
                Role::Pushes(_) => Behind { pushes: true, asks: true },
                Role::Holds => Behind { pushes: false, asks: true },
            };
            all.push(behind);
        }
        all.reverse();
        all
    }

    fn at_end(&self, term: &Term) -> Behind {
        match term {
            Term::Drop(_) => Behind::default(),
            Term::Emit(_) | Term::EmitTo(..) | Term::Slow(_) => Behind { pushes: false, asks: true },
            term => {
                let next = term.successors().into_iter().map(|to| self.starts[to.index()]);
                let all = next.fold(Behind::default(), |all, one| Behind {
                    pushes: all.pushes || one.pushes,
                    asks: all.asks || one.asks,
                });
                let is_test = matches!(term, Term::Need { base: Base::Data, .. } | Term::Room { .. });
                Behind { asks: all.asks || is_test, ..all }
            }
        }
    }

    /// The bytes that are delayed at the start of a block; what cannot be delayed further is pulled there.
    fn start(&mut self, id: BlockId, start: Behind, done: &mut Rewriting) -> u16 {
        let coming = std::mem::take(&mut self.coming[id.index()]);
        let bytes = coming.first().map_or(0, |first| first.1);
        if !start.asks {
            return 0;
        }
        if coming.iter().any(|one| one.1 != bytes) {
            let mut edges: Vec<(BlockId, BlockId, u16)> = coming
                .into_iter()
                .filter_map(|(from, bytes)| Some((from.filter(|_| bytes > 0)?, id, bytes)))
                .collect();
            edges.sort_unstable();
            edges.dedup();
            self.edges.extend(edges);
            return 0;
        }
        if start.pushes {
            return bytes;
        }
        self.pull(done, bytes);
        0
    }

    fn block(&mut self, id: BlockId, block: &Block, notes: &[OptimizationNote]) -> (Rewriting, Term) {
        let behind = self.behind(block, notes);
        let mut done = Rewriting::default();
        // A test for headroom that always holds leads here no more.
        if self.coming[id.index()].is_empty() {
            return (Rewriting { insts: block.insts.clone(), notes: notes.to_vec() }, block.term.clone());
        }
        let mut late = self.start(id, behind[0], &mut done);
        for ((&(value, inst), &note), behind) in block.insts.iter().zip(notes).zip(&behind[1..]) {
            match self.role(inst, &note, block) {
                Role::Free => done.add((value, inst), note),
                Role::Pulls(bytes) if late + bytes <= MOST_BYTES && (behind.pushes || !behind.asks) => {
                    late += bytes;
                }
                Role::Pulls(bytes) if late > 0 => {
                    self.pull(&mut done, late + bytes);
                    late = 0;
                }
                Role::Pulls(_) => done.add((value, inst), note),
                Role::Pushes(bytes) => {
                    let left = bytes.saturating_sub(late);
                    late = late.saturating_sub(bytes);
                    if left > 0 {
                        done.add((None, Inst::Push(left)), note);
                    }
                    if late > 0 && behind.asks && !behind.pushes {
                        self.pull(&mut done, late);
                        late = 0;
                    }
                }
                Role::Counts => self.count_from(late, (value, inst), note, &mut done),
                Role::Holds => {
                    self.pull(&mut done, late);
                    late = 0;
                    done.add((value, inst), note);
                }
            }
        }
        let term = match block.term.clone() {
            Term::Need { base: Base::Data, bytes, then, els } if bytes.checked_add(late).is_some() => {
                Term::Need { base: Base::Data, bytes: bytes + late, then, els }
            }
            // What is still to be pulled becomes headroom.
            Term::Room { bytes, then, .. } if bytes <= late => Term::Jump(then, vec![]),
            Term::Room { bytes, then, els } => Term::Room { bytes: bytes - late, then, els },
            term @ (Term::Emit(_)
            | Term::EmitTo(..)
            | Term::Slow(_)
            | Term::Need { base: Base::Data, .. }) => {
                self.pull(&mut done, late);
                late = 0;
                term
            }
            term => term,
        };
        for to in term.successors() {
            self.coming[to.index()].push((Some(id), late));
        }
        (done, term)
    }

    fn fresh(&mut self) -> Value {
        self.next += 1;
        Value(self.next - 1)
    }

    fn number(&mut self, number: u64, done: &mut Rewriting) -> Value {
        let value = self.fresh();
        done.add((Some(value), Inst::Const(number)), OptimizationNote::PURE);
        value
    }

    /// Pulls delayed bytes.
    fn pull(&mut self, done: &mut Rewriting, bytes: u16) {
        if bytes > 0 {
            let by = self.number(bytes.into(), done);
            let note = OptimizationNote { moves: Some(Base::Data), ..OptimizationNote::PURE };
            done.add((None, Inst::Pull(by)), note);
        }
    }

    /// An instruction that counts from the packet's first byte, where that is so many bytes ahead.
    fn count_from(
        &mut self,
        late: u16,
        (value, inst): (Option<Value>, Inst),
        note: OptimizationNote,
        done: &mut Rewriting,
    ) {
        if late == 0 {
            return done.add((value, inst), note);
        }
        match inst {
            Inst::Load(mut field) => {
                field.bit += 8 * late;
                done.add((value, Inst::Load(field)), note);
            }
            Inst::Store(mut field, written) => {
                field.bit += 8 * late;
                done.add((value, Inst::Store(field, written)), note);
            }
            Inst::SetBase(base, by) => {
                let by = self.constant(by).unwrap_or(0) + u64::from(late);
                let by = self.number(by, done);
                done.add((value, Inst::SetBase(base, by)), note);
            }
            bytes => {
                let (all, by) = (self.fresh(), self.number(late.into(), done));
                done.add((Some(all), bytes), note);
                done.add((value, Inst::Bin(BinOp::Sub, all, by)), OptimizationNote::PURE);
            }
        }
    }
}
