//! The fields of the descriptor that a region reads before it processes a packet.

use crate::lookup_region::{LookupRegion, RegionPlan};
use ir::program::{Block, Inst, Program, Term};
use packet::field::Base;
use std::collections::BTreeSet;

/// The maximum number of cells that are read before the loop over the batch: more would displace hotter
/// values from registers.
const CONSTANT_CELLS: usize = 3;

/// Cells that a region reads and the program never writes: handlers write them, between batches.
pub(super) fn constant_cells(program: &Program, plan: &RegionPlan, region: &LookupRegion) -> BTreeSet<u16> {
    let inside = region.blocks.iter().flat_map(|block| &program.block(*block).insts);
    let read = inside.filter_map(|(_, inst)| match inst {
        Inst::CellLoad(cell) if !plan.written_cells[usize::from(*cell)] => Some(*cell),
        _ => None,
    });
    let read: BTreeSet<u16> = read.collect();
    if read.len() > CONSTANT_CELLS { BTreeSet::new() } else { read }
}

/// The bases that a region uses.
#[derive(Clone, Copy, Default)]
pub(super) struct Touched {
    /// The bases that it uses at all: an instruction that moves one of them updates its variable.
    pub bases: [bool; 4],
    /// The bases that it uses before it sets them: only those are read.
    pub read: [bool; 4],
    /// Whether it uses the end of the first segment.
    pub end: bool,
    /// Whether it moves bases or the packet's ends, or tests for headroom.
    moves: bool,
}

impl Touched {
    pub fn of(program: &Program, plan: &RegionPlan, region: &LookupRegion) -> Touched {
        let mut touched = Touched::default();
        // The bases that each block and its successors use before they set them; the last block first.
        let mut wanted = vec![[false; 4]; program.blocks.len()];
        for &id in region.blocks.iter().rev() {
            let block = program.block(id);
            let mut want = [false; 4];
            if !program.is_barrier(&block.term, plan.walked) {
                for next in block.term.successors() {
                    let behind = wanted.get(next.index()).copied().unwrap_or_default();
                    want = [0, 1, 2, 3].map(|base| want[base] || behind[base]);
                }
            }
            touched.block(block, &mut want);
            wanted[id.index()] = want;
        }
        touched.read =
            [0, 1, 2, 3].map(|base| region.heads.iter().any(|head| wanted[head.block.index()][base]));
        // The end is counted from the packet's first byte, and so are the offsets that headers are set
        // to.
        if touched.end || touched.moves || touched.bases.contains(&true) {
            touched.bases[Base::Data as usize] = true;
            touched.read[Base::Data as usize] = true;
        }
        touched
    }

    /// Walks a block from its end; `want` is the set of bases that are needed after each instruction.
    fn block(&mut self, block: &Block, want: &mut [bool; 4]) {
        if let Term::Need { base, .. } = block.term {
            self.uses(base, want);
            self.end = true;
        }
        self.moves |= matches!(block.term, Term::Room { .. });
        for (_, inst) in block.insts.iter().rev() {
            match *inst {
                Inst::SetBase(base, _) | Inst::ClearBase(base) => {
                    self.moves = true;
                    want[base as usize] = false;
                }
                Inst::Pull(_) | Inst::Push(_) => self.moves = true,
                Inst::Load(field) | Inst::Store(field, _) => self.uses(field.base, want),
                Inst::Avail(base) => {
                    self.uses(base, want);
                    self.end = true;
                }
                Inst::Offset(base) => self.uses(base, want),
                Inst::Take(_) => self.end = true,
                Inst::IpSum => {
                    self.uses(Base::Net, want);
                    self.end = true;
                }
                _ => {}
            }
        }
    }

    fn uses(&mut self, base: Base, want: &mut [bool; 4]) {
        self.bases[base as usize] = true;
        want[base as usize] = true;
    }
}
