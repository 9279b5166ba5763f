//! The facts about a packet at each point of a region, with which machine code omits repeated tests.

use super::bounds::Bounds;
use crate::lookup_region::{LookupRegion, RegionPlan};
use ir::analysis::extent::Extent;
use ir::program::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::field::Base;
use std::collections::BTreeMap;

/// The facts at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// Bytes that the packet's first segment has from each base.
    extent: Extent,
    /// Whether the packet has one segment only.
    pub single: bool,
    /// A value: the packet has at least that many bytes.
    pub within: Option<Value>,
}

impl Known {
    /// Whether the first segment has that many bytes from a base.
    pub fn has(&self, base: Base, bytes: u64) -> bool {
        u64::from(self.extent.in_packet(base)) >= bytes
    }

    /// Updates the facts for an instruction. None changes the number of segments.
    pub fn pass(&mut self, inst: Inst, bounds: &Bounds) {
        self.extent.pass(inst, |value| bounds.constant(value));
        if let Inst::Pull(_) | Inst::Push(_) | Inst::Take(_) = inst {
            self.within = None;
        }
    }

    fn meet(&mut self, other: Known) {
        self.extent.meet(&other.extent);
        self.single &= other.single;
        self.within = self.within.filter(|_| self.within == other.within);
    }
}

/// The facts at the start of each block of a region. At the region's heads there are none.
pub(super) fn at_blocks(
    program: &Program,
    plan: &RegionPlan,
    region: &LookupRegion,
    bounds: &Bounds,
) -> BTreeMap<BlockId, Known> {
    let mut at = region.heads.iter().map(|head| (head.block, Known::default())).collect::<BTreeMap<_, _>>();
    for &id in &region.blocks {
        let block = program.block(id);
        let mut known = at.get(&id).copied().unwrap_or_default();
        block.insts.iter().for_each(|&(_, inst)| known.pass(inst, bounds));
        if program.is_barrier(&block.term, plan.walked) {
            continue;
        }
        for (which, next) in block.term.successors().into_iter().enumerate() {
            let mut there = Known { extent: known.extent.after(&block.term, which), ..known };
            if let (Term::Branch(value, ..), 0) = (&block.term, which) {
                match question(block, *value) {
                    Some(Question::Single) => there.single = true,
                    Some(Question::Within(bytes)) => there.within = Some(bytes),
                    None => {}
                }
            }
            at.entry(next).and_modify(|known| known.meet(there)).or_insert(there);
        }
    }
    at
}

/// A property of a packet that a branch tests.
enum Question {
    /// Whether the first segment contains the whole packet.
    Single,
    /// Whether the packet has that many bytes.
    Within(Value),
}

/// The property that a value of a block tests, if it is still valid at the block's end.
fn question(block: &Block, value: Value) -> Option<Question> {
    let moves = |inst: &Inst| matches!(inst, Inst::Pull(_) | Inst::Push(_) | Inst::Take(_));
    if block.insts.iter().any(|(_, inst)| moves(inst)) {
        return None;
    }
    let find = |value| block.insts.iter().find(|(result, _)| *result == Some(value)).map(|(_, inst)| *inst);
    match find(value)? {
        Inst::Bin(BinOp::Eq, one, other)
            if matches!((find(one), find(other)), (Some(Inst::Avail(Base::Data)), Some(Inst::Len))) =>
        {
            Some(Question::Single)
        }
        Inst::Bin(BinOp::Le, bytes, len) if matches!(find(len), Some(Inst::Len)) => {
            Some(Question::Within(bytes))
        }
        _ => None,
    }
}
